"""Clocks, passed as arguments so that rules about time can be tested without waiting."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

#: Bound before any user's code runs: libraries that freeze time in tests replace it.
_NOW_NS = time.perf_counter_ns


class Clock(Protocol):
    """A monotonic clock."""

    def now_ns(self) -> int:
        """Return nanoseconds since a fixed moment."""

    def tick_ns(self) -> float:
        """Return the smallest difference that it can show."""


class MonotonicClock:
    """The system's monotonic clock.

    `now_ns` is bound to the C function itself: a Python wrapper would add about
    60 ns to every reading.
    """

    def __init__(self) -> None:
        self.now_ns = _NOW_NS

    def tick_ns(self) -> float:
        """Return the measured resolution: the system declares 1 ns, and shows more."""
        smallest = float("inf")
        for _ in range(200):
            start = _NOW_NS()
            while (end := _NOW_NS()) == start:
                pass
            smallest = min(smallest, end - start)
        return smallest


def cpu_seconds() -> float:
    """Return the processor time of this process so far."""
    times = os.times()
    return times.user + times.system


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Switch Python's garbage collector off while entered: it would delay only some samples."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

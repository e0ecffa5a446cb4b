"""What profiles of several engines have in common: steps that are timed around, times without
what was called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from accelbench.core.clock import Clock
from accelbench.runtimes.shared.local import no_collection


def walls(clock: Clock, steps: int, step: Callable[[], Any]) -> list[int]:
    """The nanoseconds of so many steps, each done when it returns."""
    times = []
    with no_collection():
        for _ in range(steps):
            start = clock.now_ns()
            step()
            times.append(clock.now_ns() - start)
    return times


def own(events: Sequence[tuple[Hashable, float, float]]) -> list[float]:
    """Of each event its time without the events that lie within it on the same thread.

    Args:
        events: thread, start and duration of each, in any order.
    """
    times = [duration for _, _, duration in events]
    threads: dict[Hashable, list[int]] = defaultdict(list)
    for i, (thread, _, _) in enumerate(events):
        threads[thread].append(i)
    for indices in threads.values():
        open_: list[tuple[int, float]] = []  # those that the next one may lie within, and their end
        for i in sorted(indices, key=lambda i: (events[i][1], -events[i][2])):
            _, start, duration = events[i]
            while open_ and open_[-1][1] <= start:
                open_.pop()
            if open_:
                outer, end = open_[-1]
                times[outer] -= min(start + duration, end) - start
            open_.append((i, start + duration))
    return [max(time, 0.0) for time in times]

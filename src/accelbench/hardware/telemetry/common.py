"""Telemetry protocol of all vendors, and the null object.

An unknown value is a NotAvailable with its reason; never 0, never a guess.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from accelbench.hardware.common import NotAvailable

T = TypeVar("T")


@dataclass(frozen=True)
class Clocks:
    """Current clocks in MHz; None if unknown."""

    compute_mhz: float | None
    memory_mhz: float | None = None
    compute_max_mhz: float | None = None


@dataclass(frozen=True)
class ForeignProcess:
    """Process of another user or program on the device."""

    pid: int
    memory_bytes: int | None


class Telemetry(Protocol):
    """Meters of a device, read from outside the engine."""

    source: str  # description of the library or files

    def clocks(self) -> Clocks | NotAvailable:
        """Return the current clocks."""

    def energy_millijoules(self) -> float | NotAvailable:
        """Return a counter of used energy; only its differences are meaningful."""

    def power_watts(self) -> float | NotAvailable:
        """Return the current power, as the device averages it."""

    def temperature_celsius(self) -> float | NotAvailable:
        """Return the current temperature."""

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        """Return the reasons why the clocks are limited now; empty if they are not."""

    def device_memory_used(self) -> int | NotAvailable:
        """Return the bytes in use on the device by all processes."""

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        """Return processes on the device that are neither this one nor among `own`."""

    def close(self) -> None:
        """Release the library."""


class NullTelemetry:
    """Missing telemetry: every answer is the reason."""

    source = "none"

    def __init__(self, reason: str) -> None:
        self._nothing = NotAvailable(reason)

    def _absent(self) -> Any:
        return self._nothing

    clocks = energy_millijoules = power_watts = temperature_celsius = _absent
    throttled = device_memory_used = _absent

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        return self._nothing

    def close(self) -> None:
        return None


class LibraryTelemetry:
    """Meters of one GPU by its vendor's library, whose errors have one class."""

    source: str

    def __init__(self, library: Any, handle: Any, error: type[Exception]) -> None:
        self._library = library
        self._handle = handle
        self._error = error

    def _query(self, name: str, *args: Any) -> Any:
        question = getattr(self._library, name)
        return query_library(lambda: question(self._handle, *args), self._error, self.source)


def query_library(
    question: Callable[[], T], errors: type[Exception] | tuple[type[Exception], ...], name: str
) -> T | NotAvailable:
    """Return an answer, or a NotAvailable with the error of the vendor's library."""
    try:
        return question()
    except errors as error:
        message = " ".join(str(error).split()) or type(error).__name__
        return NotAvailable(f"{name}: {message}")


def foreign_only(
    processes: list[ForeignProcess], own: Collection[int]
) -> tuple[ForeignProcess, ...]:
    """Return the processes that are neither this one nor among `own`, each once."""
    ours = {os.getpid(), *own}
    by_pid = {process.pid: process for process in processes if process.pid not in ours}
    return tuple(by_pid.values())

"""The telemetry of every vendor, and the null object for vendors without one.

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
    """Present clocks in MHz; None if unknown."""

    compute_mhz: float | None
    memory_mhz: float | None = None
    compute_max_mhz: float | None = None


@dataclass(frozen=True)
class ForeignProcess:
    """Another user's or program's process on the device."""

    pid: int
    memory_bytes: int | None


class Telemetry(Protocol):
    """A device's meters, read from outside the engine."""

    source: str  # in words: which library or files

    def clocks(self) -> Clocks | NotAvailable:
        """Return present clocks."""

    def energy_millijoules(self) -> float | NotAvailable:
        """Return a counter of energy used; only differences have a meaning."""

    def power_watts(self) -> float | NotAvailable:
        """Return present power, as the device averages it."""

    def temperature_celsius(self) -> float | NotAvailable:
        """Return present temperature."""

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        """Return why the clocks are held down now, in words; empty if they are not."""

    def device_memory_used(self) -> int | NotAvailable:
        """Return bytes in use on the device, by everybody."""

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        """Return processes on the device that are neither this one nor among `own`."""

    def close(self) -> None:
        """Release the library."""


class NullTelemetry:
    """Telemetry that is absent: every answer is the reason."""

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
    """One GPU's meters by its vendor's library, whose errors are of one class."""

    source: str

    def __init__(self, library: Any, handle: Any, error: type[Exception]) -> None:
        self._library = library
        self._handle = handle
        self._error = error

    def _asked(self, name: str, *args: Any) -> Any:
        question = getattr(self._library, name)
        return asked(lambda: question(self._handle, *args), self._error, self.source)


def asked(
    question: Callable[[], T], errors: type[Exception] | tuple[type[Exception], ...], what: str
) -> T | NotAvailable:
    """Return an answer, or a NotAvailable with the error of the vendor's library."""
    try:
        return question()
    except errors as error:
        message = " ".join(str(error).split()) or type(error).__name__
        return NotAvailable(f"{what}: {message}")


def not_ours(processes: list[ForeignProcess], own: Collection[int]) -> tuple[ForeignProcess, ...]:
    """Return the processes that are neither this one nor among `own`, each once."""
    ours = {os.getpid(), *own}
    by_pid = {process.pid: process for process in processes if process.pid not in ours}
    return tuple(by_pid.values())

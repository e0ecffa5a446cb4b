"""What every vendor's telemetry answers, and the null object for vendors that cannot.

A figure that cannot be had is a NotAvailable with its reason; never 0, never a guess.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeVar

from accelbench.hardware.common import NotAvailable

T = TypeVar("T")


@dataclass(frozen=True)
class Clocks:
    """Present clocks in MHz; None where the device does not tell that one."""

    compute_mhz: float | None
    memory_mhz: float | None = None
    compute_max_mhz: float | None = None


@dataclass(frozen=True)
class ForeignProcess:
    """Somebody else's process on the device."""

    pid: int
    memory_bytes: int | None


class Telemetry(Protocol):
    """A device's meters, read from outside the engine."""

    source: str  # in words: which library or files

    def clocks(self) -> Clocks | NotAvailable:
        """Present clocks."""

    def energy_millijoules(self) -> float | NotAvailable:
        """A counter of energy used: only differences mean anything."""

    def power_watts(self) -> float | NotAvailable:
        """Present power, as the device averages it."""

    def temperature_celsius(self) -> float | NotAvailable:
        """Present temperature."""

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        """Why the clocks are held down now, in words; empty where they are not."""

    def device_memory_used(self) -> int | NotAvailable:
        """Bytes in use on the device, by everybody."""

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        """Processes on the device that are neither this one nor among `own`."""

    def close(self) -> None:
        """Let go of the library."""


class NullTelemetry:
    """In place of a vendor's telemetry that is absent: every answer is the reason."""

    source = "none"

    def __init__(self, reason: str) -> None:
        self._nothing = NotAvailable(reason)

    def clocks(self) -> Clocks | NotAvailable:
        return self._nothing

    def energy_millijoules(self) -> float | NotAvailable:
        return self._nothing

    def power_watts(self) -> float | NotAvailable:
        return self._nothing

    def temperature_celsius(self) -> float | NotAvailable:
        return self._nothing

    def throttled(self) -> tuple[str, ...] | NotAvailable:
        return self._nothing

    def device_memory_used(self) -> int | NotAvailable:
        return self._nothing

    def foreign_processes(
        self, own: Collection[int] = ()
    ) -> tuple[ForeignProcess, ...] | NotAvailable:
        return self._nothing

    def close(self) -> None:
        return None


def asked(
    question: Callable[[], T], errors: type[Exception] | tuple[type[Exception], ...], what: str
) -> T | NotAvailable:
    """An answer, or a NotAvailable with what the vendor's library said."""
    try:
        return question()
    except errors as error:
        message = " ".join(str(error).split()) or type(error).__name__
        return NotAvailable(f"{what}: {message}")


def not_ours(processes: list[ForeignProcess], own: Collection[int]) -> tuple[ForeignProcess, ...]:
    """The processes that are neither this one nor among `own`, each once."""
    ours = {os.getpid(), *own}
    by_pid = {process.pid: process for process in processes if process.pid not in ours}
    return tuple(by_pid.values())

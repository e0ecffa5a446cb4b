"""Energy meters: what is read of a device's counter, or of its power, and when.

A counter only grows, until it runs over or its driver starts it anew; of a sensor that gives power
alone, energy is the integral over readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class EnergyMethod(StrEnum):
    """How energy is had from a meter."""

    COUNTER = "counter"  # a difference of two readings of a counter of joules
    INTEGRATED = "integrated"  # readings of power, by the trapezoidal rule


class MeterError(Exception):
    """A meter stopped answering; the message says why."""


@dataclass(frozen=True)
class MeterReading:
    """What a meter showed: joules of each of its counters, or watts."""

    at_ns: int  # when it had been read, by a monotonic clock
    values: tuple[float, ...]  # one for each of the meter's ranges


class EnergyMeter(Protocol):
    """One device's meter of energy. Meters of several counters are added up."""

    @property
    def source(self) -> str:
        """Which library or files are read."""

    @property
    def scope(self) -> str:
        """What is counted: the whole package, the board, …"""

    @property
    def method(self) -> EnergyMethod:
        """Whether it counts joules or shows watts."""

    @property
    def ranges(self) -> Sequence[float | None]:
        """Joules at which each counter starts again from 0; None where it does not."""

    def read(self) -> tuple[float, ...]:
        """Return its counters in joules, or its power in watts, or raise MeterError."""

    def close(self) -> None:
        """Let go of the library."""

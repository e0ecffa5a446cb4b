"""Protocol of energy meters, which count joules or show watts.

A counter only grows, until it overflows or its driver restarts it. For a sensor that only shows
power, energy is the integral over its readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class EnergyMethod(StrEnum):
    """How energy is calculated from a meter."""

    COUNTER = "counter"  # a difference of two readings of a counter of joules
    INTEGRATED = "integrated"  # readings of power, by the trapezoidal rule


class MeterError(Exception):
    """A meter no longer answers; the message has the reason."""


@dataclass(frozen=True)
class MeterReading:
    """Reading of a meter: joules of each of its counters, or watts."""

    at_ns: int  # after reading, by a monotonic clock
    values: tuple[float, ...]  # one for each of the meter's ranges


class EnergyMeter(Protocol):
    """One device's meter of energy. Meters of several counters are added up."""

    @property
    def source(self) -> str:
        """The library or files that are read."""

    @property
    def scope(self) -> str:
        """The counted hardware: the whole package, the board and so on."""

    @property
    def method(self) -> EnergyMethod:
        """Whether it counts joules or shows watts."""

    @property
    def ranges(self) -> Sequence[float | None]:
        """Joules at which each counter restarts from 0; None if it does not."""

    def read(self) -> tuple[float, ...]:
        """Return its counters in joules, or its power in watts; raise MeterError if it fails."""

    def close(self) -> None:
        """Release the library."""

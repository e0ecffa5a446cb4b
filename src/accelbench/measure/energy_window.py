"""Energy of a window, from the readings of a meter that was watched meanwhile. Pure.

A counter moves in updates: a window that begins and ends anywhere is off by up to one at each end.
So it begins and ends at updates, and what lies between them is known exactly. A counter that went
back has run over, or was started anew: which of the two, the power tells that it would mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from accelbench.core.energy import EnergyMethod, MeterReading
from accelbench.measure.student import t_quantile

#: No counter is of anything that takes more: the largest sockets and boards take 2 kW at their
#: peak. A counter that would have to have counted more than that was started anew.
MOST_WATTS = 5e3
#: Parts of a window whose powers give its interval: with fewer updates than that each, fewer.
PARTS = 10
_UPDATES_A_PART = 4
_LEVEL = 0.975


class CounterResetError(Exception):
    """A counter went back, and not because it was full: the window means nothing."""


@dataclass(frozen=True)
class EnergyPoint:
    """Joules since the first reading, at an update."""

    at_ns: int
    joules: float


@dataclass(frozen=True)
class WindowEnergy:
    """What a window used, between its first update and its last.

    Attributes:
        joules: between these two.
        seconds: likewise.
        updates: of the counter, or readings of power.
        low: lower end of the 95 % interval of the power, from parts of the window; None where
            there are too few.
        high: the upper end.
    """

    joules: float
    seconds: float
    updates: int
    low: float | None = None
    high: float | None = None

    @property
    def watts(self) -> float:
        """Mean power."""
        return self.joules / self.seconds


def updates_of(
    readings: Sequence[MeterReading],
    method: EnergyMethod,
    ranges: Sequence[float | None],
) -> list[EnergyPoint]:
    """Energy at each update of a counter, or at each reading of power.

    Args:
        readings: in order of time.
        method: what they are of.
        ranges: joules at which each counter starts again; None where it does not.

    Raises:
        CounterResetError: a counter was started anew.
    """
    if method is EnergyMethod.INTEGRATED:
        return list(_integrated(readings))
    return list(_counted(readings, ranges))


def _counted(
    readings: Sequence[MeterReading], ranges: Sequence[float | None]
) -> Iterator[EnergyPoint]:
    """The first reading is of an update that nobody saw, and is none."""
    joules = 0.0
    for before, now in pairwise(readings):
        seconds = (now.at_ns - before.at_ns) / 1e9
        added = sum(
            _added(earlier, later, limit, seconds)
            for earlier, later, limit in zip(before.values, now.values, ranges, strict=True)
        )
        if now.values != before.values:
            joules += added
            yield EnergyPoint(now.at_ns, joules)


def _added(before: float, now: float, limit: float | None, seconds: float) -> float:
    """Joules between two readings of one counter, which may have run over once."""
    if now >= before:
        return now - before
    if limit is None or now > limit:
        raise CounterResetError("its counter went back, and it does not run over")
    added = limit - before + now
    if added < 0 or added > MOST_WATTS * seconds:
        raise CounterResetError("its counter went back before it was full: it was started anew")
    return added


def _integrated(readings: Sequence[MeterReading]) -> Iterator[EnergyPoint]:
    joules = 0.0
    for number, now in enumerate(readings):
        if number:
            before = readings[number - 1]
            seconds = (now.at_ns - before.at_ns) / 1e9
            joules += (sum(before.values) + sum(now.values)) / 2 * seconds
        yield EnergyPoint(now.at_ns, joules)


def window_energy(points: Sequence[EnergyPoint], begin_ns: int, end_ns: int) -> WindowEnergy | None:
    """What was used between two moments; None where fewer than two updates lie between them.

    Args:
        points: updates, in order of time.
        begin_ns: the window's begin.
        end_ns: its end.
    """
    inside = [point for point in points if begin_ns <= point.at_ns <= end_ns]
    if len(inside) < 2 or inside[0].at_ns == inside[-1].at_ns:
        return None
    first, last = inside[0], inside[-1]
    low, high = _interval(inside)
    return WindowEnergy(
        last.joules - first.joules, (last.at_ns - first.at_ns) / 1e9, len(inside), low, high
    )


def _interval(points: Sequence[EnergyPoint]) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean power, by Student's t over parts of the window."""
    parts = min(PARTS, len(points) // _UPDATES_A_PART)
    if parts < 3:
        return None, None
    length = (len(points) - 1) / parts
    ends = [points[round(number * length)] for number in range(parts + 1)]
    powers = [
        (later.joules - earlier.joules) / (later.at_ns - earlier.at_ns) * 1e9
        for earlier, later in pairwise(ends)
    ]
    half = t_quantile(_LEVEL, parts - 1) * stdev(powers) / math.sqrt(parts)
    mean = fmean(powers)
    whole = (points[-1].joules - points[0].joules) / (points[-1].at_ns - points[0].at_ns) * 1e9
    # Parts are of as many updates, not of as much time: around what the whole window says.
    return max(min(mean, whole) - half, 0.0), max(mean, whole) + half

"""The intervals of cells' figures, or the ranges of their launches, as pages show them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.analysis.launch_intervals import apart_from_median, interval_within
from accelbench.core.figures import Statistic
from accelbench.core.nouns import digits
from accelbench.core.spreads import Spread
from accelbench.measure.launches import interval_of, spread_of

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.cells import Cell


@dataclass(frozen=True)
class LaunchInterval:
    """Where a figure lies.

    Attributes:
        middle: the figure.
        spread: the ends that are shown.
        sure: the ends of the 95 % interval, by which it is compared with others.
    """

    middle: float
    spread: Spread
    sure: tuple[float, float]

    @property
    def text(self) -> str:
        """The ends next to the figure: ±2.1%."""
        return self.spread.text(self.middle, digits)

    @property
    def ends(self) -> str:
        """The ends in a sentence: 95 % interval 7.90 to 8.12, of 5 launches."""
        return self.spread.sentence(digits)

    def is_apart_from(self, other: LaunchInterval) -> bool:
        """Return whether the two intervals have nothing in common."""
        return self.sure[1] < other.sure[0] or other.sure[1] < self.sure[0]


def interval(cell: Cell, figure: str) -> LaunchInterval | None:
    """Return the interval of a cell's latency, throughput or cost; None if it is not known.

    A latency has the interval of its launches' latencies, a rate that of their rates. The cost of a
    million items has that of the rate.
    """
    if figure == "latency":
        return _of_latency(cell)
    rate = _of_rate(cell)
    if figure == "throughput" or rate is None:
        return rate if figure == "throughput" else None
    cost = cell.get("cost_per_million")
    return None if figure != "cost" or not cost else _inverse(rate, cost * rate.middle)


def latency_note(cell: Cell) -> str:
    """Return what stands next to a latency: that it is a mean, or the mean where that differs."""
    if cell.get("latency_of") == Statistic.MEAN:
        return str(Statistic.MEAN)
    medians, means = cell.get("times") or [], cell.get("means") or []
    if not medians or len(medians) != len(means):
        return ""
    mean = apart_from_median(medians, means, cell)
    return "" if mean is None else f"{Statistic.MEAN} {digits(mean)}"


def _of_latency(cell: Cell) -> LaunchInterval | None:
    middle = cell.get("latency")
    if not middle:
        return None
    within = None
    if cell.get("launches") == 1:
        within = interval_within(cell, Statistic(cell.get("latency_of") or Statistic.MEDIAN))
    return _made(middle, cell.get("times") or [], within)


def _of_rate(cell: Cell) -> LaunchInterval | None:
    rate, rates = cell.get("throughput"), cell.get("rates") or []
    if not rate:
        return None
    mean = cell.get("latency_mean_ms")
    within = interval_within(cell, Statistic.MEAN) if cell.get("launches") == 1 and mean else None
    if within is not None and within[0] > 0.0 and mean:
        within = rate * mean / within[1], rate * mean / within[0]
    return _made(rate, rates, within)


def _made(
    middle: float, each: Sequence[float], within: tuple[float, float] | None
) -> LaunchInterval | None:
    sure = interval_of(each) if len(each) > 1 else within
    spread = spread_of(each, within)
    if spread is None or sure is None or sure[0] <= 0.0:
        return None
    return LaunchInterval(middle, spread, sure)


def _inverse(known: LaunchInterval, product: float) -> LaunchInterval:
    """Return the interval of what a product divided by the figure is."""
    low, high = (
        None if end is None else product / end for end in (known.spread.high, known.spread.low)
    )
    spread = Spread(low, high, known.spread.kind, known.spread.count)
    return LaunchInterval(
        product / known.middle, spread, (product / known.sure[1], product / known.sure[0])
    )

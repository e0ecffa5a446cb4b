"""The 95 % intervals of cells' figures, by the launches that they are of. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.analysis.launch_intervals import interval_within
from accelbench.core.figures import MEANS, Statistic
from accelbench.core.nouns import counted, digits
from accelbench.core.worth import interval_text
from accelbench.measure.launches import interval_of

if TYPE_CHECKING:
    from accelbench.report.dashboard.snapshots.cells import Cell


@dataclass(frozen=True)
class LaunchInterval:
    """Where a figure lies.

    Attributes:
        low: where it begins, and `high` where it ends.
        middle: the figure.
        of: what it is of, in words.
    """

    low: float
    middle: float
    high: float
    of: str

    @property
    def text(self) -> str:
        """As ± where it is as far to both sides: ±2.1%."""
        return interval_text(self.low, self.middle, self.high, digits)

    @property
    def ends(self) -> str:
        """In a sentence: 95 % interval 7.90 to 8.12, of 5 launches."""
        return f"95 % interval {digits(self.low)} to {digits(self.high)}, {self.of}"

    def apart_from(self, other: LaunchInterval) -> bool:
        """Whether the two have nothing in common."""
        return self.high < other.low or other.high < self.low


#: Figures that have an interval.
_SURE = ("latency", "throughput", "cost")


def intervals(cell: Cell) -> dict[str, LaunchInterval]:
    """The intervals of a cell's latency, rate and cost, of those of which one is known.

    A rate and what a million of its items costs are as certain as the mean of the times.
    """
    relative = _relative(cell)
    if relative is None:
        return {}
    known = {figure: _interval(cell, figure, relative) for figure in _SURE}
    return {figure: found for figure, found in known.items() if found is not None}


def interval(cell: Cell, figure: str) -> LaunchInterval | None:
    """That of one figure."""
    return intervals(cell).get(figure)


def _interval(cell: Cell, figure: str, relative: tuple[float, float, str]) -> LaunchInterval | None:
    column = "cost_per_million" if figure == "cost" else figure
    middle = cell.get(column)
    if not isinstance(middle, float) or not middle:
        return None
    low, high, of = relative
    of_times, rises = bool(cell.get("latency")), figure == "throughput"
    if figure != "latency" and of_times and cell.get("latency_of") not in tuple(MEANS):
        return None
    if (of_times and rises) or (not of_times and figure == "cost"):
        low, high = 1.0 / high, 1.0 / low
    return LaunchInterval(middle * low, middle, middle * high, of)


def _relative(cell: Cell) -> tuple[float, float, str] | None:
    """Both ends as parts of the times, or of the rates where there are no times; and of what."""
    times, middle = cell.get("times") or [], cell.get("latency") or cell.get("throughput")
    if not middle:
        return None
    if len(times) > 1:
        known = interval_of(times)
        of = f"of {counted(len(times), 'launch', 'launches')}"
    elif cell.get("latency") and cell.get("launches") == 1:
        known = interval_within(cell, Statistic(cell.get("latency_of") or "mean"))
        of = "within one launch"
    else:
        return None
    if known is None or known[0] <= 0.0:
        return None
    return known[0] / middle, known[1] / middle, of

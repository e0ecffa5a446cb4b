"""What a question came to over time: one point a run, and what happened along them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accelbench.analysis.judging import Metric

if TYPE_CHECKING:
    from accelbench.measure.changes import Course

Row = Mapping[str, Any]

#: Fewer points have no history.
FEWEST_POINTS = 4


@dataclass(frozen=True)
class Point:
    """What a run came to: the median over its launches."""

    moment: str
    run_id: str
    commit: str
    value: float
    launches: int


@dataclass(frozen=True)
class Series:
    """A question on one machine, in order of time."""

    row: Row  # what it is of
    metric: Metric
    points: tuple[Point, ...]
    course: Course | None  # None where there are too few points

    @property
    def changed(self) -> bool:
        """Whether anything is to be told of it."""
        told = self.course
        return told is not None and bool(
            told.steps or told.spikes or told.drift or told.unconfirmed
        )

    @property
    def newest_step(self) -> float | None:
        """The last step as a share of becoming worse."""
        if self.course is None or not self.course.steps:
            return None
        share = self.course.steps[-1].share
        return share if self.metric.lower_is_better else 1.0 / (1.0 + share) - 1.0


def series_of(row: Row, metric: Metric, points: Iterable[Point], least: float) -> Series:
    """A series and what happened in it.

    Args:
        row: what it is of.
        metric: which figure.
        points: in any order.
        least: what a change has to exceed, as a share.
    """
    from accelbench.measure.changes import course  # brings numpy

    known = tuple(sorted(points, key=lambda one: (one.moment, one.run_id)))
    told = None
    if len(known) >= FEWEST_POINTS:
        told = course([one.value for one in known], least)
    return Series(row, metric, known, told)

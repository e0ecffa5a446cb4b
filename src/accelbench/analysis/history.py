"""What a question came to over time: one point a run, and what happened along them. Pure.

The answer is in the words of a check and by its rules: what runs differ by where nothing changed
is the same noise (`measure.runs`), what is a level is found by the same function
(`measure.changes`), and a newest run that is off is judged against the one before as a check
would judge it (`analysis.judging`). Two runs make a line; of fewer than four nothing is judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from accelbench.analysis.judging import Judgement, Metric, NoisePrior, judged, runs_differ
from accelbench.analysis.standing import Software
from accelbench.analysis.versions import changes, natural
from accelbench.core.nouns import counted
from accelbench.measure.apart import Apart
from accelbench.measure.launches import LEAST_EFFECT, MOST_LAUNCHES, POWER, Noise, pooled_noise
from accelbench.measure.runs import FEWEST_RUNS, noise_between, noise_of_levels
from accelbench.measure.student import t_quantile

if TYPE_CHECKING:
    from accelbench.measure.changes import Course

Row = Mapping[str, Any]

#: Fewer points are no line.
FEWEST_DRAWN = 2
#: Fewer points are not judged.
FEWEST_POINTS = FEWEST_RUNS
_NUMBERS = {4: "four"}
#: What a series is of which there is no answer.
NOT_JUDGED = "drawn, not judged"


class HistoryPoint(NamedTuple):
    """What a run came to: the median over its launches."""

    moment: str
    run_id: str
    commit: str
    value: float
    launches: int
    software: Software = ()  # what ran, as far as it is known
    each: tuple[float, ...] = ()  # every launch, in order of time, where they are needed
    settled: bool = True  # every launch came to a figure that its own samples bear out
    carried: int = 0  # results of later releases that are this measurement, published again
    job: str = ""  # what measured it, where its source names that


class Gap(NamedTuple):
    """A run that came to no figure, and is newer than every point."""

    moment: str
    run_id: str
    why: str


@dataclass(frozen=True)
class Series:
    """A question on one machine, in order of time."""

    row: Row  # what it is of
    metric: Metric
    points: tuple[HistoryPoint, ...]
    course: Course | None  # None where there are too few points
    answer: Judgement | None = None  # of the newest that happened; None where it is not judged
    why: str = ""  # it cannot be told
    gap: Gap | None = None  # the newest run, where it has no figure

    @property
    def changed(self) -> bool:
        """Whether anything is to be told of it."""
        told = self.course
        if self.gap is not None:
            return True
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

    @cached_property
    def software_changes(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """At which points the software was another than before, with what changed."""
        sides = enumerate(pairwise(self.points), start=1)
        told = ((at, tuple(changes(a.software, b.software))) for at, (a, b) in sides)
        return tuple((at, what) for at, what in told if what)

    @property
    def carried_forward(self) -> int:
        """Results that are no points: a source published an earlier measurement again."""
        return sum(point.carried for point in self.points)

    @property
    def said(self) -> str:
        """The answer in words, the same wherever it is shown."""
        if self.gap is None:
            return self._said
        newest = f"the newest run, of {self.gap.moment[:16]}, has no figure: {self.gap.why}"
        open_ = self.answer is Judgement.CANNOT_TELL and not self.why
        return f"{self._said}{':' if open_ else ';'} {newest}"

    @property
    def _said(self) -> str:
        """The same of its points."""
        runs = counted(len(self.points), "run")
        if self.answer is None:
            few = _NUMBERS.get(FEWEST_POINTS, str(FEWEST_POINTS))
            return f"{NOT_JUDGED}: {runs}, {few} are needed"
        if self.answer is Judgement.CANNOT_TELL:
            return f"{self.answer.value}: {self.why}" if self.why else self.answer.value
        if self.answer is Judgement.STEADY:
            return f"{self.answer.value} in {runs}"
        return self.answer.value


def same_jobs(several: Iterable[Series]) -> dict[str, list[Series]]:
    """Of each series, by its key, others that the same jobs measured: one thing by many names.

    A hub lists a board and its proxy with the figures of one job: a change is one change of both.
    """
    found: dict[tuple[str, ...], list[Series]] = {}
    for one in several:
        jobs = tuple(point.job for point in one.points)
        if all(jobs):
            found.setdefault(jobs, []).append(one)
    return {
        str(one.row.get("series_key")): [other for other in alike if other is not one]
        for alike in found.values()
        if len(alike) > 1
        for one in alike
    }


def with_gap(series: Series, gap: Gap) -> Series:
    """A series whose newest run has no figure: that nothing changed until then is no answer."""
    answer = Judgement.CANNOT_TELL if series.answer is Judgement.STEADY else series.answer
    return replace(series, gap=gap, answer=answer)


def every_series(
    several: Iterable[tuple[Row, Metric, Iterable[HistoryPoint]]], least: float
) -> list[Series]:
    """Series and what happened in each; together they take a tenth of the time.

    Args:
        several: of each what it is of, which figure, and its points in any order.
        least: what a change has to exceed, as a share.
    """
    from accelbench.measure.changes import courses  # brings numpy

    known = [(row, metric, _in_order(points)) for row, metric, points in several]
    long = [points for *_, points in known if len(points) >= FEWEST_POINTS]
    told = iter(courses([[one.value for one in points] for points in long], least))
    found = []
    for row, metric, points in known:
        course = next(told) if len(points) >= FEWEST_POINTS else None
        found.append(_answered(row, metric, points, course, least))
    return found


def _in_order(points: Iterable[HistoryPoint]) -> tuple[HistoryPoint, ...]:
    """By time; an import may bring several versions of one moment, which then come in theirs."""
    found = sorted(points, key=itemgetter(0, 1))
    if any(one.moment == next_.moment for one, next_ in pairwise(found)):
        found.sort(key=lambda one: (one.moment, one.run_id, _versions(one)))
    return tuple(found)


def _versions(point: HistoryPoint) -> list[tuple[str, list[tuple[int, str]]]]:
    return [(name, natural(value)) for name, value in point.software]


def _answered(
    row: Row, metric: Metric, points: tuple[HistoryPoint, ...], told: Course | None, least: float
) -> Series:
    if told is None:
        return Series(row, metric, points, None)
    answer: Judgement | None = None
    why = ""
    if told.steps or told.drift:
        share = told.drift.share if told.drift else told.steps[-1].share
        answer = Judgement.WORSE if (share > 0) == metric.lower_is_better else Judgement.BETTER
    if told.unconfirmed:
        newest = _of_newest(metric, points, least)
        if newest in (Judgement.WORSE, Judgement.BETTER) or answer is None:
            answer = newest if newest is not Judgement.STEADY else Judgement.CANNOT_TELL
            why = "the newest run is off, and one does not tell whether it stays: measure again"
    if answer is None:
        answer, why = _of_level(metric, points, told, least)
    return Series(row, metric, points, told, answer, why)


def _of_newest(metric: Metric, points: Sequence[HistoryPoint], least: float) -> Judgement:
    """The newest run against the one before, as a check judges them."""
    runs = [one.each or (one.value,) for one in points]
    known = NoisePrior(
        pooled_noise([one for one in runs if len(one) > 1]),
        noise_between(runs, (), metric.runs, len(points) - 1),
    )
    threshold = None if least == LEAST_EFFECT else least
    settled = all(one.settled for one in points[-2:])
    return judged(metric, runs[-2], runs[-1], known, threshold, settled=settled).answer


def _of_level(
    metric: Metric, points: Sequence[HistoryPoint], told: Course, least: float
) -> tuple[Judgement, str]:
    """Whether no change is an answer, where none was found: as a check has it of two sides.

    Wherever the level is cut into two, a change of what is asked would have been seen to be larger
    in four of five cases. What came back is the machine's, and was told.
    """
    off = {spike.at for spike in told.spikes}
    logs = [math.log(one.value) for at, one in enumerate(points) if at not in off]
    noise = noise_of_levels([logs], metric.runs)
    asked = math.log1p(least)
    if max(logs) - min(logs) + _reach(noise, 2, len(logs)) <= asked:
        return Judgement.STEADY, ""
    sums = list(accumulate(logs, initial=0.0))
    n = len(logs)
    for at in range(2, n - 1):
        effect = (sums[n] - sums[at]) / (n - at) - sums[at] / at
        if abs(effect) + _reach(noise, at, n) > asked:
            most = Apart(0.0, MOST_LAUNCHES, MOST_LAUNCHES, noise).detectable(least)
            return Judgement.CANNOT_TELL, runs_differ(most or 0.0)
    return Judgement.STEADY, ""


def _reach(noise: Noise, at: int, n: int) -> float:
    """How far two levels of so many runs may be apart by chance, on one side."""
    return t_quantile(POWER, noise.freedom) * noise.value * math.sqrt(1.0 / at + 1.0 / (n - at))

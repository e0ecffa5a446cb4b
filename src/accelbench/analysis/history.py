"""What a question came to over time: one point a run, and what happened along them. Pure.

The answer is in the words of a check and by its rules: what runs differ by where nothing changed
is the same noise (`measure.runs`), what is a level is found by the same function
(`measure.changes`), and a newest run that is off is judged against the one before as a check
would judge it (`analysis.judging`). Two runs make a line; of fewer than four nothing is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from accelbench.analysis.judging import Judgement, Metric
from accelbench.analysis.line_answers import ONE, answered
from accelbench.analysis.line_parts import Kinds, Parting, joined, partings, stretches
from accelbench.analysis.outputs import Outputs, of_level, why_no_gain, why_other_outputs
from accelbench.analysis.standing import Software
from accelbench.analysis.versions import changes, natural
from accelbench.core.nouns import counted
from accelbench.core.spreads import Spread
from accelbench.measure.launches import spread_of, typical
from accelbench.measure.runs import FEWEST_RUNS

if TYPE_CHECKING:
    from accelbench.measure.changes import Course, Spike

from accelbench.core.rows import Row

#: Fewer points are no line.
FEWEST_DRAWN = 2
#: Fewer points are not judged.
FEWEST_POINTS = FEWEST_RUNS
#: What a series is of which there is no answer.
NOT_JUDGED = "drawn, not judged"
_MUCH = 10.0


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
    kinds: Kinds = ()  # what its launches are figures of
    outputs: Outputs = Outputs()


class Gap(NamedTuple):
    """A run that came to no figure, and is newer than every point."""

    moment: str
    run_id: str
    why: str


class NewestLevel(NamedTuple):
    """Where a line lies since the last thing that happened to it for good."""

    value: float  # the middle of its runs
    spread: Spread | None  # of its runs; None if they do not differ
    runs: int
    since: int  # the first of its points


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
    partings: tuple[Parting, ...] = ()  # where it is no longer of what it was of
    alone: float | None = None  # by how much the newest run is off, where the answer is of it alone
    beside_first: float | None = None  # the newest beside the first, where it gained nothing

    @property
    def is_line(self) -> bool:
        """Whether it has points enough, or one before a run without a figure."""
        return len(self.points) >= FEWEST_DRAWN or self.gap is not None

    @property
    def is_eventful(self) -> bool:
        """Whether anything happened along it, also what came back or has no answer."""
        course = self.course
        if self.gap is not None or self.partings:
            return True
        return course is not None and bool(
            course.steps or course.spikes or course.drift or course.unconfirmed
        )

    @property
    def newest_step(self) -> float | None:
        """The last step as a share of becoming worse; a newest run that is answered for is one."""
        steps = self.course.steps if self.course else ()
        if self.alone is None and not steps:
            return None
        share = steps[-1].share if self.alone is None else self.alone
        return share if self.metric.lower_is_better else 1.0 / (1.0 + share) - 1.0

    @property
    def newest_level(self) -> NewestLevel:
        """Its newest level: what stands alone, or has yet to be confirmed, is no part of it."""
        course, since = self.course, self.stretches[-1].start
        off: set[int] = set()
        if course is not None:
            since = max([since, *(step.at for step in course.steps)])
            off = {spike.at for spike in course.spikes}
            off |= {course.unconfirmed.at} if course.unconfirmed else set()
        kept = [at for at in range(since, len(self.points)) if at not in off]
        values = [self.points[at].value for at in kept or [len(self.points) - 1]]
        return NewestLevel(typical(values), spread_of(values), len(values), since)

    @cached_property
    def software_changes(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """At which points the software was another than before, with what changed."""
        sides = enumerate(pairwise(self.points), start=1)
        updates = ((at, tuple(changes(a.software, b.software))) for at, (a, b) in sides)
        return tuple((at, what) for at, what in updates if what)

    @property
    def stretches(self) -> list[range]:
        """The pieces of it that are figures of one thing, the newest last."""
        return stretches(len(self.points), self.partings)

    @property
    def came_back(self) -> tuple[Spike, ...]:
        """Points that stood alone between others that are alike."""
        ends = self._firsts | {where[-1] for where in self.stretches}
        return tuple(spike for spike in self._spikes if spike.at not in ends)

    @property
    def first_off(self) -> tuple[Spike, ...]:
        """First points that are unlike those that follow: there was nothing to come back to."""
        return tuple(spike for spike in self._spikes if spike.at in self._firsts)

    @property
    def _spikes(self) -> tuple[Spike, ...]:
        return self.course.spikes if self.course else ()

    @property
    def _firsts(self) -> set[int]:
        return {where.start for where in self.stretches}

    def doubt_of(self, at: int) -> str:
        """Why a change at a point is no gain, whatever became of the figure; empty where it may be.

        Args:
            at: the first point after it.
        """
        edges = [0, *(parting.at for parting in self.partings)]
        steps = [step.at for step in self.course.steps] if self.course else []
        start = max(edge for edge in (*edges, *steps) if edge < at)
        end = min((edge for edge in (*edges, *steps) if edge > at), default=len(self.points))
        before, now = (
            of_level([point.outputs for point in self.points[a:b]])
            for a, b in ((start, at), (at, end))
        )
        return why_other_outputs(before, now) or why_no_gain(before, now)

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
        if self.alone is not None and self.answer is not None:
            off = _beside(self.alone, "those before it")
            return f"{self.answer.value} by the newest run alone, {off}; {ONE}: measure again"
        if self.beside_first is None:
            return self._answer_said
        first = self.points[self.stretches[-1].start].moment[:10]
        beside = _beside(self.beside_first, f"the first run, of {first}")
        return f"{self._answer_said}; but the newest run is {beside}"

    @property
    def _answer_said(self) -> str:
        """The answer, and why it is none."""
        runs = counted(len(self.stretches[-1]), "run")
        if self.answer is None:
            return f"not judged: {len(self.points)} of {FEWEST_POINTS} runs"
        if self.answer is Judgement.CANNOT_TELL:
            return f"{self.answer.value}: {self.why}" if self.why else self.answer.value
        if self.answer is Judgement.STEADY:
            where = self.stretches[-1]
            late = any(spike.at == where.start for spike in self.first_off)
            runs = counted(len(where) - late, "run")
            since = self.points[where.start + late].moment[:10]
            return (
                f"{self.answer.value} in {runs}{f' since {since}' if where.start or late else ''}"
            )
        return self.answer.value


def answer_counts(several: Iterable[Series]) -> dict[str, int]:
    """Count the series of each answer; a series that is not judged has none."""
    counts = Counter(NOT_JUDGED if one.answer is None else one.answer.value for one in several)
    order = [*Judgement, NOT_JUDGED]
    return {str(answer): counts[str(answer)] for answer in order if counts[str(answer)]}


def same_jobs(several: Iterable[Series]) -> dict[str, list[Series]]:
    """Of each series, by its key, others that the same jobs measured: one thing by many names.

    A hub lists a board and its proxy with the figures of one job: a change is one change of both.
    """
    series_by_jobs: dict[tuple[str, ...], list[Series]] = {}
    for series_ in several:
        jobs = tuple(point.job for point in series_.points)
        if all(jobs):
            series_by_jobs.setdefault(jobs, []).append(series_)
    return {
        str(series.row.get("series_key")): [other for other in alike if other is not series]
        for alike in series_by_jobs.values()
        if len(alike) > 1
        for series in alike
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

    known = []
    for row, metric, points in several:
        ordered = _in_order(points)
        parted = partings(metric, [point.kinds for point in ordered])
        if metric.rated and ordered and ordered[-1].kinds:
            metric = metric.in_unit_of(ordered[-1].kinds)
        known.append(Series(row, metric, ordered, None, partings=parted))
    long = [[line.points[at].value for at in where] for line in known for where in _judged_of(line)]
    course_iter = iter(courses(long, least))
    series_list = []
    for series in known:
        whole = joined(
            (where, next(course_iter) if len(where) >= FEWEST_POINTS else None)
            for where in series.stretches
        )
        series_list.append(answered(replace(series, course=whole), least))
    return series_list


def _judged_of(series: Series) -> list[range]:
    """Its stretches that are long enough to be looked through."""
    return [where for where in series.stretches if len(where) >= FEWEST_POINTS]


def _in_order(points: Iterable[HistoryPoint]) -> tuple[HistoryPoint, ...]:
    """By time; an import may bring several versions of one moment, which then come in theirs."""
    sequence = sorted(points, key=itemgetter(0, 1))
    if any(point.moment == next_.moment for point, next_ in pairwise(sequence)):
        sequence.sort(key=lambda point: (point.moment, point.run_id, _versions(point)))
    return tuple(sequence)


def _versions(point: HistoryPoint) -> list[tuple[str, list[tuple[int, str]]]]:
    return [(name, natural(value)) for name, value in point.software]


def _beside(share: float, what: str) -> str:
    """A change in percent; beyond ten times, how many times as much."""
    return f"{share:+.1%} beside {what}" if share < _MUCH else f"{1.0 + share:,.0f}× {what}"

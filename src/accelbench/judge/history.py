"""What a question came to over time: one point a run, and what happened along them. Pure.

The answer is in the words of a check and by its rules: what runs differ by where nothing changed
is the same noise (`measure.runs`), what is a level is found by the same function
(`measure.changes`), and a newest run that is off is judged against the one before as a check
would judge it (`analysis.judging`). Two runs make a line; of fewer than four nothing is judged.

The one answer of a line over time, by the rules of a check. Pure.

Steps that stayed and drift say what became of it, a newest run that is off is judged against the
one before, and what came to nothing says so only where a change would have been seen.

Runs of one series that are figures of one thing: where a line has to be parted. Pure.

What a check refuses to compare with each other is no step of a line either. A stretch is what lies
between two such places; each is looked through by itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from accelbench.core.formatting import format_count
from accelbench.core.result_statistics import Spread
from accelbench.core.rows import Row
from accelbench.judge.accuracies import Outputs, of_level, why_no_gain, why_other_outputs
from accelbench.judge.comparability import parted
from accelbench.judge.verdicts import Judgement, Metric, NoisePrior, judged, runs_differ
from accelbench.judge.versions import Software, changes, natural
from accelbench.measure.launch_verdicts import (
    LEAST_EFFECT,
    MOST_LAUNCHES,
    POWER,
    Noise,
    geometric_mean,
    pool_runs,
    spread_of,
)
from accelbench.measure.run_to_run_noise import (
    FEWEST_RUNS,
    UnpairedPower,
    find_gate_noise,
    noise_of_levels,
)
from accelbench.measure.student import t_quantile

if TYPE_CHECKING:
    from accelbench.measure.changes import SeriesChanges, Spike


#: What the launches of a run are figures of: a row of each kind.
Kinds = tuple[Row, ...]


class Parting(NamedTuple):
    """Where a line is no longer of what it was of."""

    at: int  # the first point that is of something else
    what: tuple[str, ...]  # in the words of `check`

    @property
    def said(self) -> str:
        """In words."""
        return f"not alike: {', '.join(self.what)}"


def partings(metric: Metric, points: Sequence[Kinds]) -> tuple[Parting, ...]:
    """Where neighbours of a line cannot be compared with each other.

    Args:
        metric: of which figure the line is.
        points: what each is of, in order of time.
    """
    if not points or (len(points[0]) < 2 and all(kinds is points[0] for kinds in points)):
        return ()
    breaks = []
    known = points[0]
    for at, kinds in enumerate(points[1:], start=1):
        if what := parted(metric, known, kinds):
            breaks.append(Parting(at, tuple(what)))
            known = kinds
        elif kinds is not known:
            known = _filled(known, kinds)
    return tuple(breaks)


def _filled(known: Kinds, kinds: Kinds) -> Kinds:
    """The newer, with what only the older said: who says nothing in between joins nothing."""
    if len(known) != 1 or len(kinds) != 1:
        return kinds
    fields = {name: value for name, value in kinds[0].items() if value}
    return ({**known[0], **fields},)


def stretches(count: int, where: Sequence[Parting]) -> list[range]:
    """The pieces of a line of so many points."""
    edges = [0, *(parting.at for parting in where), count]
    return [range(a, b) for a, b in pairwise(edges)]


def joined(courses: Iterable[tuple[range, SeriesChanges | None]]) -> SeriesChanges | None:
    """What happened in the stretches of a line, by the places of the line itself.

    Only the newest tells of what is open. A line of which no stretch is long enough has none.
    """
    whole: SeriesChanges | None = None
    for where, course in courses:
        if course is None:
            whole = whole and replace(whole, drift=None, unconfirmed=None)
            continue
        at = where.start
        steps = tuple(replace(step, at=step.at + at) for step in course.steps)
        spikes = tuple(replace(spike, at=spike.at + at) for spike in course.spikes)
        whole = replace(
            course,
            steps=(*(whole.steps if whole else ()), *steps),
            spikes=(*(whole.spikes if whole else ()), *spikes),
            drift=course.drift and replace(course.drift, since=course.drift.since + at),
            unconfirmed=course.unconfirmed
            and replace(course.unconfirmed, at=course.unconfirmed.at + at),
        )
    return whole


#: How many runs an answer wants, in words.
NEEDED = {4: "four"}.get(FEWEST_RUNS, str(FEWEST_RUNS))
#: What a newest run that is off leaves open.
ONE = "one does not tell whether it stays"
#: Two runs are apart that differ by so many times the noise: as `measure.changes` has it of points.
_FAR = 5.0


def answered(series: Series, least: float) -> Series:
    """The same with its answer, which is of the newest stretch."""
    metric, course, where = series.metric, series.course, series.stretches[-1]
    if len(series.points) < FEWEST_RUNS:
        return series
    points = series.points[where.start :]
    if course is None or len(points) < FEWEST_RUNS:
        return replace(series, answer=Judgement.CANNOT_TELL, why=_too_new(series))
    answer: Judgement | None = None
    why, since, alone = "", where.start, None
    steps = [step for step in course.steps if step.at > where.start]
    if steps or course.drift:
        share = course.drift.share if course.drift else steps[-1].share
        answer = Judgement.WORSE if (share > 0) == metric.lower_is_better else Judgement.BETTER
        since = course.drift.since if course.drift else steps[-1].at
    if course.unconfirmed:
        newest = _of_newest(metric, points, least)
        if newest in (Judgement.WORSE, Judgement.BETTER) or answer is None:
            answer = newest if newest is not Judgement.STEADY else Judgement.CANNOT_TELL
            why = f"the newest run is off, and {ONE}: measure again"
            since = len(series.points) - 1
            alone = course.unconfirmed.share
    if answer is None:
        answer, why = _of_level(metric, points, course, where.start, least)
    answer, why = _as_outputs_are(series, answer, why, since)
    series = replace(series, answer=answer, why=why)
    if answer in (Judgement.WORSE, Judgement.BETTER) and alone is not None:
        return replace(series, alone=alone)
    return replace(series, beside_first=_beside_first(series, course.noise, least))


def _beside_first(series: Series, noise: float, least: float) -> float | None:
    """By how much the newest run is worse than the first, where no answer says that.

    A first run that is off is no part of any level, and a last step may have taken back a part of
    what earlier ones did: “better” and “no change” alone would hide both.
    """
    if series.answer not in (Judgement.BETTER, Judgement.STEADY):
        return None
    first, newest = series.points[series.stretches[-1].start].value, series.points[-1].value
    worse = 1.0 if series.metric.lower_is_better else -1.0
    far = max(math.log1p(least), _FAR * math.log1p(noise))
    now = (newest, series.newest_level.value)
    if all(worse * math.log(value / first) > far for value in now):
        return newest / first - 1.0
    return None


def _too_new(series: Series) -> str:
    """Why a line that was parted lately has no answer."""
    last, runs = series.partings[-1], format_count(len(series.stretches[-1]), "run")
    since = series.points[last.at].moment[:16]
    return f"{last.said}, since {since}; {runs} since then, {NEEDED} are needed"


def _as_outputs_are(
    series: Series, answer: Judgement, why: str, since: int
) -> tuple[Judgement, str]:
    """An answer, where outputs are no longer what they were known to be: as a check has it.

    Args:
        series: of which.
        answer: by its figures alone.
        why: it cannot be told.
        since: the first point of what is answered for.
    """
    if answer is Judgement.WORSE:
        return answer, why
    if answer is Judgement.BETTER:
        doubt = series.doubt_of(max(since, series.stretches[-1].start + 1))
        return (Judgement.CANNOT_TELL, doubt) if doubt else (answer, why)
    outputs = [point.outputs for point in series.points[series.stretches[-1].start :]]
    other = why_other_outputs(of_level(outputs[:-1]), outputs[-1])
    return (Judgement.CANNOT_TELL, other) if other else (answer, why)


def _of_newest(metric: Metric, points: Sequence[HistoryPoint], least: float) -> Judgement:
    """The newest run against the one before, as a check judges them."""
    runs = [point.each or (point.value,) for point in points]
    known = NoisePrior(
        pool_runs([run for run in runs if len(run) > 1]),
        find_gate_noise(runs, (), metric.runs, len(points) - 1),
    )
    threshold = None if least == LEAST_EFFECT else least
    settled = all(point.settled for point in points[-2:])
    return judged(metric, runs[-2], runs[-1], known, threshold, settled=settled).answer


def _of_level(
    metric: Metric, points: Sequence[HistoryPoint], course: SeriesChanges, start: int, least: float
) -> tuple[Judgement, str]:
    """Whether no change is an answer, where none was found: as a check has it of two sides.

    Wherever the level is cut into two, a change of what is asked would have been seen to be larger
    in four of five cases. What came back is the machine's, and was told.

    Args:
        metric: of which figure.
        points: of the newest stretch.
        course: what happened in the line.
        start: the place of the first of these points in it.
        least: what a change has to exceed, as a share.
    """
    off = {spike.at - start for spike in course.spikes}
    logs = [math.log(point.value) for at, point in enumerate(points) if at not in off]
    noise = noise_of_levels([logs], metric.runs)
    limit = math.log1p(least)
    if max(logs) - min(logs) + _reach(noise, 2, len(logs)) <= limit:
        return Judgement.STEADY, ""
    sums = list(accumulate(logs, initial=0.0))
    n = len(logs)
    for at in range(2, n - 1):
        effect = (sums[n] - sums[at]) / (n - at) - sums[at] / at
        if abs(effect) + _reach(noise, at, n) > limit:
            most = UnpairedPower(0.0, MOST_LAUNCHES, MOST_LAUNCHES, noise).detectable(least)
            return Judgement.CANNOT_TELL, runs_differ(most or 0.0)
    return Judgement.STEADY, ""


def _reach(noise: Noise, at: int, n: int) -> float:
    """How far two levels of so many runs may be apart by chance, on one side."""
    return t_quantile(POWER, noise.freedom) * noise.value * math.sqrt(1.0 / at + 1.0 / (n - at))


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
    """A run that has no result in a series."""

    moment: str
    run_id: str
    why: str


class OtherSeries(NamedTuple):
    """A series of the same question with other threads or options."""

    series_key: str
    runs: int
    differs: Mapping[str, str]  # its own values


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
    course: SeriesChanges | None  # None where there are too few points
    answer: Judgement | None = None  # of the newest that happened; None where it is not judged
    why: str = ""  # it cannot be told
    gap: Gap | None = None  # the newest run, where it has no figure
    partings: tuple[Parting, ...] = ()  # where it is no longer of what it was of
    alone: float | None = None  # by how much the newest run is off, where the answer is of it alone
    beside_first: float | None = None  # the newest beside the first, where it gained nothing
    left_out: tuple[Gap, ...] = ()  # every run that has no point, in order of time
    others: tuple[OtherSeries, ...] = ()  # that are not shown

    @property
    def is_line(self) -> bool:
        """Whether it has points enough, or one before a run without a figure."""
        return len(self.points) >= FEWEST_DRAWN or self.gap is not None

    @property
    def has_changed(self) -> bool:
        """Whether the answer is that it became better or worse."""
        return self.answer in (Judgement.WORSE, Judgement.BETTER)

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
        return NewestLevel(geometric_mean(values), spread_of(values), len(values), since)

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
        runs = format_count(len(self.stretches[-1]), "run")
        if self.answer is None:
            return f"not judged: {len(self.points)} of the {FEWEST_POINTS} runs that this needs"
        if self.answer is Judgement.CANNOT_TELL:
            return f"{self.answer.value}: {self.why}" if self.why else self.answer.value
        if self.answer is Judgement.STEADY:
            where = self.stretches[-1]
            late = any(spike.at == where.start for spike in self.first_off)
            runs = format_count(len(where) - late, "run")
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
    from accelbench.measure.changes import find_changes_in_all  # brings numpy

    known = []
    for row, metric, points in several:
        ordered = _in_order(points)
        parted = partings(metric, [point.kinds for point in ordered])
        if metric.rated and ordered and ordered[-1].kinds:
            metric = metric.in_unit_of(ordered[-1].kinds)
        known.append(Series(row, metric, ordered, None, partings=parted))
    long = [[line.points[at].value for at in where] for line in known for where in _judged_of(line)]
    course_iter = iter(find_changes_in_all(long, least))
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

"""The one answer of a line over time, by the rules of a check. Pure.

Steps that stayed and drift say what became of it, a newest run that is off is judged against the
one before, and what came to nothing says so only where a change would have been seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from accelbench.analysis.judging import Judgement, Metric, NoisePrior, judged, runs_differ
from accelbench.analysis.outputs import of_level, why_other_outputs
from accelbench.core.nouns import counted
from accelbench.measure.launches import LEAST_EFFECT, MOST_LAUNCHES, POWER, Noise, pooled_noise
from accelbench.measure.runs import FEWEST_RUNS, find_gate_noise, noise_of_levels
from accelbench.measure.student import t_quantile
from accelbench.measure.unpaired import Apart

if TYPE_CHECKING:
    from accelbench.analysis.history import HistoryPoint, Series
    from accelbench.measure.changes import Course

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
    last, runs = series.partings[-1], counted(len(series.stretches[-1]), "run")
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
        pooled_noise([run for run in runs if len(run) > 1]),
        find_gate_noise(runs, (), metric.runs, len(points) - 1),
    )
    threshold = None if least == LEAST_EFFECT else least
    settled = all(point.settled for point in points[-2:])
    return judged(metric, runs[-2], runs[-1], known, threshold, settled=settled).answer


def _of_level(
    metric: Metric, points: Sequence[HistoryPoint], course: Course, start: int, least: float
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
            most = Apart(0.0, MOST_LAUNCHES, MOST_LAUNCHES, noise).detectable(least)
            return Judgement.CANNOT_TELL, runs_differ(most or 0.0)
    return Judgement.STEADY, ""


def _reach(noise: Noise, at: int, n: int) -> float:
    """How far two levels of so many runs may be apart by chance, on one side."""
    return t_quantile(POWER, noise.freedom) * noise.value * math.sqrt(1.0 / at + 1.0 / (n - at))

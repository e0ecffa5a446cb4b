"""Has a figure become worse? Launches of a baseline and of now, and one of four answers. Pure.

Launches are the unit of replication (`measure.launches`). The answer rests on them: a change must
be significant at 1 %, and exceed 3 %, three times the noise of such a comparison, and what was
asked for. That none was shown is an answer where there are five launches a side and more, and
enough of them for the noise. Of a single launch, and of much that others publish, there is only
the plain threshold, and the answer says that it is that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from accelbench.analysis.sides import items, latency
from accelbench.core.columns import STEP_MS
from accelbench.measure.launches import (
    FEWEST_LAUNCHES,
    LEAST_EFFECT,
    MOST_LAUNCHES,
    Apart,
    Noise,
    RatioInterval,
    aa_noise,
    enough_launches,
    independent,
    typical,
    unpaired_interval,
)

Row = Mapping[str, Any]

#: What the documents alert at, where launches cannot tell.
PLAIN_THRESHOLD = 0.1
_LEVEL = 0.99


class Answer(StrEnum):
    """What became of a figure."""

    WORSE = "worse"
    BETTER = "better"
    STEADY = "no change shown"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class Metric:
    """A figure that is judged, and which way is worse."""

    name: str
    header: str
    of: Callable[[Row], float | None]
    sql: str  # the same of a row of benchmark_results
    lower_is_better: bool = True


def typical_sql(figure: str, where: str = "true") -> str:
    """The middle of launches as SQL, as `measure.launches.typical` has it.

    Args:
        figure: of a row, in SQL.
        where: the rows that count; what is not above zero never does.
    """
    known = f"CASE WHEN {where} AND {figure} > 0 THEN {figure} END"
    # Of alike figures it is that figure, to the last digit.
    return f"CASE WHEN min({known}) = max({known}) THEN min({known}) ELSE exp(avg(ln({known}))) END"


def _throughput(row: Row) -> float | None:
    if row.get("throughput") is not None:
        return float(row["throughput"])
    time = latency(row)
    return None if time is None else 1e3 * items(row) / time


def _memory(row: Row) -> float | None:
    value = row.get("memory_peak_mb")
    return None if value is None else float(value)


_ITEMS = "1e3 * coalesce(nullif(batch_size, 0), 1)"
_STEP = f"coalesce({', '.join(STEP_MS)})"
METRICS = (
    Metric("latency", "ms", latency, f"coalesce({_STEP}, {_ITEMS} / nullif(throughput, 0))"),
    Metric(
        "throughput",
        "items/s",
        _throughput,
        f"coalesce(throughput, {_ITEMS} / {_STEP})",
        lower_is_better=False,
    ),
    Metric("memory", "MB", _memory, "memory_peak_mb"),
)


@dataclass(frozen=True)
class Judged:
    """One figure of one question, then and now. Shares are of becoming worse: 0.05 is 5 % worse."""

    metric: Metric
    before: float  # the middle of the launches that was judged
    now: float
    worse_by: float
    answer: Answer
    limit: float  # what a change had to exceed
    launches: tuple[int, int]
    low: float | None = None  # the 99 % interval of worse_by
    high: float | None = None
    noise: Noise | None = None
    least_shown: float | None = None  # the smallest change that so many launches find
    required: int | None = None  # launches of now; None where the baseline has too few
    required_both: int | None = None  # launches a side; None where not even the most would do
    most_shown: float | None = None  # the smallest change that the most launches a side find
    plain: bool = False  # judged by the threshold alone


def judged(
    metric: Metric,
    before: Sequence[float],
    now: Sequence[float],
    noise: Noise | None,
    threshold: float | None = None,
) -> Judged:
    """Whether launches of now are worse than those of before.

    Args:
        metric: which figure.
        before: one value a launch, in order of time; at least one.
        now: the same.
        noise: of launches of this question, from all that is known of it.
        threshold: what a change has to exceed at least, as a share.
    """
    interval = unpaired_interval(*_as_times(metric, before, now), _LEVEL)
    if interval is None or noise is None:
        return _by_threshold(metric, before, now, noise, threshold)
    asked = max(threshold or 0.0, LEAST_EFFECT)
    sides = (independent(before), independent(now))
    known = Apart(noise.value, *sides)
    limit = max(asked, known.least_effect)
    # That nothing changed is believed of the sides as they are, not as launches mostly were.
    loudest = max(noise.value, *(aa_noise(side) or 0.0 for side in (before, now)))
    seen = Apart(loudest, *sides)
    return Judged(
        metric,
        typical(before),
        typical(now),
        interval.ratio - 1.0,
        _answer(interval, limit, seen, asked),
        limit,
        (len(before), len(now)),
        interval.low - 1.0,
        interval.high - 1.0,
        noise,
        known.detectable(asked),
        seen.required(asked),
        enough_launches(loudest, asked),
        Apart(loudest, MOST_LAUNCHES, MOST_LAUNCHES).detectable(asked),
    )


def _answer(interval: RatioInterval, limit: float, seen: Apart, asked: float) -> Answer:
    effect = math.log(interval.ratio)
    if interval.p_value < 1.0 - _LEVEL and abs(effect) > math.log1p(limit):
        return Answer.WORSE if effect > 0 else Answer.BETTER
    if min(seen.first, seen.second) < FEWEST_LAUNCHES:
        return Answer.CANNOT_TELL
    reach = max(abs(math.log(interval.low)), abs(math.log(interval.high)))
    within = reach <= math.log1p(asked) and limit <= asked
    return Answer.STEADY if within or seen.suffices(asked) else Answer.CANNOT_TELL


def _by_threshold(
    metric: Metric,
    before: Sequence[float],
    now: Sequence[float],
    noise: Noise | None,
    threshold: float | None,
) -> Judged:
    limit = PLAIN_THRESHOLD if threshold is None else threshold
    then, here = (median(values) for values in _as_times(metric, before, now))
    effect = math.log(here / then)
    answer = Answer.STEADY
    if abs(effect) > math.log1p(limit):
        answer = Answer.WORSE if effect > 0 else Answer.BETTER
    return Judged(
        metric,
        *((then, here) if metric.lower_is_better else (1.0 / then, 1.0 / here)),
        math.expm1(effect),
        answer,
        limit,
        (len(before), len(now)),
        noise=noise,
        plain=True,
    )


def _as_times(
    metric: Metric, before: Sequence[float], now: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Both as what grows when it becomes worse."""
    if metric.lower_is_better:
        return before, now
    return [1.0 / one for one in before], [1.0 / one for one in now]

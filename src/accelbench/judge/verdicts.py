"""Judge whether a metric became worse, from the launches of a baseline and of a candidate. Pure.

Launches are the unit of replication (`measure.launches`), and runs differ by more than their
launches show (`measure.runs`). Between two runs both are in the error, and the test is one-sided
at 1 %, for worse and for better alike. The deviation from run to run is taken as known, unless
there is a history. In one run the test is two-sided at 1 %, and a change has to exceed three times
the noise of such a comparison. In both a change has to exceed 3 % and the threshold.

“No change shown” requires five launches a side, and enough of them: the test would have found a
change of the threshold in four of five cases. Fewer launches, such as a single published value, do
not show how far another launch would differ. They show a change beyond four standard errors of two
launches, with the deviation of the history and at least 5 %: below 33 % they are inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from statistics import NormalDist, median

from accelbench.core.columns import STEP_MS
from accelbench.core.result_statistics import (
    FEWEST_LAUNCHES,
    ITEMS,
    Statistic,
    rate_of,
    step_of,
    step_time_ms,
    throughput_unit,
    unit_kind,
)
from accelbench.core.rows import Row, number
from accelbench.measure.launch_verdicts import (
    ALPHA,
    LEAST_EFFECT,
    MAX_LOG,
    MOST_LAUNCHES,
    POWER,
    Noise,
    aa_noise,
    geometric_mean,
)
from accelbench.measure.run_to_run_noise import (
    PRIOR,
    PRIOR_OF_MEMORY,
    UnpairedPower,
    fewest_launches,
    independent_count,
    interval_level,
    single_launch_error,
    unpaired_interval,
)

#: What the documents alert at, where launches cannot tell.
PLAIN_THRESHOLD = 0.1
#: Fewer than five launches have to differ by so many standard errors of two launches. If one launch
#: in fifty takes 30 % longer and the rest differ by 5 %, 0.8 % of comparisons exceed that.
FEW_ERRORS = 4.0
#: The share of such outlying launches that exceed it. Of many configurations with few launches each
#: one has that share together, so that a check of a thousand alarms no more often than one of one.
_OUTLIERS_BEYOND = 0.4
#: The deviation of the logarithm from launch to launch that few launches have at least.
LAUNCH_PRIOR = 0.05
#: The same of a process's memory, so that it has to double: of 276 pairs of launches 8 differed by
#: more than 10 %, and one by 38 %.
MEMORY_LAUNCH_PRIOR = math.log(2.0) / (FEW_ERRORS * math.sqrt(2.0))
_MUCH = 10.0


def runs_differ(most: float) -> str:
    """Why it cannot be told, where more launches would not help.

    Args:
        most: what would show with as many as anybody takes.
    """
    amount = f"{most:.1%}" if most < _MUCH else "ten times as much"
    return (
        f"runs of this differ by so much where nothing changed that only {amount} and more would"
        " show: measure both in one run, with `accelbench run … --against`"
    )


class Judgement(StrEnum):
    """What became of a figure."""

    WORSE = "worse"
    BETTER = "better"
    STEADY = "no change shown"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class Metric:
    """A figure that is judged, and which way is worse.

    Attributes:
        columns: what has to be read of a result for it to be known.
    """

    name: str
    header: str
    of: Callable[[Row], float | None]
    sql: str  # the same of a row of benchmark_results
    lower_is_better: bool = True
    runs: Noise = PRIOR  # by how much runs differ where nothing is known of them
    launches: float = LAUNCH_PRIOR  # the least deviation from launch to launch, if they are few
    timed: bool = True  # launches whose times are of no use count too, where it is no time
    exact: bool = False  # every launch has the same: two of them tell as much as ten
    statistic: Statistic | None = None  # of a latency, which; None where either may stand for it
    columns: tuple[str, ...] = ()
    rated: bool = False  # it counts items, of which each result says the kind

    @property
    def title(self) -> str:
        """Its name, of a latency with which one it is."""
        return f"{_STATISTICS[self.statistic]} {self.name}" if self.statistic else self.name

    @property
    def alternatives(self) -> Sequence[Metric]:
        """The figures that may stand for it, of which one row may lack what another has."""
        return LATENCIES if self.name == LATENCY else (self,)

    def common(self, rows: Sequence[Row]) -> Metric | None:
        """The first of these that all rows have, by its unit: a mean is no median of anything, and
        a rate of tokens none of images.
        """
        if self.rated and rates_apart(rows):
            return None
        matches = (metric for metric in self.alternatives if all(metric.of(row) for row in rows))
        common = next(matches, None)
        return common and common.in_unit_of(rows).as_counted(rows)

    def as_counted(self, rows: Iterable[Row]) -> Metric:
        """The same, exact where one allocator counted the memory of all these results."""
        if self.name != MEMORY or {row.get("memory_source") for row in rows} - EXACT_COUNTERS:
            return self
        return replace(self, exact=True)

    def in_unit_of(self, rows: Iterable[Row]) -> Metric:
        """The same, headed by the unit that some results share."""
        return replace(self, header=_unit_of_rates(rows)) if self.rated else self


def rates_apart(rows: Iterable[Row]) -> tuple[str, ...]:
    """The units of rates that are of several kinds of things; none where all are of one.

    A result that says no unit may be of any; a rate that is made of a step is of its batch.
    """
    units: dict[str, str] = {}
    for unit in map(_unit, rows):
        if unit:
            units.setdefault(unit_kind(unit), unit)
    return tuple(units.values()) if len(units) > 1 else ()


def _unit(row: Row) -> str:
    """What a rate counts; "" where nobody says it."""
    return str(row.get("throughput_unit") or "") if row.get("throughput") else ITEMS


def _unit_of_rates(rows: Iterable[Row]) -> str:
    """The one name of what rates count, where they have one."""
    names = {throughput_unit(row) if row.get("throughput") else ITEMS for row in rows}
    return names.pop() if len(names) == 1 else ITEMS


#: The unit of a row's rate in SQL, as `rates_apart` takes it.
UNIT_SQL = f"CASE WHEN throughput > 0 THEN throughput_unit ELSE '{ITEMS}' END"


#: Counters of memory that come to the same in every launch. The kernel's of a process do not: of
#: 276 pairs of launches of one thing 8 differed by more than 10 %, and the furthest by 38 %.
EXACT_COUNTERS = frozenset({"torch.cuda allocator", "XLA allocator"})


def _energy(row: Row) -> float | None:
    """Of a step: above zero, as a counter that moved says."""
    return number(row, "energy_joules") or None


LATENCY, MEMORY = "latency", "memory"
_STATISTICS = {Statistic.MEDIAN: "median", Statistic.MEAN: "mean"}
#: Judged by medians, and by means where those are all that is known.
LATENCIES = tuple(
    Metric(LATENCY, "ms", partial(step_of, statistic=stat), f"nullif({column}, 0)", statistic=stat)
    for stat, column in ((Statistic.MEDIAN, STEP_MS[0]), (Statistic.MEAN, STEP_MS[1]))
)
#: Nothing is made of another kind: a rate of many requests at once has no latency, and only a mean
#: of a known batch has a rate.
METRICS = (
    Metric(
        LATENCY, "ms", step_time_ms, f"nullif(coalesce({', '.join(STEP_MS)}), 0)", columns=STEP_MS
    ),
    Metric(
        "throughput",
        "items/s",
        rate_of,
        "coalesce(throughput, 1e3 * batch_size / nullif(latency_mean_ms, 0))",
        lower_is_better=False,
        columns=("throughput", "throughput_unit"),
        rated=True,
    ),
    Metric(
        MEMORY,
        "MB",
        partial(number, name="memory_peak_mb"),
        "memory_peak_mb",
        runs=PRIOR_OF_MEMORY,
        launches=MEMORY_LAUNCH_PRIOR,
        timed=False,
        columns=("memory_peak_mb",),
    ),
    # Power hardly differs between launches, and what a step takes differs as its time does.
    Metric(
        "energy",
        "J",
        _energy,
        "nullif(energy_joules, 0)",
        columns=("energy_joules",),
    ),
)


@dataclass(frozen=True)
class NoisePrior:
    """The noise of a question before it is judged.

    Attributes:
        launches: that of launches; None if no run has two of them.
        runs: the deviation from run to run; None if both sides are of one run.
        few: configurations with fewer than five launches a side in the same check.
    """

    launches: Noise | None
    runs: Noise | None
    few: int = 1


@dataclass(frozen=True)
class Judged:
    """One figure of one question, then and now. Shares are of becoming worse: 0.05 is 5 % worse."""

    metric: Metric
    before: float  # the middle of the launches that was judged
    now: float
    worse_by: float
    answer: Judgement
    limit: float  # what a change had to exceed
    launches: tuple[int, int]
    low: float | None = None  # the interval of worse_by, at `level`
    high: float | None = None
    noise: Noise | None = None  # of launches
    runs: Noise | None = None  # of runs; None where both sides are of one
    least_shown: float | None = None  # the smallest change that so many launches find
    required: int | None = None  # launches of now; None where the baseline has too few
    required_both: int | None = None  # launches a side; None where not even the most would do
    most_shown: float | None = None  # the smallest change that the most launches a side find
    plain: bool = False  # a side is a single launch
    paired: bool = False  # launches of one run in turns: judged by their ratios

    @property
    def level(self) -> float:
        """The probability of its interval: 0.98 between runs, 0.99 in one run."""
        return interval_level(self.runs)


def judged(
    metric: Metric,
    before: Sequence[float],
    now: Sequence[float],
    known: NoisePrior,
    threshold: float | None = None,
    *,
    settled: bool = True,
) -> Judged:
    """Judge whether the launches of now are worse than those of before.

    Args:
        metric: the metric that is judged.
        before: one value a launch, in order of time; at least one.
        now: the same.
        known: the noise of launches and of runs.
        threshold: the share that a change has to exceed at least.
        settled: whether the samples of every launch support its result.
    """
    then, here = as_times(metric, before, now)
    level = interval_level(known.runs)
    interval = unpaired_interval(then, here, level, known.runs)
    few = min(len(before), len(now)) < FEWEST_LAUNCHES
    if interval is None or known.launches is None:
        return _of_one(metric, before, now, known, threshold, settled=settled)
    noise = known.launches
    floor = max(threshold or 0.0, LEAST_EFFECT)
    sides = (independent_count(before), independent_count(now))
    usual = UnpairedPower(noise.value, *sides, known.runs)
    limit = max(floor, usual.least_effect)
    if few and not metric.exact:
        limit = max(limit, limit_of_few(metric, known))
    # The power of “no change shown” is that of the louder: these launches, or those of the history.
    loudest = max(noise.value, *(aa_noise(side) or 0.0 for side in (before, now)))
    seen = UnpairedPower(loudest, *sides, known.runs)
    answer = Judgement.CANNOT_TELL
    effect = math.log(interval.ratio)
    if interval.p_value < 1.0 - level and abs(effect) > math.log1p(limit):
        answer = Judgement.WORSE if effect > 0 else Judgement.BETTER
    elif _is_steady(effect, seen, floor):
        answer = Judgement.STEADY
    if few and metric.timed and not settled and answer is not Judgement.STEADY:
        answer = Judgement.CANNOT_TELL
    most = UnpairedPower(loudest, MOST_LAUNCHES, MOST_LAUNCHES, known.runs)
    return Judged(
        metric,
        geometric_mean(before),
        geometric_mean(now),
        interval.ratio - 1.0,
        answer,
        limit,
        (len(before), len(now)),
        interval.low - 1.0,
        interval.high - 1.0,
        noise,
        known.runs,
        usual.detectable(limit),
        seen.required_launches(floor),
        fewest_launches(
            floor, lambda launches: UnpairedPower(loudest, launches, launches, known.runs)
        ),
        most.detectable(floor),
    )


def _is_steady(effect: float, seen: UnpairedPower, floor: float) -> bool:
    """Return whether “no change shown” has the power that it requires.

    The test finds a change of the floor in four of five cases, and in as many cases a change of
    the floor would have come to more than this effect.
    """
    within = abs(effect) + seen.error_at(POWER) <= math.log1p(floor)
    return within and seen.suffices(floor)


def limit_of_few(metric: Metric, known: NoisePrior) -> float:
    """Return the share that fewer than five launches a side have to exceed: 33 % and more."""
    parts = [part.value for part in (known.launches, known.runs) if part is not None]
    deviation = max(metric.launches, math.hypot(*parts))
    errors = FEW_ERRORS
    if metric.timed:
        quantile = NormalDist().inv_cdf
        errors += quantile(1.0 - _OUTLIERS_BEYOND / known.few) - quantile(1.0 - _OUTLIERS_BEYOND)
    return math.expm1(min(errors * math.sqrt(2.0) * deviation, MAX_LOG))


def _of_one(
    metric: Metric,
    before: Sequence[float],
    now: Sequence[float],
    known: NoisePrior,
    threshold: float | None,
    *,
    settled: bool,
) -> Judged:
    """Judge a side of a single launch.

    It never shows that nothing changed. It shows a change beyond the threshold and the limit of
    few launches. An exact metric has to exceed only the threshold, and by how much runs differ.
    """
    floor = PLAIN_THRESHOLD if threshold is None else threshold
    then, here = (median(values) for values in as_times(metric, before, now))
    effect = math.log(here / then)
    limit = floor if metric.exact else max(floor, limit_of_few(metric, known))
    if known.runs is not None:
        reach = single_launch_error(1.0 - ALPHA, known.runs, known.launches)
        limit = max(limit, math.expm1(min(reach, MAX_LOG)))
    answer = Judgement.CANNOT_TELL
    if abs(effect) > math.log1p(limit) and (settled or not metric.timed):
        answer = Judgement.WORSE if effect > 0 else Judgement.BETTER
    # If the noise of launches is unknown, they are taken to differ by as much as runs do.
    noise = known.launches.value if known.launches else metric.runs.value
    most = UnpairedPower(noise, MOST_LAUNCHES, MOST_LAUNCHES, known.runs)
    return Judged(
        metric,
        *((then, here) if metric.lower_is_better else (1.0 / then, 1.0 / here)),
        math.expm1(effect),
        answer,
        limit,
        (len(before), len(now)),
        noise=known.launches,
        runs=known.runs,
        required=UnpairedPower(noise, len(before), len(now), known.runs).required_launches(floor),
        required_both=fewest_launches(
            floor, lambda count: UnpairedPower(noise, count, count, known.runs)
        ),
        most_shown=None if most.suffices(floor) else most.detectable(floor),
        plain=True,
    )


def as_times(
    metric: Metric, before: Sequence[float], now: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Both as what grows when it becomes worse."""
    if metric.lower_is_better:
        return before, now
    return [1.0 / rate for rate in before], [1.0 / rate for rate in now]

"""Noise between runs of an unchanged series, and the power of unpaired comparisons.

The launches of one run cannot show this noise. The history of the series on its machine can: it is
the spread of the runs' means, less the part that their launches explain. A step that stayed is a
change of the program, so both sides of it count separately. A spike is noise of the machine.

Without a history a prior of 2 % applies. Two thousand launches of one model on our machine, cut
into runs of twenty, differed by 3.5 % from run to run, and their launches alone explained 1.5 %.
Neighbours are other series of the same engine on the same device. Each counts as one observation,
however long its history is, because one series can be quieter than the next.

`noise_between` estimates the noise for the interval of a comparison: the prior has three degrees of
freedom there, so that the interval is wide without a history. `find_gate_noise` chooses the noise
that a check takes as known. A check with the wide interval found a change of 10 % in 1 % of cases.

Launches of one run share more than their program: the machine's temperature, other load, the layout
of its memory. So the mean of a run's launches has two errors: that of its launches, which more
launches reduce, and that of the run, which they do not. A comparison of two runs has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist, fmean

from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.measure.launch_verdicts import (
    ALPHA,
    LEAST_EFFECT,
    MAX_LOG,
    MOST_LAUNCHES,
    POWER,
    Noise,
    RatioInterval,
    comparison_noise,
    independent_launches,
    logs_of,
    p_value,
    pool_noise,
    pool_runs,
    standard_deviation,
)
from accelbench.measure.student import t_quantile

#: Noise of a machine without a history.
PRIOR = Noise(0.02, 3.0)
#: Noise of memory, which does not depend on time.
PRIOR_OF_MEMORY = Noise(0.01, 3.0)
#: Most neighbours that count.
MOST_NEIGHBOURS = 8
#: Fewest runs that can show levels, and fewest of a neighbour that counts.
FEWEST_RUNS = 4
#: Fewest runs of a series that is judged by its own runs only.
MANY_RUNS = 30
#: How unlikely a history must be under the prior to replace it. An alarm on a noisy machine is
#: worse than a change that is missed, so it takes less to show that a machine is noisy.
_NOISIER, _QUIETER = 0.05, 0.01

#: Launches of each run of a series, oldest run first.
Runs = Sequence[Sequence[float]]


def noise_between(
    own: Runs, neighbours: Iterable[Runs] = (), prior: Noise = PRIOR, judged: int | None = None
) -> Noise:
    """Return the noise between runs of a series, from all known runs.

    `neighbours` are similar series, the most similar first; `prior` applies without a history. The
    `judged` run does not count, because a change would be part of the noise that it is compared
    with. It does count for the levels.
    """
    estimate = pool_noise([prior, *_observe_all(own, neighbours, judged)])
    assert estimate is not None
    return estimate


def find_gate_noise(
    own: Runs, neighbours: Iterable[Runs] = (), prior: Noise = PRIOR, judged: int | None = None
) -> Noise:
    """Return the noise between runs that a check uses.

    From 30 runs on it is that of the series, with its degrees of freedom. With fewer the prior
    applies and is taken as known: it has infinitely many degrees of freedom. If the runs and the
    neighbours contradict the prior (chi-square at 5 % if they are noisier, at 1 % if they are
    quieter), the estimate of `noise_between` replaces it; its arguments are the same.
    """
    mine = _observe_runs(own, judged)
    count = sum(1 for launches in own if launches) - (judged is not None)
    if mine is not None and count >= MANY_RUNS:
        return mine
    observed = _observe_all(own, neighbours, judged)
    learned = pool_noise(observed)
    if learned is None or not _contradicts(learned, prior):
        return Noise(prior.value, math.inf)
    estimate = pool_noise([prior, *observed])
    assert estimate is not None
    return estimate


def noise_of_levels(levels: Iterable[Sequence[float]], prior: Noise = PRIOR) -> Noise:
    """Return the noise of values by run, if the runs of each level are known."""
    known = [level for level in levels if len(level) > 1]
    estimate = pool_noise(
        [prior, *(Noise(standard_deviation(level), len(level) - 1.0) for level in known)]
    )
    assert estimate is not None
    return estimate


def _observe_all(own: Runs, neighbours: Iterable[Runs], judged: int | None) -> list[Noise]:
    """Return the noise of the series' own runs and of each neighbour, if known."""
    similar = [
        noise for runs in neighbours if len(runs) >= FEWEST_RUNS and (noise := _observe_runs(runs))
    ]
    parts = [Noise(neighbour.value, 1.0) for neighbour in similar[:MOST_NEIGHBOURS]]
    mine = _observe_runs(own, judged)
    return parts if mine is None else [*parts, mine]


def _contradicts(learned: Noise, prior: Noise) -> bool:
    squares = learned.freedom * (learned.value / prior.value) ** 2
    if squares > _chi_square(1.0 - _NOISIER, learned.freedom):
        return True
    enough = learned.freedom >= FEWEST_RUNS - 1
    return enough and squares < _chi_square(_QUIETER, learned.freedom)


def _chi_square(p: float, freedom: float) -> float:
    """Return the quantile by Wilson and Hilferty, within 3 % above and too low below."""
    part = 2.0 / (9.0 * freedom)
    return freedom * float((1.0 - part + NormalDist().inv_cdf(p) * math.sqrt(part)) ** 3)


def _observe_runs(runs: Runs, judged: int | None = None) -> Noise | None:
    """Return the spread of the means of runs beyond that of launches; None below two runs."""
    known = [launches for launches in runs if launches]
    means = [math.fsum(logs_of(launches)) / len(launches) for launches in known]
    levels = _find_levels(means)
    if judged is not None:
        levels = [[at for at in level if at != judged] for level in levels]
        known = [launches for at, launches in enumerate(known) if at != judged]
    if len(known) < 2:
        return None
    squares, freedom = 0.0, 0
    for level in (piece for piece in levels if piece):
        middle = math.fsum(means[at] for at in level) / len(level)
        squares += math.fsum((means[at] - middle) ** 2 for at in level)
        freedom += len(level) - 1
    if not freedom:
        return None
    within = pool_runs(known)
    launch_variance = 0.0
    if within is not None:
        launch_variance = within.value**2 * math.fsum(1.0 / len(run) for run in known) / len(known)
    return Noise(math.sqrt(max(squares / freedom - launch_variance, 0.0)), float(freedom))


def _find_levels(means: Sequence[float]) -> list[Sequence[int]]:
    """Return the runs of each level; a step between levels exceeds the least effect."""
    from accelbench.measure.changes import find_changes  # brings numpy

    every = range(len(means))
    if len(means) < FEWEST_RUNS:
        return [every]
    steps = find_changes([math.exp(mean) for mean in means], LEAST_EFFECT).steps
    edges = [0, *(step.at for step in steps), len(means)]
    return [every[a:b] for a, b in pairwise(edges)]


#: Most degrees of freedom.
_MAX_FREEDOM = 1e6


def interval_level(runs: Noise | None) -> float:
    """Return the level of the interval that decides a verdict."""
    # 0.99, or 0.98 between runs, so that each end is the limit of a one-sided test at 1 %.
    return 1.0 - (ALPHA if runs is None else 2.0 * ALPHA)


def unpaired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, runs: Noise | None = None
) -> RatioInterval | None:
    """Return Welch's t on log medians of launches that were not interleaved; None below two each.

    Successive launches are not independent on a machine that drifts: ten and more count as fewer,
    so they must be in order of time. `runs` is the noise between runs; None if both are from one
    run.
    """
    first, second = logs_of(a), logs_of(b)
    if len(first) < 2 or len(second) < 2:
        return None
    center = fmean(second) - fmean(first)
    parts = []
    for logs in (first, second):
        n = independent_launches(logs)
        parts.append((standard_deviation(logs) ** 2 / n, n - 1.0))
    error, freedom = combine_errors(parts, runs)
    reach = min(t_quantile((1.0 + level) / 2.0, freedom) * error, MAX_LOG)
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        p_value(center, error, freedom),
        min(len(first), len(second)),
    )


def independent_count(medians: Sequence[float]) -> int:
    """Return how many independent launches show as much."""
    return int(independent_launches(logs_of(medians)))


@dataclass(frozen=True)
class UnpairedPower:
    """Power of a comparison that was not interleaved, by the number of launches of each."""

    noise: float  # between launches
    first: int
    second: int
    runs: Noise | None = None  # between runs; None if both are from one run

    @property
    def least_effect(self) -> float:
        """Share that a change must exceed."""
        # Between two runs it is the error of the one-sided test at 1 %, and at least 3 %. In one
        # run it is three times the noise of an A/A comparison, and at least 3 %.
        if self.runs is None:
            return max(LEAST_EFFECT, 3.0 * self._error)
        return max(LEAST_EFFECT, math.expm1(min(self.error_at(1.0 - ALPHA), MAX_LOG)))

    def detectable(self, floor: float = LEAST_EFFECT) -> float | None:
        """Return the smallest change above `floor` that is found with 80 % power, if any."""
        if min(self.first, self.second) < 2:
            return None
        least = math.log1p(max(floor, self.least_effect))
        past_floor = least + self.error_at(POWER)
        return math.expm1(min(max(self._detectable_log, past_floor), MAX_LOG))

    def error_at(self, level: float) -> float:
        """Return the one-sided error of the comparison at a level, as a logarithm."""
        return t_quantile(level, self._freedom) * self._error

    def suffices(self, effect: float) -> bool:
        """Return whether a change of this share is significant at 1 % with 80 % power."""
        return self._may_suffice(effect) and self._detectable_log <= math.log1p(effect)

    def required_launches(self, effect: float) -> int | None:
        """Return how many launches the second needs for that; None if no number suffices."""
        return fewest_launches(
            effect, lambda n: UnpairedPower(self.noise, self.first, n, self.runs)
        )

    def _may_suffice(self, effect: float) -> bool:
        """Return whether a change would be significant if the noise were known.

        Quantiles of the normal distribution are smaller than those of t and faster to compute. They
        already show for most values that no number of launches suffices.
        """
        few = min(self.first, self.second) < FEWEST_LAUNCHES
        normal = NormalDist()
        reach = normal.inv_cdf(1.0 - self._tail) + normal.inv_cdf(POWER)
        return not few and reach * self._error <= math.log1p(effect)

    @property
    def _detectable_log(self) -> float:
        freedom = self._freedom
        reach = t_quantile(1.0 - self._tail, freedom) + t_quantile(POWER, freedom)
        return reach * self._error

    @property
    def _tail(self) -> float:
        """Error probability on one side: the test between runs is one-sided."""
        return ALPHA / 2.0 if self.runs is None else ALPHA

    @cached_property
    def _error(self) -> float:
        launches = comparison_noise(self.first, self.noise, self.second)
        return launches if self.runs is None else math.hypot(launches, _run_difference(self.runs))

    @cached_property
    def _freedom(self) -> float:
        launches = comparison_noise(self.first, self.noise, self.second)
        return combine_errors([(launches**2, self.first + self.second - 2.0)], self.runs)[1]


def fewest_launches(effect: float, power_of: Callable[[int], UnpairedPower]) -> int | None:
    """Return how many launches show a change of a share; None if even the most do not.

    `power_of` returns the power of a number of launches.
    """
    if not power_of(MOST_LAUNCHES)._may_suffice(effect):
        return None
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((n for n in counts if power_of(n).suffices(effect)), None)


def single_launch_error(level: float, runs: Noise, launches: Noise | None = None) -> float:
    """Return the one-sided difference of two runs of one launch by chance, as a logarithm."""
    error = _run_difference(runs)
    if launches is not None:
        error = math.hypot(error, comparison_noise(1, launches.value))
    return t_quantile(level, min(runs.freedom, _MAX_FREEDOM)) * error


def _run_difference(runs: Noise) -> float:
    """Return the noise of a difference of two runs."""
    return runs.value * math.sqrt(2.0)


def combine_errors(parts: Sequence[tuple[float, float]], runs: Noise | None) -> tuple[float, float]:
    """Return the error of a difference and its degrees of freedom, by Welch and Satterthwaite.

    `runs` is the noise between runs; None within one run.
    """
    parts = list(parts)
    if runs is not None:
        parts.append((_run_difference(runs) ** 2, runs.freedom))
    total = math.fsum(variance for variance, _ in parts)
    below = math.fsum(variance**2 / freedom for variance, freedom in parts)
    if below <= 0.0:  # the only error is known, or there is none
        return math.sqrt(total), min(math.fsum(freedom for _, freedom in parts), _MAX_FREEDOM)
    return math.sqrt(total), min(total**2 / below, _MAX_FREEDOM)

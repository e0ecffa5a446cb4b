"""The deviation from run to run of a series, if nothing was changed.

The launches of one run cannot show it. The history of the series on its machine can: it is the
spread of the runs' means, less the part that their launches explain. A step that stayed is a
change of the program, so both sides of it count separately. A spike is noise of the machine.

Without a history a prior of 2 % applies. Two thousand launches of one model on our machine, cut
into runs of twenty, differed by 3.5 % from run to run, and their launches alone explained 1.5 %.
Neighbours are other series of the same engine on the same device. Each counts as one
observation, however long its history is, because one series can be quieter than the next.

Two functions use this. `noise_between` estimates the deviation for the interval of a comparison:
the prior has three degrees of freedom there, so that the interval is wide without a history.
`find_gate_noise` chooses the deviation that a check takes as known. A check with the wide
interval found a change of 10 % in 1 % of cases.

Two sides that were not interleaved: what their launches differ by, and what that can show.

Launches of one run share more than their program: the machine's temperature, its neighbours, the
layout of its memory. So the mean of a run's launches has two errors, that of its launches,
which more of them make smaller, and that of the run, which nothing in it makes smaller
(`measure.runs`). A comparison of two runs has both.
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
    HUGE,
    LEAST_EFFECT,
    MOST_LAUNCHES,
    POWER,
    Noise,
    RatioInterval,
    comparison_noise,
    independent_launches,
    logs_of,
    p_value,
    pooled,
    pooled_noise,
    spread,
)
from accelbench.measure.student import t_quantile

#: Nothing is known of the machine.
PRIOR = Noise(0.02, 3.0)
#: Of memory, which does not depend on time.
PRIOR_OF_MEMORY = Noise(0.01, 3.0)
#: Neighbours that are listened to.
MOST_NEIGHBOURS = 8
#: Of fewer runs nobody knows whether they came to levels; of a neighbour they are no observation.
FEWEST_RUNS = 4
#: From so many runs of its own on, a series is judged by them alone.
MANY_RUNS = 30
#: How unlikely a history must be under the prior to replace it. An alarm on a noisy machine is
#: worse than a change that is missed, so it takes less to show that a machine is noisy.
_NOISIER, _QUIETER = 0.05, 0.01

#: Launches of each run of a series, oldest run first.
Runs = Sequence[Sequence[float]]


def noise_between(
    own: Runs, neighbours: Iterable[Runs] = (), prior: Noise = PRIOR, judged: int | None = None
) -> Noise:
    """Return the deviation from run to run of a series, from all that is known of it.

    `neighbours` ran alike, the nearest first; `prior` applies without a history. The run that is
    `judged` does not count: a change would be part of the noise that it is compared with. Where
    levels begin it tells with the others.
    """
    estimate = pooled([prior, *_observed(own, neighbours, judged)])
    assert estimate is not None
    return estimate


def find_gate_noise(
    own: Runs, neighbours: Iterable[Runs] = (), prior: Noise = PRIOR, judged: int | None = None
) -> Noise:
    """Return the standard deviation from run to run that a check uses.

    From 30 runs on it is that of the series, with its degrees of freedom. With fewer the prior
    applies and is taken as known: it has infinitely many degrees of freedom. If the runs and the
    neighbours contradict the prior (chi-square at 5 % if they are noisier, at 1 % if they are
    quieter), the estimate of `noise_between` replaces it; its arguments are the same.
    """
    mine = _seen(own, judged)
    count = sum(1 for launches in own if launches) - (judged is not None)
    if mine is not None and count >= MANY_RUNS:
        return mine
    observed = _observed(own, neighbours, judged)
    learned = pooled(observed)
    if learned is None or not _contradicts(learned, prior):
        return Noise(prior.value, math.inf)
    estimate = pooled([prior, *observed])
    assert estimate is not None
    return estimate


def noise_of_levels(levels: Iterable[Sequence[float]], prior: Noise = PRIOR) -> Noise:
    """Return the noise of values by run, if it is known which runs are of one level."""
    known = [level for level in levels if len(level) > 1]
    estimate = pooled([prior, *(Noise(spread(level), len(level) - 1.0) for level in known)])
    assert estimate is not None
    return estimate


def _observed(own: Runs, neighbours: Iterable[Runs], judged: int | None) -> list[Noise]:
    """Return the deviation of the series' own runs and of each neighbour, if known."""
    beside = [noise for runs in neighbours if len(runs) >= FEWEST_RUNS and (noise := _seen(runs))]
    parts = [Noise(neighbour.value, 1.0) for neighbour in beside[:MOST_NEIGHBOURS]]
    mine = _seen(own, judged)
    return parts if mine is None else [*parts, mine]


def _contradicts(learned: Noise, prior: Noise) -> bool:
    squares = learned.freedom * (learned.value / prior.value) ** 2
    if squares > _chi_square(1.0 - _NOISIER, learned.freedom):
        return True
    enough = learned.freedom >= FEWEST_RUNS - 1
    return enough and squares < _chi_square(_QUIETER, learned.freedom)


def _chi_square(p: float, freedom: float) -> float:
    """Return the quantile by Wilson and Hilferty: within 3 % above, too low below."""
    part = 2.0 / (9.0 * freedom)
    return freedom * float((1.0 - part + NormalDist().inv_cdf(p) * math.sqrt(part)) ** 3)


def _seen(runs: Runs, judged: int | None = None) -> Noise | None:
    """What the means of runs differ by beyond what their launches explain; None below two runs."""
    known = [launches for launches in runs if launches]
    means = [math.fsum(logs_of(launches)) / len(launches) for launches in known]
    levels = _levels(means)
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
    within = pooled_noise(known)
    of_launches = 0.0
    if within is not None:
        of_launches = within.value**2 * math.fsum(1.0 / len(run) for run in known) / len(known)
    return Noise(math.sqrt(max(squares / freedom - of_launches, 0.0)), float(freedom))


def _levels(means: Sequence[float]) -> list[Sequence[int]]:
    """The pieces between steps that stayed; a step has to be larger than the least effect."""
    from accelbench.measure.changes import course  # brings numpy

    every = range(len(means))
    if len(means) < FEWEST_RUNS:
        return [every]
    steps = course([math.exp(mean) for mean in means], LEAST_EFFECT).steps
    edges = [0, *(step.at for step in steps), len(means)]
    return [every[a:b] for a, b in pairwise(edges)]


#: No degrees of freedom are more than that.
_KNOWN = 1e6


def interval_level(runs: Noise | None) -> float:
    """Return the level of the interval that a verdict is made by."""
    # 0.99, or 0.98 between runs, so that each end is the limit of a one-sided test at 1 %.
    return 1.0 - (ALPHA if runs is None else 2.0 * ALPHA)


def unpaired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, runs: Noise | None = None
) -> RatioInterval | None:
    """Return Welch's t on log medians of launches not interleaved; None below two a side.

    Launches one after the other are not independent on a machine that drifts: with ten and more on
    a side they count for as many as tell the same, so they are to come in order of time. `runs` is
    by how much one run differs from another; None if both sides are of one run.
    """
    first, second = logs_of(a), logs_of(b)
    if len(first) < 2 or len(second) < 2:
        return None
    center = fmean(second) - fmean(first)
    parts = []
    for logs in (first, second):
        n = independent_launches(logs)
        parts.append((spread(logs) ** 2 / n, n - 1.0))
    error, freedom = combine_errors(parts, runs)
    reach = min(t_quantile((1.0 + level) / 2.0, freedom) * error, HUGE)
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        p_value(center, error, freedom),
        min(len(first), len(second)),
    )


def independent(medians: Sequence[float]) -> int:
    """How many independent launches would tell as much."""
    return int(independent_launches(logs_of(medians)))


@dataclass(frozen=True)
class Apart:
    """What two sides that were not interleaved can show, by how many launches each has."""

    noise: float  # of launches
    first: int
    second: int
    runs: Noise | None = None  # of runs; None where both sides are of one

    @property
    def least_effect(self) -> float:
        """The share that a change must exceed."""
        # Between two runs it is the reach of the one-sided test at 1 %, and at least 3 %. In one
        # run it is three times the noise of an A/A comparison, and at least 3 %.
        if self.runs is None:
            return max(LEAST_EFFECT, 3.0 * self._error)
        return max(LEAST_EFFECT, math.expm1(min(self.reach(1.0 - ALPHA), HUGE)))

    def detectable(self, floor: float = LEAST_EFFECT) -> float | None:
        """Return the smallest change above `floor` that is found with 80 % power; None below two
        launches."""
        if min(self.first, self.second) < 2:
            return None
        least = math.log1p(max(floor, self.least_effect))
        past_floor = least + self.reach(POWER)
        return math.expm1(min(max(self._detectable_log, past_floor), HUGE))

    def reach(self, level: float) -> float:
        """How far the comparison may be from the truth, as a logarithm, on one side."""
        return t_quantile(level, self._freedom) * self._error

    def suffices(self, effect: float) -> bool:
        """Return whether a change of this share is significant at 1 % with 80 % power."""
        return self._may_suffice(effect) and self._detectable_log <= math.log1p(effect)

    def required(self, effect: float) -> int | None:
        """How many launches the second side needs for that; None if no number would do."""
        return fewest(effect, lambda n: Apart(self.noise, self.first, n, self.runs))

    def _may_suffice(self, effect: float) -> bool:
        """Whether it would be if the noise were known, which it never is: found in less time.

        Quantiles of the normal distribution are smaller than those of t, for which a series is
        summed; and they say of most figures that no number of launches will do.
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
        """The error of the test on one side: between runs it is one-sided."""
        return ALPHA / 2.0 if self.runs is None else ALPHA

    @cached_property
    def _error(self) -> float:
        launches = comparison_noise(self.first, self.noise, self.second)
        return launches if self.runs is None else math.hypot(launches, _apart(self.runs))

    @cached_property
    def _freedom(self) -> float:
        launches = comparison_noise(self.first, self.noise, self.second)
        return combine_errors([(launches**2, self.first + self.second - 2.0)], self.runs)[1]


def fewest(effect: float, sides: Callable[[int], Apart]) -> int | None:
    """Return how many launches show a change of such a share; None if not even the most do.

    `sides` returns what so many launches come to.
    """
    if not sides(MOST_LAUNCHES)._may_suffice(effect):
        return None
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((n for n in counts if sides(n).suffices(effect)), None)


def reach_of_one(level: float, runs: Noise, launches: Noise | None = None) -> float:
    """Return how far two runs of one launch each may be apart by chance, as a logarithm, on one
    side."""
    error = _apart(runs)
    if launches is not None:
        error = math.hypot(error, comparison_noise(1, launches.value))
    return t_quantile(level, min(runs.freedom, _KNOWN)) * error


def _apart(runs: Noise) -> float:
    """What two runs of one thing differ by."""
    return runs.value * math.sqrt(2.0)


def combine_errors(parts: Sequence[tuple[float, float]], runs: Noise | None) -> tuple[float, float]:
    """Return the error of a difference and its degrees of freedom, by Welch and Satterthwaite.

    `runs` is by how much one run differs from another; None in one run.
    """
    parts = list(parts)
    if runs is not None:
        parts.append((_apart(runs) ** 2, runs.freedom))
    total = math.fsum(variance for variance, _ in parts)
    below = math.fsum(variance**2 / freedom for variance, freedom in parts)
    if below <= 0.0:  # the only error is one that is known, or there is none
        return math.sqrt(total), min(math.fsum(freedom for _, freedom in parts), _KNOWN)
    return math.sqrt(total), min(total**2 / below, _KNOWN)

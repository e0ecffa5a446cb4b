"""Two sides that were not interleaved: what their launches differ by, and what that can show.

Launches of one run share more than their program: the machine's temperature, its neighbours, the
layout of its memory. So the mean of a run's launches has two errors, that of its launches,
which more of them make smaller, and that of the run, which nothing in it makes smaller
(`measure.runs`). A comparison of two runs has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean

from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.measure.launches import (
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
    spread,
)
from accelbench.measure.student import t_quantile

#: No degrees of freedom are more than that.
_KNOWN = 1e6


def interval_level(runs: Noise | None) -> float:
    """Return the probability of an interval that a verdict is made by.

    It is 0.99, or 0.98 between runs, so that each end is the limit of a one-sided test at 1 %.

    Args:
        runs: by how much runs differ; None if both sides are of one run.
    """
    return 1.0 - (ALPHA if runs is None else 2.0 * ALPHA)


def unpaired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, runs: Noise | None = None
) -> RatioInterval | None:
    """Welch's t on log medians: for launches that were not interleaved, however many a side.

    Launches one after the other are not independent on a machine that drifts: with ten and more
    on a side they count for as many as tell the same, so they are to come in order of time. None
    below two launches on either side.

    Args:
        a: medians of the launches of one side, the reference.
        b: those of the other.
        level: of the interval.
        runs: by how much one run differs from another; None where both sides are of one run.
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
        """The share that a change must exceed.

        Between two runs it is the reach of the one-sided test at 1 %, and at least 3 %. In one run
        it is three times the noise of an A/A comparison, and at least 3 %.
        """
        if self.runs is None:
            return max(LEAST_EFFECT, 3.0 * self._error)
        return max(LEAST_EFFECT, math.expm1(min(self.reach(1.0 - ALPHA), HUGE)))

    def detectable(self, floor: float = LEAST_EFFECT) -> float | None:
        """Return the smallest change that is found with 80 % power; None below two launches.

        Args:
            floor: the least change that counts.
        """
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
        """How many launches the second side needs for that; None where no number would do."""
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
    """How many launches show a change of so much; None where not even the most do.

    Args:
        effect: the change, as a share.
        sides: what so many launches come to: with more of them it errs by less.
    """
    if not sides(MOST_LAUNCHES)._may_suffice(effect):
        return None
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((n for n in counts if sides(n).suffices(effect)), None)


def reach_of_one(level: float, runs: Noise, launches: Noise | None = None) -> float:
    """How far two runs of one launch each may be apart by chance, as a logarithm, on one side.

    Args:
        level: how sure.
        runs: by how much runs were seen to differ.
        launches: the same of launches, where any run had two.
    """
    error = _apart(runs)
    if launches is not None:
        error = math.hypot(error, comparison_noise(1, launches.value))
    return t_quantile(level, min(runs.freedom, _KNOWN)) * error


def _apart(runs: Noise) -> float:
    """What two runs of one thing differ by."""
    return runs.value * math.sqrt(2.0)


def combine_errors(parts: Sequence[tuple[float, float]], runs: Noise | None) -> tuple[float, float]:
    """Return the error of a difference and its degrees of freedom, by Welch and Satterthwaite.

    Args:
        parts: variances that are added, each with its degrees of freedom.
        runs: by how much one run differs from another; None in one run.
    """
    parts = list(parts)
    if runs is not None:
        parts.append((_apart(runs) ** 2, runs.freedom))
    total = math.fsum(variance for variance, _ in parts)
    below = math.fsum(variance**2 / freedom for variance, freedom in parts)
    if below <= 0.0:  # the only error is one that is known, or there is none
        return math.sqrt(total), min(math.fsum(freedom for _, freedom in parts), _KNOWN)
    return math.sqrt(total), min(total**2 / below, _KNOWN)

"""Verdicts on whether b is faster than a, from launches and never from samples of one launch.

Launches of the same configuration differ by more (3–7 % was seen) than the interval within one of
them suggests (0.7 %). So K launches of each are interleaved, A B B A …. Each gives one median, and
Student's t compares the logarithms of the medians in pairs. K follows from the noise before the
first launch, and is never increased because of an unwelcome answer.

Noise is the standard deviation of the log medians of launches of the same configuration, 0.02 for 2
% (`aa_noise`). An A/A comparison of K launches each then differs from no change by noise · √(2/K).
An effect must exceed three times that, and 3 %. The t-test estimates its noise from the K pairs,
which may look far too quiet by chance; this limit rests on noise that was known before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from accelbench.core.result_statistics import FEWEST_LAUNCHES, Spread, SpreadKind, shown_ends
from accelbench.measure.student import t_cdf, t_quantile

MOST_LAUNCHES = 40
LEAST_EFFECT = 0.03
ALPHA = 0.01
POWER = 0.8
#: Largest logarithm of a ratio; larger ratios are not distinguished.
MAX_LOG = 100.0
#: Fewest launches whose correlation can be estimated.
_CORRELATED = 10


class ComparisonAnswer(StrEnum):
    """Answer of a comparison of b with a."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference shown"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class RatioInterval:
    """Time of b as a multiple of a's: 0.9 means that b needs 10 % less time."""

    ratio: float
    low: float
    high: float
    level: float
    p_value: float  # of no difference, two-sided
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """Answer of a comparison, with its evidence."""

    answer: ComparisonAnswer
    interval: RatioInterval | None  # None below two pairs
    launches: int  # of each
    required: int  # of each, by the noise
    least_effect: float  # the share that the effect must exceed
    minimum_detectable_effect: float | None  # with these launches; None below two


def abba_order(k: int) -> tuple[str, ...]:
    """Return the order of 2k launches, A B B A A B B A …, in which steady drift favours neither."""
    # The i-th "a" and the i-th "b" are neighbours and form a pair. An odd k leaves one pair in the
    # order A B without its counterpart.
    if k < 1:
        raise ValueError(f"each side needs at least one launch, not {k}")
    return tuple(arm for pair in range(k) for arm in ("ab" if pair % 2 == 0 else "ba"))


def geometric_mean(medians: Sequence[float]) -> float:
    """Return the geometric mean of launches, which all intervals here refer to."""
    if len(set(medians)) == 1:  # exactly as it was measured
        return medians[0]
    return math.exp(fmean(logs_of(medians)))


def geometric_mean_sql(value: str, where: str = "true") -> str:
    """Return SQL for `geometric_mean` over the rows that satisfy `where`."""
    known = f"CASE WHEN {where} AND {value} > 0 THEN {value} END"
    # The mean of equal values is exactly that value.
    return f"CASE WHEN min({known}) = max({known}) THEN min({known}) ELSE exp(avg(ln({known}))) END"


def aa_noise(medians_per_launch: Sequence[float]) -> float | None:
    """Return the standard deviation of log medians between launches; None below two."""
    logs = logs_of(medians_per_launch)
    return standard_deviation(logs) if len(logs) > 1 else None


@dataclass(frozen=True)
class Noise:
    """Noise between launches, with its degrees of freedom."""

    value: float
    freedom: float


def pool_runs(runs: Iterable[Sequence[float]]) -> Noise | None:
    """Return the noise of launches within several runs, without differences between runs."""
    logs = [logs_of(medians) for medians in runs]
    return pool_noise(
        [Noise(standard_deviation(run), len(run) - 1) for run in logs if len(run) > 1]
    )


def pool_noise(parts: Sequence[Noise]) -> Noise | None:
    """Return one noise from several estimates, weighted by degrees of freedom; None for none."""
    freedom = sum(part.freedom for part in parts)
    if not freedom:
        return None
    total = math.fsum(part.freedom * part.value**2 for part in parts)
    return Noise(math.sqrt(total / freedom), freedom)


def all_differ(*sides: Sequence[float]) -> bool:
    """Return whether the launches of each group differ, which the estimate of noise needs."""
    # Exactly equal values were rounded, or are one value that is stored several times.
    return all(max(values) > min(values) for values in sides)


def interval_of(medians: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of the mean of launches, by Student's t on their logarithms.

    None below two launches, or if all launches are equal.
    """
    logs = logs_of(medians)
    if len(logs) < 2 or not all_differ(medians):
        return None
    center, n = fmean(logs), independent_launches(logs)
    reach = min(
        t_quantile((1.0 + level) / 2.0, n - 1) * standard_deviation(logs) / math.sqrt(n), MAX_LOG
    )
    return math.exp(center - reach), math.exp(center + reach)


def spread_of(values: Sequence[float], within: tuple[float, float] | None = None) -> Spread | None:
    """Return the ends that views show next to the mean of launches; None if none are known.

    `within` is the 95 % interval within a single launch.
    """
    if len(values) == 1:
        return None if within is None else Spread(*shown_ends(*within), SpreadKind.SAMPLES)
    if not values or not all_differ(values):
        return None
    if len(values) < FEWEST_LAUNCHES:
        return Spread(min(values), max(values), SpreadKind.RANGE, len(values))
    return Spread(
        *shown_ends(*(interval_of(values) or (None, None))), SpreadKind.INTERVAL, len(values)
    )


def paired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95
) -> RatioInterval | None:
    """Return the paired t on log medians of launches; None below two pairs.

    The i-th launch of a forms a pair with the i-th of b.
    """
    if len(a) != len(b):
        raise ValueError(f"launches come in pairs, not {len(a)} and {len(b)}")
    differences = [second - first for first, second in zip(logs_of(a), logs_of(b), strict=True)]
    k = len(differences)
    if k < 2:
        return None
    center = fmean(differences)
    error = standard_deviation(differences) / math.sqrt(k)
    reach = t_quantile((1.0 + level) / 2.0, k - 1) * error
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        p_value(center, error, k - 1),
        k,
    )


def find_launch_count(noise: float, effect: float = LEAST_EFFECT) -> int | None:
    """Return the launches of each, 5 to 40, that show an effect with 80 % power; None if more.

    The level is 0.01.
    """
    wanted = math.log1p(effect)
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((k for k in counts if _detectable_log(k, noise, ALPHA, POWER) <= wanted), None)


def independent_launches(logs: Sequence[float]) -> float:
    """Return how many independent launches show as much; with few launches all count."""
    if len(logs) < _CORRELATED:
        return float(len(logs))
    from accelbench.measure.intervals import effective_size  # brings numpy

    return max(2.0, effective_size(logs))


def required_launches(noise: float, effect: float = LEAST_EFFECT) -> int:
    """Return `find_launch_count`, or 40 if even those do not suffice."""
    return find_launch_count(noise, effect) or MOST_LAUNCHES


def minimum_detectable_effect(
    k: int, noise: float, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the smallest share that `verdict` finds with this power; None for k < 2."""
    # It must be significant and exceed the least effect, each with this power.
    if k < 2:
        return None
    margin = comparison_noise(k, noise) * t_quantile(power, k - 1)
    past_floor = math.log1p(least_effect(k, noise)) + margin
    return math.expm1(max(_detectable_log(k, noise, alpha, power), past_floor))


def least_effect(k: int, noise: float, other: int | None = None) -> float:
    """Return the share that an effect must exceed: max(3 %, 3 × the noise of an A/A comparison).

    `k` and `other` are the launches of both; `other` is `k` by default.
    """
    return max(LEAST_EFFECT, 3.0 * comparison_noise(k, noise, other))


def verdict(a: Sequence[float], b: Sequence[float], noise: float, alpha: float = ALPHA) -> Verdict:
    """Return whether b is faster or slower than a, both medians of launches paired by position.

    `noise` is from launches of the same configuration (`aa_noise`), known beforehand. `alpha` is
    the probability of a false difference. With fewer launches than the noise requires the answer is
    inconclusive, and the minimum detectable effect shows the power of the launches.
    """
    interval = paired_interval(a, b, 1.0 - alpha)
    k = len(a)
    required = required_launches(noise)
    floor = least_effect(max(k, 1), noise)
    answer = ComparisonAnswer.CANNOT_TELL
    if interval is not None and k >= required:
        effect = math.log(interval.ratio)
        shown = interval.p_value < alpha and abs(effect) > math.log1p(floor)
        changed = ComparisonAnswer.FASTER if effect < 0 else ComparisonAnswer.SLOWER
        answer = changed if shown else ComparisonAnswer.NO_DIFFERENCE
    detectable = minimum_detectable_effect(k, noise, alpha)
    return Verdict(answer, interval, k, required, floor, detectable)


def logs_of(medians: Sequence[float]) -> list[float]:
    """Return the logarithms of positive values."""
    if any(not m > 0 for m in medians):
        raise ValueError("a launch's median must be a positive time")
    return [math.log(m) for m in medians]


def comparison_noise(k: int, noise: float, other: int | None = None) -> float:
    """Return the noise of an A/A comparison of k launches with `other`, by default k."""
    return noise * math.sqrt(1.0 / k + 1.0 / (other or k))


def _detectable_log(k: int, noise: float, alpha: float, power: float) -> float:
    """Return the log ratio that a paired t-test of k pairs finds significant with this power."""
    reach = t_quantile(1.0 - alpha / 2.0, k - 1) + t_quantile(power, k - 1)
    return reach * comparison_noise(k, noise)


def standard_deviation(logs: Sequence[float]) -> float:
    """Return the standard deviation, ten times as fast as `statistics.stdev`."""
    center = fmean(logs)
    return math.sqrt(math.fsum((log - center) ** 2 for log in logs) / (len(logs) - 1))


def p_value(center: float, error: float, freedom: float) -> float:
    """Return the two-sided p-value of no difference."""
    if error == 0.0:
        return 1.0 if center == 0.0 else 0.0
    return 2.0 * t_cdf(-abs(center) / error, freedom)

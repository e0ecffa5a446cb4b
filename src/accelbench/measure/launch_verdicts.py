"""Verdicts: is b faster than a? Answered from launches, never from the samples of one.

Launches of the same thing differ by more (3–7 % was seen) than the interval within
one of them says (0.7 %). So K launches a side are interleaved, A B B A …, each gives one
median, and the logarithms of the medians are compared in pairs by Student's t. K is
fixed before the first launch from the noise, and never raised because the answer
did not please.

Noise is one number throughout: the standard deviation of the log medians of launches
of one and the same thing, 0.02 for 2 % (`aa_noise`). An A/A comparison of K launches a
side then differs from no change by noise · √(2/K); an effect must exceed three times
that and 3 %. The t-test estimates its noise from the K pairs at hand, which by chance
may look far too quiet; this floor rests on noise known beforehand.
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
#: The logarithm of what nobody needs to tell apart from more.
HUGE = 100.0
#: Fewer launches do not tell how alike neighbours are.
_CORRELATED = 10


class ComparisonAnswer(StrEnum):
    """What a comparison of b with a came to."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference shown"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True)
class RatioInterval:
    """How long b takes as a multiple of a: 0.9 means b needs 10 % less time."""

    ratio: float
    low: float
    high: float
    level: float
    p_value: float  # of no difference, two-sided
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """The answer and what it rests on."""

    answer: ComparisonAnswer
    interval: RatioInterval | None  # None below two pairs
    launches: int  # a side
    required: int  # a side, by the noise
    least_effect: float  # what the effect had to exceed, as a share
    minimum_detectable_effect: float | None  # with these launches; None below two


def abba(k: int) -> tuple[str, ...]:
    """Return the order of 2k launches: A B B A A B B A …, so that steady drift favours neither
    side."""
    # The i-th "a" and the i-th "b" are neighbours and form a pair. An odd k leaves one pair in the
    # order A B without its counterpart.
    if k < 1:
        raise ValueError(f"a side needs at least one launch, not {k}")
    return tuple(arm for pair in range(k) for arm in ("ab" if pair % 2 == 0 else "ba"))


def typical(medians: Sequence[float]) -> float:
    """The middle of launches: their geometric mean, which is what every interval here is of."""
    if len(set(medians)) == 1:  # as it was measured, to the last digit
        return medians[0]
    return math.exp(fmean(logs_of(medians)))


def typical_sql(figure: str, where: str = "true") -> str:
    """Return the middle of launches as SQL, as `typical` computes it, of the rows `where` holds."""
    known = f"CASE WHEN {where} AND {figure} > 0 THEN {figure} END"
    # Of alike figures it is that figure, to the last digit.
    return f"CASE WHEN min({known}) = max({known}) THEN min({known}) ELSE exp(avg(ln({known}))) END"


def aa_noise(medians_per_launch: Sequence[float]) -> float | None:
    """Launch-to-launch noise: the standard deviation of the log medians; None below two."""
    logs = logs_of(medians_per_launch)
    return spread(logs) if len(logs) > 1 else None


@dataclass(frozen=True)
class Noise:
    """Launch-to-launch noise, and how many degrees of freedom it rests on."""

    value: float
    freedom: float


def pooled_noise(runs: Iterable[Sequence[float]]) -> Noise | None:
    """`aa_noise` of launches in several runs: what differs between runs is no noise of launches."""
    logs = [logs_of(medians) for medians in runs]
    return pooled([Noise(spread(run), len(run) - 1) for run in logs if len(run) > 1])


def pooled(parts: Sequence[Noise]) -> Noise | None:
    """One noise of several estimates of it, each by what it rests on; None for none."""
    freedom = sum(part.freedom for part in parts)
    if not freedom:
        return None
    total = math.fsum(part.freedom * part.value**2 for part in parts)
    return Noise(math.sqrt(total / freedom), freedom)


def differ(*sides: Sequence[float]) -> bool:
    """Return whether the launches of each side differ: only then they show by how much."""
    # Equal to the last digit are rounded values, or one value that is stored several times.
    return all(max(figures) > min(figures) for figures in sides)


def interval_of(medians: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of the middle of launches, by Student's t on their logarithms.

    None below two launches, or if launches do not differ at all.
    """
    logs = logs_of(medians)
    if len(logs) < 2 or not differ(medians):
        return None
    center, n = fmean(logs), independent_launches(logs)
    reach = min(t_quantile((1.0 + level) / 2.0, n - 1) * spread(logs) / math.sqrt(n), HUGE)
    return math.exp(center - reach), math.exp(center + reach)


def spread_of(values: Sequence[float], within: tuple[float, float] | None = None) -> Spread | None:
    """Return the ends that views show next to the middle of launches; None if none are known.

    `within` is the 95 % interval within a single launch.
    """
    if len(values) == 1:
        return None if within is None else Spread(*shown_ends(*within), SpreadKind.SAMPLES)
    if not values or not differ(values):
        return None
    if len(values) < FEWEST_LAUNCHES:
        return Spread(min(values), max(values), SpreadKind.RANGE, len(values))
    return Spread(
        *shown_ends(*(interval_of(values) or (None, None))), SpreadKind.INTERVAL, len(values)
    )


def paired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95
) -> RatioInterval | None:
    """Return the paired t on log medians of launches, the i-th of a with the i-th of b; None
    below two pairs."""
    if len(a) != len(b):
        raise ValueError(f"launches come in pairs, not {len(a)} and {len(b)}")
    differences = [second - first for first, second in zip(logs_of(a), logs_of(b), strict=True)]
    k = len(differences)
    if k < 2:
        return None
    center = fmean(differences)
    error = spread(differences) / math.sqrt(k)
    reach = t_quantile((1.0 + level) / 2.0, k - 1) * error
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        p_value(center, error, k - 1),
        k,
    )


def enough_launches(noise: float, effect: float = LEAST_EFFECT) -> int | None:
    """Return the launches a side, 5–40, that show such an effect with power 0.8 at level 0.01;
    None if more."""
    wanted = math.log1p(effect)
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((k for k in counts if _detectable_log(k, noise, ALPHA, POWER) <= wanted), None)


def independent_launches(logs: Sequence[float]) -> float:
    """How many independent launches would tell as much; of a few nobody can say, and all count."""
    if len(logs) < _CORRELATED:
        return float(len(logs))
    from accelbench.measure.intervals import effective_size  # brings numpy

    return max(2.0, effective_size(logs))


def required_launches(noise: float, effect: float = LEAST_EFFECT) -> int:
    """As `enough_launches`, and 40 where not even those do."""
    return enough_launches(noise, effect) or MOST_LAUNCHES


def minimum_detectable_effect(
    k: int, noise: float, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the smallest true effect that `verdict` finds with this power, as a share; None for
    k < 2."""
    # It must be significant and exceed the least effect, both despite chance.
    if k < 2:
        return None
    margin = comparison_noise(k, noise) * t_quantile(power, k - 1)
    past_floor = math.log1p(least_effect(k, noise)) + margin
    return math.expm1(max(_detectable_log(k, noise, alpha, power), past_floor))


def least_effect(k: int, noise: float, other: int | None = None) -> float:
    """Return what an effect must exceed: max(3 %, 3 × the noise of an A/A comparison).

    `k` are the launches of one side, `other` those of the other, if they are not as many.
    """
    return max(LEAST_EFFECT, 3.0 * comparison_noise(k, noise, other))


def verdict(a: Sequence[float], b: Sequence[float], noise: float, alpha: float = ALPHA) -> Verdict:
    """Return whether b is faster or slower than a, both medians of launches paired by position.

    `noise` is from launches of one and the same thing (`aa_noise`), known beforehand; `alpha` is
    how often a difference may be claimed that does not exist. With fewer launches than the noise
    requires the answer is "can't tell", and the minimum detectable effect shows what so few could
    have shown.
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
    """Return the logarithms of positive figures."""
    if any(not m > 0 for m in medians):
        raise ValueError("a launch's median must be a positive time")
    return [math.log(m) for m in medians]


def comparison_noise(k: int, noise: float, other: int | None = None) -> float:
    """What an A/A comparison of k launches with as many, or with `other`, differs from 1 by."""
    return noise * math.sqrt(1.0 / k + 1.0 / (other or k))


def _detectable_log(k: int, noise: float, alpha: float, power: float) -> float:
    """Return the log ratio that a paired t-test of k pairs finds significant with this power."""
    reach = t_quantile(1.0 - alpha / 2.0, k - 1) + t_quantile(power, k - 1)
    return reach * comparison_noise(k, noise)


def spread(logs: Sequence[float]) -> float:
    """The standard deviation. That of `statistics` computes in fractions: ten times as long."""
    center = fmean(logs)
    return math.sqrt(math.fsum((log - center) ** 2 for log in logs) / (len(logs) - 1))


def p_value(center: float, error: float, freedom: float) -> float:
    """Of no difference, two-sided."""
    if error == 0.0:
        return 1.0 if center == 0.0 else 0.0
    return 2.0 * t_cdf(-abs(center) / error, freedom)

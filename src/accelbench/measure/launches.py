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

from accelbench.measure.student import t_cdf, t_quantile

FEWEST_LAUNCHES = 5
MOST_LAUNCHES = 40
LEAST_EFFECT = 0.03
_ALPHA = 0.01
_POWER = 0.8
#: The logarithm of what nobody needs to tell apart from more.
_HUGE = 100.0
#: Fewer launches do not tell how alike neighbours are.
_CORRELATED = 10


class Answer(StrEnum):
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

    answer: Answer
    interval: RatioInterval | None  # None below two pairs
    launches: int  # a side
    required: int  # a side, by the noise
    least_effect: float  # what the effect had to exceed, as a share
    minimum_detectable_effect: float | None  # with these launches; None below two


def abba(k: int) -> tuple[str, ...]:
    """The order of 2k launches: A B B A A B B A …, so that steady drift favours neither side.

    The i-th "a" and the i-th "b" are neighbours and form a pair. An odd k leaves one
    pair in the order A B without its counterpart.
    """
    if k < 1:
        raise ValueError(f"a side needs at least one launch, not {k}")
    return tuple(arm for pair in range(k) for arm in ("ab" if pair % 2 == 0 else "ba"))


def typical(medians: Sequence[float]) -> float:
    """The middle of launches: their geometric mean, which is what every interval here is of."""
    if len(set(medians)) == 1:  # as it was measured, to the last digit
        return medians[0]
    return math.exp(fmean(_logs(medians)))


def aa_noise(medians_per_launch: Sequence[float]) -> float | None:
    """Launch-to-launch noise: the standard deviation of the log medians; None below two."""
    logs = _logs(medians_per_launch)
    return _spread(logs) if len(logs) > 1 else None


@dataclass(frozen=True)
class Noise:
    """Launch-to-launch noise, and how many degrees of freedom it rests on."""

    value: float
    freedom: int


def pooled_noise(runs: Iterable[Sequence[float]]) -> Noise | None:
    """`aa_noise` of launches in several runs: what differs between runs is no noise of launches."""
    logs = [_logs(medians) for medians in runs]
    return pooled([Noise(_spread(one), len(one) - 1) for one in logs if len(one) > 1])


def pooled(parts: Sequence[Noise]) -> Noise | None:
    """One noise of several estimates of it, each by what it rests on; None of none."""
    freedom = sum(part.freedom for part in parts)
    if not freedom:
        return None
    total = math.fsum(part.freedom * part.value**2 for part in parts)
    return Noise(math.sqrt(total / freedom), freedom)


def interval_of(medians: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Where the middle of launches lies, by Student's t on their logarithms; None below two."""
    logs = _logs(medians)
    if len(logs) < 2:
        return None
    center, n = fmean(logs), _independent(logs)
    reach = min(t_quantile((1.0 + level) / 2.0, n - 1) * _spread(logs) / math.sqrt(n), _HUGE)
    return math.exp(center - reach), math.exp(center + reach)


def paired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95
) -> RatioInterval | None:
    """Paired t on log medians, one median a launch, the i-th of a with the i-th of b.

    None below two pairs: one difference says nothing of its own uncertainty.
    """
    if len(a) != len(b):
        raise ValueError(f"launches come in pairs, not {len(a)} and {len(b)}")
    differences = [second - first for first, second in zip(_logs(a), _logs(b), strict=True)]
    k = len(differences)
    if k < 2:
        return None
    center = fmean(differences)
    error = _spread(differences) / math.sqrt(k)
    reach = t_quantile((1.0 + level) / 2.0, k - 1) * error
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        _p_value(center, error, k - 1),
        k,
    )


def unpaired_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95
) -> RatioInterval | None:
    """Welch's t on log medians: for launches that were not interleaved, however many a side.

    Launches one after the other are not independent on a machine that drifts: with ten and more
    on a side they count for as many as tell the same, so they are to come in order of time. None
    below two launches on either side. It cannot tell a drift between the sides from a
    difference: a verdict wants pairs.
    """
    first, second = _logs(a), _logs(b)
    if len(first) < 2 or len(second) < 2:
        return None
    center = fmean(second) - fmean(first)
    counts = [_independent(logs) for logs in (first, second)]
    parts = [_spread(logs) ** 2 / n for logs, n in zip((first, second), counts, strict=True)]
    error = math.sqrt(sum(parts))
    freedom = _welch(parts, counts)
    reach = min(t_quantile((1.0 + level) / 2.0, freedom) * error, _HUGE)
    return RatioInterval(
        math.exp(center),
        math.exp(center - reach),
        math.exp(center + reach),
        level,
        _p_value(center, error, freedom),
        min(len(first), len(second)),
    )


def independent(medians: Sequence[float]) -> int:
    """How many independent launches would tell as much; of a few nobody can say, and all count."""
    if len(medians) < _CORRELATED:
        return len(medians)
    return int(_independent(_logs(medians)))


def enough_launches(noise: float, effect: float = LEAST_EFFECT) -> int | None:
    """Launches a side, 5–40, that show an effect of so much with power 0.8 at level 0.01.

    None where not even 40 do: `minimum_detectable_effect` says what they do show.
    """
    wanted = math.log1p(effect)
    counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
    return next((k for k in counts if _detectable_log(k, noise, _ALPHA, _POWER) <= wanted), None)


def required_launches(noise: float, effect: float = LEAST_EFFECT) -> int:
    """As `enough_launches`, and 40 where not even those do."""
    return enough_launches(noise, effect) or MOST_LAUNCHES


def minimum_detectable_effect(
    k: int, noise: float, alpha: float = _ALPHA, power: float = _POWER
) -> float | None:
    """The smallest true effect that `verdict` finds with this power, as a share; None for k < 2.

    It must be significant and exceed the least effect, both despite chance.
    """
    if k < 2:
        return None
    margin = _comparison_noise(k, noise) * t_quantile(power, k - 1)
    past_floor = math.log1p(least_effect(k, noise)) + margin
    return math.expm1(max(_detectable_log(k, noise, alpha, power), past_floor))


def least_effect(k: int, noise: float, other: int | None = None) -> float:
    """What an effect must exceed to be called one: max(3 %, 3 × the noise of an A/A comparison).

    Args:
        k: launches a side.
        noise: of one launch.
        other: those of the other side, where they are not as many.
    """
    return max(LEAST_EFFECT, 3.0 * _comparison_noise(k, noise, other))


@dataclass(frozen=True)
class Apart:
    """What two sides that were not interleaved can show, by how many launches each has."""

    noise: float
    first: int
    second: int

    @property
    def least_effect(self) -> float:
        """As `least_effect`, of sides that need not be alike."""
        return least_effect(self.first, self.noise, self.second)

    def detectable(self, floor: float = LEAST_EFFECT) -> float | None:
        """The smallest change that is found, with power 0.8, as a share; None below two.

        Args:
            floor: what a change has to exceed at least.
        """
        if min(self.first, self.second) < 2:
            return None
        freedom = self.first + self.second - 2
        error = _comparison_noise(self.first, self.noise, self.second)
        least = math.log1p(max(floor, self.least_effect))
        past_floor = least + error * t_quantile(_POWER, freedom)
        return math.expm1(min(max(self._detectable_log, past_floor), _HUGE))

    def suffices(self, effect: float) -> bool:
        """Whether a change of so much is significant at level 0.01 with power 0.8."""
        few = min(self.first, self.second) < FEWEST_LAUNCHES
        return not few and self._detectable_log <= math.log1p(effect)

    def required(self, effect: float) -> int | None:
        """How many launches the second side needs for that; None where no number would do."""
        if self.first < FEWEST_LAUNCHES:
            return None
        counts = range(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
        enough = (n for n in counts if Apart(self.noise, self.first, n).suffices(effect))
        return next(enough, None)

    @property
    def _detectable_log(self) -> float:
        freedom = self.first + self.second - 2
        reach = t_quantile(1.0 - _ALPHA / 2.0, freedom) + t_quantile(_POWER, freedom)
        return reach * _comparison_noise(self.first, self.noise, self.second)


def verdict(a: Sequence[float], b: Sequence[float], noise: float, alpha: float = _ALPHA) -> Verdict:
    """Is b faster or slower than a?

    Args:
        a: medians of the launches of one side, the reference.
        b: medians of the other, paired by position.
        noise: from launches of one and the same thing (`aa_noise`), known beforehand.
        alpha: how often a difference may be claimed where there is none.

    With fewer launches than the noise requires the answer is "can't tell", and the
    minimum detectable effect says what so few could have shown.
    """
    interval = paired_interval(a, b, 1.0 - alpha)
    k = len(a)
    required = required_launches(noise)
    floor = least_effect(max(k, 1), noise)
    answer = Answer.CANNOT_TELL
    if interval is not None and k >= required:
        effect = math.log(interval.ratio)
        shown = interval.p_value < alpha and abs(effect) > math.log1p(floor)
        changed = Answer.FASTER if effect < 0 else Answer.SLOWER
        answer = changed if shown else Answer.NO_DIFFERENCE
    detectable = minimum_detectable_effect(k, noise, alpha)
    return Verdict(answer, interval, k, required, floor, detectable)


def _logs(medians: Sequence[float]) -> list[float]:
    if any(not m > 0 for m in medians):
        raise ValueError("a launch's median must be a positive time")
    return [math.log(m) for m in medians]


def _comparison_noise(k: int, noise: float, other: int | None = None) -> float:
    return noise * math.sqrt(1.0 / k + 1.0 / (other or k))


def _detectable_log(k: int, noise: float, alpha: float, power: float) -> float:
    """The log ratio that a paired t-test of k pairs finds significant with this power."""
    reach = t_quantile(1.0 - alpha / 2.0, k - 1) + t_quantile(power, k - 1)
    return reach * _comparison_noise(k, noise)


def _spread(logs: Sequence[float]) -> float:
    """The standard deviation. That of `statistics` computes in fractions: ten times as long."""
    center = fmean(logs)
    return math.sqrt(math.fsum((one - center) ** 2 for one in logs) / (len(logs) - 1))


def _independent(logs: Sequence[float]) -> float:
    if len(logs) < _CORRELATED:
        return float(len(logs))
    from accelbench.measure.autocorrelation import effective_size  # brings numpy

    return max(2.0, effective_size(logs))


def _welch(parts: Sequence[float], counts: Sequence[float]) -> float:
    """Degrees of freedom of two means' difference, by Welch and Satterthwaite."""
    below = sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))
    return sum(parts) ** 2 / below if below > 0.0 else float(sum(counts) - 2)


def _p_value(center: float, error: float, freedom: float) -> float:
    if error == 0.0:
        return 1.0 if center == 0.0 else 0.0
    return 2.0 * t_cdf(-abs(center) / error, freedom)

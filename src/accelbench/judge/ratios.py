"""How many times as fast: the one place that compares two figures with each other. Pure.

A ratio is of the time per item that both sides have (`figures.common_times`), of the middle of
launches. Its interval is of launches where both sides have two and more, by Welch's t on
logarithms; else it is of the samples within the only launch, which knows nothing of how another
would differ, and says so. Where the sides are of different runs it has in it by how much runs of
the same thing differ.

The factor of an interval that spans more than a factor of two is not told. Which side is faster
is told all the same if 1 is not within it.

The interval within one launch of the figure that is shown: a mean's is not its median's. Pure.

A launch stores the interval of its median, by the ranks of its samples. Slow steps that a median
does not see make a mean uncertain: beside a median of 2.1 ms ±12 %, a mean of 2.56 ms was seen that
its own samples leave open by ±38 %. So the interval of a mean is made of its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from accelbench.core.result_statistics import (
    MEANS,
    Number,
    Statistic,
    Times,
    common_times,
    ends_text,
    item_ms,
    shown_ends,
    step_of,
)
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import UNUSABLE_WIDTH
from accelbench.judge.run_noise import Histories, between_rows
from accelbench.measure.launch_verdicts import (
    MAX_LOG,
    Noise,
    all_differ,
    geometric_mean,
    interval_of,
)
from accelbench.measure.run_to_run_noise import PRIOR, unpaired_interval
from accelbench.measure.student import t_quantile

#: Fewer independent samples say nothing of how far the next would differ: two that happen to be
#: alike would make any difference certain.
FEWEST_SAMPLES = 5
#: A mean and a median that differ by less, as a logarithm, are taken for alike.
LEAST_APART = math.log(1.03)
#: Those that differ by more are not, however wide their intervals are.
MOST_APART = math.log(1.0 + UNUSABLE_WIDTH)
#: What an interval is made of, beside the figure itself.
COLUMNS = (
    *("latency_p50_ms", "latency_mean_ms", "latency_ci_low_ms", "latency_ci_high_ms"),
    *("latency_std_ms", "effective_sample_count"),
)


def interval_within(row: Row, statistic: Statistic) -> tuple[float, float] | None:
    """The 95 % interval of a launch's step by its samples, in milliseconds; None where unknown.

    Args:
        row: the launch.
        statistic: the figure that is shown of it; a rate is a mean.
    """
    if statistic is Statistic.MEDIAN:
        return _stored(row) if row.get("latency_p50_ms") else None
    if statistic not in MEANS:
        return None  # a percentile has an interval of its own, and the figure says if it is rough
    if row.get("latency_p50_ms") is None:
        return _stored(row)  # of steps that were timed in blocks it is that of the mean
    return _of_a_mean(row)


def mean_beside(rows: Sequence[Row]) -> float | None:
    """Return the mean step where it tells something other than the median; None where they agree.

    Args:
        rows: the launches of one configuration.
    """
    medians, means = (
        [step for row in rows if (step := step_of(row, one)) is not None]
        for one in (Statistic.MEDIAN, Statistic.MEAN)
    )
    if not rows or not len(medians) == len(means) == len(rows):
        return None
    return apart_from_median(medians, means, rows[0])


def apart_from_median(medians: Sequence[float], means: Sequence[float], first: Row) -> float | None:
    """Return the mean where it and the median lie beyond the intervals of both.

    An interval that is wider than what is compared at all hides no difference.

    Args:
        medians: one a launch.
        means: one a launch.
        first: the first launch, whose samples give the intervals where it is the only one.
    """
    median, mean = geometric_mean(medians), geometric_mean(means)
    reach = LEAST_APART
    for times, statistic in ((medians, Statistic.MEDIAN), (means, Statistic.MEAN)):
        known = interval_of(times) if len(times) > 1 else interval_within(first, statistic)
        if known is not None and known[0] > 0.0:
            reach = max(reach, math.log(known[1] / known[0]) / 2.0)
    return mean if abs(math.log(mean / median)) > min(reach, MOST_APART) else None


def _stored(row: Row) -> tuple[float, float] | None:
    low, high = (number(row, f"latency_ci_{end}_ms") for end in ("low", "high"))
    return None if low is None or high is None else (float(low), float(high))


def _of_a_mean(row: Row) -> tuple[float, float] | None:
    """By Student's t on as many samples as are independent, as a factor: no time is below zero.

    What says no deviation was not measured here, or is a prediction: an interval that it says is of
    the figure that it says, where that lies in it.
    """
    mean, deviation = step_of(row, Statistic.MEAN), number(row, "latency_std_ms")
    if mean and deviation is None:
        stored = _stored(row)
        return stored if stored and stored[0] <= mean <= stored[1] else None
    independent = number(row, "effective_sample_count") or 0.0
    if not mean or deviation is None or independent < FEWEST_SAMPLES:
        return None
    error = float(deviation) / mean / math.sqrt(independent)
    reach = min(t_quantile(0.975, independent - 1.0) * error, MAX_LOG)
    return mean * math.exp(-reach), mean * math.exp(reach)


#: From the low to the high end of an interval: beyond this nothing is told of a ratio.
WIDEST = 2.0
#: Medians and means say which side is faster, and differently, where each is apart by more.
_APART = 0.03
#: What is said then.
CANNOT_TELL = f"the interval spans more than a factor of {WIDEST:.0f}"
LAUNCHES, SAMPLES = "launches", "samples"
#: How far the ratio of two single launches may be off, as a logarithm, by 95 %.
_LAUNCHES_APART = t_quantile(0.975, PRIOR.freedom) * math.sqrt(2.0) * PRIOR.value


class Faster(StrEnum):
    """Which side is faster, as far as an interval decides it; the same on every surface."""

    FASTER = "faster"
    SLOWER = "slower"
    UNSURE = "can't tell"


@dataclass(frozen=True)
class Ratio:
    """How many items one side does in the time of one of the other's."""

    value: float
    statistic: Statistic
    launches: tuple[int, int]  # of this side and the other
    low: float | None = None  # of the 95 % interval; None where nothing is known of it
    high: float | None = None
    of: str = ""  # what the interval is of: launches, or the samples within single ones
    by_means: float | None = None  # the ratio of means, where that points to the other side
    of_runs: bool = False  # whether the interval has in it by how much runs differ

    @property
    def told(self) -> bool:
        """Whether it is known well enough to be told."""
        return self.low is None or self.high is None or self.high <= WIDEST * self.low

    @property
    def direction(self) -> Faster:
        """Which side is faster: open if 1 lies within the interval, by its value without one.

        An interval beyond 1 decides it even if it is too wide for a factor.
        """
        low, high = (self.value, self.value) if self.low is None else (self.low, self.high)
        if low > 1.0:
            return Faster.FASTER
        return Faster.SLOWER if high is not None and high < 1.0 else Faster.UNSURE

    @property
    def ends(self) -> tuple[float, float]:
        """Between what it surely is: of a ratio without an interval that is anything.

        The interval within single launches says nothing of how others would differ. They are
        taken to differ as runs do of which nothing is known: of thirty engines that take equally
        long, in launches that differ by 3 %, one would else be faster for certain in half of all
        stores.
        """
        if self.low is None or self.high is None:
            return 0.0, math.inf
        if self.of != SAMPLES or self.of_runs:
            return self.low, self.high
        down, up = (
            min(math.hypot(reach, _LAUNCHES_APART), MAX_LOG)
            for reach in (math.log(self.value / self.low), math.log(self.high / self.value))
        )
        return self.value * math.exp(-down), self.value * math.exp(up)

    @property
    def shown(self) -> tuple[float | None, float | None]:
        """The ends that a view shows: none of an interval that is too wide."""
        return shown_ends(self.low, self.high)

    def ends_text(self, number: Number, between: str = " to ") -> str:
        """Return both ends, NOT_KNOWN of an interval that is too wide, "" without one."""
        return ends_text(self.low, self.high, number, between)

    @property
    def no_interval(self) -> str:
        """Why it has no interval; "" where it has one."""
        if self.low is not None and self.high is not None:
            return ""
        if max(self.launches) == 1:
            return "single figures: no interval"
        if min(self.launches) == 1:
            return "no interval: one of the two is a single figure"
        return "no interval"

    @property
    def otherwise(self) -> str:
        """That the means say the other side is faster; "" where they agree."""
        if self.by_means is None:
            return ""
        side = "it" if self.by_means > 1.0 else "the other"
        return f"by the means of all steps {side} is faster ({self.by_means:.2f}×)"


def ratio(these: Sequence[Row], those: Sequence[Row], known: Histories) -> Ratio | None:
    """How many times as fast these launches are as those; None where they have no figure in common.

    Args:
        these: launches of one thing, in order of time.
        those: of the other, which stands for once.
        known: the older runs of both series; without any, runs differ as they usually do.
    """
    common = _in_common(these, those)
    if common is None:
        return None
    statistic, ours, base = common
    value = geometric_mean(base) / geometric_mean(ours)
    runs = between_rows(those[0], these[0], known)
    low, high, of = _interval(value, (these, ours), (those, base), (statistic, runs))
    return Ratio(
        value,
        statistic,
        (len(these), len(those)),
        low,
        high,
        of,
        _by_means(these, those, value) if statistic is Statistic.MEDIAN else None,
        runs is not None,
    )


def quickest(sides: Sequence[Sequence[Row]]) -> int:
    """Which of several things is fastest, by the figure that each two have in common.

    That may be another figure than each has alone, so that nothing sorts them.
    """
    known = [common_times(rows) for rows in sides]
    alone = [float("inf") if times is None else geometric_mean(times[1]) for times in known]
    best = min(range(len(sides)), key=alone.__getitem__)
    for n, rows in enumerate(sides):
        if n != best and is_faster(rows, sides[best]):
            best = n
    return best


def is_faster(these: Sequence[Row], those: Sequence[Row]) -> bool:
    """Whether these launches are the faster ones, by the figure that both sides have."""
    common = _in_common(these, those)
    return common is not None and geometric_mean(common[1]) < geometric_mean(common[2])


def _in_common(these: Sequence[Row], those: Sequence[Row]) -> tuple[Statistic, Times, Times] | None:
    """The figure that both sides have, and what it is of each."""
    mine, theirs = common_times(these, those), common_times(those, these)
    if mine is None or theirs is None or not mine[1] or not theirs[1]:
        return None
    return mine[0], mine[1], theirs[1]


def _interval(
    value: float,
    this: tuple[Sequence[Row], Times],
    that: tuple[Sequence[Row], Times],
    by: tuple[Statistic, Noise | None],
) -> tuple[float | None, float | None, str]:
    statistic, runs = by
    interval = unpaired_interval(this[1], that[1], runs=runs)
    if interval is not None and all_differ(this[1], that[1]):
        return interval.low, interval.high, LAUNCHES
    ours, theirs = _within(*this, statistic), _within(*that, statistic)
    if ours is None or theirs is None:
        return None, None, ""
    apart = 0.0 if runs is None else t_quantile(0.975, runs.freedom) * math.sqrt(2.0) * runs.value
    down = min(math.hypot(ours[1], theirs[0], apart), MAX_LOG)
    up = min(math.hypot(ours[0], theirs[1], apart), MAX_LOG)
    return value * math.exp(-down), value * math.exp(up), SAMPLES


def _within(rows: Sequence[Row], times: Times, statistic: Statistic) -> tuple[float, float] | None:
    """How far down and up a side may lie, as logarithms: of launches, or within the only one."""
    if len(times) > 1:
        known = interval_of(times)
        middle = geometric_mean(times)
    else:
        known = interval_within(rows[0], statistic)
        middle = step_of(rows[0], Statistic.MEAN if statistic in MEANS else statistic) or 0.0
    if known is None or not middle or known[0] <= 0.0:
        return None
    low, high = known
    return max(math.log(middle / low), 0.0), max(math.log(high / middle), 0.0)


def _by_means(these: Sequence[Row], those: Sequence[Row], value: float) -> float | None:
    """The ratio of means, where it points to the other side."""
    sides = []
    for rows in (those, these):
        times = [time for row in rows if (time := item_ms(row, Statistic.MEAN)) is not None]
        if len(times) < len(rows):
            return None
        sides.append(geometric_mean(times))
    by_means = sides[0] / sides[1]
    least = math.log1p(_APART)
    here, there = math.log(value), math.log(by_means)
    return by_means if here * there < 0 and min(abs(here), abs(there)) > least else None

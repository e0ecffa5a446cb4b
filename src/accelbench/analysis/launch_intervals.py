"""The interval within one launch of the figure that is shown: a mean's is not its median's. Pure.

A launch stores the interval of its median, by the ranks of its samples. Slow steps that a median
does not see make a mean uncertain: beside a median of 2.1 ms ±12 %, a mean of 2.56 ms was seen that
its own samples leave open by ±38 %. So the interval of a mean is made of its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accelbench.core.figures import MEANS, Statistic, step_of
from accelbench.core.rows import Row, number
from accelbench.core.worth import UNUSABLE_WIDTH
from accelbench.measure.launches import HUGE, interval_of, typical
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
    median, mean = typical(medians), typical(means)
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
    reach = min(t_quantile(0.975, independent - 1.0) * error, HUGE)
    return mean * math.exp(-reach), mean * math.exp(reach)

"""Within-run intervals of a series whose samples depend on each other.

A naive 95 % interval of an AR(1) series with lag-1 0.75 covers the truth in half of all cases.
Here n samples count as n/τ independent ones, τ being how many of them repeat one another
(`autocorrelation.integrated_time`).

**The median** is a root of "the share of samples below m is one half", so an interval of that
share, ½ ± t √(τ / 4n), is read back as ranks of the sorted samples (Woodruff 1952). It needs no
symmetry: of two modes that are about equally frequent it spans both.

**Its τ** is the middle of two. That of "below the median or not" is the one that counts, but a
series of zeros and ones shows its correlation poorly: where a slow mode is rare, the sum ends too
early. That of the ranks shows it well, and is up to 1.4 times as large as the other (AR(1), lag-1
towards 1). Where sampling was stopped by the first alone, 0.87 were covered (lag-1 0.95); by the
second alone it took half as long again. Both are summed to the lag at which the ranks' correlation
is lost in noise.

**Short series** show less correlation than there is, as their own mean is taken off them: a share
τ/n of it is lost, and given back. τ is known as well as from n/2τ values, which is what the t
distribution's degrees of freedom are.

How much is covered where sampling stops, and what a look costs: `benchmarks/stopping.py`. A
moving-block bootstrap (Künsch 1989) covered less of AR(1) series at every size, 0.85 to 0.93
against 0.90 to 0.95 at lag-1 0.9 and n = 30 to 120, and took eight times as long at n = 480.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.autocorrelation import integrated_time, joint_times
from accelbench.measure.series import Samples, Series, series
from accelbench.measure.student import t_quantile

#: Below this not even the extremes enclose the median with 95 % (2 · 0.5⁵ = 6 %).
MINIMUM_SAMPLES = 5

#: Samples that repeat one another beyond this share of all say no more how much they do.
_MOST_LOST = 0.75


@dataclass(frozen=True)
class Interval:
    """A range that encloses the figure, in the unit of the samples."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2.0

    def relative_half_width(self, center: float) -> float:
        """As a share of `center`; infinite where the centre is zero and the width is not."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(center) if center else math.inf


@dataclass(frozen=True)
class MedianEstimate:
    """What a series says of its median."""

    interval: Interval
    effective: float  # how many independent samples would say as much, by the ranks


def median_estimate(samples: Samples, level: float = 0.95) -> MedianEstimate | None:
    """Interval of the median and effective n; None below five samples."""
    row = series(samples)
    n = row.size
    if n < MINIMUM_SAMPLES:
        return None
    order = ranked(row)
    ranks = np.empty(n)
    ranks[order] = np.arange(n)
    of_ranks, of_share = joint_times(ranks, np.asarray(ranks < n // 2, dtype=np.float64))
    wide = _half_width((of_ranks + of_share) / 2.0, of_ranks, n, level) / 2.0
    first = math.floor(n * (0.5 - wide) - 0.5)
    last = math.ceil(n * (0.5 + wide) - 0.5)
    low, high = row[order[max(first, 0)]], row[order[min(last, n - 1)]]
    return MedianEstimate(Interval(float(low), float(high)), n / of_ranks)


def median_interval(samples: Samples, level: float = 0.95) -> Interval | None:
    """Interval of the median; None below five samples. The same input gives the same interval."""
    estimate = median_estimate(samples, level)
    return estimate.interval if estimate else None


def mean_interval(samples: Samples, level: float = 0.95) -> Interval | None:
    """Interval of the mean, for steps timed in blocks; None below five samples."""
    row = series(samples)
    if row.size < MINIMUM_SAMPLES:
        return None
    mean, time = float(row.mean()), integrated_time(row)
    wide = float(row.std(ddof=1)) * _half_width(time, time, row.size, level)
    # A mean of what is never below zero, as no time is, is not either.
    low = max(mean - wide, 0.0) if row.min() >= 0.0 else mean - wide
    return Interval(low, mean + wide)


def ranked(row: Series) -> NDArray[np.intp]:
    """Where the samples are, from the smallest to the largest.

    Equal samples are ranked at random, alike at every call: by time they would look like a trend.
    """
    shuffled = np.random.default_rng(0).permutation(row.size)
    return shuffled[np.argsort(row[shuffled], kind="stable")]


def _half_width(time: float, surest: float, n: int, level: float) -> float:
    """Of an interval of a mean, in standard deviations of a sample.

    Args:
        time: τ of the series whose mean it is.
        surest: the τ that says how well `time` is known.
        n: samples.
        level: what the interval is to cover.
    """
    given_back = time / (1.0 - min(time / n, _MOST_LOST))
    # Rounded down, so that quantiles are reused.
    freedom = max(math.floor(n / surest / 2.0), 1)
    return t_quantile((1.0 + level) / 2.0, freedom) * math.sqrt(given_back / n)

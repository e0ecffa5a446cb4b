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

How much of a sample is repetition of the sample before it.

Steps of one launch are not independent: a lag-1 autocorrelation of 0.75 was
seen on an idle machine, where n samples tell as much as n/7 independent ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.student import t_quantile

Samples = Sequence[int] | Sequence[float] | NDArray[Any]
Series = NDArray[np.float64]


def series(samples: Samples) -> Series:
    """Samples as one row of doubles; nanoseconds stay exact up to 104 days."""
    row = np.asarray(samples, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"samples must be one row, not of shape {row.shape}")
    return row


def lag1(samples: Samples) -> float:
    """Return the correlation of neighbouring samples; 0.0 if there are fewer than three, or all
    are equal."""
    row = series(samples)
    if row.size < 3:
        return 0.0
    off = row - row.mean()
    # Sums of products, not `@`: that goes through BLAS, whose threads would wake between blocks.
    variance = float((off * off).sum())
    if variance <= _noise_of_doubles(row):
        return 0.0
    return float((off[1:] * off[:-1]).sum()) / variance


def effective_size(samples: Samples) -> float:
    """Return how many independent samples would show as much about the mean: n / (1 + 2 Σ r_k)."""
    # At least 1 and at most n, also if neighbours alternate: more than was measured would be no
    # evidence.
    row = series(samples)
    return row.size / integrated_time(row) if row.size else 0.0


def integrated_time(row: Series) -> float:
    """Return 1 + 2 Σ r_k, in [1, n]: the number of samples that show as much as one independent
    one."""
    # The sum ends when the sum of two neighbouring correlations first falls to zero, which for a
    # reversible chain only noise can cause (Geyer 1992, Practical Markov Chain Monte Carlo, initial
    # positive sequence).
    rho = _autocorrelations(row)
    return _summed(rho, _fallen(rho))


def joint_times(leading: Series, other: Series) -> tuple[float, float]:
    """Return the integrated times of two series of the same samples."""
    # The other's sum goes on at least to the lag at which that of the leading one ends: zeros and
    # ones show a correlation less well than ranks do, and end by chance while it is still there.
    rho, beside = _autocorrelations(leading), _autocorrelations(other)
    lags = _fallen(rho)
    return _summed(rho, lags), max(_summed(beside, lags), _summed(beside, _fallen(beside)))


def _fallen(rho: Series) -> int:
    """Return the even lag before which every sum of two neighbouring correlations is above zero."""
    even = rho.size // 2 * 2
    fallen = np.flatnonzero(rho[0:even:2] + rho[1:even:2] <= 0)
    return 2 * int(fallen[0]) if fallen.size else even


def _summed(rho: Series, lags: int) -> float:
    n = rho.size
    if n < 3:
        return 1.0
    return float(min(max(2.0 * rho[:lags].sum() - 1.0, 1.0), n))


def _autocorrelations(row: Series) -> Series:
    """r_0 … r_(n-1) by Fourier transform, padded so that the ends do not meet."""
    off = row - row.mean()
    padded = 1 << (2 * row.size - 1).bit_length()
    spectrum = np.fft.rfft(off, padded)
    power = spectrum.real**2 + spectrum.imag**2
    covariance = np.fft.irfft(power, padded)[: row.size]
    if covariance[0] <= _noise_of_doubles(row):
        return np.zeros(row.size)
    return np.asarray(covariance / covariance[0], dtype=np.float64)


def _noise_of_doubles(row: Series) -> float:
    """Return the sum of squares that rounding alone makes of a constant row."""
    scale = float(np.abs(row).max()) * np.finfo(np.float64).eps
    return row.size * (4.0 * scale) ** 2


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
    """Return the positions of the samples from the smallest to the largest; equal ones in a
    fixed random order."""
    # By time they would look like a trend.
    shuffled = np.random.default_rng(0).permutation(row.size)
    return shuffled[np.argsort(row[shuffled], kind="stable")]


def _half_width(time: float, surest: float, n: int, level: float) -> float:
    """Return the half-width of a mean's interval, in standard deviations of a sample.

    `time` is τ of the series, `surest` the τ that shows how well `time` is known.
    """
    given_back = time / (1.0 - min(time / n, _MOST_LOST))
    # Rounded down, so that quantiles are reused.
    freedom = max(math.floor(n / surest / 2.0), 1)
    return t_quantile((1.0 + level) / 2.0, freedom) * math.sqrt(given_back / n)

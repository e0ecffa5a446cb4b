"""Intervals within a launch for samples that depend on each other.

A naive 95 % interval of an AR(1) series with lag-1 0.75 contains the true value in only half of all
cases. Here n samples count as n/τ independent ones, where τ is the integrated autocorrelation time
(`integrated_time`). A lag-1 autocorrelation of 0.75 was seen on an idle machine, where n samples
show as much as n/7 independent ones.

**The median** solves "the share of samples below m is one half". The interval of that share, ½ ± t
√(τ / 4n), is converted to ranks of the sorted samples (Woodruff 1952). It needs no symmetry: for
two modes of about equal frequency it spans both.

**Its τ** is the mean of two. The τ of "below the median or not" is the relevant one, but a series
of zeros and ones shows its correlation poorly: if a slow mode is rare, the sum ends too early. The
τ of the ranks shows it well, and is up to 1.4 times as large (AR(1), lag-1 towards 1). With the
first alone, 0.87 of intervals contained the true value when sampling stopped (lag-1 0.95); with the
second alone, sampling took 1.5 times as long. Both are summed up to the lag at which the ranks'
correlation is lost in noise.

**Short series** show less correlation than they have, because their own mean is subtracted: a share
τ/n is lost, and is added back. τ itself is known as if from n/2τ values, which are the degrees of
freedom of the t distribution.

`benchmarks/stopping.py` measures the coverage when sampling stops, and the time of a calculation. A
moving-block bootstrap (Künsch 1989) covered less of AR(1) series at every size, 0.85 to 0.93
compared with 0.90 to 0.95 at lag-1 0.9 and n = 30 to 120, and took eight times as long at n = 480.
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


def to_series(samples: Samples) -> Series:
    """Return samples as one row of doubles; nanoseconds stay exact up to 104 days."""
    row = np.asarray(samples, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"samples must be one row, not of shape {row.shape}")
    return row


def lag1_correlation(samples: Samples) -> float:
    """Return the correlation of neighbouring samples; 0.0 for fewer than three or equal samples."""
    row = to_series(samples)
    if row.size < 3:
        return 0.0
    off = row - row.mean()
    # Sums of products, not `@`, which uses BLAS and would wake its threads between blocks.
    variance = float((off * off).sum())
    if variance <= _rounding_squares(row):
        return 0.0
    return float((off[1:] * off[:-1]).sum()) / variance


def effective_size(samples: Samples) -> float:
    """Return how many independent samples show as much about the mean: n / (1 + 2 Σ r_k)."""
    # At least 1 and at most n, also if neighbours alternate: there is no more evidence than
    # samples.
    row = to_series(samples)
    return row.size / integrated_time(row) if row.size else 0.0


def integrated_time(row: Series) -> float:
    """Return 1 + 2 Σ r_k, in [1, n]: the samples that show as much as one independent sample."""
    # The sum ends when the sum of two neighbouring correlations first falls to zero, which for a
    # reversible chain only noise can cause (Geyer 1992, Practical Markov Chain Monte Carlo, initial
    # positive sequence).
    rho = _autocorrelations(row)
    return _sum_correlations(rho, _find_noise_lag(rho))


def joint_times(leading: Series, other: Series) -> tuple[float, float]:
    """Return the integrated times of two series of the same samples."""
    # The other's sum extends at least to the lag at which the leading one's ends: zeros and ones
    # show a correlation less clearly than ranks, so their sum may end too early by chance.
    rho, rho_other = _autocorrelations(leading), _autocorrelations(other)
    lags = _find_noise_lag(rho)
    return _sum_correlations(rho, lags), max(
        _sum_correlations(rho_other, lags), _sum_correlations(rho_other, _find_noise_lag(rho_other))
    )


def _find_noise_lag(rho: Series) -> int:
    """Return the even lag before which every sum of two neighbouring correlations is above zero."""
    even = rho.size // 2 * 2
    fallen = np.flatnonzero(rho[0:even:2] + rho[1:even:2] <= 0)
    return 2 * int(fallen[0]) if fallen.size else even


def _sum_correlations(rho: Series, lags: int) -> float:
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
    if covariance[0] <= _rounding_squares(row):
        return np.zeros(row.size)
    return np.asarray(covariance / covariance[0], dtype=np.float64)


def _rounding_squares(row: Series) -> float:
    """Return the sum of squares that rounding alone causes in a constant row."""
    scale = float(np.abs(row).max()) * np.finfo(np.float64).eps
    return row.size * (4.0 * scale) ** 2


#: With fewer samples not even the extremes enclose the median with 95 % (2 · 0.5⁵ = 6 %).
MINIMUM_SAMPLES = 5

#: Largest share of the correlation that is added back: beyond it the estimate is not reliable.
_MOST_LOST = 0.75


@dataclass(frozen=True)
class Interval:
    """Range that encloses a value, in the unit of the samples."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2.0

    def relative_half_width(self, center: float) -> float:
        """Return the half-width as a share of `center`; infinite around zero."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(center) if center else math.inf


@dataclass(frozen=True)
class MedianEstimate:
    """Interval of the median of a series."""

    interval: Interval
    effective: float  # independent samples that would show as much, by the ranks


def median_estimate(samples: Samples, level: float = 0.95) -> MedianEstimate | None:
    """Return the interval of the median and the effective n; None below five samples."""
    row = to_series(samples)
    n = row.size
    if n < MINIMUM_SAMPLES:
        return None
    order = rank_order(row)
    ranks = np.empty(n)
    ranks[order] = np.arange(n)
    rank_time, share_time = joint_times(ranks, np.asarray(ranks < n // 2, dtype=np.float64))
    wide = _half_width((rank_time + share_time) / 2.0, rank_time, n, level) / 2.0
    first = math.floor(n * (0.5 - wide) - 0.5)
    last = math.ceil(n * (0.5 + wide) - 0.5)
    low, high = row[order[max(first, 0)]], row[order[min(last, n - 1)]]
    return MedianEstimate(Interval(float(low), float(high)), n / rank_time)


def median_interval(samples: Samples, level: float = 0.95) -> Interval | None:
    """Return the interval of the median, the same for the same input; None below five samples."""
    estimate = median_estimate(samples, level)
    return estimate.interval if estimate else None


def mean_interval(samples: Samples, level: float = 0.95) -> Interval | None:
    """Return the interval of the mean, for steps timed in blocks; None below five samples."""
    row = to_series(samples)
    if row.size < MINIMUM_SAMPLES:
        return None
    mean, time = float(row.mean()), integrated_time(row)
    wide = float(row.std(ddof=1)) * _half_width(time, time, row.size, level)
    # The mean of samples that are never negative, such as times, is not negative either.
    low = max(mean - wide, 0.0) if row.min() >= 0.0 else mean - wide
    return Interval(low, mean + wide)


def rank_order(row: Series) -> NDArray[np.intp]:
    """Return positions by increasing sample, equal ones in a fixed random order."""
    # In order of time, equal samples would look like a trend.
    shuffled = np.random.default_rng(0).permutation(row.size)
    return shuffled[np.argsort(row[shuffled], kind="stable")]


def _half_width(time: float, surest: float, n: int, level: float) -> float:
    """Return the half-width of a mean's interval, in standard deviations of a sample.

    `time` is τ of the series, `surest` the τ that shows how well `time` is known.
    """
    corrected = time / (1.0 - min(time / n, _MOST_LOST))
    # Rounded down, so that quantiles are reused.
    freedom = max(math.floor(n / surest / 2.0), 1)
    return t_quantile((1.0 + level) / 2.0, freedom) * math.sqrt(corrected / n)

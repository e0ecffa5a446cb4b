"""How much of a sample is repetition of the sample before it.

Steps of one launch are not independent: a lag-1 autocorrelation of 0.75 was
seen on an idle machine, where n samples tell as much as n/7 independent ones.
"""

from __future__ import annotations

import numpy as np

from accelbench.measure.series import Samples, Series, series


def lag1(samples: Samples) -> float:
    """Correlation of neighbouring samples.

    0.0 where there is nothing to correlate: fewer than three samples, or all alike.
    """
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
    """How many independent samples would tell as much about the mean: n / (1 + 2 Σ r_k).

    At least 1 and at most n, also where neighbours alternate: a claim of more
    than was measured would be no evidence. 0.0 for no samples.
    """
    row = series(samples)
    return row.size / integrated_time(row) if row.size else 0.0


def integrated_time(row: Series) -> float:
    """1 + 2 Σ r_k, in [1, n]: the number of samples that tell as much as one independent one.

    The sum ends where the sum of two neighbouring correlations first falls to
    zero, which for a reversible chain only noise can bring about (Geyer 1992,
    Practical Markov Chain Monte Carlo, initial positive sequence).
    """
    rho = _autocorrelations(row)
    return _summed(rho, _fallen(rho))


def joint_times(leading: Series, other: Series) -> tuple[float, float]:
    """The integrated times of two series of the same samples.

    The other's sum goes on at least to the lag at which that of the leading one ends: zeros and
    ones show a correlation less well than ranks do, and end by chance where it is still there.
    """
    rho, beside = _autocorrelations(leading), _autocorrelations(other)
    lags = _fallen(rho)
    return _summed(rho, lags), max(_summed(beside, lags), _summed(beside, _fallen(beside)))


def _fallen(rho: Series) -> int:
    """The even lag before which every sum of two neighbouring correlations is above zero."""
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
    """The sum of squares that rounding alone makes of a constant row."""
    scale = float(np.abs(row).max()) * np.finfo(np.float64).eps
    return row.size * (4.0 * scale) ** 2

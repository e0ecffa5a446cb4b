"""Series with known truths, seeded, in nanoseconds around 10 ms."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Row = NDArray[np.float64]

CENTER = 1e7


def ar1(n: int, lag1: float, seed: int, relative: float = 0.05) -> Row:
    """A stationary AR(1) series: median CENTER, standard deviation `relative` of it."""
    random = np.random.default_rng(seed)
    shocks = random.normal(size=n + 200) * np.sqrt(1 - lag1**2)
    return CENTER * (1 + relative * lfilter([1.0], [1.0, -lag1], shocks)[200:])


def two_modes(n: int, spell: float, share: float, seed: int, factor: float = 10.0) -> Row:
    """A fast mode at CENTER, a slower one, in turns: `spell` fast steps in the mean, 5 % noise."""
    random = np.random.default_rng(seed)
    row = np.empty(n, dtype=bool)
    i, fast = 0, bool(random.random() < share)
    while i < n:
        length = random.geometric(1 / (spell if fast else spell * (1 - share) / share))
        row[i : i + length] = fast
        i, fast = i + length, not fast
    return CENTER * np.where(row, 1.0, factor) * np.exp(0.05 * random.normal(size=n))


def two_modes_median(share: float) -> float:
    """The median of the above in truth, where the fast mode has more than half of all steps."""
    return CENTER * float(np.exp(0.05 * NormalDist().inv_cdf(0.5 / share)))


def evenly_mixed(n: int) -> Row:
    """Samples 0 … n - 1, like ones apart from each other: all of them count as independent."""
    order = np.argsort(np.arange(n) * (np.sqrt(5) - 1) / 2 % 1)
    row = np.empty(n)
    row[order] = np.arange(n)
    return row


def many(make, count: int) -> Iterator[Row]:
    """`count` series of one kind, seeds 0, 1, …"""
    return (make(seed) for seed in range(count))

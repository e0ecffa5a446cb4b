"""Series with known truths, seeded, in nanoseconds around 10 ms."""

from __future__ import annotations

from collections.abc import Iterator

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


def many(make, count: int) -> Iterator[Row]:
    """`count` series of one kind, seeds 0, 1, …"""
    return (make(seed) for seed in range(count))

"""A series cut into level pieces, by optimal partitioning.

Of all ways to cut it, the one with the least squared distance from the levels plus a price for each
cut, exactly, by dynamic programming (Jackson et al. 2005, "An algorithm for optimal partitioning of
data on an interval").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Two points make a level: of one, nobody knows whether it will come back.
SHORTEST = 2
#: What a cut costs, in units of the noise's variance, times the logarithm of the series' length.
PRICE = 3.0

Values = NDArray[np.float64]


def cuts_of(logs: Values, noise: float) -> list[int]:
    """Where the cheapest partition cuts: the first points of its pieces but for the very first."""
    n = len(logs)
    if n < 2 * SHORTEST:
        return []
    price = PRICE * math.log(n)
    # Of the spread within pieces, the sum of all squares is the same wherever they end: left out.
    off = (logs - logs.mean()) / noise
    sums = np.concatenate([[0.0], np.cumsum(off)])
    shares = 1.0 / np.arange(n, 0, -1)
    before = np.full(n + 1, np.inf)  # the cheapest up to here
    before[0] = -price
    start = np.zeros(n + 1, dtype=np.int64)
    for end in range(SHORTEST, n + 1):
        count = end - SHORTEST + 1
        cost = sums[:count] - sums[end]
        cost *= cost
        cost *= shares[n - end : n - end + count]
        np.subtract(before[:count], cost, out=cost)
        start[end] = first = int(cost.argmin())
        before[end] = cost[first] + price
    return _back(start, n)


def cuts_of_many(off: Values) -> list[list[int]]:
    """`cuts_of` each row: of series of one length, in units of their noise, around their means."""
    many, n = off.shape
    price = PRICE * math.log(n)
    sums = np.concatenate([np.zeros((many, 1)), np.cumsum(off, axis=1)], axis=1)
    before = np.full((many, n + 1), np.inf)
    before[:, 0] = -price
    start = np.zeros((many, n + 1), dtype=np.int64)
    # In the very steps of `cuts_of`: of two that cost the same, rounding decides.
    shares = 1.0 / np.arange(n, 0, -1)
    for end in range(SHORTEST, n + 1):
        count = end - SHORTEST + 1
        apart = sums[:, :count] - sums[:, end : end + 1]
        cost = before[:, :count] - apart * apart * shares[n - end : n - end + count]
        start[:, end] = first = cost.argmin(axis=1)
        before[:, end] = cost[np.arange(many), first] + price
    return [_back(row, n) if row[n] else [] for row in start.tolist()]


def _back(start: Sequence[int] | NDArray[np.int64], end: int) -> list[int]:
    """The first points of the pieces but for the very first, from where each piece begins."""
    cuts = []
    while start[end] > 0:
        end = int(start[end])
        cuts.append(end)
    return cuts[::-1]

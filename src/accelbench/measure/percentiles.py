"""Percentiles with their own intervals, and whether more than a rough reading is known of them.

A percentile is given wherever the sample has an order statistic for it: p90 from 10 samples, p95
from 20, p99 from 100. Its interval reaches from one order statistic to another, which enclose it
with 95 % by the binomial distribution of how many samples lie below it (exact, whatever the shape
of the samples), for as many independent samples as there are by their autocorrelation. Above the
largest sample nothing is known: an upper end needs q^n ≤ 2.5 %, which is 36, 72 and 368
independent samples.

A percentile is **rough** where fewer than ten independent samples lie beyond it (p90 below 100, p95
below 200, p99 below 1000), or its interval is wider than ±10 %: no verdict rests on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from accelbench.measure.autocorrelation import integrated_time
from accelbench.measure.intervals import ranked
from accelbench.measure.series import Samples, series
from accelbench.measure.student import binomial_cdf

#: So many effective samples must lie beyond a percentile that is more than rough.
_BEYOND = 10
#: What the documents alert at: a figure that is known no better shows no such change.
WIDEST = 0.10
_LEVEL = 0.95


@dataclass(frozen=True)
class Percentile:
    """The value below which a share of the samples lie, in their unit."""

    value: float
    low: float | None  # None where no sample is surely below it
    high: float | None  # None where no sample is surely above it
    rough: bool

    @property
    def wide(self) -> bool:
        """Whether an end of the interval is further away than ±10 %, or not known."""
        if self.low is None or self.high is None:
            return True
        return max(self.value - self.low, self.high - self.value) > WIDEST * abs(self.value)


def fewest_samples(q: float) -> int:
    """From how many samples on percentile `q` (0 < q < 100) is given: one is beyond it."""
    return math.ceil(_required(q, 1))


def required_size(q: float) -> float:
    """The effective n below which percentile `q` is rough."""
    return _required(q, _BEYOND)


def percentile(samples: Samples, q: float, effective_n: float) -> Percentile | None:
    """Percentile `q`, or None where there are too few samples for one.

    Args:
        samples: every sample, in order.
        q: per cent, between 0 and 100.
        effective_n: their number after autocorrelation (`effective_size`). What lies beyond the
            percentile may come in bursts that the whole series does not show, and counts for less.
    """
    row = series(samples)
    if row.size < fewest_samples(q):
        return None
    value = float(np.percentile(row, q))
    order = ranked(row)
    beyond = np.empty(row.size)
    beyond[order] = np.arange(row.size) >= row.size * q / 100.0
    effective = max(min(effective_n, row.size / integrated_time(beyond)), 1.0)
    low, high = _enclosing(effective, q / 100.0)
    scale = row.size / effective
    estimate = Percentile(
        value,
        None if low is None else float(row[order[math.floor(low * scale)]]),
        None if high is None else float(row[order[min(math.ceil(high * scale), row.size - 1)]]),
        rough=effective < required_size(q),
    )
    return Percentile(value, estimate.low, estimate.high, rough=estimate.rough or estimate.wide)


def _required(q: float, beyond: int) -> float:
    if not 0 < q < 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {q}")
    return beyond * 100 / min(q, 100 - q)


def _enclosing(n: float, share: float) -> tuple[float | None, float | None]:
    """Counts of n samples that lie below a quantile at least and at most, by the binomial law.

    None where even none, or all, of them is within the 95 %.
    """
    tail = (1.0 - _LEVEL) / 2.0
    low = high = None
    if binomial_cdf(0.0, n, share) <= tail:
        low = _count(tail, n, share)
    if binomial_cdf(n - 1.0, n, share) >= 1.0 - tail:
        high = _count(1.0 - tail, n, share)
    return low, high


def _count(p: float, n: float, share: float) -> float:
    """The count that n samples stay at or below with probability `p`, by halving."""
    center, spread = n * share, math.sqrt(n * share * (1.0 - share))
    reach = 2.0 + (2.0 + abs(NormalDist().inv_cdf(p))) * spread
    low, high = max(center - reach, 0.0), min(center + reach, n - 1.0)
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        if binomial_cdf(middle, n, share) > p:
            high = middle
        else:
            low = middle
    return low if p < 0.5 else high

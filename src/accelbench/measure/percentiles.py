"""Percentiles, given only where the sample can carry them."""

from __future__ import annotations

import numpy as np

from accelbench.measure.series import Samples, series

#: So many effective samples must lie beyond a percentile: p90 needs 100, p95 200, p99 1000.
_BEYOND = 10


def required_size(q: float) -> float:
    """The effective n that percentile `q` (0 < q < 100) needs; the median is always given."""
    if not 0 < q < 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {q}")
    if q == 50:
        return 1.0
    return _BEYOND * 100 / min(q, 100 - q)


def percentile(samples: Samples, q: float, effective_n: float) -> float | None:
    """The value below which `q` per cent of the samples lie, or None where too few carry it.

    `effective_n` is the size after autocorrelation (`effective_size`), not len(samples).
    """
    row = series(samples)
    if row.size == 0 or (q != 50 and effective_n < required_size(q)):
        return None
    return float(np.percentile(row, q))

"""Columns of a result from the raw samples of a steady state.

Outliers are labelled and never dropped: a slow step happened, and a user waited for it.

**Percentiles.** A percentile is given if the sample has an order statistic for it: p90 from 10
samples, p95 from 20, p99 from 100. Its interval extends between two order statistics that enclose
it with 95 %, by the binomial distribution of the number of samples below it. This is exact for
samples of any shape, and uses the number of independent samples by their autocorrelation. The
interval has no upper end above the largest sample: an upper end needs q^n ≤ 2.5 %, which is 36, 72
and 368 independent samples. A percentile is **rough** if fewer than ten independent samples lie
beyond it (p90 below 100, p95 below 200, p99 below 1000), or its interval is wider than ±10 %. No
verdict uses it.

**Timing.** A step of fewer than 1000 clock ticks would be known only to one part in a thousand, and
its time would include the reading of the clock. Such steps are timed in blocks: one pair of
readings around k steps. Single steps within a block are not known, so percentiles, minimum, maximum
and standard deviation are missing. The mean is exact, and the interval is that of the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from accelbench.core.vocabulary import Timing
from accelbench.measure.intervals import (
    Interval,
    Samples,
    Series,
    effective_size,
    integrated_time,
    lag1_correlation,
    mean_interval,
    median_interval,
    rank_order,
    to_series,
)
from accelbench.measure.student import binomial_cdf

LEAST_TICKS = 1000
MOST_OVERHEAD = 1e-4


@dataclass(frozen=True)
class Resolution:
    """Timing of EACH step, or of the WHOLE of `steps_per_sample` steps."""

    timing: Timing
    steps_per_sample: int = 1


def choose_timing(step_ns: float, tick_ns: float, reading_ns: float | None = None) -> Resolution:
    """Return whether to time each step or blocks of steps."""
    # A reading of the clock takes at most a tick, the smallest difference of two readings.
    if step_ns >= LEAST_TICKS * tick_ns:
        return Resolution(Timing.EACH)
    reading = tick_ns if reading_ns is None else reading_ns
    block_ns = max(LEAST_TICKS * tick_ns, reading / MOST_OVERHEAD)
    # A clock coarser than the step may have shown 0 ns; a call of an engine takes at least 1 ns.
    return Resolution(Timing.WHOLE, math.ceil(block_ns / max(step_ns, 1.0)))


#: Fewest effective samples beyond a percentile that is not rough.
_BEYOND = 10
#: Widest interval of a percentile that is not rough: alerts begin at a change of 10 %.
MAX_PERCENTILE_WIDTH = 0.10
_LEVEL = 0.95


@dataclass(frozen=True)
class Percentile:
    """Value below which a share of the samples lies, in their unit."""

    value: float
    low: float | None  # None if no sample is surely below it
    high: float | None  # None if no sample is surely above it
    rough: bool

    @property
    def is_wide(self) -> bool:
        """Whether an end of the interval is beyond ±10 %, or not known."""
        if self.low is None or self.high is None:
            return True
        return max(self.value - self.low, self.high - self.value) > MAX_PERCENTILE_WIDTH * abs(
            self.value
        )


def fewest_samples(q: float) -> int:
    """Return the fewest samples that have percentile `q` (0 < q < 100): one lies beyond it."""
    return math.ceil(_required_samples(q, 1))


def required_size(q: float) -> float:
    """Return the effective n below which percentile `q` is rough."""
    return _required_samples(q, _BEYOND)


def percentile(samples: Samples, q: float, effective_n: float) -> Percentile | None:
    """Return percentile `q`, or None if there are too few samples for one."""
    # `effective_n` is their number after autocorrelation (`effective_size`). Samples beyond the
    # percentile may come in bursts that the whole series does not show, and then count less.
    row = to_series(samples)
    if row.size < fewest_samples(q):
        return None
    value = float(np.percentile(row, q))
    order = rank_order(row)
    beyond = np.empty(row.size)
    beyond[order] = np.arange(row.size) >= row.size * q / 100.0
    effective = max(min(effective_n, row.size / integrated_time(beyond)), 1.0)
    low, high = _enclosing_counts(effective, q / 100.0)
    scale = row.size / effective
    estimate = Percentile(
        value,
        None if low is None else float(row[order[math.floor(low * scale)]]),
        None if high is None else float(row[order[min(math.ceil(high * scale), row.size - 1)]]),
        rough=effective < required_size(q),
    )
    return Percentile(value, estimate.low, estimate.high, rough=estimate.rough or estimate.is_wide)


def _required_samples(q: float, beyond: int) -> float:
    if not 0 < q < 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {q}")
    return beyond * 100 / min(q, 100 - q)


def _enclosing_counts(n: float, share: float) -> tuple[float | None, float | None]:
    """Return the fewest and most of n samples below a quantile, with 95 %; None if unbounded."""
    tail = (1.0 - _LEVEL) / 2.0
    low = high = None
    if binomial_cdf(0.0, n, share) <= tail:
        low = _binomial_quantile(tail, n, share)
    if binomial_cdf(n - 1.0, n, share) >= 1.0 - tail:
        high = _binomial_quantile(1.0 - tail, n, share)
    return low, high


def _binomial_quantile(p: float, n: float, share: float) -> float:
    """Return the count that n samples do not exceed with probability `p`, by bisection."""
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


MILD, SEVERE = 1, 2


@dataclass(frozen=True)
class Outliers:
    """Numbers of samples beyond Tukey's fences. Severe ones are not also counted as mild."""

    mild: int  # beyond 1.5 interquartile ranges from the quartiles, within 3
    severe: int  # beyond 3 interquartile ranges


def outlier_labels(samples: Samples) -> NDArray[np.int8]:
    """Return a label per sample: 0, MILD or SEVERE (Tukey 1977)."""
    row = to_series(samples)
    marks = np.zeros(row.size, dtype=np.int8)
    if row.size == 0:
        return marks
    low, high = np.percentile(row, (25, 75))
    spread = high - low
    beyond = np.maximum(low - row, row - high)
    marks[beyond > 1.5 * spread] = MILD
    marks[beyond > 3.0 * spread] = SEVERE
    return marks


def count_outliers(samples: Samples) -> Outliers:
    """Return the number of samples with each label."""
    marks = outlier_labels(samples)
    return Outliers(int((marks == MILD).sum()), int((marks == SEVERE).sum()))


_MS = 1e6  # nanoseconds

Summary = dict[str, float | int | None]

#: Percentiles above the median, by their name in columns.
PERCENTILES = {"p90": 90.0, "p95": 95.0, "p99": 99.0}


def summarise(
    samples_ns: Samples,
    resolution: Resolution,
    batch: int = 1,
    items_per_step: float | None = None,
    interval: Interval | None = None,
) -> Summary:
    """Return the latency and throughput columns; None for those that need more samples.

    `items_per_step` is the number of items that a step completes, if it differs from the batch.
    `interval` is that of the median, if it is known. Raises ValueError for PHASES: a split by phase
    must never become the main result.
    """
    # With WHOLE a sample is the time of `resolution.steps_per_sample` steps. Single steps are not
    # known: percentiles, minimum, maximum and standard deviation are None, and the interval is that
    # of the mean. Counts, outliers and autocorrelation refer to blocks.
    timing, steps_per_sample = resolution.timing, resolution.steps_per_sample
    if timing is Timing.PHASES:
        raise ValueError("samples split by phase are not latencies: they need a separate pass")
    if timing is not Timing.WHOLE and steps_per_sample != 1:
        raise ValueError(f"timing {timing} has one step per sample, not {steps_per_sample}")
    row = to_series(samples_ns)
    steps = row / steps_per_sample
    mean = float(steps.mean()) if row.size else None
    items = float(batch) if items_per_step is None else items_per_step
    summary: Summary = {
        "latency_mean_ms": _ms(mean),
        "throughput": items / (mean / 1e9) if mean else None,
        "sample_count": row.size,
        "effective_sample_count": effective_size(row) if row.size else None,
        "outlier_count": count_outliers(row).severe,
        "lag1_autocorrelation": lag1_correlation(row)
        if row.size >= 3 and np.ptp(row) > 0
        else None,
    }
    if timing is Timing.WHOLE:
        return summary | _empty_step_columns() | _interval_columns(mean_interval(steps))
    return summary | _step_columns(steps) | _interval_columns(interval or median_interval(steps))


def _step_columns(steps: Series) -> Summary:
    some = steps.size > 0
    return {
        "latency_p50_ms": _ms(float(np.median(steps))) if some else None,
        **_percentile_columns(steps),
        "latency_min_ms": _ms(float(steps.min())) if some else None,
        "latency_max_ms": _ms(float(steps.max())) if some else None,
        "latency_std_ms": _ms(float(steps.std(ddof=1))) if steps.size > 1 else None,
    }


def _percentile_columns(steps: Series) -> Summary:
    effective = effective_size(steps)
    summary: Summary = {}
    for name, q in PERCENTILES.items():
        found = percentile(steps, q, effective)
        summary |= {
            f"latency_{name}_ms": _ms(found.value) if found else None,
            f"latency_{name}_low_ms": _ms(found.low) if found else None,
            f"latency_{name}_high_ms": _ms(found.high) if found else None,
            f"latency_{name}_rough": found.rough if found else None,
        }
    return summary


def _empty_step_columns() -> Summary:
    tails = _percentile_columns(np.empty(0))
    return tails | {f"latency_{figure}_ms": None for figure in ("p50", "min", "max", "std")}


def _interval_columns(interval: Interval | None) -> Summary:
    return {
        "latency_ci_low_ms": _ms(interval.low) if interval else None,
        "latency_ci_high_ms": _ms(interval.high) if interval else None,
    }


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / _MS

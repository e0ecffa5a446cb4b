"""From the raw samples of a steady state to the columns of a result.

Outliers are labelled, never dropped: a slow step happened, and someone waited for it.

Percentiles with their own intervals, and whether more than a rough reading is known of them.

A percentile is given wherever the sample has an order statistic for it: p90 from 10 samples, p95
from 20, p99 from 100. Its interval reaches from one order statistic to another, which enclose it
with 95 % by the binomial distribution of how many samples lie below it (exact, whatever the shape
of the samples), for as many independent samples as there are by their autocorrelation. Above the
largest sample nothing is known: an upper end needs q^n ≤ 2.5 %, which is 36, 72 and 368
independent samples.

A percentile is **rough** where fewer than ten independent samples lie beyond it (p90 below 100, p95
below 200, p99 below 1000), or its interval is wider than ±10 %: no verdict rests on it.

How a step is timed, given how fine the clock is.

A step of fewer than 1000 clock ticks would be known to no better than one part
in a thousand, and reading the clock would be part of what is measured. Such steps
are timed in blocks: one pair of readings around k steps. What single steps did
inside a block is not known then, so percentiles, minimum, maximum and standard
deviation are not given; the mean is exact, and its interval is of the mean.
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
    lag1,
    mean_interval,
    median_interval,
    ranked,
    series,
)
from accelbench.measure.student import binomial_cdf

LEAST_TICKS = 1000
MOST_OVERHEAD = 1e-4


@dataclass(frozen=True)
class Resolution:
    """How to time: by EACH step, or by the WHOLE of `steps_per_sample` steps."""

    timing: Timing
    steps_per_sample: int = 1


def choose_timing(step_ns: float, tick_ns: float, reading_ns: float | None = None) -> Resolution:
    """Choose between timing each step and timing blocks of steps."""
    # One reading of the clock is taken to cost a tick if that is not known: two readings in a row
    # cannot differ by less than a reading costs.
    if step_ns >= LEAST_TICKS * tick_ns:
        return Resolution(Timing.EACH)
    reading = tick_ns if reading_ns is None else reading_ns
    block_ns = max(LEAST_TICKS * tick_ns, reading / MOST_OVERHEAD)
    # A clock coarser than the step may have shown 0 ns; no call into a runtime takes less than 1.
    return Resolution(Timing.WHOLE, math.ceil(block_ns / max(step_ns, 1.0)))


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
    """Return the effective n below which percentile `q` is rough."""
    return _required(q, _BEYOND)


def percentile(samples: Samples, q: float, effective_n: float) -> Percentile | None:
    """Return percentile `q`, or None if there are too few samples for one."""
    # `effective_n` is their number after autocorrelation (`effective_size`). What lies beyond the
    # percentile may come in bursts that the whole series does not show, and counts for less.
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
    """Return how many of n samples lie below a quantile at least and at most; None beyond the 95
    %."""
    tail = (1.0 - _LEVEL) / 2.0
    low = high = None
    if binomial_cdf(0.0, n, share) <= tail:
        low = _count(tail, n, share)
    if binomial_cdf(n - 1.0, n, share) >= 1.0 - tail:
        high = _count(1.0 - tail, n, share)
    return low, high


def _count(p: float, n: float, share: float) -> float:
    """Return the count that n samples stay at or below with probability `p`, by halving."""
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
    """How many samples lie beyond Tukey's fences. A severe one is not counted as mild too."""

    mild: int  # beyond 1.5 interquartile ranges from the quartiles, within 3
    severe: int  # beyond 3 interquartile ranges


def labels(samples: Samples) -> NDArray[np.int8]:
    """One label a sample, in order: 0, MILD or SEVERE (Tukey 1977)."""
    row = series(samples)
    marks = np.zeros(row.size, dtype=np.int8)
    if row.size == 0:
        return marks
    low, high = np.percentile(row, (25, 75))
    spread = high - low
    beyond = np.maximum(low - row, row - high)
    marks[beyond > 1.5 * spread] = MILD
    marks[beyond > 3.0 * spread] = SEVERE
    return marks


def outliers(samples: Samples) -> Outliers:
    """Counts by label."""
    marks = labels(samples)
    return Outliers(int((marks == MILD).sum()), int((marks == SEVERE).sum()))


_MS = 1e6  # nanoseconds

Summary = dict[str, float | int | None]

#: Percentiles beyond the median, by the name that their columns have.
PERCENTILES = {"p90": 90.0, "p95": 95.0, "p99": 99.0}


def summarise(
    samples_ns: Samples,
    resolution: Resolution,
    batch: int = 1,
    items_per_step: float | None = None,
    interval: Interval | None = None,
) -> Summary:
    """Return the latency and throughput columns of the registry; None if the sample cannot carry
    one.

    `items_per_step` is what a step completes, if that is not the batch. `interval` is that of the
    median, if it is known. Raises ValueError for PHASES: a split by phase must never become the
    headline.
    """
    # Timed by the WHOLE, a sample is the time of `resolution.steps_per_sample` steps. What single
    # steps did is not known then: percentiles, minimum, maximum and standard deviation are None,
    # and the interval is that of the mean. Counts, outliers and autocorrelation are of the samples
    # as taken, that is of blocks.
    timing, steps_per_sample = resolution.timing, resolution.steps_per_sample
    if timing is Timing.PHASES:
        raise ValueError("samples split by phase are no latency: they need a pass of their own")
    if timing is not Timing.WHOLE and steps_per_sample != 1:
        raise ValueError(f"timing {timing} has one step a sample, not {steps_per_sample}")
    row = series(samples_ns)
    steps = row / steps_per_sample
    mean = float(steps.mean()) if row.size else None
    items = float(batch) if items_per_step is None else items_per_step
    summary: Summary = {
        "latency_mean_ms": _ms(mean),
        "throughput": items / (mean / 1e9) if mean else None,
        "sample_count": row.size,
        "effective_sample_count": effective_size(row) if row.size else None,
        "outlier_count": outliers(row).severe,
        "lag1_autocorrelation": lag1(row) if row.size >= 3 and np.ptp(row) > 0 else None,
    }
    if timing is Timing.WHOLE:
        return summary | _unknown_steps() | _columns(mean_interval(steps))
    return summary | _steps(steps) | _columns(interval or median_interval(steps))


def _steps(steps: Series) -> Summary:
    some = steps.size > 0
    return {
        "latency_p50_ms": _ms(float(np.median(steps))) if some else None,
        **_percentiles(steps),
        "latency_min_ms": _ms(float(steps.min())) if some else None,
        "latency_max_ms": _ms(float(steps.max())) if some else None,
        "latency_std_ms": _ms(float(steps.std(ddof=1))) if steps.size > 1 else None,
    }


def _percentiles(steps: Series) -> Summary:
    effective = effective_size(steps)
    summary: Summary = {}
    for name, q in PERCENTILES.items():
        figure = percentile(steps, q, effective)
        summary |= {
            f"latency_{name}_ms": _ms(figure.value) if figure else None,
            f"latency_{name}_low_ms": _ms(figure.low) if figure else None,
            f"latency_{name}_high_ms": _ms(figure.high) if figure else None,
            f"latency_{name}_rough": figure.rough if figure else None,
        }
    return summary


def _unknown_steps() -> Summary:
    tails = _percentiles(np.empty(0))
    return tails | {f"latency_{figure}_ms": None for figure in ("p50", "min", "max", "std")}


def _columns(interval: Interval | None) -> Summary:
    return {
        "latency_ci_low_ms": _ms(interval.low) if interval else None,
        "latency_ci_high_ms": _ms(interval.high) if interval else None,
    }


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / _MS

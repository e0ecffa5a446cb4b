"""From the raw samples of a steady state to the columns of a result."""

from __future__ import annotations

import numpy as np

from accelbench.core.vocabulary import Timing
from accelbench.measure.autocorrelation import effective_size, lag1
from accelbench.measure.intervals import Interval, mean_interval, median_interval
from accelbench.measure.outliers import outliers
from accelbench.measure.percentiles import percentile
from accelbench.measure.series import Samples, Series, series
from accelbench.measure.timer_resolution import Resolution

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
    """The latency and throughput columns of the registry; None where the sample cannot carry one.

    Timed by the WHOLE, a sample is the time of `resolution.steps_per_sample` steps. What single
    steps did is not known then: percentiles, the median included, minimum, maximum and
    standard deviation are None, and the interval is that of the mean. Counts, outliers and
    autocorrelation are of the samples as taken, that is of blocks.

    Args:
        samples_ns: every sample in order, none left out.
        resolution: how they were taken. A split by phase synchronises between the
            phases, so PHASES is refused: it must never become the headline.
        batch: items in one step.
        items_per_step: what a step completes, where that is not the batch: tokens, say.
        interval: of the median of these samples, where the stopping rule has found it already.
    """
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
    """Figures that need the time of every single step."""
    some = steps.size > 0
    return {
        "latency_p50_ms": _ms(float(np.median(steps))) if some else None,
        **_percentiles(steps),
        "latency_min_ms": _ms(float(steps.min())) if some else None,
        "latency_max_ms": _ms(float(steps.max())) if some else None,
        "latency_std_ms": _ms(float(steps.std(ddof=1))) if steps.size > 1 else None,
    }


def _percentiles(steps: Series) -> Summary:
    """p90, p95 and p99, each with its interval and whether it is rough."""
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

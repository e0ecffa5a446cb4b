"""Figures of probes: the median rate of blocks, and its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelbench.core.calibration import ProbeFigure, ProbeKind, ProbeSpec
from accelbench.measure.intervals import median_interval


def figure_of(spec: ProbeSpec, steps: int, samples_ns: Sequence[int]) -> ProbeFigure:
    """A probe's figure from what its blocks took.

    The interval is that of the median of dependent samples, as of a model's steps
    (`measure/intervals.py`).

    Args:
        spec: the probe.
        steps: of each block.
        samples_ns: a block each, in order.
    """
    seconds = np.asarray(samples_ns, dtype=np.float64) / 1e9 / steps
    values = seconds if spec.kind is ProbeKind.LAUNCH else spec.work / seconds
    interval = median_interval(values)
    return ProbeFigure(
        spec, steps, tuple(samples_ns), float(np.median(values)),
        interval.low if interval else None, interval.high if interval else None,
    )  # fmt: skip

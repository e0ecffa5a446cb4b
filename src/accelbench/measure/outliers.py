"""Outliers are labelled, never dropped: a slow step happened, and someone waited for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.series import Samples, series

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

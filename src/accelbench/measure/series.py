"""What the statistics accept as a series of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = Sequence[int] | Sequence[float] | NDArray[Any]
Series = NDArray[np.float64]


def series(samples: Samples) -> Series:
    """Samples as one row of doubles; nanoseconds stay exact up to 104 days."""
    row = np.asarray(samples, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"samples must be one row, not of shape {row.shape}")
    return row

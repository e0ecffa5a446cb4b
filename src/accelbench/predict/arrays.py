"""Classes of operators, and the arrays of numbers that predictors calculate with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The first seven multiply; the others only move values.
CLASSES = (
    "conv", "pw", "dw", "grp", "lin", "bmm", "sdpa",
    "bn", "ln", "act", "pool", "softmax", "copy", "elt",
)  # fmt: skip
MULTIPLYING = 7

"""Conformal intervals: as wide as nine in ten held-out errors, by how a prediction came about.

Errors of whole held-out families count by the family's size to the power −½: a family of two
hundred near-twins says less than two hundred families, and counting each family alike gives the
odd ones the word (95 % covered where 90 % were asked for).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.signatures import Floats


def family_weights(families: Sequence[str]) -> Floats:
    """The weight of each error, by its family's size."""
    sizes = Counter(families)
    return np.array([sizes[family] ** -0.5 for family in families])


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least value that reaches a share of the weight; one more of mean weight is infinite."""
    if not len(values):
        return float("nan")
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    wanted = level * (reached[-1] + weights.mean())
    place = int(np.searchsorted(reached, wanted))
    return float(values[order[min(place, len(values) - 1)]])


def half_width(errors: Floats, families: Sequence[str], level: float = LEVEL) -> float:
    """Half an interval in logarithms, from errors of held-out families."""
    return weighted_quantile(np.abs(errors), family_weights(families), level)

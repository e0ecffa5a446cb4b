"""A figure with the ends between which it lies; of what was measured they are the figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

from accelbench.select.evidence.cells import SINGLE

#: How far bounds are stretched by how much a family's batch, or size, matters.
STRETCH: Mapping[str, float] = {"low": 0.5, "medium": 1.0, "high": 1.5}


@dataclass(frozen=True)
class Bounds:
    """Between `low` and `high`, and most likely `middle`."""

    middle: float
    low: float
    high: float

    @overload
    @staticmethod
    def exact(value: float) -> Bounds: ...
    @overload
    @staticmethod
    def exact(value: float | None) -> Bounds | None: ...
    @staticmethod
    def exact(value: float | None) -> Bounds | None:
        """A figure that was measured; None of none."""
        return None if value is None else Bounds(value, value, value)


def stretched(middle: float, low: float, high: float, importance: str) -> tuple[float, float]:
    """Bounds as far as a family's batch, or size, matters."""
    by = STRETCH[importance]
    return middle * (low / middle) ** by, middle * (high / middle) ** by


def no_nearer(middle: float, low: float, high: float) -> tuple[float, float]:
    """Bounds no nearer than those of a single measured figure."""
    return min(low, middle / (1 + SINGLE)), max(high, middle * (1 + SINGLE))

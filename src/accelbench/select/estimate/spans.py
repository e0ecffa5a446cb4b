"""A figure with the ends between which it lies; of what was measured they are the figure. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload


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

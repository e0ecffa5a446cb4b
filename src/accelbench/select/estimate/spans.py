"""A figure with the ends between which it lies; of what was measured they are the figure. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True)
class Span:
    """Between `low` and `high`, and most likely `middle`."""

    middle: float
    low: float
    high: float

    @overload
    @staticmethod
    def exact(value: float) -> Span: ...
    @overload
    @staticmethod
    def exact(value: float | None) -> Span | None: ...
    @staticmethod
    def exact(value: float | None) -> Span | None:
        """A figure that was measured; None of none."""
        return None if value is None else Span(value, value, value)

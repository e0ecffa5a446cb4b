"""Numbers and names as sentences have them: what is counted, in few digits, the first of many."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

#: Digits of a figure that anybody reads.
_DIGITS = 3


def digits(value: float) -> str:
    """Three digits, or as many as a whole number has, never an exponent: 0.153, 12.3, 1,240."""
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    places = max(0, _DIGITS - 1 - floor(log10(abs(value))))
    return f"{value:,.{places}f}"


def counted(number: int, singular: str, many: str = "") -> str:
    """3 cells, 1 cell."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first of them, and how many more there are."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"

"""Numbers as sentences have them: with what they count, in as many digits as are read."""

from __future__ import annotations

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

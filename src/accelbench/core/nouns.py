"""Numbers with what they count, as sentences have them."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """3 cells, 1 cell."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"

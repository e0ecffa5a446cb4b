"""How many cases a predictor learned from, and who measured them. Pure."""

from __future__ import annotations

#: Half as much again as is measured, or half of it: beyond that a figure is to be read as a band.
POOR = 0.5


def measured_cases(number: int, of_others: int) -> str:
    """Some measured cases, and how many of them others measured, in words."""
    some = "all" if of_others == number else f"{of_others:,}"
    imported = f", {some} of them measured by others" if of_others else ""
    return f"{number:,} measured case{'s' * (number != 1)}{imported}"

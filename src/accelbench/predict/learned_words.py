"""How many cases a predictor learned from, and who measured them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.core.nouns import listed

#: Half as much again as is measured, or half of it: beyond that a figure is to be read as a band.
POOR = 0.5
_MOST_NAMED = 3


def measured_cases(number: int, of_others: int) -> str:
    """Some measured cases, and how many of them others measured, in words."""
    some = "all" if of_others == number else f"{of_others:,}"
    imported = f", {some} of them measured by others" if of_others else ""
    return f"{number:,} measured case{'s' * (number != 1)}{imported}"


def off_held_out(error: float, of: str) -> str:
    """By how much figures were off where what they rest on was held out, and how many."""
    return f"{error:,.0%} ({of})"


def poor_notes(figures: Iterable[tuple[str, float | None, str | None]]) -> list[str]:
    """A sentence for each basis whose figures were poor where it was held out.

    Args:
        figures: of each its basis, the median error of such figures, and of which cases it is.
    """
    poor: dict[str, dict[str, None]] = {}
    for basis, error, of in figures:
        if error is not None and error > POOR:
            poor.setdefault(basis, {})[off_held_out(error, of or "")] = None
    return [
        f"figures that rest on {basis} are poor, and their intervals alone are to be relied on:"
        f" held out, such figures were off in the median by {listed(list(named), _MOST_NAMED)}"
        for basis, named in poor.items()
    ]

"""What was measured at one place of an axis alone: figures without a side to hold against. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.analysis.comparison import Compared
from accelbench.analysis.questions import ComparisonAxis, Row
from accelbench.analysis.sides import sides


def single(rows: Iterable[Row], axis: ComparisonAxis) -> list[list[Compared]]:
    """Each question's sides without a baseline, in the form of a comparison."""
    questions = sides(list(rows), axis, lambda places: min(places, key=str))
    return [[Compared(side, None) for side in places.values()] for places in questions]

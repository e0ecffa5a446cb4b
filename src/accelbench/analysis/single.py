"""What was measured at one place of an axis alone: figures without a side to compare with. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.analysis.comparison import Compared
from accelbench.analysis.questions import ComparisonAxis
from accelbench.analysis.sides import sides
from accelbench.core.rows import Row


def single(rows: Iterable[Row], axis: ComparisonAxis) -> list[list[Compared]]:
    """Each question's sides without a baseline, in the form of a comparison."""
    questions = sides(list(rows), axis, lambda places: min(places, key=str))
    return [[Compared(side, None) for side in places.values()] for places in questions]

"""What a rate counts: the word for it, and whether two rates count the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from accelbench.analysis.costs import items_of
from accelbench.core.rates import kind_of_unit
from accelbench.core.rows import Row
from accelbench.select.evidence.cells import EvidenceCell

#: What is said of a rate whose source names no unit.
ITEMS = "items"
#: From here on a figure's digits are all before the point.
_LONG = 1e4


def unit_of(row: Row) -> str:
    """What a figure's rate counts, in the plural: tokens, images, seconds of sound."""
    unit = row.get("throughput_unit")
    # A cell has its rates apart from its row, and without a rate nobody says its unit.
    return items_of({"throughput_unit": unit, "throughput": 1.0}) or ITEMS if unit else ITEMS


def counted(unit: str) -> str:
    """The same word for units whose rates can be held together."""
    return unit if kind_of_unit(unit) else ITEMS


def items_a_step(cells: Sequence[EvidenceCell]) -> float:
    """How many a step does for each item of its batch: 1 of images, and of tokens many."""
    return median(cell.throughput * cell.latency / (1e3 * cell.batch) for cell in cells)


def rounded(value: float) -> str:
    """A figure in four digits, and never with an exponent for its being large."""
    return f"{value:,.0f}" if abs(value) >= _LONG else f"{value:.4g}"

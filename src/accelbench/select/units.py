"""What throughputs count, and which of them count the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from accelbench.select.evidence import Cell

#: Of an item of the batch, or of a step: where nobody says what is counted, it is that.
ITEMS = "items/s"
#: What a step does more of than its batch has items: they are counted for themselves.
_OF_THEIR_OWN = ("token", "audio")


def unit_of(row: Mapping[str, Any]) -> str:
    """What a figure's throughput counts: images/s, tokens/s."""
    return str(row.get("throughput_unit") or "").lower() or ITEMS


def kind_of(unit: str) -> str:
    """Units of one kind can be held together: an image is an item of the batch, a token is none."""
    return next((word for word in _OF_THEIR_OWN if unit.startswith(word)), ITEMS)


def kind_sql(column: str) -> str:
    """The same of a column of units."""
    cases = " ".join(f"WHEN lower({column}) LIKE '{word}%' THEN '{word}'" for word in _OF_THEIR_OWN)
    return f"CASE {cases} ELSE '{ITEMS}' END"


def items_a_step(cells: Sequence[Cell]) -> float:
    """How many a step does for each item of its batch: 1 of images, and of tokens many."""
    return median(cell.throughput * cell.latency / (1e3 * cell.batch) for cell in cells)

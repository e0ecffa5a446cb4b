"""Units of throughput: which rates count the same, and how a column of rates is headed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from accelbench.core.rows import Row

#: The unit of a rate whose source names none, and of rates that are of several kinds of items.
ITEMS = "items/s"


#: An item of the batch by any other name is the same item. Whatever else is counted is of a kind of
#: its own: a token, a second of sound, a batch, a thousand samples, what one of several cards does.
_OF_THE_BATCH = (
    *("item", "inference", "image", "img", "querie", "query", "request", "sample", "sequence"),
    *("frame", "fp", "example", "sentence", "clip", "n/a", ""),
)
#: How a rate says that it is of a second.
_A_SECOND = r"\s*(/|per)\s*(s|sec|second)$"


@lru_cache(maxsize=1024)
def kind_of_unit(unit: str) -> str:
    """What tells units apart whose rates cannot be held together; "" of items of the batch."""
    word = re.sub(_A_SECOND, "", unit.strip().lower()).rstrip("s")
    return "" if word in _OF_THE_BATCH else word


def kind_sql(column: str) -> str:
    """The same of a column of units, in SQL."""
    word = f"rtrim(regexp_replace(lower(trim(coalesce({column}, ''))), '{_A_SECOND}', ''), 's')"
    known = ", ".join(f"'{unit}'" for unit in _OF_THE_BATCH)
    return f"CASE WHEN {word} IN ({known}) THEN '' ELSE {word} END"


def unit_of(row: Row) -> str:
    """Return the unit of a result's rate as its source names it; samples are items."""
    unit = str(row.get("throughput_unit") or ITEMS)
    return ITEMS if unit.lower() == "samples/s" else unit


def unit_of_all(rows: Iterable[Row]) -> str:
    """The unit that all rates have, for the heading of their column or axis."""
    units = {unit_of(row) for row in rows if row.get("throughput") is not None}
    return units.pop() if len(units) == 1 else ITEMS


def unit_beside(row: Row, heading: str) -> str:
    """The unit to write beside a rate whose column says another; "" where the heading is true,
    and where there is no rate.

    Args:
        row: the result.
        heading: the unit that its column says, as from `unit_of_all`.
    """
    unit = unit_of(row) if row.get("throughput") is not None else heading
    return "" if unit == heading or (heading == ITEMS and not kind_of_unit(unit)) else unit

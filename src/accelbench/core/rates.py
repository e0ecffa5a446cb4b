"""Units of throughput: which rates count the same, and how a column of rates is headed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: The unit of a rate whose source names none, and of rates that are of several kinds of items.
ITEMS = "items/s"

Row = Mapping[str, Any]


def kind_of_unit(unit: str) -> str:
    """What tells units apart whose rates cannot be held together.

    An item of the batch by any other name is the same item; a token or a second of sound is not.
    """
    low = unit.lower()
    return low if low.startswith(("token", "audio")) else ""


def unit_of(row: Row) -> str:
    """The unit of a result's rate, as its source names it."""
    return str(row.get("throughput_unit") or ITEMS)


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

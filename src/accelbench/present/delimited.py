"""Records as CSV: a header, a line a record, an empty cell if nothing is known."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import IO, Any

from accelbench.core.identity import canonical
from accelbench.core.visible import csv_cell


def write_lines(stream: IO[str], names: Iterable[str], rows: Iterable[Iterable[Any]]) -> int:
    """Write a header and rows to a stream, and return how many rows there were."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    count = 0
    for row in rows:
        writer.writerow(map(cell_text, row))
        count += 1
    return count


def cell_text(value: Any) -> str:
    """Return a value as a cell; lists and maps become JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, float):
        return repr(value)  # the shortest spelling that reads back as the same number
    return canonical(value)

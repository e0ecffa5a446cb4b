"""Results as CSV: one header, a line a result, an empty cell where nothing is known."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from accelbench.core.identity import canonical
from accelbench.core.visible import csv_cell
from accelbench.exchange.run_facts import RUN


def write_csv(
    path: Path,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write these columns of rows; lists, maps, samples and runs become JSON in their cell.

    Returns:
        How many rows there were.
    """
    count = 0
    run_cells = {run: [_cell(about)] for run, about in (runs or {}).items()}
    with path.open("x", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*names, RUN] if runs else names)
        for row in rows:
            more = run_cells.get(row["run_id"], [""]) if runs else []
            writer.writerow([*(_cell(row[name]) for name in names), *more])
            count += 1
    return count


def write_lines(stream: IO[str], names: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """The same of an answer in SQL, to a stream."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    for row in rows:
        writer.writerow(map(_cell, row))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, float):
        return repr(value)  # the shortest spelling that reads back as the same number
    return canonical(value)

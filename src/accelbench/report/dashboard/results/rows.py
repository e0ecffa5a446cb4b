"""What a page of the table of results shows: the columns in which its rows differ. Pure.

What all rows of a page have alike is said once above them, and no column is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.questions import SHAPES
from accelbench.core.nouns import counted
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.report.dashboard import words
from accelbench.report.dashboard.results.columns import (
    COLUMNS,
    FIGURES,
    MODEL,
    OF_EVERY_ROW,
    SIZE,
    ResultColumn,
)

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.report.dashboard.snapshots.cells import Cell

#: What nobody has to be told: it is so where nothing else was asked for.
_UNREMARKABLE = {
    "scenario": SINGLE_STREAM,
    "devices": 1,
    "data": "synthetic",
    "weights": "random",
}
#: What came of it: two lines of different figures may still say the same of what was asked for.
_OUTCOMES = tuple(
    COLUMNS[name]
    for name in (
        *OF_EVERY_ROW,
        *("tail", "quality", "verification", "status", "reason"),
        *("samples", "runs", "run", "warnings", "workarounds"),
    )
)
_USUAL = tuple(column for column in COLUMNS.values() if column.usual)
#: What no line of a table says in words of its own, beside the columns that are shown.
_ALWAYS_TOLD = ("model", "kind")


def value_of(row: Cell, column: ResultColumn) -> object:
    """What a row has in a column."""
    return words.size(row) or None if column is SIZE else row.get(column.column)


#: Where each column stands in a table that nobody arranged.
_PLACES = {column: place for place, column in enumerate(COLUMNS.values())}


def shown(
    rows: Sequence[Cell], chosen: Sequence[str] = (), *, costed: bool = False
) -> list[ResultColumn]:
    """The columns of a table: those that were chosen, else those in which rows differ.

    The model is the heading of each row, and always there.

    Args:
        rows: of the page.
        chosen: names of columns.
        costed: whether anything has a cost.
    """
    if chosen:
        return [MODEL, *(COLUMNS[name] for name in chosen if name != MODEL.name)]
    figures = [
        COLUMNS[name]
        for name in OF_EVERY_ROW
        if (name != "cost" or costed) and any(_figure_of(row, name) for row in rows)
    ]
    # Without a latency or a rate there is still a place for why there is none.
    if not any(column in FIGURES for column in figures):
        figures = [COLUMNS["latency"], *figures]
    differing = [column for column in _USUAL if len(_values(rows, column)) > 1]
    return [MODEL, *sorted([*differing, *figures], key=_PLACES.__getitem__)]


def _figure_of(row: Cell, name: str) -> object:
    """What a row has in a column of every row; of rates alone a tail stands in latency's place."""
    held = value_of(row, COLUMNS[name])
    return held or row.get("tail") if name == "latency" else held


def in_common(
    rows: Sequence[Cell], columns: Sequence[ResultColumn], machines: Mapping[str, Machine]
) -> list[str]:
    """What all rows have alike, each as words; what a column shows is left out."""
    if not rows:
        return []
    alike = [
        (column.name, value_of(rows[0], column))
        for column in _USUAL
        if column not in columns and len(_values(rows, column)) == 1
    ]
    known = [
        _in_words(name, value, machines)
        for name, value in alike
        if value is not None and value != _UNREMARKABLE.get(name)
    ]
    kinds = {row["kind"] for row in rows}
    return [*known, *kinds] if len(kinds) == 1 else known


def told_by(columns: Sequence[ResultColumn]) -> tuple[str, ...]:
    """The columns of a cell that say in a line of the table what was asked for."""
    shapes = SHAPES if SIZE in columns else ()
    asked = (column.column for column in columns if column.column and column not in _OUTCOMES)
    return (*_ALWAYS_TOLD, *asked, *shapes)


def _values(rows: Sequence[Cell], column: ResultColumn) -> set[str]:
    return {str(value_of(row, column)) for row in rows}


def _in_words(name: str, value: object, machines: Mapping[str, Machine]) -> str:
    if name == "batch":
        return f"batch {value}"
    if name in ("threads", "devices") and isinstance(value, int):
        return (
            counted(value, "thread")
            if name == "threads"
            else counted(value, "process", "processes")
        )
    if name == "compiled":
        return "compiled" if value else "not compiled"
    if name == "machine":
        return f"on {machines[str(value)].name}" if str(value) in machines else ""
    if name in ("weights", "data", "optimizer"):
        return f"{name} {value}"
    return words.device(value) if name == "device" else str(value).replace("_", " ")

"""Answers of SQL as tables and records on a terminal, and as JSON holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from accelbench.cli.display.terminal import print_line
from accelbench.core.nouns import NO_DATA
from accelbench.core.visible import in_quotes, visible
from accelbench.store.fit import spell_time

#: A table with more columns is not read as one: shown a value a line instead.
_MOST_COLUMNS = 8


def apart(columns: Sequence[str]) -> list[str]:
    """Names of columns, each once: one that comes again is numbered, as DuckDB does in tables."""
    names: list[str] = []
    for name in columns:
        candidate, number = name, 1
        while candidate in names:
            candidate, number = f"{name}_{number}", number + 1
        names.append(candidate)
    return names


def print_answer(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """What SQL gave: a table, or where that would be too wide a value a line."""
    if len(columns) > _MOST_COLUMNS or not _print_table(columns, rows):
        _print_records(columns, rows)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
    from rich import box
    from rich.text import Text

    from accelbench.cli.display.console import console
    from accelbench.cli.display.word_table import WordTable

    table = WordTable(box=box.SIMPLE)
    for column in columns:
        table.add_column(Text(visible(column)))
    for row in rows:
        table.add_row(*(Text(_spell(value)) for value in row))
    terminal = console()
    if not table.fits(terminal.width):
        return False
    terminal.print(table)
    return True


def _print_records(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    width = max(map(len, columns))
    for number, row in enumerate(rows, 1):
        print_line(f"-- {number} of {len(rows)}")
        for name, value in zip(columns, row, strict=True):
            if value is not None:
                print_line(f"{name:<{width}}  {_spell(value)}")


def _spell(value: Any) -> str:
    if value is None:
        return NO_DATA
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = jsonable(value)
    return in_quotes(plain) if isinstance(plain, (list, dict)) else visible(str(plain))


def jsonable(value: Any) -> Any:
    """A value from SQL as JSON holds it; infinities and NaN, which it cannot hold, as null."""
    if isinstance(value, datetime):
        return spell_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)

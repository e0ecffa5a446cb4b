"""Answers of SQL as a document, and as JSON holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from accelbench.core.formatting import NO_DATA
from accelbench.core.safe_text import in_quotes, visible
from accelbench.present.document import Document, DocumentSection, Facts, Table, columns
from accelbench.store.body_to_row import spell_time

#: A table with more columns is not read as one: shown a value a line instead.
_MOST_COLUMNS = 8


def apart(repeated: Sequence[str]) -> list[str]:
    """Names of columns, each once: one that comes again is numbered, as DuckDB does in tables."""
    names: list[str] = []
    for name in repeated:
        candidate, number = name, 1
        while candidate in names:
            candidate, number = f"{name}_{number}", number + 1
        names.append(candidate)
    return names


def answer_document(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Document:
    """Return an answer of SQL: a table, or the values of each row if there are many columns."""
    if len(names) <= _MOST_COLUMNS:
        return Document("", [Table(columns(names), [list(map(_spell, row)) for row in rows])])
    sections = []
    for number, row in enumerate(rows, 1):
        pairs = [(n, _spell(v)) for n, v in zip(names, row, strict=True) if v is not None]
        sections.append(DocumentSection(f"-- {number} of {len(rows)}", [Facts(pairs)]))
    return Document("", sections)


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

"""Rows as Arrow tables: the fast way into DuckDB and into Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from accelbench.core.column import Column, Kind
from accelbench.core.columns import COLUMNS
from accelbench.core.identity import canonical


def ready() -> None:
    """Import all that making tables and filling a database takes: half a second, pandas included.

    The first array imports pandas, wherever it is installed.
    """
    import duckdb  # noqa: F401 - imported for those who need it next
    import pyarrow as pa

    pa.array([None])


def arrow_type(kind: Kind) -> Any:
    """The Arrow type of a column; JSON travels as text."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us"),
        "json": pa.string(),
        "list": pa.list_(pa.string()),
        "floats": pa.list_(pa.float64()),
        "map": pa.map_(pa.string(), pa.float64()),
    }
    return types[kind]


def cell(kind: Kind, value: Any) -> Any:
    """A plain JSON value as Arrow takes it."""
    if value is None:
        return None
    if kind == "json":
        return canonical(value)
    if kind == "time":
        return datetime.fromisoformat(value).replace(tzinfo=None)  # fit.py has made it UTC
    if kind == "map":
        return list(value.items())
    return value


def result_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column] = COLUMNS) -> Any:
    """Fitted rows as an Arrow table with the registry's columns."""
    import pyarrow as pa

    return pa.table(
        {
            c.name: pa.array([cell(c.kind, row[c.name]) for row in rows], type=arrow_type(c.kind))
            for c in columns
        }
    )


def table_of(rows: Iterable[Sequence[Any]], **types: Any) -> Any:
    """Tuples as an Arrow table with the named types, in the same order."""
    import pyarrow as pa

    turned = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table(
        {
            name: pa.array(values, type=kind)
            for (name, kind), values in zip(types.items(), turned, strict=True)
        }
    )

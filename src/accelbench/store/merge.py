"""Bringing in another database: the same anti-joins, in one transaction; the other is only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.store.duck import (
    connect,
    held_or_explained,
    quoted,
    retrying,
    shared_guard,
)
from accelbench.store.insert import Filled, insert_many
from accelbench.store.schema import columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def merge(path: Path, other: Path, retry_seconds: float) -> Filled:
    """Insert every fact of `other` that `path` does not have. Both must be databases of ours."""
    with connect(path, write=True, retry_seconds=retry_seconds) as con:
        retrying(lambda: _attach(con, other), other, retry_seconds)
        con.execute("BEGIN")
        # Samples first: their anti-join asks which results are there.
        _bring(con, "fact_samples", "result_id", against="fact_result")
        filled = Filled(
            results=_bring(con, "fact_result", "result_id"),
            facts=_bring(con, "fact", "kind, id"),
        )
        con.execute("COMMIT")
    return filled


def _attach(con: DuckDBPyConnection, other: Path) -> None:
    import duckdb

    with shared_guard(other, create=False):
        try:
            con.execute(f"ATTACH {quoted(str(other))} AS other (READ_ONLY)")
        except duckdb.Error as error:
            raise held_or_explained(error, other) from error


def _bring(con: DuckDBPyConnection, table: str, keys: str, against: str | None = None) -> int:
    """By the columns both have: either may be the older one."""
    there = set(columns_of(con, table, "other"))
    shared = ", ".join(f'i."{name}"' for name in columns_of(con, table) if name in there)
    apart = "result_id, phase" if table == "fact_samples" else keys
    return insert_many(
        con, table, f"other.{table}", keys, against=against, columns=shared, apart=apart
    )

"""Merging of another database: the same anti-joins, in one transaction; the other is only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import StoreError
from accelbench.core.vocabulary import Provenance
from accelbench.store.duck import connect, held_or_explained, quoted, retrying, shared_guard
from accelbench.store.implausible import mark_implausible
from accelbench.store.insert import FilledRows, insert_many
from accelbench.store.merge_validation import ConflictError, columns_in, hold
from accelbench.store.schema import columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def merge(path: Path, other: Path, retry_seconds: float) -> FilledRows:
    """Insert every fact of `other` that `path` does not have. Both must be databases of ours."""
    with connect(path, write=True, retry_seconds=retry_seconds, apart=True) as con:
        retrying(lambda: _attach(con, other), other, retry_seconds)
        con.execute("BEGIN")
        with compared(path, other):
            for table in ("fact", "fact_result", "fact_samples"):
                columns_in(con, f"other.{table}", columns_of(con, table), str(other))
            held = hold(con, "other.fact_result", "other.fact_samples", str(other))
        copies = _count_copies(con, held.results) if held.results else 0
        # Samples first: their anti-join asks which results are there.
        _bring(con, "fact_samples", held.samples, "result_id", against="fact_result")
        filled = FilledRows(
            results=_bring(con, "fact_result", held.results, "result_id"),
            facts=_bring(con, "fact", "other.fact", "kind, id"),
            problems=held.problems,
            copies=copies,
            refused=len(held.refused),
            refusals=held.refused,
        )
        if filled.results:
            mark_implausible(con)
        con.execute("COMMIT")
    return filled


def _count_copies(con: DuckDBPyConnection, measured: str) -> int:
    """Return how many measured results are known here only as imported copies."""
    ((count,),) = con.execute(
        f"SELECT count(*) FROM {measured} i JOIN fact_result k USING (result_id)"  # noqa: S608
        f" WHERE i.provenance = {quoted(Provenance.MEASURED.value)}"
        f" AND k.provenance = {quoted(Provenance.IMPORTED.value)}"
    ).fetchall()
    return int(count)


@contextmanager
def compared(path: Path, other: Path) -> Iterator[None]:
    """Explain conflicts of two stores in a sentence that names both."""
    import duckdb

    try:
        yield
    except ConflictError as error:
        raise StoreError(
            f"Result {error.result_id} of {other} has {error.said} in {error.column}, where"
            f" {path} has {error.known}: one of the two is not true.",
            "Nothing of it was merged. Remove the wrong one, or merge another copy.",
        ) from error
    except duckdb.CatalogException as error:
        raise StoreError(
            f"{other} lacks a table of ours ({str(error).splitlines()[0]}).",
            "It was not written by accelbench; it was left as it is.",
        ) from error


def _attach(con: DuckDBPyConnection, other: Path) -> None:
    import duckdb

    with shared_guard(other, create=False):
        try:
            con.execute(f"ATTACH {quoted(str(other))} AS other (READ_ONLY)")
        except duckdb.Error as error:
            raise held_or_explained(error, other) from error


def _bring(
    con: DuckDBPyConnection, table: str, source: str, keys: str, against: str | None = None
) -> int:
    columns = ", ".join(f'i."{name}"' for name in columns_of(con, table))
    apart = "result_id, phase" if table == "fact_samples" else keys
    return insert_many(con, table, source, keys, against=against, columns=columns, apart=apart)

"""Bringing in results that were measured elsewhere: whole or not at all, each exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.facts import FACT_VERSION, Fact
from accelbench.store.duck import RETRY_SECONDS, connect, quoted
from accelbench.store.insert import Batch, Filled, flush, insert_many

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def bring_in(
    path: Path,
    run_id: str,
    facts: Iterable[Fact],
    bodies: Iterable[Mapping[str, Any]],
    queries: Iterable[str] = (),
    retry_seconds: float = RETRY_SECONDS,
) -> Filled:
    """Insert results and what is said of the run that brings them, in one transaction.

    Args:
        path: The database, which is there and up to date.
        run_id: What results belong to that name no run of their own.
        facts: Of other kinds; they come in only where a result does.
        bodies: Results; each has a result_id.
        queries: For results by our columns, where they are too many to be held.
    """
    filled, batch = Filled(), Batch()
    with connect(path, write=True, retry_seconds=retry_seconds) as con:
        con.execute("BEGIN")
        for body in bodies:
            batch.add_result(body["result_id"], {"run_id": run_id, **body}, FACT_VERSION)
            if batch.full:
                filled += flush(con, batch)
        filled += flush(con, batch)
        for query in queries:
            filled += Filled(results=_insert(con, run_id, query))
        if filled.results:
            for number, fact in enumerate(facts, 1):
                batch.add_other(fact.kind, fact.id, run_id, number, fact.version, fact.body)
            filled += flush(con, batch)
        con.execute("COMMIT")
    return filled


def _insert(con: DuckDBPyConnection, run_id: str, query: str) -> int:
    """What a query gives, less what is there; of several with one id, one."""
    names = {name for name, *_ in con.execute(f"DESCRIBE {query}").fetchall()}
    own = quoted(run_id)
    chosen = f"*, {own} AS run_id"
    if "run_id" in names:
        chosen = f"* REPLACE (coalesce(run_id, {own}) AS run_id)"
    source = f"(SELECT {chosen}, {FACT_VERSION} AS version FROM ({query}))"  # noqa: S608 — our query
    return insert_many(con, "fact_result", source, "result_id")

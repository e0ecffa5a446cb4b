"""Import of results that were measured elsewhere: whole or not at all, each exactly once.

A result_id names one measurement: another value under a known id is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.facts import FACT_VERSION, RUN_STARTED, Fact
from accelbench.store.duck import RETRY_SECONDS, connect, file_errors, quoted
from accelbench.store.fit import fit
from accelbench.store.implausible import mark_implausible
from accelbench.store.insert import Batch, flush, insert_many
from accelbench.store.journal import FilledRows
from accelbench.store.merge_validation import refuse_another, refuse_known, refuse_others

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def bring_in(
    path: Path,
    run_id: str,
    facts: Iterable[Fact],
    bodies: Iterable[Mapping[str, Any]],
    queries: Iterable[str] = (),
    retry_seconds: float = RETRY_SECONDS,
) -> FilledRows:
    """Insert results and facts about their runs, in one transaction.

    Results without a run belong to `run_id`. Facts come in only for runs that have results.
    `queries` give results by column, if they are too many for bodies. Raises ConflictError if a
    result has another value than the known one of its id, UsageError if its samples are not those
    of its values.
    """
    filled, batch = FilledRows(), Batch()
    with connect(path, write=True, retry_seconds=retry_seconds, apart=True) as con:
        con.execute("BEGIN")
        ids: set[str] = set()
        for body in bodies:
            filled += FilledRows(repeated=int(body["result_id"] in ids))
            ids.add(body["result_id"])
            _add(batch, body["result_id"], {"run_id": run_id, **body})
            if batch.full:
                filled += _flush(con, batch)
        filled += _flush(con, batch)
        for query in queries:
            filled += _insert(con, run_id, query)
        if filled.results:
            mark_implausible(con)
            filled += _insert_facts(con, run_id, facts)
        con.execute("COMMIT")
    return filled


def _add(batch: Batch, result_id: str, body: Mapping[str, Any]) -> None:
    known = batch.results.get(result_id)
    if known is not None:
        refuse_another(result_id, known[0].row, fit(body).row)
    batch.add_result(result_id, body, FACT_VERSION)


def _flush(con: DuckDBPyConnection, batch: Batch) -> FilledRows:
    if batch.refused:
        raise UsageError(batch.refused[0], "Nothing of it was imported.")
    refuse_known(con, batch.rows)
    return flush(con, batch)


def _insert_facts(con: DuckDBPyConnection, run_id: str, facts: Iterable[Fact]) -> FilledRows:
    """Insert facts about runs after those of the runs themselves."""
    # Of two beginnings the one in the earlier line counts, and a run's own is in its first line; of
    # two ends the one in the later line.
    batch = Batch()
    run_facts = [(str(fact.body.get("run_id") or run_id), fact) for fact in facts]
    run_ids = sorted({run for run, _ in run_facts})
    here = con.execute(
        "SELECT DISTINCT run_id FROM fact_result WHERE run_id IN (SELECT unnest(?))", [run_ids]
    ).fetchall()
    known = {run for (run,) in here}
    for run, fact in run_facts:
        if run in known:
            line = 2 if fact.kind == RUN_STARTED else 1
            batch.add_other(fact.kind, fact.id, run, line, fact.version, fact.body)
    return flush(con, batch)


def _insert(con: DuckDBPyConnection, run_id: str, query: str) -> FilledRows:
    """Insert what a query gives, without known results; of several with one id, one."""
    import duckdb

    names = {name for name, *_ in con.execute(f"DESCRIBE {query}").fetchall()}
    own = quoted(run_id)
    chosen = f"*, {own} AS run_id"
    if "run_id" in names:
        chosen = f"* REPLACE (coalesce(run_id, {own}) AS run_id)"
    source = f"(SELECT {chosen}, {FACT_VERSION} AS version FROM ({query}))"  # noqa: S608 — our query
    try:
        repeated = refuse_others(con, query, names)
        new = insert_many(con, "fact_result", source, "result_id")
        return FilledRows(results=new, repeated=repeated)
    except duckdb.Error as error:
        if isinstance(error, file_errors()):
            raise
        # Its columns were looked at; a page of another one may be damaged.
        message = str(error).splitlines()[0]
        why = f"What was to be imported cannot be read to its end: a file is damaged ({message})."
        raise UsageError(why, "Nothing of it was imported.") from error

"""Ingest of journals into a database: every fact exactly once, after any number of attempts.

One transaction contains the rows and the position in each journal, so a crash leaves both or
neither. The position only saves reading; the anti-join on ids prevents duplicates.

Results that were measured elsewhere are imported completely or not at all, each exactly once.
Another value under a known result_id is an error.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.facts import FACT_VERSION, RESULT, RESULT_REFUSED, RUN_STARTED, Fact
from accelbench.core.plausible_values import find_problem
from accelbench.core.unusable_reasons import UnusableReason
from accelbench.store.body_to_row import fit_result, spell_time
from accelbench.store.contradictions import find_implausible, mark_implausible
from accelbench.store.duck import (
    RETRY_SECONDS,
    connect,
    ensure,
    exists,
    file_error_types,
    quote_sql,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, explain_os_errors, read_from
from accelbench.store.insert import (
    Batch,
    check_own,
    flush,
    insert_many,
    refuse_contradictions,
)
from accelbench.store.journal import SUFFIX, FilledRows, Scan, list_journals, scan
from accelbench.store.merge_validation import (
    refuse_difference,
    refuse_known_differences,
    refuse_query_differences,
)
from accelbench.store.schema import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Bytes before the recorded end whose CRC identifies the journal that was read.
_TAIL = 256
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JournalState:
    """Position up to which a journal has been read."""

    bytes: int = 0
    tail_crc: int = 0
    lines: int = 0
    corrupt: tuple[int, ...] = ()


def ingest(
    db_path: Path,
    journal_dir: Path,
    *,
    files: Files = REAL_FILES,
    retry_seconds: float = RETRY_SECONDS,
    record_position: bool = True,
    is_foreign: bool = False,
) -> FilledRows:
    """Bring every fact of every journal in a folder into the database; idempotent.

    `record_position` is only valid for the database's own folder. `is_foreign` is for journals of
    another store. All their results are checked by every rule, also those of other programs. A
    known result with another value is a ConflictError, and earlier refusals are reported again.
    """
    journals = list_journals(journal_dir)
    if not journals:
        return FilledRows()
    states: dict[str, JournalState] = {}
    if exists(db_path):
        with connect(db_path, retry_seconds=retry_seconds) as con:
            states = read_states(con) if record_position else {}
    with explain_os_errors("Reading the journals", journal_dir, DB_OPTION):
        waiting = [p for p in journals if _may_have_more(p, states.get(p.name))]
        said_before = _corruption([p for p in journals if p not in waiting], states)
        if not waiting:
            return FilledRows(problems=said_before)
        ensure(db_path, files)
        with connect(db_path, write=True, retry_seconds=retry_seconds) as con:
            return _fill(con, waiting, record_position, files, is_foreign) + FilledRows(
                problems=said_before
            )


def pending_journals(db_path: Path, journal_dir: Path) -> list[Path]:
    """Return journals with facts that the database does not have yet."""
    journals = list_journals(journal_dir)
    if not journals or not exists(db_path):
        return journals
    with connect(db_path) as con:
        states = read_states(con)
    with explain_os_errors("Reading the journals", journal_dir, DB_OPTION):
        return [path for path in journals if _may_have_more(path, states.get(path.name))]


def read_states(con: DuckDBPyConnection) -> dict[str, JournalState]:
    """Return how far each journal has been read, by name."""
    rows = con.execute("SELECT name, bytes, tail_crc, lines, corrupt FROM journal_state").fetchall()
    return {
        name: JournalState(end, crc, lines, tuple(bad or ())) for name, end, crc, lines, bad in rows
    }


def _may_have_more(path: Path, state: JournalState | None) -> bool:
    """Return whether a complete line lies beyond the position; a torn tail does not count."""
    valid = _validate_state(path, state or JournalState())
    return path.stat().st_size > valid.bytes and b"\n" in read_from(path, valid.bytes)


def _corruption(journals: Iterable[Path], states: dict[str, JournalState]) -> tuple[str, ...]:
    return tuple(
        _corrupt_sentence(path, states[path.name].corrupt)
        for path in journals
        if path.name in states and states[path.name].corrupt
    )


def _corrupt_sentence(path: Path, lines: Iterable[int]) -> str:
    numbers = ", ".join(map(str, lines))
    return f"{path}: the checksum of line(s) {numbers} is wrong."


def _fill(
    con: DuckDBPyConnection,
    waiting: list[Path],
    record_position: bool,
    files: Files,
    is_foreign: bool,
) -> FilledRows:
    """Bring in everything new of these journals, in one transaction."""
    filled = FilledRows()
    con.execute("BEGIN")
    # Checked under the lock: another process may have filled the same in between.
    states = read_states(con) if record_position else {}
    batch = Batch(reported=_refused_ids(con) if is_foreign else ())
    for path in waiting:
        state = _validate_state(path, states.get(path.name, JournalState()))
        contents = scan(path, state.bytes, state.lines)
        _sync(path, files)
        if contents.is_newer:
            newer = f"{path} was written by a newer accelbench: upgrade accelbench to read it."
            filled += FilledRows(problems=(newer,))
            continue
        corrupt = (*state.corrupt, *contents.corrupt)
        if corrupt:
            filled += FilledRows(problems=(_corrupt_sentence(path, corrupt),))
        if contents.lines or path.name not in states:
            filled += FilledRows(journals=1)
        filled += _bring_in(con, batch, path, contents, is_foreign)
        if record_position:
            _record_state(con, path, replace(_state_after(path, contents), corrupt=corrupt))
    filled += _flush(con, batch, is_foreign)
    con.execute("COMMIT")
    return filled


def _refused_ids(con: DuckDBPyConnection) -> set[str]:
    rows = con.execute("SELECT id FROM fact WHERE kind = ?", [RESULT_REFUSED]).fetchall()
    return {result_id for (result_id,) in rows}


def _sync(path: Path, files: Files) -> None:
    """Make the read bytes durable before they are committed."""
    # A running writer may not have synced a line yet. If it were committed now and lost from the
    # journal by a power loss, it would block the repeated result of the same id.
    fd = files.open_append(path)
    try:
        files.sync(fd)
    finally:
        files.close(fd)


def _validate_state(path: Path, state: JournalState) -> JournalState:
    """Return the state, or a new one if the journal is not the one that was read."""
    return state if _tail_crc(path, state.bytes) == state.tail_crc else JournalState()


def _tail_crc(path: Path, end: int) -> int:
    start = max(0, end - _TAIL)
    return zlib.crc32(read_from(path, start, end - start))


def _state_after(path: Path, contents: Scan) -> JournalState:
    return JournalState(contents.end, _tail_crc(path, contents.end), contents.last_number)


def _record_state(con: DuckDBPyConnection, path: Path, state: JournalState) -> None:
    con.execute("DELETE FROM journal_state WHERE name = ?", [path.name])
    con.execute(
        "INSERT INTO journal_state VALUES (?, ?, ?, ?, ?)",
        [path.name, state.bytes, state.tail_crc, state.lines, list(state.corrupt)],
    )


def _flush(con: DuckDBPyConnection, batch: Batch, is_foreign: bool) -> FilledRows:
    refuse_contradictions(con, batch, is_foreign=is_foreign)
    if is_foreign:
        refuse_known_differences(con, batch.rows)
    return flush(con, batch)


def _bring_in(
    con: DuckDBPyConnection, batch: Batch, path: Path, contents: Scan, is_foreign: bool
) -> FilledRows:
    """Collect a journal's facts and flush whenever the batch is full."""
    filled = FilledRows()
    run_id = path.name.removesuffix(SUFFIX)
    for line in contents.lines:
        fact = line.fact
        if fact.kind == RESULT:
            body = {"run_id": run_id, **fact.body, "result_id": fact.id}
            batch.add_result(fact.id, body, fact.version, find_problem if is_foreign else check_own)
        else:
            batch.add_other(fact.kind, fact.id, run_id, line.number, fact.version, fact.body)
        if batch.is_full:
            filled += _flush(con, batch, is_foreign)
    return filled


def bring_in(
    path: Path,
    run_id: str,
    facts: Iterable[Fact],
    bodies: Iterable[Mapping[str, Any]],
    queries: Iterable[str] = (),
    retry_seconds: float = RETRY_SECONDS,
) -> FilledRows:
    """Insert results and facts about their runs, in one transaction.

    Results without a run belong to `run_id`. Only facts of runs with results are inserted.
    `queries` give results by column, if they are too many for bodies. Raises ConflictError if a
    result has another value than the known one of its id, UsageError if its samples do not match
    its values.
    """
    filled, batch = FilledRows(), Batch()
    with connect(path, write=True, retry_seconds=retry_seconds, separate=True) as con:
        con.execute("BEGIN")
        ids: set[str] = set()
        for body in bodies:
            filled += FilledRows(repeated=int(body["result_id"] in ids))
            ids.add(body["result_id"])
            _add_import(batch, body["result_id"], {"run_id": run_id, **body})
            if batch.is_full:
                filled += _flush_import(con, batch)
        filled += _flush_import(con, batch)
        for query in queries:
            filled += _insert(con, run_id, query)
        if filled.results:
            mark_implausible(con)
            filled += _insert_facts(con, run_id, facts)
        con.execute("COMMIT")
    return filled


def _add_import(batch: Batch, result_id: str, body: Mapping[str, Any]) -> None:
    known = batch.results.get(result_id)
    if known is not None:
        refuse_difference(result_id, known[0].row, fit_result(body).row)
    batch.add_result(result_id, body, FACT_VERSION)


def _flush_import(con: DuckDBPyConnection, batch: Batch) -> FilledRows:
    if batch.refused:
        raise UsageError(batch.refused[0], "Nothing was imported.")
    refuse_known_differences(con, batch.rows)
    return flush(con, batch)


def _insert_facts(con: DuckDBPyConnection, run_id: str, facts: Iterable[Fact]) -> FilledRows:
    """Insert facts about runs, after those of the runs themselves."""
    # Of two starts the one in the earlier line counts, and a run's own is in its first line. Of two
    # ends the one in the later line counts.
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
    """Insert the results of a query, without known ones, and one for each id."""
    import duckdb

    names = {name for name, *_ in con.execute(f"DESCRIBE {query}").fetchall()}
    own = quote_sql(run_id)
    chosen = f"*, {own} AS run_id"
    if "run_id" in names:
        chosen = f"* REPLACE (coalesce(run_id, {own}) AS run_id)"
    source = f"(SELECT {chosen}, {FACT_VERSION} AS version FROM ({query}))"  # noqa: S608 — our query
    try:
        repeated = refuse_query_differences(con, query, names)
        new = insert_many(con, "fact_result", source, "result_id")
        return FilledRows(results=new, repeated=repeated)
    except duckdb.Error as error:
        if isinstance(error, file_error_types()):
            raise
        # Its columns were checked, but another page may be damaged.
        message = str(error).splitlines()[0]
        why = f"An imported file is damaged ({message})."
        raise UsageError(why, "Nothing was imported.") from error


def summarise_contents(con: DuckDBPyConnection) -> dict[str, object]:
    """Return the contents of a database as `db status` reports them in JSON."""

    def scalar(sql: str) -> object:
        return con.execute(sql).fetchall()[0][0]

    def counts(column: str, table: str, where: str = "true") -> dict[str, int]:
        query = f"SELECT {column}, count(*) FROM {table} WHERE {where} GROUP BY 1 ORDER BY 1"  # noqa: S608
        return dict(con.execute(query).fetchall())

    def names(column: str) -> list[str]:
        known = f"benchmark_results WHERE {column} IS NOT NULL"
        query = f"SELECT DISTINCT {column} FROM {known} ORDER BY 1"  # noqa: S608 — our words
        return [name for (name,) in con.execute(query).fetchall()]

    first, last = con.execute(
        "SELECT min(started_at), max(coalesce(finished_at, started_at)) FROM benchmark_results"
    ).fetchall()[0]
    failed = quote_sql(UnusableReason.FAILED.value)  # the status has the outcome
    return {
        "tables": {name: scalar(f"SELECT count(*) FROM {name}") for name in TABLES},  # noqa: S608
        "results_by_status": counts("coalesce(status, 'unknown')", "benchmark_results"),
        "results_by_provenance": counts("coalesce(provenance, 'unknown')", "benchmark_results"),
        "unusable_by_reason": counts("unusable_reason", "launches", f"unusable_reason <> {failed}"),
        "runs_by_status": counts("status", "benchmark_runs"),
        "models": names("model"),
        "hardware": names("hardware"),
        "first_result_at": spell_time(first) if first else None,
        "last_result_at": spell_time(last) if last else None,
        "refused": _refused_results(con),
        "implausible": find_implausible(con),
    }


def _refused_results(con: DuckDBPyConnection) -> list[dict[str, object]]:
    """Return results that were refused and not stored later, with the reasons."""
    cursor = con.execute(
        "SELECT run_id, id, body->>'model', body->>'why' FROM fact WHERE kind = ?"
        " AND id NOT IN (SELECT result_id FROM benchmark_results) ORDER BY ALL",
        [RESULT_REFUSED],
    )
    names = ("run_id", "result_id", "model", "why")
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

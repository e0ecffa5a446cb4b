"""Filling a database from journals: every fact exactly once, however often it is tried.

One transaction holds the rows and how far each journal was read, so a crash leaves both or neither.
The note only saves reading; the anti-join on ids keeps doubles out.

Results that were measured elsewhere are imported whole or not at all, each exactly once: another
value under a known result_id is an error.
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
from accelbench.store.body_to_row import fit, spell_time
from accelbench.store.contradictions import implausible_results, mark_implausible
from accelbench.store.duck import (
    RETRY_SECONDS,
    connect,
    ensure,
    exists,
    file_errors,
    quoted,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, explained, read_from
from accelbench.store.insert import (
    Batch,
    check_own,
    flush,
    insert_many,
    refuse_contradictions,
)
from accelbench.store.journal import SUFFIX, FilledRows, Scan, journals_in, scan
from accelbench.store.merge_validation import refuse_another, refuse_known, refuse_others
from accelbench.store.schema import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Bytes before the noted end whose CRC tells whether the journal is still the one that was read.
_TAIL = 256
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class State:
    """How far a journal has been read."""

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
    note: bool = True,
    held: bool = False,
) -> FilledRows:
    """Bring every fact of every journal in a folder into the database; idempotent.

    `note` records how far was read: only right for the database's own folder. `held` is for
    journals of another store: results of other programs are checked by every rule, as those of this
    one always are; a known result with another value is a ConflictError, and an earlier refusal is
    not reported again.
    """
    journals = journals_in(journal_dir)
    if not journals:
        return FilledRows()
    states: dict[str, State] = {}
    if exists(db_path):
        with connect(db_path, retry_seconds=retry_seconds) as con:
            states = read_states(con) if note else {}
    with explained("Reading the journals", journal_dir, DB_OPTION):
        waiting = [p for p in journals if _may_have_more(p, states.get(p.name))]
        said_before = _corruption([p for p in journals if p not in waiting], states)
        if not waiting:
            return FilledRows(problems=said_before)
        ensure(db_path, files)
        with connect(db_path, write=True, retry_seconds=retry_seconds) as con:
            return _fill(con, waiting, note, files, held) + FilledRows(problems=said_before)


def unfilled(db_path: Path, journal_dir: Path) -> list[Path]:
    """Return journals with something that the database does not have yet."""
    journals = journals_in(journal_dir)
    if not journals or not exists(db_path):
        return journals
    with connect(db_path) as con:
        states = read_states(con)
    with explained("Reading the journals", journal_dir, DB_OPTION):
        return [path for path in journals if _may_have_more(path, states.get(path.name))]


def read_states(con: DuckDBPyConnection) -> dict[str, State]:
    """Return how far each journal has been read, by name."""
    rows = con.execute("SELECT name, bytes, tail_crc, lines, corrupt FROM journal_state").fetchall()
    return {name: State(end, crc, lines, tuple(bad or ())) for name, end, crc, lines, bad in rows}


def _may_have_more(path: Path, state: State | None) -> bool:
    """Return whether a whole line lies beyond what was read; a torn tail does not count."""
    valid = _still_valid(path, state or State())
    return path.stat().st_size > valid.bytes and b"\n" in read_from(path, valid.bytes)


def _corruption(journals: Iterable[Path], states: dict[str, State]) -> tuple[str, ...]:
    return tuple(
        _corrupt_sentence(path, states[path.name].corrupt)
        for path in journals
        if path.name in states and states[path.name].corrupt
    )


def _corrupt_sentence(path: Path, lines: Iterable[int]) -> str:
    numbers = ", ".join(map(str, lines))
    return f"{path}: what was written does not check out any more in line(s) {numbers}."


def _fill(
    con: DuckDBPyConnection, waiting: list[Path], note: bool, files: Files, held: bool
) -> FilledRows:
    """Bring in everything new of these journals, in one transaction."""
    filled = FilledRows()
    con.execute("BEGIN")
    # Under the lock now: another process may have filled the same in between.
    states = read_states(con) if note else {}
    batch = Batch(said=_refused(con) if held else ())
    for path in waiting:
        state = _still_valid(path, states.get(path.name, State()))
        contents = scan(path, state.bytes, state.lines)
        _sync(path, files)
        if contents.newer:
            newer = f"{path} was written by a newer accelbench: upgrade accelbench to fill it in."
            filled += FilledRows(problems=(newer,))
            continue
        corrupt = (*state.corrupt, *contents.corrupt)
        if corrupt:
            filled += FilledRows(problems=(_corrupt_sentence(path, corrupt),))
        if contents.lines or path.name not in states:
            filled += FilledRows(journals=1)
        filled += _bring_in(con, batch, path, contents, held)
        if note:
            _note(con, path, replace(_after(path, contents), corrupt=corrupt))
    filled += _flush(con, batch, held)
    con.execute("COMMIT")
    return filled


def _refused(con: DuckDBPyConnection) -> set[str]:
    rows = con.execute("SELECT id FROM fact WHERE kind = ?", [RESULT_REFUSED]).fetchall()
    return {result_id for (result_id,) in rows}


def _sync(path: Path, files: Files) -> None:
    """Make what was read durable before it is committed."""
    # A live writer may have written a line and not synced it yet. Committed now and lost from the
    # journal by a power cut, it would shut out the result that is measured again under the same id.
    fd = files.open_append(path)
    try:
        files.sync(fd)
    finally:
        files.close(fd)


def _still_valid(path: Path, state: State) -> State:
    """Return the state, or a fresh one if the journal is not the one that was read."""
    return state if _tail_crc(path, state.bytes) == state.tail_crc else State()


def _tail_crc(path: Path, end: int) -> int:
    start = max(0, end - _TAIL)
    return zlib.crc32(read_from(path, start, end - start))


def _after(path: Path, contents: Scan) -> State:
    return State(contents.end, _tail_crc(path, contents.end), contents.last_number)


def _note(con: DuckDBPyConnection, path: Path, state: State) -> None:
    con.execute("DELETE FROM journal_state WHERE name = ?", [path.name])
    con.execute(
        "INSERT INTO journal_state VALUES (?, ?, ?, ?, ?)",
        [path.name, state.bytes, state.tail_crc, state.lines, list(state.corrupt)],
    )


def _flush(con: DuckDBPyConnection, batch: Batch, held: bool) -> FilledRows:
    refuse_contradictions(con, batch, held=held)
    if held:
        refuse_known(con, batch.rows)
    return flush(con, batch)


def _bring_in(
    con: DuckDBPyConnection, batch: Batch, path: Path, contents: Scan, held: bool
) -> FilledRows:
    """Gather a journal's facts and flush whenever the batch is full."""
    filled = FilledRows()
    run_id = path.name.removesuffix(SUFFIX)
    for line in contents.lines:
        fact = line.fact
        if fact.kind == RESULT:
            body = {"run_id": run_id, **fact.body, "result_id": fact.id}
            batch.add_result(fact.id, body, fact.version, find_problem if held else check_own)
        else:
            batch.add_other(fact.kind, fact.id, run_id, line.number, fact.version, fact.body)
        if batch.full:
            filled += _flush(con, batch, held)
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
            _add_import(batch, body["result_id"], {"run_id": run_id, **body})
            if batch.full:
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
        refuse_another(result_id, known[0].row, fit(body).row)
    batch.add_result(result_id, body, FACT_VERSION)


def _flush_import(con: DuckDBPyConnection, batch: Batch) -> FilledRows:
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


def contents(con: DuckDBPyConnection) -> dict[str, object]:
    """Return what a database holds, as `db status` reports it in JSON."""

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
    failed = quoted(UnusableReason.FAILED.value)  # the status names what happened
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
        "implausible": implausible_results(con),
    }


def _refused_results(con: DuckDBPyConnection) -> list[dict[str, object]]:
    """Return results that were not stored, with the reasons, without those that came in later."""
    cursor = con.execute(
        "SELECT run_id, id, body->>'model', body->>'why' FROM fact WHERE kind = ?"
        " AND id NOT IN (SELECT result_id FROM benchmark_results) ORDER BY ALL",
        [RESULT_REFUSED],
    )
    names = ("run_id", "result_id", "model", "why")
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

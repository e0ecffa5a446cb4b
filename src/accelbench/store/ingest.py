"""Filling a database from journals: every fact exactly once, however often it is tried.

One transaction holds the rows and how far each journal was read, so a crash leaves both or neither.
The note only saves reading; the anti-join on ids keeps doubles out.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.facts import RESULT, RESULT_REFUSED
from accelbench.core.possible import wrong_with
from accelbench.store.duck import RETRY_SECONDS, connect, ensure, exists
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, explained, read_from
from accelbench.store.insert import Batch, FilledRows, check_own, flush, refuse_contradictions
from accelbench.store.journal import SUFFIX, Scan, scan
from accelbench.store.merge_validation import refuse_known

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


def journal_dir_for(db_path: Path) -> Path:
    """Return the folder of the journals that belong to a database."""
    return db_path.with_name(db_path.name + ".journal")


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


def journals_in(folder: Path) -> list[Path]:
    """Return the journals of a folder, oldest run first."""
    with explained("Looking for journals", folder, DB_OPTION):
        return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


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
            batch.add_result(fact.id, body, fact.version, wrong_with if held else check_own)
        else:
            batch.add_other(fact.kind, fact.id, run_id, line.number, fact.version, fact.body)
        if batch.full:
            filled += _flush(con, batch, held)
    return filled

"""Database with its journals: the interface of the store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, cast

from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.errors import StoreError, UsageError
from accelbench.core.facts import Fact
from accelbench.core.rows import Json
from accelbench.store.duck import (
    RETRY_SECONDS,
    connect,
    create,
    create_temporary,
    ensure,
    exclusive_guard,
    exists,
    file_error_types,
    flush_to_file,
    identity,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, explain_os_errors, link_or_copy
from accelbench.store.journal import FilledRows, is_being_written, journal_dir_for, list_journals
from accelbench.store.schema import SCHEMA_VERSION, VIEWS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accelbench.store.body_to_row import SampledRow, Samples

ENVIRONMENT = "ACCELBENCH_DB"
DEFAULT_NAME = "accelbench.duckdb"
#: Results that are converted at once.
_ROWS = 5000
#: Memory limit of DuckDB while it writes a columnar file: without it, ten million results took 4
#: GiB.
_MEMORY = "1600MiB"


def default_path(option: Path | None = None) -> Path:
    """Return the path of the option, ACCELBENCH_DB, or ./accelbench.duckdb."""
    # Absolute and without links: one file has one guard and one folder of journals.
    return Path(option or os.environ.get(ENVIRONMENT) or DEFAULT_NAME).expanduser().resolve()


@dataclass(frozen=True)
class Database:
    """Database file and its journals."""

    path: Path
    files: Files = field(default=REAL_FILES, repr=False, compare=False)
    retry_seconds: float = RETRY_SECONDS
    #: The path as it was typed, for documents that others read.
    typed_path: str = field(default="", repr=False, compare=False)
    #: The open connection of `keep_open` for each thread; a connection answers one query at a time.
    _open: dict[int, DuckDBPyConnection] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def is_created(self) -> bool:
        return exists(self.path)

    @property
    def exists(self) -> bool:
        """Whether any part of it exists; results may be only in journals."""
        return self.is_created or self.journals.is_dir()

    @property
    def journals(self) -> Path:
        return journal_dir_for(self.path)

    def ensure(self) -> None:
        """Create the database if it is absent; refuse one of another program."""
        ensure(self.path, self.files)

    def init(self, *, overwrite: bool = False) -> Path | None:
        """Create the database, or keep an existing one; return the backup if it was overwritten."""
        if not exists(self.path):
            create(self.path, self.files)
            return None
        if overwrite:
            return self._overwrite()
        self.ensure()
        return None

    def fill(self) -> FilledRows:
        if not list_journals(self.journals):
            return FilledRows()
        from accelbench.store.ingest import ingest

        return ingest(self.path, self.journals, files=self.files, retry_seconds=self.retry_seconds)

    def query(
        self,
        sql: str,
        params: Sequence[object] | Mapping[str, object] = (),
        *,
        sealed: bool = False,
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        """Return column names and rows of a query. SQL from users is sealed."""
        if not sealed and (con := self._open.get(get_ident())) is not None:
            return _execute(con, sql, params)
        with connect(self.path, retry_seconds=self.retry_seconds, sealed=sealed) as con:
            return _execute(con, sql, params)

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep one connection open for all queries within (16 ms each); it blocks writers."""
        if (thread := get_ident()) in self._open:
            yield
            return
        with connect(self.path, retry_seconds=self.retry_seconds) as con:
            self._open[thread] = con
            try:
                yield
            finally:
                del self._open[thread]

    def results(
        self, where: str = "", params: Sequence[object] = (), *, samples: bool = False
    ) -> list[SampledRow]:
        """Return rows of benchmark_results as plain JSON values, every column in order.

        `where` is an SQL condition with ? for each parameter. With samples each row also has
        "samples", {phase: [ns, …]}, and "sampling".
        """
        with connect(self.path, retry_seconds=self.retry_seconds) as con:
            rows = list(chain.from_iterable(_read_batches(con, where, params)))
            if samples:
                _add_samples(con, rows)
        return rows

    def iterate_results(
        self, where: str = "", params: Sequence[object] = (), *, samples: bool = False
    ) -> Iterator[SampledRow]:
        """Yield the rows of `results`, with a few thousand of them in memory at once."""
        with connect(self.path, retry_seconds=self.retry_seconds, separate=True) as con:
            for rows in _read_batches(con, where, params):
                if samples:
                    _add_samples(con.cursor(), rows)
                yield from rows

    def copy_results(
        self,
        path: Path,
        copy: Callable[[DuckDBPyConnection, str, Path], int],
        where: str = "",
        params: Sequence[object] = (),
        *,
        samples: bool = False,
        runs: tuple[str, Mapping[str, str]] | None = None,
    ) -> int:
        """Write results into a new file and return how many there were.

        `copy` is a function of `store.insert`. `runs` is a further column with its values by run.
        """
        from accelbench.store.insert import results_query

        with connect(self.path, retry_seconds=self.retry_seconds, separate=True) as con:
            con.execute(f"SET memory_limit = '{_MEMORY}'")
            return copy(con, results_query(con, where, params, samples=samples, runs=runs), path)

    def status(self) -> dict[str, object]:
        from accelbench.store.ingest import pending_journals, read_states, summarise_contents

        with connect(self.path, retry_seconds=self.retry_seconds) as con:
            report = {
                "database": str(self.path),
                "schema_version": SCHEMA_VERSION,
                "size_bytes": self.path.stat().st_size,
                **summarise_contents(con),
            }
            states = read_states(con)
        waiting = pending_journals(self.path, self.journals)
        corrupt = {name: list(state.corrupt) for name, state in states.items() if state.corrupt}
        report["journals"] = {
            "folder": str(self.journals),
            "known": len(states),
            "orphans": [path.name for path in waiting],
            "corrupt_lines": corrupt,
        }
        return report

    def merge(self, other: Path) -> FilledRows:
        """Bring in everything that another database and its journals contain; idempotent."""
        from accelbench.store.ingest import ingest
        from accelbench.store.merge_validation import explain_conflicts, merge

        if exists(self.path) and exists(other) and identity(self.path) == identity(other):
            raise UsageError(f"{other} is the database itself.", "Name another one to merge.")
        other = other.resolve()
        with connect(other, retry_seconds=self.retry_seconds):
            pass  # all errors of the other one are raised before ours is created or changed
        self.ensure()
        merged = merge(self.path, other, self.retry_seconds)
        journals = journal_dir_for(other)
        with explain_conflicts(self.path, journals):
            return merged + ingest(
                self.path, journals, files=self.files, record_position=False, is_foreign=True
            )

    def bring_in(
        self,
        run_id: str,
        facts: Iterable[Fact],
        bodies: Iterable[Json] = (),
        queries: Iterable[str] = (),
    ) -> FilledRows:
        """Bring in results that were measured elsewhere; a repetition changes nothing."""
        from accelbench.store.ingest import bring_in

        self.ensure()
        return bring_in(self.path, run_id, facts, bodies, queries, self.retry_seconds)

    def _overwrite(self) -> Path:
        """Create a new database; keep the old one and its journals under a dated name."""
        # This order keeps every fact reachable at any moment: everything is filled in, the old file
        # gets its second name, its journals move to that name, the new file takes the first.
        self.ensure()
        self._refuse_while_written()
        self.fill()
        with (
            explain_os_errors("Overwriting the database", self.path, DB_OPTION),
            exclusive_guard(self.path),
        ):
            flush_to_file(self.path)
            made = create_temporary(self.path, self.files)
            backup = _free_backup(self.path)
            link_or_copy(self.files, self.path, backup)
            if self.journals.is_dir():
                self.files.rename(self.journals, journal_dir_for(backup))
                self.files.sync_folder(self.path.parent)
            self.files.rename(made, self.path)
            self.files.sync_folder(self.path.parent)
        return backup

    def _refuse_while_written(self) -> None:
        with explain_os_errors("Looking for running measurements", self.journals, DB_OPTION):
            live = [p.stem for p in list_journals(self.journals) if is_being_written(p)]
        if live:
            raise StoreError(
                f"Run {live[0]} is being measured into {self.path}.",
                "Wait until it has ended, then overwrite.",
            )


def _execute(
    con: DuckDBPyConnection, sql: str, params: Sequence[object] | Mapping[str, object]
) -> tuple[list[str], list[tuple[object, ...]]]:
    import duckdb

    try:
        values = params if isinstance(params, Mapping) else list(params)
        done = con.execute(sql, values or None)
        if done is None or not done.description:  # an empty query
            return [], []
        return [str(about[0]) for about in done.description], done.fetchall()
    except file_error_types():
        raise
    except duckdb.Error as error:
        raise _explain_sql(error) from error


def _free_backup(path: Path) -> Path:
    stamp = datetime.fromtimestamp(time.time(), UTC).strftime("%Y%m%d_%H%M%S")
    number = 1
    while True:
        mark = stamp if number == 1 else f"{stamp}-{number}"
        backup = path.with_name(f"{path.stem}.backup-{mark}{path.suffix}")
        if not backup.exists() and not journal_dir_for(backup).exists():
            return backup
        number += 1


def _explain_sql(error: Exception) -> UsageError:
    text = str(error)
    if "pytz" in text:
        return UsageError(
            "A column is a time with a time zone, which cannot be shown.", "Cast it: ::TIMESTAMP."
        )
    if "read-only" in text:
        return UsageError("This would change the database; SQL here only reads.")
    if "disabled by configuration" in text or "disabled through configuration" in text:
        return UsageError("SQL here reads this database and no other file.")
    advice = f"There are the tables {', '.join(VIEWS)}."
    return UsageError(f"{text.splitlines()[0]}.".replace("..", "."), advice)


def _read_batches(
    con: DuckDBPyConnection, where: str = "", params: Sequence[object] = ()
) -> Iterator[list[SampledRow]]:
    from accelbench.store.body_to_row import spell_time

    names = [column.name for column in COLUMNS]
    chosen = ", ".join(f'"{name}"' for name in names)
    condition = f" WHERE {where}" if where else ""
    cursor = con.execute(
        f"SELECT {chosen} FROM benchmark_results{condition}"  # noqa: S608 — our names, a caller's condition
        " ORDER BY started_at, result_id",
        list(params) or None,
    )
    while rows := cursor.fetchmany(_ROWS):
        records = (
            {
                name: _to_json_value(name, value, spell_time)
                for name, value in zip(names, values, strict=True)
            }
            for values in rows
        )
        yield [cast("SampledRow", row) for row in records]  # with the registry's types


def _to_json_value(name: str, value: object, spell_time: Callable[[datetime], str]) -> object:
    kind = BY_NAME[name].kind
    if kind == "json" and isinstance(value, str):
        return json.loads(value)
    if kind == "time" and isinstance(value, datetime):
        return spell_time(value)
    return value


def _add_samples(con: DuckDBPyConnection, rows: list[SampledRow]) -> None:
    import pyarrow as pa

    from accelbench.store.body_to_row import Samples

    wanted = pa.table({"result_id": pa.array([row["result_id"] for row in rows], pa.string())})
    con.register("wanted", wanted)
    samples = con.execute(
        "SELECT result_id, phase, samples, timing, steps FROM raw_benchmark_data SEMI JOIN wanted"
        " USING (result_id) ORDER BY result_id, phase"
    ).fetchall()
    by_id: dict[str | None, list[Samples]] = {}
    for result_id, *about in samples:
        by_id.setdefault(result_id, []).append(Samples(*about))
    for row in rows:
        kept = by_id.get(row["result_id"], ())
        row["samples"] = {sample.phase: sample.ns for sample in kept}
        row["sampling"] = {sample.phase: sample.sampling for sample in kept if sample.sampling}

"""Making a database and bringing an older one up to date, without a moment of danger.

Both happen under another name beside the database, are synced, and take its
name in one step. Until then the old file is untouched; after that it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import StoreError
from accelbench.core.facts import utc_now
from accelbench.store import schema
from accelbench.store.duck import (
    RETRY_SECONDS,
    connect,
    explain_duck,
    file_errors,
    guard_path,
    open_once,
    refuse_foreign,
    retrying,
    whole_guard,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, copy_whole, explained, place
from accelbench.store.implausible import IMPLAUSIBLE, mark_implausible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def ensure(path: Path, files: Files = REAL_FILES) -> None:
    """See that a database of ours is at `path` and up to date; only for those who will write."""
    if not exists(path):
        create(path, files)
        return
    with connect(path) as con:
        behind = is_behind(con, path)
    if behind:
        migrate(path, files)


def exists(path: Path) -> bool:
    """Whether anything is there; an empty file counts as nothing, so a made-up name can be used."""
    return path.is_dir() or (path.exists() and path.stat().st_size > 0)


def is_behind(con: DuckDBPyConnection, path: Path) -> bool:
    """Whether a writer has to migrate first."""
    if refuse_foreign(con, path) < schema.latest_version():
        return True
    return not {c.name for c in COLUMNS} <= set(schema.columns_of(con, "fact_result"))


def create(path: Path, files: Files = REAL_FILES) -> None:
    """Make an empty database; where another process was faster, that one is kept."""
    making = explained("Making the database", path, DB_OPTION)
    with making, _folders_for(path, files), whole_guard(path):
        if exists(path):
            return
        try:
            files.remove(path)  # an empty file, if anything
            made = make_beside(path, files)
            if not place(files, made, path):
                files.remove(made)
        except Exception:
            # Whoever waits for it sees that it has no name any more, and makes another.
            with suppress(OSError):
                files.remove(guard_path(path))
            raise


@contextmanager
def _folders_for(path: Path, files: Files) -> Iterator[None]:
    """The folder of a new file; where nothing comes of the file, folders that were made go."""
    absent = [folder for folder in path.parents if not folder.exists()]
    files.make_folder(path.parent)
    try:
        yield
    except Exception:
        with suppress(OSError):  # something else is in there by now
            for folder in absent:
                folder.rmdir()
        raise


def make_beside(path: Path, files: Files) -> Path:
    """A finished, synced, empty database under a temporary name. The guard must be held."""
    with _under_another_name(path, files) as made:
        with _written(made, path) as con:
            con.execute("BEGIN")  # each statement by itself would be synced by itself
            schema.build(con, utc_now())
            _apply(con)
            con.execute("COMMIT")
        _sync(made, files)
    return made


def migrate(path: Path, files: Files = REAL_FILES) -> None:
    """Bring an older database up to date on a copy, which then takes its name."""
    with explained("Migrating the database", path, DB_OPTION), whole_guard(path):
        settle(path)
        with _under_another_name(path, files) as copy:
            copy_whole(files, path, copy)
            with _written(copy, path) as con:
                if is_behind(con, path):
                    con.execute("BEGIN")
                    _apply(con)
                    con.execute("COMMIT")
            _sync(copy, files)
            files.rename(copy, path)
        files.sync_folder(path.parent)


def settle(path: Path) -> None:
    """Bring everything into the one file, so that it can be copied or linked. Guard held."""
    import duckdb

    con, close = retrying(lambda: _open_alone(path), path, RETRY_SECONDS)
    try:
        con.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise explain_duck(error, path) from error
    finally:
        close()
    if (wal := wal_path(path)).exists():
        raise StoreError(
            f"{path} could not be settled: {wal.name} remains.",
            "Another program may have it open; try again when it has ended.",
        )


def wal_path(path: Path) -> Path:
    """Where DuckDB keeps what it has not yet worked into the file."""
    return path.with_name(path.name + ".wal")


def _apply(con: DuckDBPyConnection) -> None:
    """Every step that is missing, the registry's new columns, and the views, in a transaction."""
    row = con.execute("SELECT schema_version FROM store_meta").fetchall()[0]
    for step in schema.MIGRATIONS[row[0] - 1 :]:
        for statement in step.statements:
            con.execute(statement)
    columns = set(schema.columns_of(con, "fact_result"))
    for statement in [*schema.add_columns(columns), *schema.make_views()]:
        con.execute(statement)
    if IMPLAUSIBLE not in columns:
        mark_implausible(con)
    con.execute("UPDATE store_meta SET schema_version = ?", [schema.latest_version()])


def _open_alone(
    path: Path, known_as: Path | None = None
) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """Open for writing without taking the guard, which the caller holds."""
    return open_once(path, "alone", known_as)


@contextmanager
def _written(made: Path, path: Path) -> Iterator[DuckDBPyConnection]:
    """A connection to what is being made for `path`; all of it is in the one file at the end."""
    import duckdb

    con, close = _open_alone(made, path)
    try:
        yield con
        # Closing does this too, and keeps to itself why it could not.
        con.execute("CHECKPOINT")
    except file_errors() as error:
        raise explain_duck(error, path) from error
    finally:
        with suppress(duckdb.Error):
            close()


@contextmanager
def _under_another_name(path: Path, files: Files) -> Iterator[Path]:
    """A temporary name beside the database; what a crash or a failure leaves under it goes."""
    name = path.with_name(f"{path.name}.making")
    _remove(name, files)
    try:
        yield name
    except Exception:
        with suppress(OSError):
            _remove(name, files)
        raise


def _remove(name: Path, files: Files) -> None:
    files.remove(name)
    files.remove(wal_path(name))


def _sync(path: Path, files: Files) -> None:
    if wal_path(path).exists():
        raise StoreError(f"{path} was not closed cleanly.", "Try again.")
    fd = files.open_append(path)
    try:
        files.sync(fd)
    finally:
        files.close(fd)
    files.sync_folder(path.parent)


def identity(path: Path) -> tuple[int, int]:
    """Tells whether two paths are one file."""
    stat = os.stat(path)  # noqa: PTH116 — follows links, as wanted
    return stat.st_dev, stat.st_ino

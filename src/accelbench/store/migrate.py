"""Making a database and bringing an older one up to date, without a moment of danger.

Both happen under another name beside the database, are synced, and take its
name in one step. Until then the old file is untouched; after that it is whole.
"""

from __future__ import annotations

import os
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
    open_once,
    refuse_foreign,
    retrying,
    whole_guard,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, copy_whole, explained, place

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
    with explained("Making the database", path, DB_OPTION):
        files.make_folder(path.parent)
        with whole_guard(path):
            if exists(path):
                return
            files.remove(path)  # an empty file, if anything
            made = make_beside(path, files)
            if not place(files, made, path):
                files.remove(made)


def make_beside(path: Path, files: Files) -> Path:
    """A finished, synced, empty database under a temporary name. The guard must be held."""
    made = _fresh_name(path, files)
    con = _open_alone(made)
    try:
        schema.build(con, utc_now())
        if is_behind(con, made):
            _apply(con)
    finally:
        con.close()
    _sync(made, files)
    return made


def migrate(path: Path, files: Files = REAL_FILES) -> None:
    """Bring an older database up to date on a copy, which then takes its name."""
    with explained("Migrating the database", path, DB_OPTION), whole_guard(path):
        settle(path)
        copy = _fresh_name(path, files)
        copy_whole(files, path, copy)
        con = _open_alone(copy)
        try:
            if is_behind(con, path):
                _apply(con)
        finally:
            con.close()
        _sync(copy, files)
        files.rename(copy, path)
        files.sync_folder(path.parent)


def settle(path: Path) -> None:
    """Bring everything into the one file, so that it can be copied or linked. Guard held."""
    import duckdb

    con = retrying(lambda: _open_alone(path), path, RETRY_SECONDS)
    try:
        con.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise explain_duck(error, path) from error
    finally:
        con.close()
    if (wal := wal_path(path)).exists():
        raise StoreError(
            f"{path} could not be settled: {wal.name} remains.",
            "Another program may have it open; try again when it has ended.",
        )


def wal_path(path: Path) -> Path:
    """Where DuckDB keeps what it has not yet worked into the file."""
    return path.with_name(path.name + ".wal")


def _apply(con: DuckDBPyConnection) -> None:
    """Every step that is missing, the registry's new columns, and the views, in one transaction."""
    con.execute("BEGIN")
    row = con.execute("SELECT schema_version FROM store_meta").fetchall()[0]
    for step in schema.MIGRATIONS[row[0] - 1 :]:
        for statement in step.statements:
            con.execute(statement)
    there = set(schema.columns_of(con, "fact_result"))
    for statement in [*schema.add_columns(there), *schema.make_views()]:
        con.execute(statement)
    con.execute("UPDATE store_meta SET schema_version = ?", [schema.latest_version()])
    con.execute("COMMIT")


def _open_alone(path: Path) -> DuckDBPyConnection:
    """Open for writing without taking the guard, which the caller holds."""
    return open_once(path, "alone")


def _fresh_name(path: Path, files: Files) -> Path:
    """A temporary name beside the database; what a crash left under it goes."""
    name = path.with_name(f"{path.name}.making")
    files.remove(name)
    files.remove(wal_path(name))
    return name


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
    found = os.stat(path)  # noqa: PTH116 — follows links, as wanted
    return found.st_dev, found.st_ino

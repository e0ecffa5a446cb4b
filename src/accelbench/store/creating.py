"""Creation of a database: under another name beside it, synced, then renamed in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

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
    retrying,
    whole_guard,
)
from accelbench.store.files import DB_OPTION, REAL_FILES, Files, explained, place

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def ensure(path: Path, files: Files = REAL_FILES) -> None:
    """Make the database if it is absent; refuse one that is not ours."""
    if not exists(path):
        create(path, files)
        return
    with connect(path):
        pass


def exists(path: Path) -> bool:
    """Return whether anything is there; an empty file counts as nothing."""
    return path.is_dir() or (path.exists() and path.stat().st_size > 0)


def create(path: Path, files: Files = REAL_FILES) -> None:
    """Make an empty database; if another process was faster, that one is kept."""
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
    """Make the folder of a new file; remove it again if the file fails."""
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
    """Make a finished, synced, empty database under a temporary name. The guard must be held."""
    with _under_another_name(path, files) as made:
        with _written(made, path) as con:
            con.execute("BEGIN")  # each statement by itself would be synced by itself
            schema.build(con, utc_now())
            con.execute("COMMIT")
        _sync(made, files)
    return made


def settle(path: Path) -> None:
    """Write everything into the one file, so that it can be copied or linked. The guard must be
    held."""
    import duckdb

    con, close = retrying(lambda: open_once(path, "alone"), path, RETRY_SECONDS)
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
    """Return the file for what DuckDB has not yet written into the database."""
    return path.with_name(path.name + ".wal")


@contextmanager
def _written(made: Path, path: Path) -> Iterator[DuckDBPyConnection]:
    """Yield a connection to a file that is made for `path`; everything is in the file at the
    end."""
    import duckdb

    con, close = open_once(made, "alone", path)
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
    """Yield a temporary name beside the database; remove what a failure leaves."""
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
    """Return what is equal for two paths of one file."""
    stat = os.stat(path)  # noqa: PTH116 — follows links, as wanted
    return stat.st_dev, stat.st_ino

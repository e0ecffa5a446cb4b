"""Connections to a database file: short, retried, and never to what is not ours.

DuckDB lets one process write, or several read. Connections therefore last
milliseconds, and whoever meets a held file tries again with jitter.

Before a file's name may change its meaning (an overwrite), its
guard `<database>.lock` is taken whole; every connection takes it shared while
it opens. Without the guard, a writer that had opened the old file just before
the rename would write into a file that no longer has a name.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from accelbench.core.errors import StoreError
from accelbench.core.visible import in_quotes
from accelbench.store.attaching import HeldError, open_file
from accelbench.store.files import DB_OPTION, REAL_FILES, ReadOnlyPlaceError, explained, try_lock
from accelbench.store.schema import APPLICATION, SCHEMA_VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RETRY_SECONDS = 20.0
_HELD = ("Could not set lock on file", "different configuration", "being used by another process")
#: What is said of a disk without room, or of a file that may not become larger.
NO_ROOM = ("No space left", "File too large")
_UNWRITABLE = ("Read-only file system", "Permission denied", "Operation not permitted")
_log = logging.getLogger(__name__)
T = TypeVar("T")


class TornError(Exception):
    """The file ends before what it speaks of: another process is writing it, or it is damaged."""


#: A reader was seen to open a file between a writer's header and its blocks, once in 37 minutes of
#: tests on a loaded machine. A file that is cut short still is after so many looks.
_TORN_LOOKS = 5
_TORN = "from location"


@contextmanager
def connect(
    path: Path,
    *,
    write: bool = False,
    retry_seconds: float = RETRY_SECONDS,
    sealed: bool = False,
    apart: bool = False,
) -> Iterator[DuckDBPyConnection]:
    """A connection to a database of ours, for milliseconds.

    Args:
        path: The database file.
        write: Whether to write. Everything is refused that a reader is refused,
            before the file is opened for writing.
        retry_seconds: How long to try while another process holds the file.
        sealed: For SQL from people: no other file can be read or written by it,
            and none of this can be switched off again.
        apart: In a DuckDB of its own: for settings, further databases and cursors.

    Raises:
        StoreError: The file is absent, not ours, of another version, damaged, or held too long.
    """
    _refuse_impossible(path)
    if write:
        with _opened(path, "read", retry_seconds) as con:
            refuse_foreign(con, path)
    how = "write" if write else "sealed" if sealed else "read"
    with _opened(path, f"{how} apart" if apart else how, retry_seconds) as con:
        refuse_foreign(con, path)
        try:
            yield con
        except file_errors() as error:
            raise explain_duck(error, path) from error


def quoted(word: str) -> str:
    """A text in SQL where no parameter may stand."""
    doubled = word.replace("'", "''")
    return f"'{doubled}'"


def quoted_path(path: Path) -> str:
    """A file's own name in SQL that takes patterns: `[ab].parquet` is one file, not two."""
    return quoted("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def file_errors() -> tuple[type[Exception], ...]:
    """What DuckDB raises when the file, not the statement, is the trouble.

    A full disk shows as a TransactionException: "Failed to commit: Could not write file".
    """
    import duckdb

    return (
        duckdb.IOException,
        duckdb.FatalException,
        duckdb.InternalException,
        duckdb.SerializationException,
        duckdb.TransactionException,
    )


@contextmanager
def _opened(path: Path, how: str, retry_seconds: float) -> Iterator[DuckDBPyConnection]:
    con, close = retrying(lambda: open_once(path, how), path, retry_seconds)
    try:
        yield con
    finally:
        close()


def retrying(attempt: Callable[[], T], path: Path, retry_seconds: float) -> T:
    """Repeat an attempt that meets a held file, with growing, jittered pauses."""
    deadline = time.monotonic() + retry_seconds
    pause, torn = 0.005, 0
    while True:
        try:
            return attempt()
        except TornError as error:
            torn += 1
            if torn >= _TORN_LOOKS or time.monotonic() >= deadline:
                raise explain_duck(error, path) from error
        except HeldError as held:
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"Another process has held {path} for {retry_seconds:g} seconds ({held}).",
                    "Try again when it has ended; results are safe in the journal meanwhile.",
                ) from held
        time.sleep(random.uniform(0, pause))  # noqa: S311 — jitter is no secret
        pause = min(pause * 2, 0.25)


def open_once(
    path: Path, how: str, known_as: Path | None = None
) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """Open once, as `attaching.OpenFiles.open` does; HeldError where the file is held.

    "alone" writes without taking the guard: its caller holds it whole. `known_as` is how a file
    with a temporary name is called in errors.

    Returns:
        The connection, and what closes it.
    """
    import duckdb

    writes = how.startswith("write")
    with nullcontext() if how == "alone" else shared_guard(path, create=writes):
        try:
            return open_file(path, how)
        except duckdb.Error as error:
            raise held_or_explained(error, known_as or path) from error


def guard_path(path: Path) -> Path:
    """The file whose lock guards what the database's name stands for."""
    return path.with_name(path.name + ".lock")


@contextmanager
def shared_guard(path: Path, *, create: bool) -> Iterator[None]:
    """Hold off a change of the file's meaning while it is opened. A reader makes no guard."""
    fd = _open_guard(path, create=create)
    if fd is None:
        yield
        return
    try:
        if not try_lock(fd, shared=True) or not _is_still(fd, path):
            raise HeldError("it is being replaced")
        yield
    finally:
        os.close(fd)


@contextmanager
def whole_guard(path: Path, retry_seconds: float = RETRY_SECONDS) -> Iterator[None]:
    """Be the only one who may open the database or change what its name stands for."""

    def attempt() -> int:
        fd = _open_guard(path, create=True)
        if fd is None:
            raise ReadOnlyPlaceError(f"{path.parent} cannot be written.", "Choose another --db.")
        if not try_lock(fd) or not _is_still(fd, path):
            os.close(fd)
            raise HeldError("it is being opened")
        return fd

    fd = retrying(attempt, path, retry_seconds)
    try:
        yield
    finally:
        os.close(fd)


def _is_still(fd: int, path: Path) -> bool:
    """Whether an open guard has its name yet: who could not make a database takes it away."""
    try:
        return os.path.samestat(os.fstat(fd), guard_path(path).stat())
    except FileNotFoundError:
        return False


def _open_guard(path: Path, *, create: bool) -> int | None:
    guard = guard_path(path)
    if not create:
        try:
            return os.open(guard, os.O_RDONLY)
        except OSError:
            return None  # never written to, or a place where nobody can write
    with explained("Opening the database for writing", guard, DB_OPTION):
        if not guard.exists():
            try:
                REAL_FILES.close(REAL_FILES.open_new(guard))
            except FileExistsError:
                _log.debug("%s was made by another process", guard)
        return os.open(guard, os.O_RDWR)


def refuse_foreign(con: DuckDBPyConnection, path: Path) -> None:
    """Raise StoreError for a database of another program or of another schema version."""
    import duckdb

    try:
        meta = con.execute("SELECT application, schema_version FROM store_meta").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException):
        meta = []
    except duckdb.Error as error:
        raise explain_duck(error, path) from error
    if len(meta) != 1 or meta[0][0] != APPLICATION:
        raise StoreError(
            f"{path} is another program's DuckDB database; it was left as it is.",
            "Name another file with --db PATH.",
        )
    refuse_version(path, meta[0][1])


def refuse_version(name: Path | str, version: object) -> None:
    """Raise StoreError unless a store has the schema version of this program."""
    if version != SCHEMA_VERSION:
        shown = version if isinstance(version, int) else in_quotes(str(version))
        raise StoreError(
            f"{name} has schema version {shown}, and this accelbench reads {SCHEMA_VERSION};"
            " it was left as it is.",
            "Move it away: a new database reads its runs again from the journals beside it."
            " Export other results with the version that wrote it.",
        )


def _refuse_impossible(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database.", "Name a file with --db PATH.")
    if not path.exists() or path.stat().st_size == 0:  # nobody has put anything there yet
        raise absent(path)


def absent(name: Path | str) -> StoreError:
    """The error where there is no database, with the commands that make one."""
    return StoreError(
        f"There is no database at {name}.",
        "Make one with `accelbench db init` or `accelbench run`, or name one with --db PATH.",
    )


def held_or_explained(error: Exception, path: Path) -> Exception:
    """What to raise for an error at opening: try again, or say it."""
    if any(sign in str(error) for sign in _HELD):
        return HeldError(str(error).splitlines()[0])
    if _TORN in str(error):
        return TornError(str(error))
    return explain_duck(error, path)


def explain_duck(error: Exception, path: Path) -> StoreError:
    """DuckDB's error about a file as a sentence."""
    text = str(error).splitlines()[0]
    if any(sign in text for sign in _UNWRITABLE):
        return ReadOnlyPlaceError(f"{path} cannot be written.", "Choose a place with --db PATH.")
    if any(sign in text for sign in NO_ROOM):
        return StoreError(f"No room left for {path}.", "Free some space there.")
    # A table of another format, such as CSV, is opened by DuckDB as a view of its own.
    if "not a valid DuckDB database file" in text or "Cannot launch in-memory" in text:
        return StoreError(
            f"{path} is not a DuckDB database; it was left as it is.",
            "Name another file with --db PATH.",
        )
    if "version number" in text:
        return StoreError(
            f"{path} was written by another version of DuckDB ({text}).",
            "Upgrade the package duckdb.",
        )
    return StoreError(
        f"{path} cannot be read; it may be damaged ({text}).",
        "Move it away: a new database is filled again from the journals beside it.",
    )

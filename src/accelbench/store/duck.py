"""Connections to a database file: short, retried, and only to databases of accelbench.

DuckDB lets one process write, or several read. So connections last milliseconds, and a process that
finds a locked file retries with jitter. Every connection holds the guard `<database>.lock` shared
while it opens, and the process that replaces the file holds it exclusively. Otherwise a writer that
had just opened the old file would write into a file without a name.

Starting a DuckDB takes 25 ms of a core, attaching a file to a running one takes 2 ms, and a command
opens its database up to eight times. So small files are attached to one DuckDB per process; a large
file has its own, with its own threads. A file is open in one mode at a time: the system's lock does
not work within a process, and two openings in different modes would overwrite each other.

A database is created under a temporary name next to it, synced, and renamed in one step.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accelbench.core.errors import StoreError
from accelbench.core.facts import utc_now
from accelbench.core.safe_text import in_quotes
from accelbench.store import schema
from accelbench.store.files import (
    DB_OPTION,
    REAL_FILES,
    Files,
    NotWritableError,
    explain_os_errors,
    move_to_free_name,
    try_lock,
)
from accelbench.store.schema import APPLICATION, SCHEMA_VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Threads of a separate DuckDB: a store needs few, and a benchmark may be running.
_THREADS = 2
#: Largest file that is attached, in bytes: the single thread of the permanent DuckDB reads it in
#: milliseconds.
SMALL = 32 * 2**20
_SEALED = {"enable_external_access": "false", "lock_configuration": "true"}
_MODES = {"read": "READ_ONLY", "write": "READ_WRITE"}
_log = logging.getLogger(__name__)


class LockedError(Exception):
    """Another process, or another mode, has the file open."""


@dataclass
class _Use:
    """Open file: its mode, DuckDB, name and number of connections."""

    mode: str
    engine: DuckDBPyConnection | None
    name: str
    connections: int = 0


class OpenFiles:
    """Database files that this process has open."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._uses: dict[tuple[int, int], _Use] = {}
        self._engine: DuckDBPyConnection | None = None
        self._numbers = itertools.count()

    def open(self, path: Path, mode: str) -> tuple[DuckDBPyConnection, Callable[[], None]]:
        """Return a connection and a function that closes it; raise LockedError or duckdb.Error.

        `mode` is "read" or "write" for a small file that may be attached; "read apart" or "write
        apart" for settings, further databases and cursors; "sealed" for SQL from users; "alone" for
        a file that has no other connection.
        """
        with self._lock:
            key = _identity(path)
            use = self._uses.get(key) if key else None
            if use is not None and (use.mode != mode or mode == "alone"):
                raise LockedError(f"this process has it open: {use.mode}")
            use = use or self._attach(path, mode)
            try:
                connection = self._connection(path, use)
            except BaseException:
                self._end(use)
                raise
            use.connections += 1
            if key:
                self._uses[key] = use
            return connection, lambda: self._close(key, use, connection)

    def _attach(self, path: Path, mode: str) -> _Use:
        if mode not in _MODES or path.stat().st_size > SMALL:
            return _Use(mode, None, "")
        engine, name = self._get_engine(), f"file_{next(self._numbers)}"
        quoted = str(path).replace("'", "''")
        engine.execute(f"ATTACH '{quoted}' AS {name} (TYPE duckdb, {_MODES[mode]})")
        return _Use(mode, engine, name)

    def _get_engine(self) -> DuckDBPyConnection:
        import duckdb

        if self._engine is None:
            self._engine = duckdb.connect(config={"threads": 1})
        return self._engine

    def _connection(self, path: Path, use: _Use) -> DuckDBPyConnection:
        import duckdb

        if use.engine is not None:
            connection = use.engine.cursor()
            connection.execute(f"USE {use.name}")
            return connection
        config: dict[str, Any] = {"threads": _THREADS, **(_SEALED if use.mode == "sealed" else {})}
        reads = use.mode in {"read", "read apart", "sealed"}
        return duckdb.connect(str(path), read_only=reads, config=config)

    def _close(
        self, key: tuple[int, int] | None, use: _Use, connection: DuckDBPyConnection
    ) -> None:
        with self._lock:
            connection.close()
            use.connections -= 1
            if use.connections or key is None:
                return
            del self._uses[key]
            self._end(use)

    def _end(self, use: _Use) -> None:
        """Close a file that has no connections left."""
        import duckdb

        if use.engine is None or use.connections:
            return
        try:
            use.engine.execute(f"DETACH {use.name}")
        except duckdb.Error as error:  # such as a fatal error, which ends the DuckDB
            _log.debug("another DuckDB is started, as this one keeps a file: %s", error)
            self._engine = None
            use.engine.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file under any name; None if there is none."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - follows links, as wanted
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


_open_files = OpenFiles()
_inherited: list[OpenFiles] = []


def open_file(path: Path, mode: str) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """Return a connection to a file and a function that closes it, as `OpenFiles.open` does."""
    return _open_files.open(path, mode)


def _forget_inherited() -> None:
    """Leave inherited connections to the parent of a fork: never use or close them."""
    global _open_files
    _inherited.append(_open_files)
    _open_files = OpenFiles()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_inherited)


RETRY_SECONDS = 20.0
_LOCKED_TEXTS = (
    "Could not set lock on file",
    "different configuration",
    "being used by another process",
)
#: Error texts for a full disk, or a file at its size limit.
NO_ROOM = ("No space left", "File too large")
_UNWRITABLE = ("Read-only file system", "Permission denied", "Operation not permitted")
T = TypeVar("T")


class TornError(Exception):
    """The file ends too early: another process is writing it, or it is damaged."""


#: Attempts to read a truncated file. A reader opened a file between a writer's header and its
#: blocks once in 37 minutes of tests on a loaded machine; a damaged file stays truncated.
_TORN_ATTEMPTS = 5
_TORN = "from location"


@contextmanager
def connect(
    path: Path,
    *,
    write: bool = False,
    retry_seconds: float = RETRY_SECONDS,
    sealed: bool = False,
    separate: bool = False,
) -> Iterator[DuckDBPyConnection]:
    """Connect to a database of accelbench for milliseconds; raise StoreError if that fails.

    `sealed` is for SQL from users, which then cannot access other files. `separate` uses a separate
    DuckDB, for settings, further databases and cursors.
    """
    _refuse_impossible(path)
    if write:
        with _open_retrying(path, "read", retry_seconds) as con:
            refuse_foreign(con, path)
    how = "write" if write else "sealed" if sealed else "read"
    with _open_retrying(path, f"{how} apart" if separate else how, retry_seconds) as con:
        refuse_foreign(con, path)
        try:
            yield con
        except file_error_types() as error:
            raise explain_duck(error, path) from error


def column_list(names: Iterable[str], form: str = '"{0}"') -> str:
    """Return columns in SQL, each in a form, separated by commas."""
    return ", ".join(form.format(name) for name in names)


def quote_sql(word: str) -> str:
    """Return a text as an SQL literal."""
    doubled = word.replace("'", "''")
    return f"'{doubled}'"


def quote_path(path: Path) -> str:
    """Return a file's name in SQL that accepts patterns: `[ab].parquet` is one file, not two."""
    return quote_sql("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def file_error_types() -> tuple[type[Exception], ...]:
    """Return DuckDB's errors about the file, not the statement."""
    # A full disk shows as a TransactionException: "Failed to commit: Could not write file".
    import duckdb

    return (
        duckdb.IOException,
        duckdb.FatalException,
        duckdb.InternalException,
        duckdb.SerializationException,
        duckdb.TransactionException,
    )


@contextmanager
def _open_retrying(path: Path, mode: str, retry_seconds: float) -> Iterator[DuckDBPyConnection]:
    con, close = retry_locked(lambda: open_once(path, mode), path, retry_seconds)
    try:
        yield con
    finally:
        close()


def retry_locked(attempt: Callable[[], T], path: Path, retry_seconds: float) -> T:
    """Repeat an attempt while the file is locked, with growing, jittered pauses."""
    deadline = time.monotonic() + retry_seconds
    pause, torn = 0.005, 0
    while True:
        try:
            return attempt()
        except TornError as error:
            torn += 1
            if torn >= _TORN_ATTEMPTS or time.monotonic() >= deadline:
                raise explain_duck(error, path) from error
        except LockedError as held:
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"Another process has held {path} for {retry_seconds:g} seconds ({held}).",
                    "Try again when it has ended; results are safe in the journal meanwhile.",
                ) from held
        time.sleep(random.uniform(0, pause))  # noqa: S311 — jitter is no secret
        pause = min(pause * 2, 0.25)


def open_once(
    path: Path, mode: str, shown_as: Path | None = None
) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """Open once, as `OpenFiles.open` does; raise LockedError if the file is locked.

    "alone" takes no guard: the caller holds it. `shown_as` is the name in errors.
    """
    import duckdb

    writes = mode.startswith("write")
    with nullcontext() if mode == "alone" else shared_guard(path, create=writes):
        try:
            return open_file(path, mode)
        except duckdb.Error as error:
            raise explain_open_error(error, shown_as or path) from error


def guard_path(path: Path) -> Path:
    """Return the file whose lock guards the name of a database."""
    return path.with_name(path.name + ".lock")


@contextmanager
def shared_guard(path: Path, *, create: bool) -> Iterator[None]:
    """Prevent the file from being replaced while it is opened. A reader creates no guard."""
    fd = _open_guard(path, create=create)
    if fd is None:
        yield
        return
    try:
        if not try_lock(fd, shared=True) or not _has_name(fd, path):
            raise LockedError("it is being replaced")
        yield
    finally:
        os.close(fd)


@contextmanager
def exclusive_guard(path: Path, retry_seconds: float = RETRY_SECONDS) -> Iterator[None]:
    """Hold the database so that no other process opens or replaces it."""

    def attempt() -> int:
        fd = _open_guard(path, create=True)
        if fd is None:
            raise NotWritableError(f"{path.parent} cannot be written.", "Choose another --db.")
        if not try_lock(fd) or not _has_name(fd, path):
            os.close(fd)
            raise LockedError("it is being opened")
        return fd

    fd = retry_locked(attempt, path, retry_seconds)
    try:
        yield
    finally:
        os.close(fd)


def _has_name(fd: int, path: Path) -> bool:
    """Return whether an open guard still has its name: a failed creation removes it."""
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
            return None  # never written, or not writable
    with explain_os_errors("Opening the database for writing", guard, DB_OPTION):
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
    if not path.exists() or path.stat().st_size == 0:  # still empty
        raise absent_error(path)


def absent_error(name: Path | str) -> StoreError:
    """Return the error for an absent database, with the commands that make one."""
    return StoreError(
        f"There is no database at {name}.",
        "Make one with `accelbench db init` or `accelbench run`, or name one with --db PATH.",
    )


def explain_open_error(error: Exception, path: Path) -> Exception:
    """Return the error to raise on opening: one to retry, or one for users."""
    if any(sign in str(error) for sign in _LOCKED_TEXTS):
        return LockedError(str(error).splitlines()[0])
    if _TORN in str(error):
        return TornError(str(error))
    return explain_duck(error, path)


def explain_duck(error: Exception, path: Path) -> StoreError:
    """Return DuckDB's error about a file as a sentence."""
    text = str(error).splitlines()[0]
    if any(sign in text for sign in _UNWRITABLE):
        return NotWritableError(f"{path} cannot be written.", "Choose a place with --db PATH.")
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


def ensure(path: Path, files: Files = REAL_FILES) -> None:
    """Create the database if it is absent; refuse one of another program."""
    if not exists(path):
        create(path, files)
        return
    with connect(path):
        pass


def exists(path: Path) -> bool:
    """Return whether the file exists and is not empty."""
    return path.is_dir() or (path.exists() and path.stat().st_size > 0)


def create(path: Path, files: Files = REAL_FILES) -> None:
    """Create an empty database, unless another process was faster."""
    making = explain_os_errors("Making the database", path, DB_OPTION)
    with making, _folders_for(path, files), exclusive_guard(path):
        if exists(path):
            return
        try:
            files.remove(path)  # an empty file, if anything
            made = create_temporary(path, files)
            if not move_to_free_name(files, made, path):
                files.remove(made)
        except Exception:
            # A process that waits for it sees that it has no name, and creates another.
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
        with suppress(OSError):  # it is no longer empty
            for folder in absent:
                folder.rmdir()
        raise


def create_temporary(path: Path, files: Files) -> Path:
    """Create a synced, empty database under a temporary name. The guard must be held."""
    with _temporary_name(path, files) as made:
        with _write_new(made, path) as con:
            con.execute("BEGIN")  # separate statements would be synced separately
            schema.create_schema(con, utc_now())
            con.execute("COMMIT")
        _sync(made, files)
    return made


def flush_to_file(path: Path) -> None:
    """Write everything into the one file, for a copy or link. The guard must be held."""
    import duckdb

    con, close = retry_locked(lambda: open_once(path, "alone"), path, RETRY_SECONDS)
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
    """Return the file with changes that DuckDB has not yet written into the database."""
    return path.with_name(path.name + ".wal")


@contextmanager
def _write_new(made: Path, path: Path) -> Iterator[DuckDBPyConnection]:
    """Yield a connection to a new file for `path`, which is complete at the end."""
    import duckdb

    con, close = open_once(made, "alone", path)
    try:
        yield con
        # Closing does this too, but hides its errors.
        con.execute("CHECKPOINT")
    except file_error_types() as error:
        raise explain_duck(error, path) from error
    finally:
        with suppress(duckdb.Error):
            close()


@contextmanager
def _temporary_name(path: Path, files: Files) -> Iterator[Path]:
    """Yield a temporary name next to the database; remove the rest of a failure."""
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
    """Return a value that is equal for two paths of one file."""
    stat = os.stat(path)  # noqa: PTH116 — follows links, as wanted
    return stat.st_dev, stat.st_ino

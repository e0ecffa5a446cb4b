"""Connections to a database file: short, retried, and only to databases of accelbench.

DuckDB lets one process write, or several read. So connections last milliseconds, and whoever meets
a held file tries again with jitter. Every connection takes the guard `<database>.lock` shared while
it opens; whoever replaces the file takes it whole. Otherwise a writer that had just opened the old
file would write into a file without a name.

Starting a DuckDB takes 25 ms of a core; attaching a file to a running one 2 ms, and a command opens
its database up to eight times. So small files are attached to one DuckDB per process; a large file
has its own, with its own threads. A file is open in one way at a time: the system's lock does not
work within a process, and two openings in different ways would write over each other.

Creation of a database: under another name beside it, synced, then renamed in one step.
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
    ReadOnlyPlaceError,
    explained,
    place,
    try_lock,
)
from accelbench.store.schema import APPLICATION, SCHEMA_VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: A DuckDB of its own starts this many threads at once; a store needs few, and a benchmark may be
#: running.
_THREADS = 2
#: A file of no more bytes is attached: a single thread, which the DuckDB that stays has, reads all
#: of it in milliseconds.
SMALL = 32 * 2**20
_SEALED = {"enable_external_access": "false", "lock_configuration": "true"}
_MODES = {"read": "READ_ONLY", "write": "READ_WRITE"}
_log = logging.getLogger(__name__)


class HeldError(Exception):
    """The file is held by another process or in another way."""


@dataclass
class _Use:
    """An open file: how, in which DuckDB, under which name, and by how many connections."""

    how: str
    engine: DuckDBPyConnection | None
    name: str
    connections: int = 0


class OpenFiles:
    """The database files that this process has open."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._uses: dict[tuple[int, int], _Use] = {}
        self._engine: DuckDBPyConnection | None = None
        self._numbers = itertools.count()

    def open(self, path: Path, how: str) -> tuple[DuckDBPyConnection, Callable[[], None]]:
        """Return a connection and a function that closes it; raise HeldError or duckdb.Error.

        `how` is "read" or "write" for a small file that may be attached; "read apart" or "write
        apart" for settings, further databases and cursors; "sealed" for SQL from people; "alone"
        for a file that has no other connection.
        """
        with self._lock:
            key = _identity(path)
            use = self._uses.get(key) if key else None
            if use is not None and (use.how != how or how == "alone"):
                raise HeldError(f"this process has it open: {use.how}")
            use = use or self._begun(path, how)
            try:
                connection = self._connection(path, use)
            except BaseException:
                self._end(use)
                raise
            use.connections += 1
            if key:
                self._uses[key] = use
            return connection, lambda: self._close(key, use, connection)

    def _begun(self, path: Path, how: str) -> _Use:
        if how not in _MODES or path.stat().st_size > SMALL:
            return _Use(how, None, "")
        engine, name = self._started(), f"file_{next(self._numbers)}"
        quoted = str(path).replace("'", "''")
        engine.execute(f"ATTACH '{quoted}' AS {name} (TYPE duckdb, {_MODES[how]})")
        return _Use(how, engine, name)

    def _started(self) -> DuckDBPyConnection:
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
        config: dict[str, Any] = {"threads": _THREADS, **(_SEALED if use.how == "sealed" else {})}
        reads = use.how in {"read", "read apart", "sealed"}
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
        """Close a file that has no connection any more."""
        import duckdb

        if use.engine is None or use.connections:
            return
        try:
            use.engine.execute(f"DETACH {use.name}")
        except duckdb.Error as error:  # as after a fatal error, after which it answers no more
            _log.debug("another DuckDB is started, as this one keeps a file: %s", error)
            self._engine = None
            use.engine.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file whatever its name; None if there is none."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - follows links, as wanted
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


_open_files = OpenFiles()
_inherited: list[OpenFiles] = []


def open_file(path: Path, how: str) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """Return a connection to a file and a function that closes it, as `OpenFiles.open` does."""
    return _open_files.open(path, how)


def _begin_anew() -> None:
    """Leave inherited connections to the parent of a fork: never use them, never close them."""
    global _open_files
    _inherited.append(_open_files)
    _open_files = OpenFiles()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


RETRY_SECONDS = 20.0
_HELD = ("Could not set lock on file", "different configuration", "being used by another process")
#: What is said of a disk without room, or of a file that may not become larger.
NO_ROOM = ("No space left", "File too large")
_UNWRITABLE = ("Read-only file system", "Permission denied", "Operation not permitted")
T = TypeVar("T")


class TornError(Exception):
    """The file ends too early: another process is writing it, or it is damaged."""


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
    """Connect to a database of accelbench for milliseconds; raise StoreError if that is not
    possible.

    `sealed` is for SQL from people, which can then read and write no other file. `apart` uses a
    separate DuckDB, for settings, further databases and cursors.
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


def column_list(names: Iterable[str], form: str = '"{0}"') -> str:
    """Return columns in SQL, each in a form, with commas between."""
    return ", ".join(form.format(name) for name in names)


def quoted(word: str) -> str:
    """Return a text in SQL for places without parameters."""
    doubled = word.replace("'", "''")
    return f"'{doubled}'"


def quoted_path(path: Path) -> str:
    """Return a file's name in SQL that takes patterns: `[ab].parquet` is one file, not two."""
    return quoted("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def file_errors() -> tuple[type[Exception], ...]:
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
    """Open once, as `OpenFiles.open` does; raise HeldError if the file is held.

    "alone" takes no guard: the caller holds it. `known_as` is the name in errors.
    """
    import duckdb

    writes = how.startswith("write")
    with nullcontext() if how == "alone" else shared_guard(path, create=writes):
        try:
            return open_file(path, how)
        except duckdb.Error as error:
            raise held_or_explained(error, known_as or path) from error


def guard_path(path: Path) -> Path:
    """Return the file whose lock guards the name of a database."""
    return path.with_name(path.name + ".lock")


@contextmanager
def shared_guard(path: Path, *, create: bool) -> Iterator[None]:
    """Prevent the file from being replaced while it is opened. A reader makes no guard."""
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
    """Be the only process that may open or replace the database."""

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
    """Return the error for an absent database, with the commands that make one."""
    return StoreError(
        f"There is no database at {name}.",
        "Make one with `accelbench db init` or `accelbench run`, or name one with --db PATH.",
    )


def held_or_explained(error: Exception, path: Path) -> Exception:
    """Return the error to raise at opening: one to try again, or one for people."""
    if any(sign in str(error) for sign in _HELD):
        return HeldError(str(error).splitlines()[0])
    if _TORN in str(error):
        return TornError(str(error))
    return explain_duck(error, path)


def explain_duck(error: Exception, path: Path) -> StoreError:
    """Return DuckDB's error about a file as a sentence."""
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

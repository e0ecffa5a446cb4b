"""How files are opened in this process: small ones are attached to one DuckDB, which stays.

To start a DuckDB takes 25 ms of a core, in which it makes an entry for each of its functions. To
attach a file to one that runs takes 2 ms, and a command opens its database up to eight times. A
large file has a DuckDB of its own, with threads of its own, as long as it is open.

A file is open in one way at a time. Other processes are told by the lock of the file; within this
one the system's lock tells nothing, and two openings in different ways would write over each other.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """Someone else holds the file at this moment."""


@dataclass
class _Use:
    """A file that is open: how, by how many connections, and in which DuckDB under which name."""

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
        """A connection, and what closes it.

        Args:
            path: The file.
            how: "read" or "write", which a small file is attached for; "read apart" or "write
                apart", for what is not of one connection alone: settings, further databases,
                cursors; "sealed", for SQL from people; "alone", for what has no other connection.

        Raises:
            HeldError: This process has it open in another way.
            duckdb.Error: DuckDB cannot open it.
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
        """Let go of a file that has no connection any more."""
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
    """Which file it is, whatever its name; None where there is none yet."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - follows links, as wanted
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


_open_files = OpenFiles()
_inherited: list[OpenFiles] = []


def open_file(path: Path, how: str) -> tuple[DuckDBPyConnection, Callable[[], None]]:
    """A connection to a file, and what closes it; `OpenFiles.open` has the rest."""
    return _open_files.open(path, how)


def _begin_anew() -> None:
    """What a fork has inherited is its parent's: never used, and never closed."""
    global _open_files
    _inherited.append(_open_files)
    _open_files = OpenFiles()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)

"""Small files are attached to one DuckDB; a file is open in one way at a time, and let go of."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from accelbench.store import duck
from accelbench.store.database import Database
from accelbench.store.duck import LockedError, OpenFiles
from empty_store import build_empty_store

WRITER = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('CREATE TABLE {0} (i INTEGER)')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Database(tmp_path / "o'a.duckdb").ensure()
    return tmp_path / "o'a.duckdb"


@pytest.fixture
def started(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What each DuckDB that is started is started with."""
    monkeypatch.setattr(duck, "_open_files", OpenFiles())
    monkeypatch.setattr(duck, "create_temporary", build_empty_store)
    seen: list[tuple[Any, ...]] = []
    real = duckdb.connect

    def connect(*words: Any, **more: Any) -> Any:
        seen.append(words)
        return real(*words, **more)

    monkeypatch.setattr(duckdb, "connect", connect)
    return seen


def written_elsewhere(path: Path, table: str) -> str:
    """What another process says that writes into the file: nothing where it can."""
    words = [sys.executable, "-c", WRITER.format(table), str(path)]
    return subprocess.run(words, capture_output=True, text=True).stderr


def test_one_duckdb_serves_all_small_files(started, path, tmp_path):
    other = Database(tmp_path / "b.duckdb")
    other.ensure()
    assert started == [(str(tmp_path / "b.duckdb.making"),)]
    for database in (Database(path), other, Database(path)):
        assert database.results() == []
        assert database.query("SELECT count(*) FROM fact")[1] == [(0,)]
    assert started[1:] == [()]


def test_a_large_file_has_a_duckdb_of_its_own(started, path, monkeypatch):
    monkeypatch.setattr(duck, "SMALL", path.stat().st_size - 1)
    assert Database(path).results() == []
    with duck.connect(path, write=True) as con:
        con.execute("INSERT INTO fact (kind) VALUES ('x')")
    assert Database(path).query("SELECT kind FROM fact")[1] == [("x",)]
    assert set(started) == {(str(path),)}


@pytest.mark.parametrize("how", ["read", "read apart", "sealed"])
def test_readers_share_a_file(path, how):
    files = OpenFiles()
    _, close_first = files.open(path, how)
    second, close_second = files.open(path, how)
    close_first()
    assert second.execute("SELECT count(*) FROM fact").fetchall() == [(0,)]
    assert "lock" in written_elsewhere(path, "t")
    close_second()
    assert written_elsewhere(path, "t") == ""


@pytest.mark.parametrize("how", ["read", "write", "read apart", "write apart", "sealed", "alone"])
def test_a_file_is_open_in_one_way(path, how):
    files = OpenFiles()
    _, close = files.open(path, how)
    for other in {"read", "write", "read apart", "write apart", "sealed", "alone"} - {how}:
        with pytest.raises(LockedError):
            files.open(path, other)
    close()
    for other in ("write", "sealed", "alone", "read"):
        con, close = files.open(path, other)
        assert con.execute("SELECT count(*) FROM store_meta").fetchall() == [(1,)]
        close()


def test_what_is_written_is_in_the_file_once_it_is_closed(path):
    with duck.connect(path, write=True) as con:
        con.execute("INSERT INTO fact (kind) VALUES ('x')")
    assert not path.with_name(f"{path.name}.wal").exists()
    assert written_elsewhere(path, "t") == ""
    assert Database(path).query("SELECT kind FROM fact")[1] == [("x",)]


def test_what_was_not_committed_is_not_in_it(path):
    with duck.connect(path, write=True) as con:
        con.execute("BEGIN")
        con.execute("INSERT INTO fact (kind) VALUES ('x')")
    assert Database(path).query("SELECT kind FROM fact")[1] == []


def test_a_duckdb_that_keeps_a_file_is_given_up(path, started):
    files = duck._open_files
    con, close = files.open(path, "read")
    assert files._engine is not None
    files._engine.close()  # as a fatal error leaves it: whatever it is asked is an error
    close()
    del con
    assert written_elsewhere(path, "t") == ""
    assert Database(path).results() == []
    assert started == [(), ()]


def test_a_forked_process_opens_with_a_duckdb_of_its_own(path):
    assert Database(path).results() == []
    before = duck._open_files

    def seen() -> bool:
        return duck._open_files is not before and Database(path).results() == []

    assert code_of(seen) == 0
    assert duck._open_files is before
    assert Database(path).results() == []


def code_of(seen: Callable[[], bool]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = 0 if seen() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

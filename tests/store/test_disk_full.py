"""A disk that is full while a database is made or brought up to date: one sentence, nothing left.

No file may grow beyond a limit, at which the kernel fails a write as on a full disk. DuckDB meets
it in its file, in its log, or where it works the one into the other, each with an error of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accelbench.store import duck
from accelbench.store.database import Database

_WRITE = """
import resource, signal, sys
from pathlib import Path
from accelbench.core.errors import StoreError
from accelbench.store.database import Database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for path, room in zip(sys.argv[1::2], sys.argv[2::2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), hard))
    try:
        Database(Path(path)).ensure()
        print("made")
    except StoreError as error:
        print(error)
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of files are Linux's here")


def written(*asked: tuple[Path, int]) -> list[str]:
    """What is said when each database is made with that much room."""
    words = [str(word) for one in asked for word in one]
    done = subprocess.run(
        [sys.executable, "-c", _WRITE, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@linux
def test_a_database_that_finds_no_room_leaves_nothing(tmp_path):
    Database(tmp_path / "whole" / "a.duckdb").ensure()
    whole = (tmp_path / "whole" / "a.duckdb").stat().st_size
    rooms = [0, 4096, 12_288, 20_000, 40_000, whole // 2, whole - 1]
    places = [(tmp_path / f"new-{room}" / "deep" / "a.duckdb", room) for room in rooms]
    assert written(*places) == [
        f"No room left for {path}. Free some space there." for path, _ in places
    ]
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]
    assert written((tmp_path / "a.duckdb", whole)) == ["made"]


@pytest.mark.skipif(os.name == "nt", reason="an open file keeps its name there")
@pytest.mark.parametrize("how", ["shared", "whole"])
def test_a_guard_that_has_lost_its_name_guards_nothing(how, tmp_path, monkeypatch):
    """Whoever could not make a database takes its guard away; others may have it open by then."""
    path = tmp_path / "a.duckdb"
    Database(path).ensure()
    guard, real = duck.guard_path(path), duck.try_lock
    looks: list[int] = []

    def lock(fd: int, *, shared: bool = False) -> bool:
        if not looks:
            guard.unlink()
        looks.append(fd)
        return real(fd, shared=shared)

    monkeypatch.setattr(duck, "try_lock", lock)
    if how == "whole":
        with duck.exclusive_guard(path):
            assert guard.exists()
    else:
        with duck.connect(path, write=True):
            assert guard.exists()
    assert len(looks) > 1

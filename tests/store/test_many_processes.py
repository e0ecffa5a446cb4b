"""Several processes on one database at once: everything arrives, exactly once."""

from __future__ import annotations

import subprocess
import sys

from accelbench.store.database import Database

WRITER = """
import sys
from pathlib import Path
from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal
path, run = Path(sys.argv[1]), sys.argv[2]
database = Database(path, retry_seconds=120)
with Journal.create(database.journals, run) as journal:
    journal.append(Fact(RUN_STARTED, run, {}))
    for number in range(4):
        body = {"model": "m", "status": "ok", "samples": {"step": [number, 1]}}
        journal.append(Fact(RESULT, f"{run}-{number}", body))
        database.fill()
"""

READER = """
import sys
from pathlib import Path
from accelbench.store.database import Database
database = Database(Path(sys.argv[1]), retry_seconds=120)
seen = 0
for _ in range(15):
    rows = database.results(samples=True)
    assert len(rows) >= seen, "results vanished"
    assert len({row["result_id"] for row in rows}) == len(rows), "results doubled"
    assert all(len(row["samples"]["step"]) == 2 for row in rows), "a result without its samples"
    seen = len(rows)
"""

FIRST = """
import sys
from pathlib import Path
from accelbench.store.database import Database
Database(Path(sys.argv[1]), retry_seconds=120).ensure()
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True
    )


def finish(processes: list[subprocess.Popen[str]]) -> None:
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), errors


def test_writers_and_readers_at_once(tmp_path):
    path = tmp_path / "a.duckdb"
    Database(path).ensure()
    runs = ["p", "q", "r"]
    finish([*(start(WRITER, str(path), run) for run in runs), start(READER, str(path))])
    rows = Database(path).results(samples=True)
    assert sorted(row["result_id"] for row in rows) == [f"{r}-{n}" for r in runs for n in range(4)]
    assert all(row["samples"] == {"step": [int(row["result_id"][-1]), 1]} for row in rows)
    assert Database(path).query("SELECT count(*) FROM benchmark_runs")[1] == [(3,)]


def test_several_make_the_same_database(tmp_path):
    path = tmp_path / "a.duckdb"
    finish([start(FIRST, str(path)) for _ in range(4)])
    assert Database(path).status()["tables"]["benchmark_results"] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.duckdb", "a.duckdb.lock"]

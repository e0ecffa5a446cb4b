"""`accelbench db` as people and machines meet it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shells import Command
from stored_rows import store

from accelbench.cli.commands import db
from accelbench.core.facts import RESULT, Fact
from accelbench.store.database import Database
from accelbench.store.files import NotWritableError
from accelbench.store.journal import Journal


@pytest.fixture
def shell(command: Callable[..., Command]) -> Command:
    return command("db")


def measured(path: Path, run: str = "r", count: int = 2, **more: Any) -> Database:
    """What a run leaves that was killed before it filled the database."""
    database = Database(path)
    with Journal.create(database.journals, run) as journal:
        for number in range(count):
            body = {
                "model": "bert-tiny", "hardware": "cpu", "status": "ok", "latency_mean_ms": 1.25,
                "started_at": "2026-01-02T03:04:05.000000Z", "samples": {"step": [1, 2]}, **more,
            }  # fmt: skip
            journal.append(Fact(RESULT, f"{run}-{number}", body))
    return database


def test_init_makes_keeps_and_overwrites(tmp_path, shell):
    path = tmp_path / "accelbench.duckdb"
    code, out, _ = shell("init")
    assert (code, out) == (0, f"Made {path}\n")
    measured(path).fill()
    assert shell("init")[1] == f"{path} is there already; it stays.\n"
    assert len(Database(path).results()) == 2
    found = shell.json("init", "--overwrite")
    assert found["made"]
    assert len(Database(Path(found["backup"])).results()) == 2
    assert Database(path).results() == []


def test_init_refuses_what_is_not_ours(tmp_path, shell):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE customers (id INTEGER)")
    before = path.read_bytes()
    for arguments in (["init"], ["init", "--overwrite"], ["status"], ["export", "o.csv"]):
        code, out, err = shell(*arguments, "--db", path)
        assert (code, out) == (3, "")
        assert (
            err
            == (
                f"accelbench: {path} is another program's DuckDB database; it was left as it is."
                " Name another file with --db PATH.\n"
            )
            or "x.duckdb" in err
        )
    assert path.read_bytes() == before


def test_status_fills_in_what_waits_and_fits_a_terminal(tmp_path, shell):
    path = tmp_path / "a.duckdb"
    measured(path, model="a-model-with-a-name-that-goes-on-and-on" * 4)
    code, out, err = shell("status", "--db", path)
    assert code == 0
    assert "2 results were waiting in journals" in err
    assert max(map(len, out.splitlines())) <= 80
    assert "2 ok" in out
    found = shell.json("status", "--db-path", path)
    assert found["tables"]["benchmark_results"] == 2
    assert found["journals"]["orphans"] == []


def test_status_lists_what_was_not_stored(tmp_path, shell):
    path = tmp_path / "a.duckdb"
    measured(path, count=7, sample_count=3)
    for _ in range(2):  # said when it came, and kept
        _, out, _ = shell("status", "--db", path)
        assert "result r-4 of run r: it has 2 samples, and 3 are recorded" in " ".join(out.split())
        assert "r-5" not in out
        assert "and 2 more; --json has all" in out
    assert len(shell.json("status", "--db", path)["refused"]) == 7


def test_the_environment_names_the_database(tmp_path, shell, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_DB", str(tmp_path / "env.duckdb"))
    assert shell.json("init")["database"] == str(tmp_path / "env.duckdb")


def test_no_database_is_one_sentence(tmp_path, shell):
    code, out, err = shell("status")
    assert (code, out) == (3, "")
    assert "There is no database at" in err
    assert "accelbench db init" in err
    assert list(tmp_path.iterdir()) == []


def test_sql_answers_people_and_machines(tmp_path, shell):
    path = tmp_path / "a.duckdb"
    measured(path, model="[red]x\x1b[2J")
    query = "SELECT model, latency_mean_ms, NULL AS nothing FROM benchmark_results LIMIT 1"
    code, out, _ = shell("sql", query, "--db", path)
    assert code == 0
    assert "[red]x<U+001B>[2J" in out  # shown, not obeyed
    assert "no data" in out
    assert shell.json("sql", query, "--db", path) == {
        "columns": ["model", "latency_mean_ms", "nothing"],
        "rows": [{"model": "[red]x\x1b[2J", "latency_mean_ms": 1.25, "nothing": None}],
    }
    assert shell("sql", query, "--csv", "--db", path)[1] == (
        "model,latency_mean_ms,nothing\n[red]x<U+001B>[2J,1.25,\n"
    )
    assert shell("sql", query, "--csv", "--json", "--db", path)[0] == 2
    twice = shell.json("sql", "SELECT 1 AS a, 2 AS a, 'x,y' AS b", "--db", path)
    assert twice == {"columns": ["a", "a_1", "b"], "rows": [{"a": 1, "a_1": 2, "b": "x,y"}]}
    odd = "SELECT 'nan'::DOUBLE, 1.5::DECIMAL(4,2), DATE '2026-01-02', started_at, extra, [1, 2]"
    found = shell.json("sql", f"{odd} FROM benchmark_results LIMIT 1", "--db", path)
    assert [list(row.values()) for row in found["rows"]] == [
        [None, 1.5, "2026-01-02", "2026-01-02T03:04:05.000000Z", None, [1, 2]]
    ]


def test_wide_answers_are_a_value_a_line(tmp_path, shell):
    path = tmp_path / "a.duckdb"
    measured(path)
    code, out, _ = shell("sql", "FROM benchmark_results ORDER BY result_id", "--db", path)
    assert code == 0
    assert "-- 1 of 2" in out
    assert re.search(r"latency_mean_ms +1\.25", out)
    assert "cost_usd" not in out


def test_damage_in_a_journal_is_said(tmp_path, shell):
    database = measured(tmp_path / "a.duckdb", count=3)
    journal = database.journals / "r.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"id":"r-1"', b'"id":"r-x"'))
    for _ in range(2):
        code, out, err = shell("status", "--db", database.path)
        assert code == 0
        assert "the checksum of line(s) 2 is wrong" in err
        assert "r.jsonl, line(s) 2" in out


def test_where_nothing_can_be_written_reading_goes_on(tmp_path, shell, monkeypatch):
    path = tmp_path / "a.duckdb"
    measured(path).fill()

    def refuse(_: Database) -> None:
        raise NotWritableError(f"{path} cannot be written.")

    monkeypatch.setattr(db.Database, "fill", refuse)
    code, out, err = shell("sql", "SELECT count(*) AS n FROM benchmark_results", "--db", path)
    assert code == 0
    assert "2" in out
    assert "cannot be written" in err


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['accelbench', 'db', 'status', '--help']\n"
        "from accelbench.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'duckdb', 'pyarrow', 'numpy', 'torch', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--db" in done.stdout
    assert "--db-path" not in done.stdout


def test_status_that_is_piped_has_lines_that_people_can_read(tmp_path, shell, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "a.duckdb"
    measured(path, count=40, model="a-model-with-a-name-that-goes-on")
    store(path, *({"model": f"a-model-with-a-name-that-goes-on-{n}"} for n in range(20)), run="x")
    _, out, _ = shell("status", "--db", path)
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 140
    assert "a-model-with-a-name-that-goes-on-9" in out
    assert "<U+" not in out

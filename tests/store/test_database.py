from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest
from bodies import finished, result, started

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import StoreError, UsageError
from accelbench.core.facts import Fact
from accelbench.store.database import Database, default_path
from accelbench.store.journal import Journal, encode
from accelbench.store.schema import SCHEMA_VERSION, VIEWS


def filled(path: Path, run: str, *facts: Fact) -> Database:
    database = Database(path)
    database.journals.mkdir(parents=True)
    (database.journals / f"{run}.jsonl").write_bytes(b"".join(map(encode, facts)))
    database.fill()
    return database


def test_where_the_database_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    assert default_path() == tmp_path / "accelbench.duckdb"
    monkeypatch.setenv("ACCELBENCH_DB", "/data/b.duckdb")
    assert default_path() == Path("/data/b.duckdb")
    assert default_path(Path("c.duckdb")) == tmp_path / "c.duckdb"
    (tmp_path / "link.duckdb").symlink_to("c.duckdb")
    assert default_path(Path("link.duckdb")) == tmp_path / "c.duckdb"


def test_the_documents_names_are_there(tmp_path):
    database = Database(tmp_path / "deep" / "a.duckdb")
    assert database.init() is None
    for view in VIEWS:
        assert database.query(f"SELECT count(*) FROM {view}")[1] == [(0,)]
    assert database.query("FROM benchmark_results")[0] == [column.name for column in COLUMNS]


def test_our_database_stays_when_made_again(tmp_path):
    database = filled(tmp_path / "a.duckdb", "r", result(0))
    assert database.init() is None
    assert len(database.results()) == 1


def test_status_counts_what_is_there(tmp_path):
    odd = result(2, status="failed", model="vit", hardware="cuda")
    database = filled(tmp_path / "a.duckdb", "r", started(), result(0), result(1), odd, finished())
    Journal.create(database.journals, "s").close()
    with Journal.create(database.journals, "t") as journal:
        journal.append(result(7, "t"))
    found = database.status()
    assert found["tables"] == {
        "benchmark_runs": 1,
        "hardware_info": 0,
        "benchmark_results": 3,
        "raw_benchmark_data": 6,
        "device_calibrations": 0,
    }
    assert found["results_by_status"] == {"failed": 1, "ok": 2}
    assert found["runs_by_status"] == {"complete": 1}
    assert (found["models"], found["hardware"]) == (["bert-tiny", "vit"], ["cpu", "cuda"])
    assert found["first_result_at"] == "2026-01-02T03:04:00.000005Z"
    assert found["last_result_at"] == "2026-01-02T03:05:02.000005Z"
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["size_bytes"] == database.path.stat().st_size
    assert found["journals"] == {
        "folder": str(database.journals),
        "known": 1,
        "orphans": ["t.jsonl"],  # the empty one holds nothing that waits
        "corrupt_lines": {},
    }


def test_orphans_make_a_database_where_there_is_none(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    with Journal.create(database.journals, "r") as journal:
        journal.append(result(0))
    assert database.fill().results == 1
    assert len(database.results()) == 1


def test_results_can_be_chosen_and_carry_samples(tmp_path):
    database = filled(tmp_path / "a.duckdb", "r", *(result(i) for i in range(5)))
    rows = database.results("batch_size > ? AND model = ?", [3, "bert-tiny"], samples=True)
    assert [row["result_id"] for row in rows] == ["r-3", "r-4"]
    assert rows[0]["samples"] == {"step": [1003, 2000, 3000], "forward": [7]}


def test_merging_brings_everything_once(tmp_path):
    shared = result(9, "shared")
    here = filled(tmp_path / "a.duckdb", "r", started(), result(0), shared)
    there = filled(tmp_path / "o'ther.duckdb", "s", started("s"), result(1, "s"), shared)
    with Journal.create(there.journals, "t") as journal:  # an orphan of the other one
        journal.append(result(2, "t"))
    before = there.path.read_bytes()
    first = here.merge(there.path)
    assert (first.results, first.facts) == (2, 1)
    again = here.merge(there.path)
    assert (again.results, again.facts) == (0, 0)
    rows = here.results(samples=True)
    assert sorted(row["result_id"] for row in rows) == ["r-0", "s-1", "shared-9", "t-2"]
    assert all(len(row["samples"]) == 2 for row in rows)
    assert here.query("SELECT count(*) FROM fact_samples")[1] == [(8,)]
    assert there.path.read_bytes() == before
    assert len(there.results()) == 2


def test_merging_keeps_the_result_that_is_here(tmp_path):
    here = filled(tmp_path / "a.duckdb", "r", result(0, message="here", samples={}))
    there = filled(tmp_path / "b.duckdb", "s", result(0, message="there"))
    assert here.merge(there.path).results == 0
    (row,) = here.results(samples=True)
    assert (row["message"], row["samples"]) == ("here", {})


def test_merging_a_store_without_a_column_is_refused(tmp_path):
    here = filled(tmp_path / "a.duckdb", "r", result(0))
    there = filled(tmp_path / "b.duckdb", "s", result(1, "s"))
    with duckdb.connect(str(there.path)) as con:
        con.execute("DROP VIEW benchmark_results")
        con.execute("ALTER TABLE fact_result DROP COLUMN cost_usd")
    with pytest.raises(StoreError, match="lacks the column cost_usd"):
        here.merge(there.path)
    assert len(here.results()) == 1


def test_a_database_is_not_merged_into_itself(tmp_path):
    database = filled(tmp_path / "a.duckdb", "r", result(0))
    link = tmp_path / "link.duckdb"
    link.symlink_to(database.path)
    for other in (database.path, link):
        with pytest.raises(UsageError, match="is the database itself"):
            database.merge(other)
    assert len(database.results()) == 1


def test_what_duckdb_left_in_its_log_is_not_lost(tmp_path):
    """A kill right after a commit leaves rows in the log alone; reading and writing see them."""
    home = tmp_path / "home"
    database = filled(home / "a.duckdb", "r", result(0))
    log = home / "a.duckdb.wal"
    with duckdb.connect(str(database.path)) as con:
        con.execute("INSERT INTO fact_result (result_id) VALUES ('logged')")
        kept, content = log.read_bytes(), database.path.read_bytes()
    database.path.write_bytes(content)
    log.write_bytes(kept)
    assert len(database.results()) == 2
    backup = database.init(overwrite=True)
    assert backup is not None
    assert len(Database(backup).results()) == 2
    assert database.results() == []


def test_two_threads_that_ask_at_once_have_a_connection_each(tmp_path):
    """Pages side by side shared one, which answered the second with “busy with another call”."""
    database = Database(tmp_path / "a.duckdb")
    database.init()
    inside = threading.Barrier(2, timeout=30)
    answered: list[object] = []

    def ask() -> None:
        with database.keep_open():
            inside.wait()  # both are inside before either asks
            for _ in range(50):
                ((count,),) = database.query("SELECT count(*) FROM benchmark_results")[1]
            inside.wait()
            answered.append(count)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answered == [0, 0]

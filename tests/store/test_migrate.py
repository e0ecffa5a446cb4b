from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from bodies import result, started
from power import cut_when_done, every_cut

from accelbench.core.column import Column
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import StoreError
from accelbench.store import database as store
from accelbench.store import migrate, schema
from accelbench.store.database import Database
from accelbench.store.journal import encode

#: The program's own steps: two more are put behind them here.
OWN = schema.MIGRATIONS
TWO_MORE = schema.latest_version() + 2
NEW = Column("new_metric_ms", "float", "metric", "a metric that old stores lack")


def rows(path: Path, sql: str) -> list[Any]:
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(sql).fetchall()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A filled database as an earlier program left it."""
    folder = tmp_path / "old"
    database = Database(folder / "a.duckdb")
    database.journals.mkdir(parents=True)
    lines = b"".join(map(encode, [started(), result(0), result(1)]))
    (database.journals / "r.jsonl").write_bytes(lines)
    database.fill()
    with duckdb.connect(str(database.path)) as con:
        con.execute("DROP VIEW benchmark_results")
        con.execute("ALTER TABLE fact_result DROP COLUMN cost_usd")
        con.execute("ALTER TABLE fact_result DROP COLUMN energy_joules")
        there = schema.columns_of(con, "fact_result")
        chosen = ", ".join(c.name for c in COLUMNS if c.name in there)
        con.execute(f"CREATE VIEW benchmark_results AS SELECT {chosen} FROM fact_result")
        con.execute("CREATE TABLE mine AS SELECT 42 AS answer")  # what a user added
    return folder


@pytest.fixture
def fresh(tmp_path: Path, old: Path) -> Callable[[], Path]:
    numbers = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / f"copy{next(numbers)}"
        shutil.copytree(old, root)
        return root

    return make


def two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (
        schema.Migration("a note per run", ("ALTER TABLE fact ADD COLUMN note VARCHAR",)),
        schema.Migration(
            "notes of old",
            ("UPDATE fact SET note = 'old'", "CREATE VIEW notes AS SELECT note FROM fact"),
        ),
    )
    monkeypatch.setattr(schema, "MIGRATIONS", (*OWN, *steps))


def test_a_reader_takes_an_older_store_as_it_is(old: Path) -> None:
    database = Database(old / "a.duckdb")
    before = database.path.read_bytes()
    found = database.results()
    assert [row["result_id"] for row in found] == ["r-0", "r-1"]
    assert list(found[0]) == [column.name for column in COLUMNS]
    assert found[0]["cost_usd"] is None
    assert database.status()["tables"]["benchmark_results"] == 2
    assert database.query("SELECT answer FROM mine")[1] == [(42,)]
    assert database.fill().results == 0
    assert database.path.read_bytes() == before


def test_a_writer_brings_it_up_to_date_and_keeps_everything(old: Path) -> None:
    database = Database(old / "a.duckdb")
    with (database.journals / "r.jsonl").open("ab") as stream:
        stream.write(encode(result(2, cost_usd=1.5)))
    assert database.fill().results == 1
    found = database.results()
    assert [row["cost_usd"] for row in found] == [None, None, 1.5]
    assert database.query("SELECT answer FROM mine")[1] == [(42,)]
    assert [p.name for p in sorted(old.iterdir())] == [
        "a.duckdb",
        "a.duckdb.journal",
        "a.duckdb.lock",
    ]


def test_a_store_without_calibrations_is_read_as_it_is_and_gets_its_view(old: Path) -> None:
    """Version 1 had neither `device_calibrations` nor a word of where peaks are from."""
    path = old / "a.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("DROP VIEW device_calibrations")
        con.execute("UPDATE store_meta SET schema_version = 1")
    assert "device_calibrations" not in Database(path).status()["tables"]
    Database(path).ensure()
    assert Database(path).status()["tables"]["device_calibrations"] == 0
    assert rows(path, "SELECT peaks_source FROM hardware_info") == []


def test_a_new_column_needs_one_declaration(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (*COLUMNS, NEW)
    monkeypatch.setattr(migrate, "COLUMNS", columns)
    monkeypatch.setattr(schema.add_columns, "__defaults__", (columns,))
    monkeypatch.setattr(schema.make_views, "__defaults__", (columns,))
    Database(old / "a.duckdb").ensure()
    assert rows(old / "a.duckdb", "SELECT new_metric_ms FROM benchmark_results") == [(None,)] * 2


def test_steps_are_taken_once_and_in_order(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = old / "a.duckdb"
    Database(path).ensure()
    two_steps(monkeypatch)
    Database(path).ensure()
    assert rows(path, "SELECT schema_version FROM store_meta") == [(TWO_MORE,)]
    assert rows(path, "SELECT DISTINCT note FROM notes") == [("old",)]
    before = path.read_bytes()
    Database(path).ensure()
    assert path.read_bytes() == before


def test_a_new_store_has_taken_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_steps(monkeypatch)
    Database(tmp_path / "a.duckdb").ensure()
    assert rows(tmp_path / "a.duckdb", "SELECT schema_version FROM store_meta") == [(TWO_MORE,)]
    assert rows(tmp_path / "a.duckdb", "SELECT count(*) FROM notes") == [(0,)]


def test_a_step_that_fails_leaves_the_store_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (schema.Migration("half", ("CREATE TABLE half (i INTEGER)", "SELECT no_such")),)
    monkeypatch.setattr(schema, "MIGRATIONS", (*OWN, *broken))
    before = (old / "a.duckdb").read_bytes()
    with pytest.raises(duckdb.BinderException):
        Database(old / "a.duckdb").ensure()
    assert (old / "a.duckdb").read_bytes() == before


def test_what_a_crash_left_is_cleared_away(old: Path) -> None:
    """A crash inside DuckDB leaves half a copy and its log under the temporary name."""
    for name in ("a.duckdb.making", "a.duckdb.making.wal"):
        (old / name).write_bytes(b"half of something")
    Database(old / "a.duckdb").ensure()
    assert "cost_usd" in Database(old / "a.duckdb").query("FROM benchmark_results")[0]
    assert not list(old.glob("*making*"))


def test_power_cuts_while_migrating(
    fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    two_steps(monkeypatch)
    seen = set()

    def act(root: Path, files: Any) -> None:
        migrate.migrate(root / "a.duckdb", files)

    for root, where in every_cut(fresh, act, after=False):
        path = root / "a.duckdb"
        (version,) = rows(path, "SELECT schema_version FROM store_meta")[0]
        seen.add(version)
        Database(path).ensure()
        assert rows(path, "SELECT schema_version FROM store_meta") == [(TWO_MORE,)], where
        assert rows(path, "SELECT result_id FROM benchmark_results ORDER BY 1") == [
            ("r-0",),
            ("r-1",),
        ], where
        assert rows(path, "SELECT count(*) FROM notes") == [(1,)], where
        assert rows(path, "SELECT answer FROM mine") == [(42,)], where
    assert seen == {TWO_MORE - 2, TWO_MORE}
    done = cut_when_done(fresh, act)
    assert rows(done / "a.duckdb", "SELECT schema_version FROM store_meta") == [(TWO_MORE,)]


def test_what_duckdb_left_in_its_log_is_migrated_too(old: Path) -> None:
    path, log = old / "a.duckdb", old / "a.duckdb.wal"
    with duckdb.connect(str(path)) as con:
        con.execute("INSERT INTO fact_result (result_id) VALUES ('logged')")
        kept, content = log.read_bytes(), path.read_bytes()
    path.write_bytes(content)
    log.write_bytes(kept)
    Database(path).ensure()
    found = rows(path, "SELECT result_id, cost_usd FROM benchmark_results ORDER BY 1")
    assert found == [("logged", None), ("r-0", None), ("r-1", None)]


def test_power_cuts_while_making(tmp_path: Path) -> None:
    numbers = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / f"new{next(numbers)}"
        root.mkdir()
        return root

    def act(root: Path, files: Any) -> None:
        Database(root / "a.duckdb", files).ensure()

    for root, where in every_cut(make, act, after=False):
        database = Database(root / "a.duckdb")
        database.ensure()
        assert database.status()["tables"]["benchmark_results"] == 0, where
    assert (cut_when_done(make, act) / "a.duckdb").exists()


def test_power_cuts_while_overwriting(old: Path, fresh: Callable[[], Path]) -> None:
    """Every result stays in the database, or in the backup, and never twice in one."""
    Database(old / "a.duckdb").ensure()

    def act(root: Path, files: Any) -> None:
        with (root / "a.duckdb.journal" / "r.jsonl").open("ab") as stream:
            stream.write(encode(result(2)))
        Database(root / "a.duckdb", files).init(overwrite=True)

    def held(path: Path) -> list[str]:
        database = Database(path)
        database.fill()
        return [row["result_id"] for row in database.results()]

    ends = set()
    for root, where in every_cut(fresh, act, after=False):
        now = held(root / "a.duckdb")
        kept = [held(path) for path in root.glob("a.backup-*.duckdb")]
        everything = ["r-0", "r-1", "r-2"]
        assert now in (everything, []), where
        assert all(ids == everything for ids in kept), where
        assert now or kept, where
        ends.add((bool(now), len(kept)))
    assert ends == {(True, 0), (True, 1), (False, 1)}
    assert held(cut_when_done(fresh, act) / "a.duckdb") == []


def test_an_overwrite_keeps_the_old_one_with_its_journals(old: Path) -> None:
    database = Database(old / "a.duckdb")
    backup = database.init(overwrite=True)
    assert backup is not None
    assert database.status()["tables"]["benchmark_results"] == 0
    assert database.fill().results == 0  # its journals went with it
    assert len(Database(backup).results()) == 2
    assert (store.journal_dir_for(backup) / "r.jsonl").is_file()
    again = database.init(overwrite=True)
    assert again not in {None, backup}


def test_a_database_that_a_run_writes_to_is_not_overwritten(old: Path) -> None:
    from accelbench.store.journal import Journal

    database = Database(old / "a.duckdb")
    with (
        Journal.create(database.journals, "live"),
        pytest.raises(StoreError, match="Run live is being measured"),
    ):
        database.init(overwrite=True)
    assert len(database.results()) == 2
    assert not list(old.glob("*backup*"))

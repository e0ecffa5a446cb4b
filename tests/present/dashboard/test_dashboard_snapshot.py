from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from dashboard_world import OTHER, result, store, stored_in, visitor
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from starlette.testclient import TestClient

from accelbench.core.errors import AccelbenchError, StoreError, UsageError
from accelbench.present.dashboard import snapshot
from accelbench.present.dashboard.page_query import AS_THEY_LIE, PageQuery, asked
from accelbench.present.dashboard.routes import application
from accelbench.present.dashboard.snapshot import (
    Snapshot,
    SnapshotKeeper,
    SnapshotStep,
    gathered,
    taken,
)
from accelbench.store.database import Database
from accelbench.store.opening import open_store

KNOWN = {"hardware": ["cpu", "cuda"], "machine": ["m1"]}


def cells(database: Database, columns: str = "*") -> list[dict[str, object]]:
    return taken(database, "now").ask(f"SELECT {columns} FROM cell ORDER BY key")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return stored_in(tmp_path)


def test_one_that_failed_among_launches_is_counted_and_not_averaged(database):
    store(
        database,
        "r",
        result(latency_p50_ms=1.0),
        result(launch=1, status="failed", reason="fallback", series_key=result()["series_key"]),
        result(launch=2, latency_p50_ms=3.0),
    )
    (cell,) = cells(database)
    assert (cell["status"], cell["launches"], cell["answered"]) == ("ok", 3, 2)
    assert cell["latency"] == pytest.approx(3**0.5)


def test_a_failure_is_overtaken_by_a_later_success_of_the_same(database):
    failed = result(status="failed", reason="fallback", started_at="2026-01-01T00:00:00Z")
    store(database, "a", failed)
    store(database, "b", result(started_at="2026-01-02T00:00:00Z"))
    assert [cell["status"] for cell in cells(database)] == ["ok"]
    store(database, "c", {**failed, "started_at": "2026-01-03T00:00:00Z"})
    assert sorted(str(cell["status"]) for cell in cells(database)) == ["failed", "ok"]


def test_machines_kinds_and_versions_are_never_mixed(database):
    store(database, "here", result())
    store(database, "there", result(), machine=OTHER)
    store(database, "kinds", *(result(provenance=p) for p in ("imported", "simulated")))
    store(database, "web", result(emulated=True))
    versions = [{"versions": {"torch": v}} for v in ("2.1", "2.2")]
    store(database, "import-x", *(result(provenance="imported", conditions=v) for v in versions))
    found = cells(database, "key, machine, kind, launches")
    assert len(found) == 7
    assert {cell["launches"] for cell in found} == {1}
    assert sorted(str(cell["kind"]) for cell in found) == [
        *("emulated", "imported", "imported", "imported", "measured", "measured", "simulated")
    ]
    assert len({cell["machine"] for cell in found}) == 2


def test_an_imports_newest_moment_is_its_cell(database):
    rows = [
        result(provenance="imported", latency_p50_ms=day, started_at=f"2026-01-{day:02}T00:00:00Z")
        for day in (1, 3, 2)
    ]
    store(database, "import-x", *rows)
    (cell,) = cells(database)
    assert (cell["latency"], cell["launches"], cell["runs"]) == (3.0, 1, 3)


def test_what_has_no_series_is_told_apart_by_what_was_asked(database):
    store(
        database, "r", *(result(status="failed", batch_size=size, reason="x") for size in (1, 8, 8))
    )
    assert sorted(int(str(cell["launches"])) for cell in cells(database)) == [1, 2]


def test_keys_stay_the_same(database, tmp_path):
    """An address that was sent to somebody leads to the same cell after the next run."""
    store(database, "a", result())
    (before,) = cells(database, "key")
    store(database, "b", result(started_at="2026-05-01T00:00:00Z"))
    assert cells(database, "key") == [before]


def test_a_lake_is_looked_at_like_a_database(tmp_path, monkeypatch):
    folder = tmp_path / "lake"
    folder.mkdir()
    lake = open_store(folder)
    lake.ensure()
    store(lake, "a", result())
    assert "1 configuration" in visitor(lake).get("/results").text


# -- when the store changes


def test_a_changed_store_is_read_again_without_anybody_waiting(database, monkeypatch):
    monkeypatch.setattr(snapshot, "_LOOK_SECONDS", 0.0)
    keeper = SnapshotKeeper(database)
    first = keeper.newest()
    assert first is not None
    assert first.cells == 0
    assert keeper.newest() is first
    store(database, "a", result())
    assert keeper.newest() is not None
    until = time.monotonic() + 30
    while (found := keeper.newest()) is first and time.monotonic() < until:
        time.sleep(0.01)
    assert isinstance(found, Snapshot)
    assert found.cells == 1


def test_a_store_that_cannot_be_read_is_said_to_be(tmp_path):
    path = tmp_path / "other.duckdb"
    path.write_text("no database at all")
    with pytest.raises(StoreError, match="not a DuckDB database"):
        SnapshotKeeper(Database(path)).newest()
    answer = visitor(Database(path)).get("/results")
    assert answer.status_code == 503
    assert "it was left as it is" in answer.text


def test_one_that_was_read_before_is_still_shown_with_what_is_wrong(database, monkeypatch):
    monkeypatch.setattr(snapshot, "_LOOK_SECONDS", 0.0)
    store(database, "a", result())
    site = visitor(database)
    assert site.get("/results").status_code == 200
    database.path.write_text("gone")
    until = time.monotonic() + 30
    while "Older than the store" not in (page := site.get("/results").text):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert "1 configuration" in page


def test_what_others_gave_to_a_lake_is_fetched_now_and_then(database):
    fetched: list[int] = []
    keeper = SnapshotKeeper(database, lambda: fetched.append(1))
    keeper.newest()
    assert fetched == [1]

    def broken() -> None:
        raise AccelbenchError("The network is gone.")

    with pytest.raises(AccelbenchError, match="network"):
        SnapshotKeeper(database, broken).newest()


# -- addresses


def test_addresses():
    # Values never become sql.
    nasty = "x' OR 1=1 --"
    found = PageQuery(model=nasty, chosen={"hardware": (nasty,)}, since="2026-01-01", until=nasty)
    where, values = found.where()
    assert nasty not in where
    assert values == [nasty.lower(), nasty, "2026-01-01", nasty]
    assert where.count("?") == len(values)
    # The same column again turns the order round.
    first = PageQuery().ordered("latency")
    assert (first.sort, first.falling) == ("latency", False)
    assert first.ordered("latency").falling
    assert not first.ordered("latency").ordered("memory").falling
    # A filter is taken away alone.
    found = PageQuery(model="b", chosen={"hardware": ("cpu",)}, since="2026-01-01", page=4)
    assert found.without("model").query() == "?hardware=cpu&from=2026-01-01"
    assert found.without("hardware").query() == "?model=b&from=2026-01-01"
    assert found.without("from").query() == "?model=b&hardware=cpu"
    # No list is endless.
    found = asked([("cell", str(n)) for n in range(1000)], KNOWN)
    assert len(found.cells) == 12
    with pytest.raises(UsageError, match="Known: cpu, cuda"):
        asked([("hardware", "x" * 10_000)], KNOWN)


def test_cells_lie_in_the_order_of_the_usual_page(database):
    """A page's order is where cells lie: it has to be that of its six columns."""
    store(
        database,
        "a",
        *(
            result(model=name, runtime=runtime, batch_size=batch, status=status)
            for name in ("b", "A", "a", "C")
            for runtime in ("pytorch", "onnxruntime")
            for batch, status in ((8, "ok"), (1, "ok"), (None, "failed"))
        ),
    )
    made = taken(database, "now")
    lying = [row["key"] for row in made.ask("SELECT key FROM cell ORDER BY rowid")]
    ordered = [row["key"] for row in made.ask(f"SELECT key FROM cell ORDER BY {AS_THEY_LIE}")]
    assert len(lying) == 24
    assert lying == ordered
    wanted = made.ask("SELECT rowid AS place, key FROM cell ORDER BY batch_size DESC, key LIMIT 7")
    whole = made.lying([int(str(row["place"])) for row in wanted], "key, model")
    assert [row["key"] for row in whole] == [row["key"] for row in wanted]
    assert set(whole[0]) == {"key", "model"}


_ENDS_MEANWHILE = """
import sys, time
from pathlib import Path
import duckdb
from accelbench.present.dashboard.snapshot import SnapshotKeeper
from accelbench.store.database import Database

def reads():
    Path(sys.argv[2]).write_text("begun")
    end = time.monotonic() + 0.5
    with duckdb.connect() as con:
        while time.monotonic() < end:
            con.execute("SELECT count(*) FROM range(1000)").fetchall()
    Path(sys.argv[2]).write_text("ended")

SnapshotKeeper(Database(Path(sys.argv[1])), reads).begin()
while not Path(sys.argv[2]).exists():
    time.sleep(0.01)
"""


def test_a_program_that_ends_under_the_first_snapshot_lets_it_end(database, tmp_path):
    told = tmp_path / "told"
    words = [sys.executable, "-c", _ENDS_MEANWHILE, str(database.path), str(told)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert told.read_text() == "ended"


def test_who_waits_for_the_first_snapshot_sees_how_far_it_is(stored, monkeypatch):
    reached, let_go = threading.Event(), threading.Event()

    def held_up(con: DuckDBPyConnection) -> DuckDBPyRelation:
        reached.set()
        assert let_go.wait(60)
        return gathered(con)

    monkeypatch.setattr(snapshot, "gathered", held_up)
    keeper = SnapshotKeeper(stored)
    with keeper:
        site = TestClient(application(stored, keeper=keeper), base_url="http://127.0.0.1:8501")
        assert reached.wait(60)
        monkeypatch.setattr(keeper, "newest", lambda: None)  # nobody waits for five seconds here
        answer = site.get("/results")
        let_go.set()
    ((results,),) = stored.query("SELECT count(*) FROM benchmark_results")[1]
    assert (answer.status_code, answer.headers["refresh"]) == (202, "1")
    assert f"Step 2 of 3: {SnapshotStep.RESULTS.value}; {results} results." in answer.text
    assert 'max="3" value="1"' in answer.text

"""Who comes before the first snapshot is there."""

from __future__ import annotations

import threading

import pytest
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from starlette.testclient import TestClient

from accelbench.report.dashboard.app import application
from accelbench.report.dashboard.snapshots import snapshot
from accelbench.report.dashboard.snapshots.gathering import gathered
from accelbench.report.dashboard.snapshots.snapshot import SnapshotKeeper, SnapshotStep
from accelbench.store.database import Database


def test_who_waits_for_the_first_snapshot_sees_how_far_it_is(
    stored: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
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

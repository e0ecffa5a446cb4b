"""Rows to judge are found by few columns and read by where they lie: the same as asked at once."""

from __future__ import annotations

import pytest
from dashboard_world import result, store

from accelbench.core.errors import UsageError
from accelbench.judge.stored_results import rows_of
from accelbench.store.database import Database

COLUMNS = ("result_id", "run_id", "model", "started_at", "options")
#: Of each case the newest run, as the baseline of a check is chosen.
NEWEST = (
    "status = ? QUALIFY run_id = arg_max(run_id, benchmark_results.started_at)"
    " OVER (PARTITION BY case_id)"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = Database(tmp_path_factory.mktemp("rows") / "a.duckdb")
    made.ensure()
    for number, run in enumerate(("b", "c", "a")):
        rows = (
            result(
                model=f"m{n}",
                launch=launch,
                options={"n": n},
                started_at=f"2026-01-0{3 - number}T00:00:0{launch}Z",
            )
            for n in range(number + 1)
            for launch in range(2)
        )
        store(made, run, *rows)
    return made


def test_what_a_window_chooses_is_what_it_chooses_of_whole_rows(database):
    rows = rows_of(database, COLUMNS, NEWEST, ["ok"])
    _, at_once = database.query(
        f"SELECT result_id FROM benchmark_results WHERE {NEWEST}"
        " ORDER BY benchmark_results.started_at, result_id",
        ["ok"],
    )
    assert [(row["result_id"],) for row in rows] == at_once
    assert {(row["model"], row["run_id"]) for row in rows} == {
        ("m0", "b"),
        ("m1", "c"),
        ("m2", "a"),
    }
    assert rows[0]["options"] == {"n": 2}
    assert str(rows[0]["started_at"]).startswith("2026-01-01")


def test_more_than_anybody_reads_are_refused(database):
    assert len(rows_of(database, COLUMNS, "true", (), most=12)) == 12
    with pytest.raises(UsageError, match="More than 11 results"):
        rows_of(database, COLUMNS, "true", (), most=11)

"""What other stores bring is held to what a result can be, and to what is known by its id."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from bodies import finished, result, started

from accelbench.core.errors import StoreError
from accelbench.core.facts import RESULT_REFUSED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import encode
from accelbench.store.lake import Lake
from accelbench.store.places import FolderPlace

IMPOSSIBLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"memory_peak_mb": 1e15}, "memory_peak_mb: 1e+15 is above the largest possible value"),
    ({"steps_verified": "maybe"}, "steps_verified: 'maybe' is not one of ok, not_done"),
    ({"latency_mean_ms": None}, "status: there is neither a latency nor a rate"),
    ({"started_at": "1990-01-01T00:00:00Z"}, "started_at: '1990-01-01 00:00:00' is in the"),
)


def filled(path: Path, *facts: Fact) -> Database:
    database = Database(path)
    database.ensure()
    database.journals.mkdir()
    (database.journals / "r.jsonl").write_bytes(b"".join(map(encode, facts)))
    database.fill()
    return database


def refused(database: Database) -> list[str]:
    asked = f"SELECT body->>'why' FROM fact WHERE kind = '{RESULT_REFUSED}' ORDER BY 1"
    return [why for (why,) in database.query(asked)[1]]


def ids(database: Database) -> list[str]:
    return sorted(row["result_id"] for row in database.results())


@pytest.mark.parametrize("orphan", [False, True], ids=["in the database", "in a journal"])
def test_another_figure_under_a_known_id_is_not_merged(orphan, tmp_path):
    here = filled(tmp_path / "a.duckdb", result(0))
    facts = (started("s"), result(1, "s"))
    other = result(0, latency_mean_ms=7.0)
    there = filled(tmp_path / "b.duckdb", *(facts if orphan else (*facts, other)))
    if orphan:
        (there.journals / "t.jsonl").write_bytes(encode(other))
    with pytest.raises(StoreError) as caught:
        here.merge(there.path)
    said = caught.value.message
    assert "Result r-0 of" in said
    assert "7.0 in latency_mean_ms" in said
    assert "has 0.1: one of the two is wrong" in said
    assert str(here.path) in said
    assert str(there.path) in said
    assert here.results("result_id = 'r-0'")[0]["latency_mean_ms"] == 0.1
    if not orphan:
        assert ids(here) == ["r-0"]


@pytest.mark.parametrize("orphan", [False, True], ids=["in the database", "in a journal"])
def test_what_cannot_be_stays_out_alone_and_is_said(orphan, tmp_path):
    bad = [result(n, "s", **said) for n, (said, _) in enumerate(IMPOSSIBLE, 1)]
    there = filled(tmp_path / "b.duckdb", result(9, "s"))
    if not orphan:  # as no journal brings them in
        there.bring_in("s", [], [{**fact.body, "result_id": fact.id} for fact in bad])
    if orphan:
        (there.journals / "t.jsonl").write_bytes(b"".join(map(encode, bad)))
    here = Database(tmp_path / "a.duckdb")
    found = here.merge(there.path)
    assert found.results == 1
    assert ids(here) == ["s-9"]
    assert len(found.problems) == len(refused(here)) == len(IMPOSSIBLE)
    assert here.query("SELECT DISTINCT result_id FROM raw_benchmark_data")[1] == [("s-9",)]
    for _, why in IMPOSSIBLE:
        column = why.partition(":")[0]
        assert any(f"is not stored: {column}: " in said for said in found.problems)
        assert orphan or any(why in said for said in found.problems)


def test_of_many_a_few_are_named(tmp_path):
    bad = [result(n, "s", sample_count=9) for n in range(12)]
    there = filled(tmp_path / "b.duckdb", result(20, "s"))
    with duckdb.connect(str(there.path)) as con:  # as no program of ours stores them
        con.execute("UPDATE fact_result SET sample_count = 4")
        for one in bad:
            con.execute(
                "INSERT INTO fact_result BY NAME SELECT * REPLACE ($1 AS result_id, -1.0 AS"
                " latency_mean_ms) FROM fact_result WHERE result_id = 's-20'",
                [one.id],
            )
    shutil.rmtree(there.journals)
    found = Database(tmp_path / "a.duckdb").merge(there.path)
    assert found.results == 0
    assert len(found.problems) == 9
    assert found.problems[-1].startswith("5 more of ")
    assert any("sample_count: 4 is not what its samples give, 3" in one for one in refused(
        Database(tmp_path / "a.duckdb")
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE fact_result ALTER latency_mean_ms TYPE VARCHAR", "has VARCHAR in the column"),
        ("ALTER TABLE fact_result DROP result_id", "lacks the column result_id"),
        ("DROP TABLE fact_samples", "lacks a table of ours"),
        ("ALTER TABLE fact DROP body", "lacks the column body"),
    ],
)
def test_a_database_that_only_looks_like_ours_is_refused(statement, why, tmp_path):
    there = filled(tmp_path / "b.duckdb", result(0, "s"))
    with duckdb.connect(str(there.path)) as con:
        for view in ("benchmark_results", "raw_benchmark_data", "benchmark_runs", "hardware_info"):
            con.execute(f"DROP VIEW {view}")
        con.execute(statement)
    here = Database(tmp_path / "a.duckdb")
    with pytest.raises(StoreError, match=why):
        here.merge(there.path)
    assert not here.results()


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Lake]:
    (tmp_path / "la[k]e").mkdir()

    def of(name: str) -> Lake:
        return Lake(tmp_path / name / "mirror.duckdb", place=FolderPlace(tmp_path / "la[k]e"))

    return of


def forge(lake: Lake, name: str, sql: str) -> Path:
    """A file of the lake's results, written by somebody else."""
    folder = Path(lake.place.name) / "results"
    (first,) = (one for one in folder.iterdir() if one.stem != name)
    new = folder.parents[1] / f"{name}.parquet"
    shutil.copy(first, folder.parents[1] / "first.parquet")
    query = sql.format(f"read_parquet('{folder.parents[1] / 'first.parquet'}')")
    duckdb.connect().execute(f"COPY ({query}) TO '{new}' (FORMAT parquet)")
    return new.rename(folder / f"{name}.parquet")


def measured(lake: Lake) -> None:
    lake.ensure()
    lake.journals.mkdir(parents=True)
    facts = (started(), result(0), finished())
    (lake.journals / "r.jsonl").write_bytes(b"".join(map(encode, facts)))
    lake.fill()


def test_a_file_of_a_lake_with_another_figure_is_an_error(machine):
    one, late = machine("one"), machine("late")
    measured(one)
    file = forge(one, "zz", "SELECT * REPLACE (7::DOUBLE AS latency_mean_ms) FROM {}")
    for lake in (one, late):
        lake.ensure()
        with pytest.raises(StoreError, match=r"Result r-0 in .*results/zz\.parquet") as caught:
            lake.fill()
        assert "7.0" in caught.value.message
        assert "0.1" in caught.value.message
    assert "results/r" in caught.value.message or " and " in caught.value.message
    file.unlink()
    assert late.fill().results == 1


def test_what_cannot_be_in_a_lake_stays_out_alone(machine):
    one = machine("one")
    measured(one)
    bad = "SELECT * REPLACE ('x' || result_id AS result_id, -1::DOUBLE AS latency_mean_ms) FROM {}"
    forge(one, "zz", f"{bad} UNION ALL SELECT * REPLACE ('y' AS result_id) FROM {{}}".replace(
        "{}", "{0}"))  # fmt: skip
    found = one.fill()
    assert found.results == 1
    assert found.problems == (
        f"Result xr-0 of {one.name} is not stored: latency_mean_ms: -1 is not above 0.",
    )
    assert ids(one) == ["r-0", "y"]
    assert one.fill().problems == ()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("manifest/a.json", '{"replaces": 5}', r"a\.json of .* \(replaces is not a list of names"),
        ("manifest/a.json", '{"replaces": [["x"]]}', "replaces is not a list of names"),
        ("manifest/a.json", "[" * 100_000, "nested deeper"),
        ("accelbench-lake.json", '{"application": "accelbench", "schema_version": "x"}', "'x'"),
        ("results/a.parquet/b", "", r"is damaged \(.*a\.parquet"),
        ("results/a.parquet", "PAR1", r"is damaged \(.*a\.parquet"),
    ],
)
def test_what_lies_in_a_lake_and_is_not_ours_is_named(name, text, why, machine):
    lake = machine("one")
    lake.ensure()
    file = Path(lake.place.name) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with pytest.raises(StoreError, match=why):
        lake.fill()


def test_a_file_that_is_no_lakes_is_named(machine):
    one = machine("one")
    measured(one)
    forge(one, "zz", "SELECT * REPLACE ('soon' AS latency_mean_ms) FROM {}")
    with pytest.raises(StoreError, match=r"results/zz\.parquet has VARCHAR in the column latency_"):
        one.fill()

"""`accelbench db merge`: databases and lakes, each into each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import duckdb
import pytest
from shells import Command
from stored_rows import store


@pytest.fixture
def shell(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("ACCELBENCH_CACHE", "cache")
    return command("db")


def results(shell: Command, name: str) -> int:
    return int(shell.json("status", "--db", name)["tables"]["benchmark_results"])


def test_merge_brings_in_several_and_twice_is_once(tmp_path, shell):
    for name in ("b", "c"):
        store(tmp_path / f"{name}.duckdb", {}, {"launch": 1}, run=name)
    arguments = ("merge", tmp_path / "b.duckdb", tmp_path / "c.duckdb", "--db", "a.duckdb")
    assert [one["results"] for one in shell.json(*arguments)["merged"]] == [2, 2]
    code, out, _ = shell(*arguments)
    assert code == 0
    assert out.count("0 results and 0 other facts") == 2
    assert results(shell, "a.duckdb") == 4


@pytest.mark.parametrize("word", ["lake", "file://{}/lake"])
def test_a_lake_goes_into_a_database(word, tmp_path, shell):
    (tmp_path / "lake").mkdir()
    store(tmp_path / "lake", {}, run="r1")
    word = word.format(tmp_path)
    code, out, _ = shell("merge", word, "--db", "a.duckdb")
    assert (code, out) == (0, f"1 result and 1 other fact from {tmp_path / 'lake'}\n")
    assert shell.json("merge", word, "--db", "a.duckdb")["merged"][0]["results"] == 0
    store(tmp_path / "lake", {}, run="r2")
    assert shell.json("merge", word, "--db", "a.duckdb")["merged"][0]["results"] == 1
    assert (results(shell, "a.duckdb"), results(shell, "lake")) == (2, 2)


def test_a_database_and_a_lake_go_into_a_lake(tmp_path, shell):
    for name in ("lake", "other"):
        (tmp_path / name).mkdir()
    store(tmp_path / "a.duckdb", {}, run="r1")
    store(tmp_path / "lake", {}, run="r2")
    assert shell("merge", "a.duckdb", "--db", "lake")[0] == 0
    assert shell("merge", "lake", "--db", "other")[0] == 0
    assert (results(shell, "lake"), results(shell, "other")) == (2, 2)


def test_what_is_no_lake_is_refused_and_nothing_is_made(tmp_path, shell):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("precious")
    code, _, err = shell("merge", "folder", "--db", "a.duckdb")
    assert (code, f"{tmp_path / 'folder'} is no lake" in err) == (2, True)
    assert not (tmp_path / "a.duckdb").exists()
    (tmp_path / "lake").mkdir()
    store(tmp_path / "lake", {})
    code, _, err = shell("merge", "lake", "--db", "lake")
    assert (code, "is the lake itself" in err) == (2, True)


def test_a_refused_result_ends_with_1_and_the_others_come_in(tmp_path, shell):
    store(tmp_path / "b.duckdb", {}, {"launch": 1}, run="b")
    assert results(shell, "b.duckdb") == 2  # what waits in journals is filled in
    with duckdb.connect(str(tmp_path / "b.duckdb")) as con:
        con.execute("UPDATE fact_result SET memory_peak_mb = -1 WHERE launch = 1")
    shutil.rmtree(tmp_path / "b.duckdb.journal")
    code, out, err = shell("merge", "b.duckdb", "--db", "a.duckdb", "--json")
    (merged,) = json.loads(out)["merged"]
    assert (code, merged["results"], merged["refused"]) == (1, 1, 1)
    assert "memory_peak_mb" in err
    assert results(shell, "a.duckdb") == 1
    assert merged["refused_results"] == [
        {"result_id": "b-1", "field": "memory_peak_mb", "reason": "-1 is below 0"}
    ]


def test_measured_results_that_came_as_imported_copies_are_counted(tmp_path, shell):
    store(tmp_path / "b.duckdb", {}, {"launch": 1}, run="b")
    copy = {"provenance": "imported"}
    store(tmp_path / "a.duckdb", copy, {"launch": 1, **copy}, run="b")
    assert (results(shell, "a.duckdb"), results(shell, "b.duckdb")) == (2, 2)
    arguments = ("merge", "b.duckdb", "--db", "a.duckdb")
    assert shell.json(*arguments)["merged"][0]["imported_copies_kept"] == 2
    _, out, _ = shell(*arguments)
    assert "2 measured results are here already as imported copies" in out
    assert (
        shell.json("merge", "a.duckdb", "--db", "b.duckdb")["merged"][0]["imported_copies_kept"]
        == 0
    )

"""`accelbench db merge`: databases and lakes, each into each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shells import Command
from stored_rows import store


@pytest.fixture
def shell(command: Callable[..., Command], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("ACCELBENCH_CACHE", "cache")
    return command("db")


def results(shell: Command, name: str) -> int:
    return int(shell.json("status", "--db", name)["tables"]["benchmark_results"])


def test_merge_brings_in_several_and_twice_is_once(tmp_path: Path, shell: Command) -> None:
    for name in ("b", "c"):
        store(tmp_path / f"{name}.duckdb", {}, {"launch": 1}, run=name)
    arguments = ("merge", tmp_path / "b.duckdb", tmp_path / "c.duckdb", "--db", "a.duckdb")
    assert [one["results"] for one in shell.json(*arguments)["merged"]] == [2, 2]
    code, out, _ = shell(*arguments)
    assert code == 0
    assert out.count("0 results and 0 other facts") == 2
    assert results(shell, "a.duckdb") == 4


@pytest.mark.parametrize("word", ["lake", "file://{}/lake"])
def test_a_lake_goes_into_a_database(word: str, tmp_path: Path, shell: Command) -> None:
    (tmp_path / "lake").mkdir()
    store(tmp_path / "lake", {}, run="r1")
    word = word.format(tmp_path)
    code, out, _ = shell("merge", word, "--db", "a.duckdb")
    assert (code, out) == (0, f"1 result and 1 other fact from {tmp_path / 'lake'}\n")
    assert shell.json("merge", word, "--db", "a.duckdb")["merged"][0]["results"] == 0
    store(tmp_path / "lake", {}, run="r2")
    assert shell.json("merge", word, "--db", "a.duckdb")["merged"][0]["results"] == 1
    assert (results(shell, "a.duckdb"), results(shell, "lake")) == (2, 2)


def test_a_database_and_a_lake_go_into_a_lake(tmp_path: Path, shell: Command) -> None:
    for name in ("lake", "other"):
        (tmp_path / name).mkdir()
    store(tmp_path / "a.duckdb", {}, run="r1")
    store(tmp_path / "lake", {}, run="r2")
    assert shell("merge", "a.duckdb", "--db", "lake")[0] == 0
    assert shell("merge", "lake", "--db", "other")[0] == 0
    assert (results(shell, "lake"), results(shell, "other")) == (2, 2)


def test_what_is_no_lake_is_refused_and_nothing_is_made(tmp_path: Path, shell: Command) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("precious")
    code, _, err = shell("merge", "folder", "--db", "a.duckdb")
    assert (code, f"{tmp_path / 'folder'} is no lake" in err) == (2, True)
    assert not (tmp_path / "a.duckdb").exists()
    (tmp_path / "lake").mkdir()
    store(tmp_path / "lake", {})
    code, _, err = shell("merge", "lake", "--db", "lake")
    assert (code, "is the lake itself" in err) == (2, True)

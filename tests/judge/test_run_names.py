"""Runs by a word, results of a folder by any spelling of it, and the series of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.judge.filters import by_word, filters_of, model_words
from accelbench.judge.older_runs import NOISE
from accelbench.judge.run_names import measured_series, only_runs, runs_meant
from accelbench.judge.suggestions import NothingMeasuredError
from accelbench.store.database import Database
from accelbench.store.journal import Journal


def add_run(database: Database, run: str, day: int, label: str | None = None) -> None:
    moment = f"2026-01-{day:02d}T00:00:00Z"
    with Journal.create(database.journals, run) as journal:
        journal.append(Fact(RUN_STARTED, run, {"started_at": moment, "label": label}))
        body = {"run_id": run, "series_key": f"s{day}", "model": "m", "started_at": moment}
        journal.append(Fact(RESULT, f"{run}-1", body | {"status": "ok", "launch": 1}))
    database.fill()


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(tmp_path / "x.duckdb")
    made.ensure()
    return made


def test_last_is_the_newest_run_that_no_check_made(database):
    add_run(database, "new", 3)
    add_run(database, "old", 2)
    add_run(database, "noise", 4, NOISE)
    assert runs_meant(database, "last") == ["new"]
    assert only_runs(database, ["last"]) == {"run_id": ("new",)}


def test_a_run_with_the_label_last_comes_before_the_newest(database):
    add_run(database, "old", 2, "last")
    add_run(database, "new", 3)
    assert runs_meant(database, "last") == ["old"]


def test_the_series_of_a_run_are_a_filter(database):
    add_run(database, "a", 2)
    add_run(database, "b", 3)
    assert measured_series(database, ["b"]) == {"series_key": ("s3",)}
    with pytest.raises(NothingMeasuredError):
        measured_series(database, ["c"])


@pytest.mark.parametrize("word", ["my-llama", "my-llama/", "./my-llama", "/x/my-llama/"])
def test_every_spelling_of_a_folder_finds_its_results(word):
    assert "my-llama/" in filters_of([word])["model"]
    both = filters_of(["my-llama/", word])["model"]
    assert len(by_word("model", both)) == 1


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (["weird name (v2) x.onnx"], ("weird name (v2) x.onnx",)),
        (["nets, of mine.py:make"], ("nets, of mine.py:make",)),
        (["bert-tiny mine.onnx"], ("bert-tiny", "mine.onnx")),
        (["one.onnx two.onnx", "one.onnx"], ("one.onnx", "two.onnx")),
        (["bert-tiny,vit-tiny", ""], ("bert-tiny", "vit-tiny")),
    ],
)
def test_a_files_name_with_spaces_is_one_model(typed, names):
    assert model_words(typed) == names
    assert set(filters_of(typed)["model"]) >= set(names)


def test_a_folder_here_with_spaces_is_one_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my bert").mkdir()
    assert model_words(["my bert"]) == ("my bert",)
    assert model_words(["my bert"], files_here=False) == ("my", "bert")

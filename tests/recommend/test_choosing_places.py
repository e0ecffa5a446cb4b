"""What a database path may be, and that reading it one way or the other says the same."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from choosing_world import result, selector, stored

from accelbench.core.errors import StoreError
from accelbench.present.table_export import write_json
from accelbench.recommend.selector import HardwareSelector
from accelbench.store.database import Database
from accelbench.store.opening import open_store

QUESTION = ("embedding", "bert-tiny", 1)


def primary(place: Path | str | None) -> str:
    answer = HardwareSelector(place).select_hardware(*QUESTION)
    assert answer["all_scores"][answer["primary_recommendation"]]["basis"] == "measured"
    return str(answer["primary_recommendation"])


def two(path: Path) -> Path:
    return stored(path, result(), result(hardware="openvino", latency_p50_ms=1.0))


def test_a_database_file_and_a_folder_with_one(tmp_path):
    (tmp_path / "folder").mkdir()
    path = two(tmp_path / "folder" / "mine.duckdb")
    assert primary(path) == "openvino"
    assert primary(str(tmp_path / "folder")) == "openvino"
    stored(tmp_path / "folder" / "other.duckdb", result())
    with pytest.raises(StoreError, match="several databases"):
        HardwareSelector(tmp_path / "folder")


def test_the_usual_database_without_a_path(tmp_path, monkeypatch):
    two(tmp_path / "accelbench.duckdb")
    assert primary(None) == "openvino"
    monkeypatch.setenv("ACCELBENCH_DB", str(two(tmp_path / "named.duckdb")))
    assert primary(None) == "openvino"


def test_a_lake(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "lake").mkdir()
    lake = open_store(tmp_path / "lake")
    lake.init()
    lake.merge(two(tmp_path / "source.duckdb"))
    assert primary(tmp_path / "lake") == "openvino"


def test_a_folder_of_result_files(tmp_path, caplog):
    database = Database(two(tmp_path / "source.duckdb"))
    rows = [
        {**row, "result_id": f"id-{n}", "case_id": f"case-{n}"}
        for n, row in enumerate(database.results())
    ]
    raw = tmp_path / "benchmark_results" / "raw_results"
    raw.mkdir(parents=True)
    write_json(raw / "all.json", list(rows[0]), rows)
    (raw / "notes.json").write_text("[1, 2]", encoding="utf-8")
    assert primary(tmp_path / "benchmark_results") == "openvino"
    (tmp_path / "empty").mkdir()
    answer = HardwareSelector(tmp_path / "empty").select_hardware(*QUESTION)
    assert answer["all_scores"]["cpu"]["basis"] == "rule"
    assert "no results in" in caplog.text


def test_one_question_and_many_are_read_differently_and_answered_alike(tmp_path):
    path = stored(
        tmp_path / "r.duckdb",
        *(
            result(
                model=f"model-{n}", hardware=hardware, flops=1e6 * n, parameters=1000 * n,
                latency_p50_ms=(1.0 + n) * share, batch_size=batch,
            )
            for n in range(1, 9)
            for hardware, share in (("cpu", 3.0), ("cuda", 1.0))
            for batch in (1, 2, 16)
            if (n + batch) % 3
        ),
    )  # fmt: skip
    many = HardwareSelector(path)
    many.select_hardware("embedding", "model-1", 1)
    for n in range(2, 9):
        for batch in (1, 4):
            question = ("embedding", f"model-{n}", batch)
            alone = HardwareSelector(path).select_hardware(*question)
            assert many.select_hardware(*question) == alone


def test_every_stored_model_and_models_ranked_for_a_task(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=5.0),
        result(model="distilbert-tiny", latency_p50_ms=2.0),
        result(model="gpt2-tiny", family="text_generation", latency_p50_ms=1.0),
    )
    assert set(chosen.select_for_all_models()) == {"bert-tiny", "distilbert-tiny", "gpt2-tiny"}
    ranked = chosen.rank_models("embedding", ["cpu"])
    assert [one["model"] for one in ranked] == ["distilbert-tiny", "bert-tiny"]
    assert ranked[0]["throughput"] == 500.0
    assert [one["model"] for one in chosen.rank_models("generation")] == ["gpt2-tiny"]


def test_debug_says_what_is_looked_at(tmp_path, caplog):
    logger = logging.getLogger("hardware_selector")
    before = logger.level
    try:
        chosen = selector(tmp_path, result(), debug=True)
        chosen.select_hardware(*QUESTION)
    finally:
        logger.setLevel(before)
    assert "evidence: " in caplog.text
    assert "cells where model IN" in caplog.text


def test_a_ranking_of_many_models_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("accelbench.recommend.selector._MANY", 2)
    names = ("bert-tiny", "bert-base", "distilbert-tiny")
    heard: list[str] = []
    selector(tmp_path, *(result(model=name) for name in names), hear=heard.append).rank_models(
        "embedding"
    )
    assert [words for words in heard if words.startswith("Choosing")] == [
        "Choosing for 3 models: 0 done …",
        "Choosing for 3 models: 2 done …",
    ]

"""`recommend --verify`: the answer is measured here, for real, and the next one rests on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shells import Command
from stored_rows import store

from accelbench.cli import verifying
from accelbench.store.database import Database

DB = "accelbench.duckdb"
CARD = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0, "throughput": 500.0}


def asked(journey: Any) -> list[tuple[str, str, str, int]]:
    return [
        (str(one.case.target), one.case.precision, one.case.mode.value, one.case.shapes.batch)
        for one in journey.plan.cases
    ]


def test_an_answer_by_rule_becomes_one_by_measurement(tmp_path: Path, recommend: Command) -> None:
    words = ("bert-tiny", "--hardware", "cpu", "--precision", "fp32")
    code, out, err = recommend(*words, "--verify")
    assert code == 0, err
    assert "measured" in out
    assert "1 measurement" in err
    (row,) = Database(tmp_path / DB).results()
    assert (row["model"], row["batch_size"], row["hardware"]) == ("bert-tiny", 1, "cpu")
    (found,) = recommend.json(*words)["recommendations"]
    assert found["all_scores"]["cpu"]["basis"] == "measured"
    assert found["all_scores"]["cpu"]["predictions"]["latency"] > 0


def test_a_named_database_is_made(
    tmp_path: Path, recommend: Command, planned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(database: Database, journeys: Any) -> list[str]:
        planned.extend(journeys)
        store(database.path, {"latency_p50_ms": 3.0, "throughput": 333.0})
        database.fill()
        return ["r"]

    monkeypatch.setattr(verifying, "measured", measured)
    words = ("bert-tiny", "--hardware", "cpu", "--db", tmp_path / "new.duckdb")
    code, out, err = recommend(*words, "--verify")
    assert code == 0, err
    assert "measured" in out
    assert (tmp_path / "new.duckdb").exists()


def test_a_search_under_limits_measures_what_it_thinks_fits(
    recommend: Command, planned: list[Any]
) -> None:
    recommend("bert-tiny", "--hardware", "cpu", "--memory-mb", "2048", "--verify")
    (journey,) = planned
    ((target, precision, mode, batch),) = asked(journey)
    assert (target, precision, mode) == ("pytorch/cpu", "fp32", "inference")
    assert batch > 1  # the largest that is estimated to fit


def test_the_question_is_measured_as_it_was_asked(recommend: Command, planned: list[Any]) -> None:
    words = ("--batch-size", "2", "--sequence-length", "32", "--task", "training")
    recommend("bert-tiny", "--hardware", "cpu", "--precision", "bf16", *words, "--verify")
    (journey,) = planned
    assert asked(journey) == [("pytorch/cpu", "bf16", "training", 2)]
    assert journey.plan.cases[0].case.shapes.sequence == 32
    assert journey.settings.launches == 1


def test_where_nothing_wins_clearly_both_are_measured_in_turns(
    tmp_path: Path, recommend: Command, planned: list[Any]
) -> None:
    other = {"hardware": "openvino", "runtime": "openvino", "latency_p50_ms": 7.95}
    store(tmp_path / DB, {}, {**other, "throughput": 120.5, "device_name": "A processor"})
    (tmp_path / "time.json").write_text(
        '{"selection_criteria": {"inference": {"compatibility_weight": 0}}}'
    )
    words = ("--hardware", "cpu", "openvino", "--config", "time.json")
    _, _, err = recommend("bert-tiny", *words, "--verify")
    (journey,) = planned
    assert journey.settings.launches >= 5
    there = {target.partition("/")[0] for target, *_ in asked(journey)}
    assert "pytorch" in there
    assert "openvino" in there or "openvino is not present" in err


def test_what_is_not_here_is_said(tmp_path: Path, recommend: Command, planned: list[Any]) -> None:
    store(tmp_path / DB, {}, {**CARD, "hardware": "rocm"})
    code, _, err = recommend("bert-tiny", "--verify")
    assert (code, planned) == (3, [])
    assert "not measured here: rocm is not present" in err
    assert "Add --hardware here" in err


def test_a_model_that_no_catalogue_has_cannot_be_measured_by_name(
    recommend: Command, planned: list[Any]
) -> None:
    code, _, err = recommend("mine", "--model-family", "vision", "--hardware", "cpu", "--verify")
    assert (code, planned) == (3, [])
    assert "There is no model named 'mine'" in err


def test_what_is_measured_needs_a_database(
    tmp_path: Path, recommend: Command, planned: list[Any]
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.json").write_text("{}")
    code, _, err = recommend("bert-tiny", "--hardware", "cpu", "--db", "files", "--verify")
    assert (code, planned) == (2, [])
    assert "Name a database with --db" in err


def test_where_there_is_one_figure_the_others_are_measured(
    tmp_path: Path, recommend: Command, planned: list[Any]
) -> None:
    store(tmp_path / DB, {"latency_p50_ms": 8.0, "throughput": 125.0})
    recommend("bert-tiny", "--hardware", "cpu", "openvino", "--verify")
    targets = {target for journey in planned for target, *_ in asked(journey)}
    assert {"cpu" in str(targets), any("openvino" in one for one in targets)} == {True}


def test_an_answer_that_nothing_was_measured_for_is_not_verified(
    tmp_path: Path, recommend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {"status": "unsupported", "message": "the driver is too old", "run_id": "refused"}
    store(tmp_path / DB, {}, refused)
    monkeypatch.setattr(verifying, "measured", lambda database, journeys: ["refused"])
    code, _, err = recommend("bert-tiny", "--hardware", "cpu", "--verify")
    assert code == 3
    assert "Nothing was measured: the driver is too old." in err
    monkeypatch.setattr(verifying, "measured", lambda database, journeys: [])
    assert recommend("bert-tiny", "--hardware", "cpu", "--verify")[0] == 0

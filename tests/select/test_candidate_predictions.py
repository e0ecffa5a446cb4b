"""Predictions beside an answer: what to expect of hardware that was not measured, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.predict import traces as traces_module
from accelbench.predict.stored_predictors import FOLDER
from accelbench.select.estimate.candidate_predictions import CandidatePredictions
from accelbench.select.selector import HardwareSelector

PEAKS = "vendor peaks alone"


def ask(chosen: HardwareSelector, *among: str, **more: Any) -> dict[str, Any]:
    question = {"model_name": "bert-tiny", **more}
    return chosen.select_hardware(available_hardware=among or None, **question)


def scores(chosen: HardwareSelector, *among: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(chosen, *among, **more)["all_scores"]
    return found


def test_every_compatible_platform_has_a_prediction_with_its_basis_and_interval() -> None:
    answer = ask(HardwareSelector())
    for name, score in answer["all_scores"].items():
        predicted = score["predictions"]
        assert predicted["latency_low"] < predicted["latency"] < predicted["latency_high"], name
        assert predicted["memory_low_mb"] < predicted["memory_mb"] < predicted["memory_high_mb"]
        assert predicted["provenance"] == "predicted"
        assert predicted["basis"] in (PEAKS, "peaks of a middle device")
        assert predicted["device"]
        assert score["basis"] == "rule"
    cuda = answer["all_scores"]["cuda"]["predictions"]
    assert (cuda["device"], cuda["precision"]) == ("NVIDIA A100-SXM4-80GB", "fp32")
    assert "Predicted from vendor peaks alone: " in answer["explanation"]


def test_nothing_is_ranked_by_a_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    def order(model: str) -> list[tuple[str, float]]:
        answer = HardwareSelector().select_hardware(model_name=model, batch_size=64)
        assert not answer["clear_winner"]
        return [(name, entry["score"]) for name, entry in answer["all_scores"].items()]

    models = ("bert-tiny", "llama-2-7b", "whisper-tiny", "clip-base")
    with_predictions = [order(model) for model in models]
    monkeypatch.setattr(CandidatePredictions, "of", lambda *_: {})
    assert with_predictions == [order(model) for model in models]


def test_of_a_model_without_a_graph_nothing_is_predicted() -> None:
    answer = ask(HardwareSelector(), model_name="somebody-elses", model_family="vision")
    assert not any("predictions" in score for score in answer["all_scores"].values())


def test_where_no_peaks_are_documented_and_nothing_was_measured_nothing_is_predicted() -> None:
    own = {"hardware_preferences": {"abacus": {"cost_factor": 1.0}}}
    chosen = scores(HardwareSelector(config_path=own), "abacus", "cpu")
    assert "predictions" in chosen["cpu"]
    assert "predictions" not in chosen["abacus"]


def test_what_cannot_be_chosen_is_not_predicted() -> None:
    chosen = scores(HardwareSelector(), "cpu", "qnn", mode="training")
    assert "predictions" in chosen["cpu"]
    assert chosen["qnn"]["compatible"] is False
    assert "predictions" not in chosen["qnn"]


@pytest.mark.parametrize(
    ("word", "device"),
    [
        ("cuda:=NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("cuda:rtx-4090", "NVIDIA GeForce RTX 4090"),
    ],
)
def test_a_card_is_predicted_by_either_of_its_names(word: str, device: str) -> None:
    (score,) = scores(HardwareSelector(), word).values()
    assert score["predictions"]["device"] == device


def test_a_device_that_multiplies_in_int8_alone_is_predicted_in_int8() -> None:
    assert scores(HardwareSelector(), "qnn")["qnn"]["predictions"]["precision"] == "int8"


def test_a_figure_is_never_replaced_by_a_prediction(tmp_path: Path) -> None:
    chosen = scores(selector(tmp_path, result(latency_p50_ms=5.0)), "cpu", "cuda")
    assert chosen["cpu"]["predictions"]["latency"] == 5.0
    assert "memory_high_mb" not in chosen["cpu"]["predictions"]
    assert chosen["cuda"]["predictions"]["provenance"] == "predicted"


def test_other_models_here_are_a_nearer_basis_than_vendor_peaks(tmp_path: Path) -> None:
    rows = [
        result(model=name, batch_size=batch, latency_p50_ms=4.0 * batch, latency_mean_ms=None)
        for name in ("distilbert-tiny", "gpt2-tiny")
        for batch in (1, 2, 4)
    ]
    predicted = scores(selector(tmp_path, *rows), "cpu", model_name="vit-tiny")["cpu"]
    assert predicted["basis"] == "rule"
    assert predicted["predictions"]["basis"] == "other models in this configuration"


def test_a_predictor_of_untraced_operators_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces_module, "default_folder", lambda: tmp_path / "cache")
    rows = [
        result(model="distilbert-tiny", batch_size=batch, sequence_length=48, latency_p50_ms=batch)
        for batch in (1, 2, 4)
    ]
    assert "predictions" in scores(selector(tmp_path, *rows), "cuda")["cuda"]
    assert not (tmp_path / FOLDER).exists()

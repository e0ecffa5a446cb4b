"""Predictions beside an answer: what to expect of hardware that was not measured, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from choosing_world import result, selector, stored

from accelbench.cli.commands.predict import Predicting
from accelbench.core.facts import HARDWARE_MEASURED, Fact
from accelbench.models.find import find
from accelbench.predict import answers
from accelbench.predict import traces as traces_module
from accelbench.predict.cases import MeasuredCase
from accelbench.predict.held_out import HeldOutError, HeldOutErrors
from accelbench.predict.questions import MemoryByDevice, PredictionQuestion
from accelbench.predict.stored_predictors import predictors_of
from accelbench.predict.traces import Traces
from accelbench.present.dashboard.questions import answer_table
from accelbench.present.prediction_evidence import _scaling
from accelbench.recommend.selector import HardwareSelector
from accelbench.store.database import Database
from accelbench.store.journal import Journal

#: Answers here rest on predictions too.
PREDICTS = True

PEAKS = "vendor peaks alone"


def ask(chosen: HardwareSelector, *among: str, **more: Any) -> dict[str, Any]:
    question = {"model_name": "bert-tiny", **more}
    return chosen.select_hardware(available_hardware=among or None, **question)


def scores(chosen: HardwareSelector, *among: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(chosen, *among, **more)["all_scores"]
    return found


def test_it_carries_the_held_out_error_in_the_words_of_predict(monkeypatch):
    found = HeldOutError(0.64, 34, "pytorch/cuda")
    monkeypatch.setattr(HeldOutErrors, "of", lambda *_: found)
    recommended = ask(HardwareSelector(), "cuda")
    told = recommended["all_scores"]["cuda"]["predictions"]
    question = PredictionQuestion(models=(find("bert-tiny"),), hardware=("cuda",))
    predicted = Predicting(None).answer(question)
    (figure,) = predicted.figures
    assert told["held_out_error"] == figure["held_out_error"] == 0.64
    assert told["held_out_of"] == figure["held_out_of"] == "34 cases of pytorch/cuda"
    (row,) = answer_table({"recommendations": [recommended]}).rows
    (other,) = answer_table(predicted.to_dict()).rows
    assert row.cells["Off, held out"] == other.cells["Off, held out"] == "64%"


CARDS = ("cuda:A100-SXM4-80GB", "cuda:NVIDIA H100 80GB HBM3", "cuda:NVIDIA GeForce RTX 4090")


@pytest.mark.parametrize(
    ("word", "device"),
    [
        ("cuda:=NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("cuda:rtx-4090", "NVIDIA GeForce RTX 4090"),
    ],
)
def test_a_card_is_predicted_by_either_of_its_names(word, device):
    (score,) = scores(HardwareSelector(), word).values()
    assert score["predictions"]["device"] == device


def test_a_figure_is_never_replaced_by_a_prediction(tmp_path):
    chosen = scores(selector(tmp_path, result(latency_p50_ms=5.0)), "cpu", "cuda")
    assert chosen["cpu"]["predictions"]["latency"] == 5.0
    assert "memory_high_mb" not in chosen["cpu"]["predictions"]
    assert chosen["cuda"]["predictions"]["provenance"] == "predicted"


def test_other_models_here_are_a_nearer_basis_than_vendor_peaks(tmp_path):
    rows = [
        result(model=name, batch_size=batch, latency_p50_ms=4.0 * batch, latency_mean_ms=None)
        for name in ("distilbert-tiny", "gpt2-tiny")
        for batch in (1, 2, 4)
    ]
    predicted = scores(selector(tmp_path, *rows), "cpu", model_name="vit-tiny")["cpu"]
    assert predicted["basis"] == "predicted"
    assert predicted["predictions"]["basis"] == "other models in this configuration"


def test_predictions_are_the_same_whatever_was_predicted_before(tmp_path, monkeypatch):
    monkeypatch.setattr(traces_module, "default_folder", lambda: tmp_path / "cache")
    rows = [
        result(model=name, batch_size=batch, sequence_length=51, latency_p50_ms=4.0 * batch)
        for name in ("distilbert-tiny", "gpt2-tiny")
        for batch in (1, 2, 4)
    ]
    path = stored(tmp_path / "r.duckdb", *rows)

    def predicted() -> Any:
        return scores(HardwareSelector(path), "cpu", model_name="bert-base")["cpu"]["predictions"]

    before = predicted()
    # What `predict` of any other model does: it traces all that was measured.
    predictors_of(Database(path), Traces(), keep=True)
    assert predicted() == before


FIVE = ("distilbert-tiny", "gpt2-tiny", "vit-tiny", "bert-base", "distilbert-base")


def measured_models(**more: Any) -> list[dict[str, Any]]:
    """Five models at three batches: each four milliseconds an item."""
    return [
        result(
            model=name, batch_size=batch, latency_p50_ms=4.0 * batch, latency_mean_ms=None,
            flops=None, sequence_length=None, **more,
        )
        for name in FIVE
        for batch in (1, 2, 4)
    ]  # fmt: skip


def test_what_five_models_ran_in_makes_a_figure_that_is_ranked_and_marked(tmp_path):
    rows = [*measured_models(), *measured_models(hardware="cuda", runtime="pytorch")]
    answer = ask(selector(tmp_path, *rows), "cpu", "cuda", "rocm", model_name="resnet-50")
    for name in ("cpu", "cuda"):
        score = answer["all_scores"][name]
        assert score["basis"] == "predicted"
        assert score["predictions"]["provenance"] == "predicted"
        assert score["predictions"]["basis"] == "other models in this configuration"
        assert score["run_id"] is None
    assert "Data of" not in answer["explanation"]


def test_predictions_whose_bands_meet_have_no_clear_winner(tmp_path):
    rows = [*measured_models(), *measured_models(hardware="openvino", runtime="openvino")]
    scale = {"cpu": 4.0, "openvino": 4.0}
    near = ask(selector(tmp_path, *rows), *scale, model_name="resnet-50")
    assert set(near["no_clear_winner_between"]) == {"cpu", "openvino"}
    for row in rows:
        if row["hardware"] == "openvino":
            row["latency_p50_ms"] /= 1e4
    far = ask(selector(tmp_path, *rows), *scale, model_name="resnet-50")
    assert far["no_clear_winner_between"] == []
    assert far["primary_recommendation"] == "openvino"


def test_models_of_no_catalogue_are_estimated_from_no_others(tmp_path):
    rows = [
        result(
            model=name, batch_size=1, latency_p50_ms=4.0, latency_mean_ms=None, flops=1e9,
            family="vision", hardware=hardware,
        )
        for name in ("vit-tiny", "vit-base", "resnet-50", "resnet-tiny", "detr-tiny", "elsewhere")
        for hardware in ("cpu", "cuda")
    ]  # fmt: skip
    here = selector(tmp_path, *rows)
    traced = scores(here, "cpu", "cuda", model_name="detr-resnet-50")
    assert {score["basis"] for score in traced.values()} == {"predicted"}
    others = scores(here, "cpu", "cuda", model_name="somebody-elses", model_family="vision")
    assert {score["basis"] for score in others.values()} == {"rule"}


def test_a_machine_that_is_named_has_predictions_of_its_devices_alone(tmp_path):
    file = tmp_path / "results.duckdb"
    stored(file, *measured_models(), run="r1")
    stored(file, *measured_models(hardware="cuda"), run="r2", machine="other")
    every = scores(HardwareSelector(file), "cpu", "cuda", "rocm", model_name="resnet-50")
    assert {score["basis"] for score in every.values()} == {"predicted"}
    assert all(score["predictions"]["provenance"] == "predicted" for score in every.values())
    named = scores(
        HardwareSelector(file, machine="other"), "cpu", "cuda", "rocm", model_name="resnet-50"
    )
    assert named["cuda"]["basis"] == "predicted"
    for name in ("cpu", "rocm"):  # of which that machine has no result
        assert named[name]["basis"] == "rule"
        assert "predictions" not in named[name]


SMALL = "NVIDIA GeForce RTX 4060"  # 8 GiB


def test_what_is_predicted_not_to_fit_its_device_is_out_and_says_why(tmp_path):
    measured = {"memory_peak_mb": 3000.0}
    quick = measured_models(hardware="cuda", device_name=SMALL, **measured)
    for row in quick:
        row["latency_p50_ms"] /= 1e3
    chosen = selector(tmp_path, *measured_models(**measured), *quick)
    answer = ask(chosen, "cpu", "cuda", model_name="llama-2-7b", batch_size=4)
    assert answer["primary_recommendation"] == "cpu"
    out = answer["all_scores"]["cuda"]
    assert out["compatible"] is False
    assert out["reason"].startswith(f"it does not fit {SMALL} at batch 4 in fp32: predicted ")
    assert out["reason"].endswith(" GiB of 8 GiB")
    assert out["predictions"]["memory_mb"] > 8 * 1024
    assert f"cuda is out: {out['reason']}." in answer["explanation"]
    small = ask(chosen, "cpu", "cuda", model_name="resnet-50")
    assert small["primary_recommendation"] == "cuda"


def test_by_peaks_alone_what_may_fit_is_not_out(tmp_path):
    """Their memory is off by a factor of five either way; weights are there all the same."""
    may = scores(HardwareSelector(), f"cuda:={SMALL}", model_name="gpt2", batch_size=64)
    (entry,) = may.values()
    assert entry["predictions"]["memory_low_mb"] < 8 * 1024 < entry["predictions"]["memory_high_mb"]
    assert entry["compatible"]
    (entry,) = scores(HardwareSelector(), f"cuda:={SMALL}", model_name="llama-2-7b").values()
    assert not entry["compatible"]
    assert "predicted " in entry["reason"]


def test_a_store_says_how_much_memory_its_devices_have(tmp_path):
    file = stored(tmp_path / "results.duckdb", *measured_models(hardware="cuda"))
    database = Database(file)
    sizes = {"one": 2, "other": 4}
    with Journal.create(database.journals, "r9") as journal:
        for fingerprint, gib in sizes.items():
            about = {"fingerprint": fingerprint, "hardware": "cuda", "name": "A card"}
            fact = Fact(
                HARDWARE_MEASURED, f"r9-{fingerprint}", {**about, "memory_bytes": gib << 30}
            )
            journal.append(fact)
    database.fill()
    memory = MemoryByDevice(lambda _: (), database)
    assert memory("cuda", "A card") == 4 << 30  # what fits one of that name may fit
    assert memory("cuda", "NVIDIA A100-SXM4-80GB") == 80 << 30
    assert memory("cuda", "Another card") is None
    (entry,) = scores(HardwareSelector(file), "cuda", model_name="llama-2-7b").values()
    assert "of 4 GiB" in entry["reason"]


@pytest.mark.parametrize("batch", [8, 64])
def test_predict_and_recommend_have_one_figure_beyond_the_largest_batch(tmp_path, batch):
    """Of one model that was measured at one batch, and of nothing else."""
    row = result(model="vit-tiny", batch_size=4, sequence_length=None, family="vision")
    file = stored(tmp_path / "results.duckdb", row)
    predicting = Predicting(Database(file))
    question = PredictionQuestion((find("vit-tiny"),), (batch,), hardware=("cpu",))
    (figure,) = predicting.answer(question).figures
    score = scores(HardwareSelector(file), "cpu", model_name="vit-tiny", batch_size=batch)["cpu"]
    assert score["basis"] == "predicted"
    for name in ("latency", "latency_low", "latency_high"):
        assert score["predictions"][name] == pytest.approx(figure[f"{name}_ms"])  # type: ignore[literal-required]


def test_a_prediction_is_asked_with_what_was_measured_of_parts(tmp_path, monkeypatch):
    heard: list[tuple[MeasuredCase, ...]] = []
    answered = answers.answer

    def answer(*words: Any, **more: Any) -> answers.PredictionAnswer:
        heard.append(words[2])
        return answered(*words, **more)

    monkeypatch.setattr(answers, "answer", answer)
    rows = [
        result(
            model="gpt2-tiny", family="text_generation", sequence_length=None, batch_size=batch,
            prompt_tokens=128, new_tokens=32, ttft_ms=3.0, tpot_ms=2.0, latency_p50_ms=65.0,
        )
        for batch in (1, 2)
    ]  # fmt: skip
    file = stored(tmp_path / "results.duckdb", *rows)
    assert "cpu" in scores(HardwareSelector(file), "cpu", model_name="gpt2-tiny", batch_size=8)
    database = Database(file)
    kept = predictors_of(database, Traces(trace=False), keep=False)
    assert _scaling(kept, [[[entry.case for entry in kept.stored.cases]]])
    assert len(heard) > 1
    for measured in heard:
        assert {entry.case.part for entry in measured} == {"", "prefill", "decode"}


@pytest.mark.parametrize("provenance", ["measured", "imported"])
def test_what_was_measured_in_a_precision_that_does_not_count_is_no_prediction(
    tmp_path, provenance
):
    card = {"hardware": "cuda", "device_name": "A card", "provenance": provenance}
    quantised = result(precision="int8", latency_p50_ms=3.0, latency_mean_ms=3.0, **card)
    answer = ask(selector(tmp_path, quantised), "cuda")
    (left_out,) = answer["left_out"]
    assert (left_out["precision"], left_out["latency"]) == ("int8", 3.0)
    assert "predictions" not in answer["all_scores"]["cuda"]

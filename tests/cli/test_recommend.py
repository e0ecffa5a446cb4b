"""`accelbench recommend` over stored results: the answer for one model."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from recommend_world import ASKED, BATCH_8, CARD, DB, answer
from stored_rows import store

from accelbench.core.protocols import Absent, Device
from accelbench.recommend.selector import Knowledge

#: Answers of these rest on predictions too.
PREDICTS = ("test_predictions_stand_in_the_table_of_measurements",)


@pytest.mark.usefixtures("measured")
def test_what_was_measured_is_recommended_with_its_figures(recommend):
    code, out, err = recommend("bert-tiny")
    assert (code, err) == (0, "")
    assert out.startswith("bert-tiny at batch 1, seq 128: take cuda, best with 100 %")
    assert "cuda (A card)" in out
    # The name of an engine may stand in two lines, and no word of it does.
    assert {"pytorch", "fp32", "measured"} <= set(out.split())
    assert "To measure: accelbench run bert-tiny --hardware " in out
    assert "Data of 2026-01-02 03:04; compatibility by the database." in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.usefixtures("measured")
def test_the_document_is_the_selectors_answer(recommend):
    found = answer(recommend, "bert")  # by its alias, without any result
    assert found["question"]["model"] == "bert-base"
    found = answer(recommend, "bert-tiny")
    assert found["primary_recommendation"] == "cuda"
    assert found["fallback_options"][0] == "cpu"
    assert found["all_scores"]["cuda"]["predictions"]["throughput"] == 500.0


def test_explain_tells_weights_and_what_each_figure_rests_on(tmp_path, recommend):
    store(tmp_path / DB, *({**ASKED, **row} for row in ({}, BATCH_8, CARD)))
    _, short, _ = recommend("bert-tiny", "--batch-size", 8)
    _, whole, _ = recommend("bert-tiny", "--batch-size", 8, "--explain")
    assert "Objective: " not in short
    for said in ("Objective: latency", "measured in", "Size of the model: small, by the catalogue"):
        assert said in whole.replace("\n", " ")


def test_without_any_database_rules_answer(recommend):
    found = answer(recommend, "bert-tiny", "--hardware", "cpu", "cuda")
    assert {one["basis"] for one in found["all_scores"].values()} == {"rule"}
    assert found["matrix_source"] == "the default"
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu,cuda")
    assert code == 0
    assert "rule: high" in out
    assert " ms " not in out  # no value is made up, nor a column for one


def test_no_clear_winner_is_an_answer(tmp_path, recommend):
    store(tmp_path / DB, {}, {**CARD, "latency_p50_ms": 7.95, "throughput": 120.5})
    code, out, _ = recommend("bert-tiny")
    assert code == 0
    assert "no clear winner between" in out.splitlines()[0]


def test_only_what_is_here_is_advised_to_be_measured(tmp_path, recommend, monkeypatch):
    cards = {"cpu": [Device("cpu", "A processor")], "cuda": [Device("cuda", "A card")]}
    monkeypatch.setattr(Knowledge, "__init__", _knowing(cards))
    store(tmp_path / DB, {}, {**CARD, "latency_p50_ms": 7.95, "throughput": 120.5})
    in_turns = "--verify measures them in turns"
    assert in_turns in recommend("bert-tiny")[1]
    assert set(answer(recommend, "bert-tiny")["measurable_here"]) == {"cpu", "cuda"}
    cards["cuda"] = [Device("cuda", "Another card")]
    out = " ".join(recommend("bert-tiny")[1].split())
    assert in_turns not in out
    assert "on a machine that has them: cuda (A card)." in out
    assert answer(recommend, "bert-tiny")["measurable_here"] == ["cpu"]
    # What fills a gap is a platform; of those that are missing one that is here is named.
    cards["openvino"] = [Device("openvino", "A processor")]
    words = ("bert-tiny", "--hardware", "rocm", "openvino", "cpu")
    assert "To measure: accelbench run bert-tiny --hardware openvino" in recommend(*words)[1]
    del cards["openvino"]
    out = " ".join(recommend(*words)[1].split())
    assert "To measure, on a machine with rocm: accelbench run bert-tiny --hardware rocm" in out


def _knowing(cards: dict[str, list[Device]]) -> Callable[..., None]:
    usual = Knowledge.__init__

    def made(self: Knowledge, *given: Any) -> None:
        usual(self, *given)
        self._detected = cards

    return made


def test_a_launch_that_its_own_samples_do_not_settle_wins_nothing(tmp_path, recommend):
    card = {**CARD, "latency_p50_ms": 4.0, "latency_mean_ms": 4.0, "throughput": 250.0}
    ends = {"latency_ci_low_ms": 3.9, "latency_ci_high_ms": 4.1, "effective_sample_count": 30.0}
    steady = {**card, **ends, "latency_std_ms": 0.3}
    store(tmp_path / DB, {}, steady)
    assert answer(recommend, "bert-tiny", "--hardware", "cpu,cuda")["clear_winner"]
    wild = {**card, **ends, "latency_std_ms": 12.0}  # its median is known, its mean is not
    store(tmp_path / DB, {**wild, "started_at": "2026-02-02T00:00:00Z"}, run="s")
    found = answer(recommend, "bert-tiny", "--hardware", "cpu,cuda")
    assert found["primary_recommendation"] == "cuda"
    assert found["no_clear_winner_between"] == ["cuda", "cpu"]
    assert found["all_scores"]["cuda"]["predictions"]["latency_high"] > 10.0


def test_where_nothing_suits_it_ends_with_1(tmp_path, recommend):
    (tmp_path / "own.json").write_text(
        '{"compatibility": {"embedding": {"cpu": {"compatible": false}}}}'
    )
    code, out, _ = recommend("bert-tiny", "--hardware", "cpu", "--config", "own.json")
    assert code == 1
    assert "nothing suits" in out
    assert "cpu is out" in out


@pytest.mark.usefixtures("measured")
def test_batch_sizes_and_models_are_answered_side_by_side(recommend):
    code, out, _ = recommend("bert-tiny", "resnet-tiny", "--batch-size", "1,8")
    assert code == 0
    assert out.count("bert-tiny") >= 2
    assert "rest on no measurement of what they name" in out
    found = recommend.json("bert-tiny", "resnet-tiny", "--batch-size", "1,8")["recommendations"]
    assert [(a["question"]["model"], a["question"]["batch_size"]) for a in found] == [
        *(("bert-tiny", 1), ("bert-tiny", 8)),
        *(("resnet-tiny", 1), ("resnet-tiny", 8)),
    ]


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (("--mode", "training"), "mode", "training"),
        (("--task", "fine-tuning"), "mode", "training"),
        (("--task", "generation"), "task", "generation"),
        (("--precision", "float16"), "precision", "fp16"),
        (("--sequence-length", "64"), "shapes", {"sequence_length": 64}),
        (("--model-family", "embedding"), "family", "embedding"),
    ],
)
def test_every_part_of_a_question_is_asked(recommend, words, key, value):
    assert answer(recommend, "bert-tiny", *words)["question"][key] == value


@pytest.mark.usefixtures("measured")
def test_the_documents_spellings_are_taken(recommend):
    words = ("--model-name", "bert-tiny", "--model-family", "embedding", "--batch-size", "1")
    assert answer(recommend, *words, "--mode", "inference") == answer(recommend, "bert-tiny")
    limited = answer(recommend, "--model", "bert-tiny", "--memory-constrained", "2048")
    assert limited["limits"] == {"memory_mb": 2048}


@pytest.mark.usefixtures("measured")
def test_only_hardware_that_is_named_is_chosen_among(recommend):
    found = answer(recommend, "bert-tiny", "--available-hardware", "cpu", "openvino")
    assert set(found["all_scores"]) == {"cpu", "openvino"}
    found = answer(recommend, "bert-tiny", "--hardware", "a card")
    assert found["primary_recommendation"] == "cuda:A card"


@pytest.mark.usefixtures("measured")
def test_here_is_what_this_machine_has_and_no_card_of_another(recommend, monkeypatch):
    found = {
        "cpu": [Device("cpu", "A processor")],
        "cuda": [Device("cuda", "A car")],  # not the card that was measured, though like it
        "qnn": [Device("qnn", "a simulator", emulated=True)],
        "mps": [Absent("mps", "this is no Mac", "use one")],
    }
    monkeypatch.setattr("accelbench.hardware.detect.detect_all", lambda: found)
    scores = answer(recommend, "bert-tiny", "--hardware", "here")["all_scores"]
    assert set(scores) == {"cpu", "cuda:A car"}
    assert scores["cpu"]["basis"] == "measured"
    assert scores["cuda:A car"]["basis"] == "rule"


@pytest.mark.usefixtures("measured")
def test_the_command_that_is_named_plans_what_was_asked(recommend, command):
    words = ("--hardware", "cpu", "--sequence-length", "48", "--precision", "bf16")
    (missing,) = answer(recommend, "bert-tiny", *words, "--batch-size", "2")["missing"]
    named = shlex.split(missing["command"])
    assert named[:2] == ["accelbench", "run"]
    (case,) = command("run").json(*named[2:], "--dry-run")["cases"]
    assert (case["batch_size"], case["sequence_length"], case["precision"]) == (2, 48, "bf16")
    assert case["hardware"] == "cpu"


def test_a_compiled_figure_is_said_to_be(tmp_path, recommend):
    """8,237 compiled images a second were told as “pytorch amp-fp16”, beside 4,300 eager ones."""
    store(tmp_path / DB, {"compiled": True})
    _, out, _ = recommend("bert-tiny", "--hardware", "cpu")
    assert "compiled" in out
    (found,) = recommend.json("bert-tiny", "--hardware", "cpu")["recommendations"]
    assert found["all_scores"]["cpu"]["compiled"] is True
    assert "compiled" in recommend("bert-tiny", "--hardware", "cpu", "--explain")[1]


def test_a_figure_stands_beside_its_interval(tmp_path, recommend, monkeypatch):
    """2.27 ms of three launches looked sure; an estimate's bounds were in --explain alone."""
    launches = [{"launch": n, "latency_mean_ms": ms} for n, ms in enumerate((4.0, 8.0, 16.0), 1)]
    store(tmp_path / DB, *launches)
    words = ("bert-tiny", "--hardware", "cpu,cuda")
    scores = answer(recommend, *words)["all_scores"]
    interval = scores["cpu"]["predictions"]["latency_interval"]
    assert interval == {
        "of": "launches",
        "low": 4.0,
        "high": 16.0,
        "ends_are": "range",
        "count": 3,
        "why_no_ends": None,
    }
    monkeypatch.setenv("COLUMNS", "140")
    _, out, _ = recommend(*words)
    assert "4.00 … 16.0, range of 3 launches" in out


def test_a_figure_alone_shows_no_interval(tmp_path, recommend):
    """It is judged as if it might be 3 % off, which nobody measured."""
    store(tmp_path / DB, {"latency_mean_ms": 4.0})
    known = answer(recommend, "bert-tiny", "--hardware", "cpu")["all_scores"]["cpu"]["predictions"]
    assert known["latency_interval"] is None
    assert known["latency_low"] < known["latency"] < known["latency_high"]
    assert "within" not in recommend("bert-tiny", "--hardware", "cpu")[1]


def test_predictions_stand_in_the_table_of_measurements(tmp_path, recommend):
    models = ("distilbert-tiny", "gpt2-tiny", "vit-tiny", "bert-base", "distilbert-base")
    rows = [
        {
            "model": model,
            "batch_size": batch,
            "latency_p50_ms": 4.0 * batch,
            "sequence_length": None,
        }
        for model in models
        for batch in (1, 4)
    ]
    store(tmp_path / DB, *rows)
    code, out, _ = recommend("resnet-50", "--hardware", "cpu,cuda")
    assert code == 0
    assert all(word in out for word in ("predicted:", "models", "peaks", "~"))
    assert "nine in ten such values lie in the interval" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80

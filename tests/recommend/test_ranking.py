"""The probability of being the best: joint errors, ties, limits, objectives and places."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from choosing_world import result, selector

from accelbench.core.errors import UsageError
from accelbench.recommend.evidence.cells import EvidenceCell
from accelbench.recommend.figures import MEASURED, PREDICTED, Bounds, Figure
from accelbench.recommend.ranking import Limited, RankedOption, place_of, probabilities
from accelbench.recommend.selector import HardwareSelector, Knowledge

#: Answers here rest on predictions too.
PREDICTS = True


def figure(
    name: str,
    latency: float,
    by: float,
    basis: str = PREDICTED,
    memory: Bounds | None = None,
    number: int | None = None,
) -> Figure:
    """A step of a device whose bounds are its latency times and over a factor."""
    cell = EvidenceCell({"hardware": name, "device_name": name, "batch_size": 1}, (latency,))
    return Figure(
        basis, latency, 1e3 / latency, latency / by, latency * by, cell,
        memory=memory, number=number,
    )  # fmt: skip


def option(*words: Any, **more: Any) -> RankedOption:
    extra = {name: more.pop(name) for name in ("room", "limits", "is_possible") if name in more}
    made = figure(*words, **more)
    return RankedOption(made, float(np.log(made.latency)), **extra)


def test_a_shared_error_cancels_in_the_ratio():
    def best(correlation: float) -> float:
        pair = [option("a", 10.0, 2.0, number=0), option("b", 11.0, 2.0, number=1)]
        known = np.array([[1.0, correlation], [correlation, 1.0]])
        return probabilities(pair, known).best[0]

    assert best(0.0) == pytest.approx(0.565, abs=0.02)
    assert best(0.99) > 0.9
    assert probabilities([option("a", 10.0, 1.03, MEASURED), option("b", 20.0, 1.5)]).best[0] > 0.98


def test_equals_have_equal_probabilities_and_one_rank():
    made = probabilities([option("b", 10.0, 3.0), option("a", 10.0, 3.0)])
    assert made.best[0] == made.best[1]
    places = {place_of(share, 2.3) for share in made.best}
    assert len(places) == 1


def test_the_order_of_options_does_not_matter():
    several = [option(name, 10.0 + n, 2.0) for n, name in enumerate("abcd")]
    forward, backward = probabilities(several).best, probabilities(several[::-1]).best
    assert forward == pytest.approx(backward[::-1])
    assert sum(forward) == pytest.approx(1.0)


def test_limits_and_memory_are_answered_by_their_bands():
    latency = Limited("max_latency_ms", 10.0, 10.0)
    memory = Bounds(100.0, 50.0, 200.0)
    made = probabilities([
        option("a", 10.0, 2.0, limits=[latency]),
        option("b", 12.0, 2.0, memory=memory, room=200.0),
        option("c", 1.0, 2.0, is_possible=False),
    ])  # fmt: skip
    assert made.kept[0]["max_latency_ms"] == pytest.approx(0.5, abs=0.01)
    assert made.fits[1] == pytest.approx(0.95, abs=0.01)
    assert made.fits[2] == made.best[2] == 0.0
    assert made.best[0] + made.best[1] < 1.0  # in some draws nothing keeps its limit


def ask(chosen: HardwareSelector, *among: str, **more: Any) -> dict[str, Any]:
    question = {"model_name": "bert-tiny", **more}
    return chosen.select_hardware(available_hardware=among or None, **question)


def test_one_list_has_measured_and_predicted_configurations(tmp_path):
    answer = ask(selector(tmp_path, result(latency_p50_ms=1.0)), "cpu", "cuda:rtx 4060")
    bases = {entry["hardware"]: entry["basis"] for entry in answer["configurations"]}
    assert bases["cpu"] == "measured"
    assert bases["cuda:NVIDIA GeForce RTX 4060"] == "predicted"
    assert sum(entry["probability"] for entry in answer["configurations"]) == pytest.approx(1.0)
    ranks = [entry["rank"] for entry in answer["configurations"]]
    assert ranks == sorted(ranks)


def test_cards_of_equal_probability_are_ordered_by_their_values():
    answer = ask(HardwareSelector(), "cuda:A100-SXM4-80GB", "cuda:H100", model_name="resnet-50")
    first, second = answer["configurations"]
    assert [one["probability"] for one in (first, second)] == pytest.approx([0.5, 0.5], abs=0.005)
    assert first["predictions"]["latency"] < second["predictions"]["latency"]
    assert [first["rank"], second["rank"]] == [1, 2]


@pytest.mark.parametrize(("anywhere", "first"), [(False, "cpu"), (True, "cuda")])
def test_what_is_here_comes_first_unless_anywhere_is_asked(tmp_path, monkeypatch, anywhere, first):
    monkeypatch.setattr(Knowledge, "is_here", lambda _, platform, device=None: platform == "cpu")
    theirs = result(hardware="cuda", latency_p50_ms=1e-3, provenance="imported")
    answer = ask(selector(tmp_path, result(), theirs), anywhere=anywhere)
    assert answer["primary_recommendation"] == first
    assert any("--anywhere" in remark for remark in answer["remarks"]) is not anywhere


def test_the_objective_decides(tmp_path):
    prices = {"cpu": 1.0, "cuda": 9.0}
    rows = (
        result(energy_per_item_joules=1.0, latency_p50_ms=5.0),
        result(hardware="cuda", latency_p50_ms=1.0, energy_per_item_joules=4.0),
    )

    def per_million(row: Any) -> float:
        return prices[row["hardware"]] / row["throughput"] * 1e3

    chosen = selector(tmp_path, *rows, prices=per_million)

    def first(objective: str | None) -> Any:
        return ask(chosen, "cpu", "cuda", objective=objective)["primary_recommendation"]

    firsts = [first(name) for name in (None, "latency", "throughput", "cost", "energy")]
    assert firsts == ["cuda", "cuda", "cuda", "cpu", "cpu"]
    entry = ask(chosen, "cpu")["configurations"][0]
    assert entry["cost_per_million_low"] < entry["cost_per_million"]
    for refused in ("beauty", "cost"):
        with pytest.raises(UsageError):
            ask(selector(tmp_path, *rows), objective=refused)


def test_own_weights_are_an_objective(tmp_path):
    rows = (
        result(latency_p50_ms=2.0, memory_peak_mb=10.0),
        result(hardware="cuda", latency_p50_ms=1.0, memory_peak_mb=1000.0),
    )
    own = {"selection_criteria": {"inference": {"memory_weight": 9.0}}}
    answer = ask(selector(tmp_path, *rows, config_path=own), "cpu", "cuda")
    assert answer["objective"] == "weights"
    assert answer["primary_recommendation"] == "cpu"
    unknown = (rows[0], {**rows[1], "memory_peak_mb": None})
    answer = ask(selector(tmp_path, *unknown, config_path=own), "cpu", "cuda")
    assert set(answer["weights_left_out"]) == {"memory"}


def test_one_measurement_is_named_that_may_change_the_answer(tmp_path):
    answer = ask(HardwareSelector(), "cpu", "cuda")
    measure = answer["decisive_measurement"]
    assert measure["command"].startswith("accelbench run bert-tiny --hardware ")
    named = ask(HardwareSelector(), "cuda:A100-SXM4-80GB", "cuda:H100")
    assert named["decisive_measurement"]["changes_with"] == pytest.approx(0.5, abs=0.005)
    clear = ask(selector(tmp_path, result(latency_p50_ms=1e-4)), "cpu", "cuda")
    assert clear["decisive_measurement"] is None


def test_a_limit_is_never_refused_because_it_is_only_predicted():
    answer = HardwareSelector().best_under(
        {"memory_mb": 4000.0, "max_latency_ms": 50.0}, model_name="bert-tiny",
        available_hardware=["cuda:rtx 4090"],
    )  # fmt: skip
    best = answer["best"]
    assert best["basis"] == "predicted"
    assert 0.5 < best["fits_probability"] <= 1.0
    assert best["batch_size"] > 1
    none = HardwareSelector().best_under(
        {"max_latency_ms": 1e-6}, model_name="bert-tiny", available_hardware=["cuda:rtx 4090"]
    )
    assert none["best"] is None
    assert none["does_not_fit"][0]["fits_probability"] == 0.0


def test_an_answer_is_the_same_again():
    assert ask(HardwareSelector(), "cpu", "cuda") == ask(HardwareSelector(), "cpu", "cuda")


def test_a_cell_of_the_map_rests_on_models_of_its_own_size(tmp_path):
    tiny = result(hardware="cuda", latency_p50_ms=1e-3)
    families = selector(tmp_path, tiny).create_hardware_selection_map(["cpu", "cuda"])
    sizes = families["model_families"]["embedding"]["model_sizes"]  # type: ignore[index]
    small, large = (sizes[size]["inference"] for size in ("small", "large"))
    assert (small["primary"], small["basis"], small["models"]) == (
        "cuda",
        "measured",
        ["bert-tiny"],
    )
    assert large["basis"] != "measured"
    assert "bert-tiny" not in large["models"]


def test_a_model_of_a_folder_is_recommended_hardware(tmp_path):
    config = {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
    }  # fmt: skip
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    answer = ask(HardwareSelector(), "cuda:rtx 4090", model_name=str(tmp_path / "own"))
    assert answer["all_scores"]["cuda:NVIDIA GeForce RTX 4090"]["basis"] == "predicted"

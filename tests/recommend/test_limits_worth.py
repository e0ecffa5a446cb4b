"""What searches under limits think worth measuring: that fills the gap, or it says why not."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.recommend.constraints import measurement_candidates


def under(chosen: Any, batches: tuple[int, ...] = (), /, **limits: float) -> dict[str, Any]:
    found = chosen.best_under(
        limits, "embedding", "bert-tiny", available_hardware=["cpu"], batch_sizes=batches
    )
    return dict(found)


def options_of(command: str) -> dict[str, str]:
    """Of a command line, each option with what follows it."""
    words = shlex.split(command)
    following = [*words[1:], ""]
    return {
        word: "" if next_one.startswith("--") else next_one
        for word, next_one in zip(words, following, strict=True)
        if word.startswith("--")
    }


def test_the_command_is_of_the_way_that_is_named(tmp_path):
    one = result(
        sequence_length=64, runtime="onnxruntime", precision="fp16", batch_size=8,
        options={"compile": True, "threads": 2, "graph": "all"}, optimizer=None, compiled=True,
    )  # fmt: skip
    answer = under(selector(tmp_path, one))
    (case,) = answer["to_verify"]
    assert options_of(case["command"]) == {
        "--hardware": "cpu",
        "--batch-sizes": "8",
        "--precision": "fp16",
        "--framework": "onnxruntime",
        "--sequence-lengths": "64",
        "--compile": "",
        "--threads": "2",
        "--option": "onnxruntime.graph=all",
        "--db": str(tmp_path / "results-0.duckdb"),
    }
    assert case["shapes"] == {"sequence_length": 64}
    assert (case["device"], case["runtime"]) == ("A processor", "onnxruntime")
    assert answer["best"]["command"] == case["command"]


def test_training_is_asked_for_as_it_was_done(tmp_path):
    one = result(
        mode="training", optimizer="sgd", options={"optimizer": "sgd", "pure": True},
        precision="bf16",
    )  # fmt: skip
    answer = selector(tmp_path, one).best_under({}, model_name="bert-tiny", mode="training")
    said = options_of(answer["to_verify"][0]["command"])
    assert (said["--mode"], said["--optimizer"], said["--pure"]) == ("training", "sgd", "")


def test_one_forward_pass_of_what_writes_is_asked_for_as_such(tmp_path):
    one = result(model="gpt2", family="text_generation", sequence_length=64)
    answer = selector(tmp_path, one).best_under({}, model_name="gpt2")
    said = options_of(answer["to_verify"][0]["command"])
    assert (said["--sequence-lengths"], said["--new-tokens"]) == ("64", "0")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"runtime": "tensorrt"}, "the engine tensorrt is not here"),
        ({"scenario": "server"}, "of the scenario server"),
        ({"world_size": 4}, "of 4 processes together"),
        ({"precision": "fp16-magic"}, "fp16-magic"),
    ],
)
def test_where_nothing_can_be_measured_it_says_why(tmp_path, changes, why):
    answer = under(selector(tmp_path, result(**changes)))
    (case,) = answer["to_verify"]
    assert case["command"] is None
    assert why in case["unmeasurable"]
    assert why in answer["best"]["unmeasurable"]


def test_a_model_of_no_catalogue_has_no_command(tmp_path):
    answer = selector(tmp_path).best_under({"memory_mb": 9}, "vision", "of-ours")
    (case,) = answer["to_verify"]
    assert case["command"] is None
    said = f"No command measures {case['hardware']}: of-ours is neither in the catalogue nor here"
    assert said in answer["explanation"]


def test_what_costs_without_a_price_is_not_measured_for_it(tmp_path):
    assert under(selector(tmp_path, result()), (2,), max_cost=5)["to_verify"] == []


def test_the_batches_that_are_named_are_those_that_are_tried(tmp_path):
    (most,) = under(selector(tmp_path), (2, 4), memory_mb=2048)["to_verify"]
    (least,) = under(selector(tmp_path), (2, 4), memory_mb=2048, max_latency_ms=9)["to_verify"]
    assert (most["batch_size"], least["batch_size"]) == (4, 2)


def test_settings_tell_options_apart(tmp_path):
    chosen = selector(
        tmp_path,
        result(latency_p50_ms=8.0),
        result(latency_p50_ms=4.0, options={"compile": True}, compiled=True, series_key="compiled"),
    )
    answer = under(chosen)
    assert [one["options"] for one in answer["fits"]] == [{"compile": True}, {}]
    assert "compile=True" in answer["explanation"]


def test_power_that_was_not_measured_is_measured_with_its_energy(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement_candidates, "host_unmetered", lambda: "")
    chosen = selector(tmp_path, result(), result(batch_size=8, latency_p50_ms=20.0))
    found = chosen.best_under(
        {"max_power": 50}, model_name="bert-tiny", available_hardware=["cpu"], batch_sizes=[2, 4]
    )
    assert found["best"] is None
    assert found["to_verify"]
    for words in found["to_verify"]:
        assert words["energy"]
        assert "--energy" in words["command"].split()

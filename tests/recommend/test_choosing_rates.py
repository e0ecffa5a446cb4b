"""A rate alone is no time of a step: nothing is chosen, or held to keep a limit, by its inverse."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from choosing_world import result, selector


def served(**changes: Any) -> dict[str, Any]:
    """What eight cards did together with many requests at once, as others publish it."""
    usual = {
        "model": "mixtral-8x7b", "family": "text_generation", "hardware": "cuda",
        "device_name": "8x A card", "runtime": "mlperf", "precision": "fp8", "batch_size": None,
        "sequence_length": None, "scenario": "offline", "world_size": None, "latency_p50_ms": None,
        "throughput": 62108.0, "throughput_unit": "Tokens/s", "provenance": "imported",
        "weights": None, "data_source": None, "memory_peak_mb": None,
    }  # fmt: skip
    return result(**{**usual, **changes, "batch_size": changes.get("batch_size", 1)}) | {
        "batch_size": changes.get("batch_size")
    }


def test_the_inverse_of_a_rate_is_no_latency(tmp_path):
    chosen = selector(tmp_path, served())
    answer = chosen.select_hardware(model_name="mixtral-8x7b", available_hardware=["cuda"])
    assert answer["all_scores"]["cuda"]["basis"] == "rule"
    said = "no time of a step: 1 result, 62,108 tokens/s on 8 devices, 7764 each (8x A card, "
    assert said in answer["explanation"]
    assert [one["hardware"] for one in answer["missing"]] == ["cuda"]
    found = chosen.best_under({"max_latency_ms": 1.0}, model_name="mixtral-8x7b")
    assert (found["best"], found["fits"]) == (None, [])
    assert said in found["explanation"]


@pytest.mark.parametrize(
    ("changes", "latency"),
    [
        ({"scenario": "single_stream", "throughput_unit": "samples/s", "batch_size": 32}, 320.0),
        ({"scenario": "single_stream", "throughput_unit": "samples/s"}, None),  # of what batch?
        ({"scenario": "single_stream", "batch_size": 32}, None),  # tokens
        ({"scenario": "server", "throughput_unit": "samples/s", "batch_size": 32}, None),
    ],
)
def test_a_rate_of_items_of_a_known_batch_tells_its_time(tmp_path, changes, latency):
    one = served(device_name="A card", throughput=100.0, **changes)
    answer = selector(tmp_path, one).select_hardware(
        model_name="mixtral-8x7b", batch_size=32, available_hardware=["cuda"], precision="fp8"
    )
    score = answer["all_scores"]["cuda"]
    figure = {} if score["basis"] == "rule" else score["predictions"]
    assert figure.get("latency") == (None if latency is None else pytest.approx(latency))


def test_eight_cards_in_a_name_are_eight(tmp_path):
    one = result(hardware="cuda", latency_p50_ms=4.0)
    eight = result(hardware="cuda", device_name="8x A card", latency_p50_ms=1.0)
    both = selector(tmp_path, one, eight).select_hardware(
        model_name="bert-tiny", available_hardware=["cuda"]
    )
    assert both["all_scores"]["cuda"]["predictions"]["latency"] == 4.0
    alone = selector(tmp_path, eight).select_hardware(
        model_name="bert-tiny", available_hardware=["cuda"]
    )
    assert "The figures are of 8 devices together." in alone["explanation"]


def test_processes_on_a_cpu_are_not_called_devices(tmp_path):
    shared = selector(tmp_path, result(world_size=2)).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert "The figures are of 2 processes together." in shared["explanation"]
    ranks = selector(tmp_path, result(world_size=2, runtime="jax")).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu"]
    )
    assert "The figures are of 2 devices together." in ranks["explanation"]


def test_a_model_of_no_known_family_is_answered_by_its_figures(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    own = {"model": "unet-of-ours", "family": None}
    chosen = selector(
        tmp_path, result(**own), result(**own, hardware="cuda", latency_p50_ms=2.0), result()
    )
    answers = chosen.select_for_all_models(available_hardware=["cpu", "cuda"])
    assert answers["unet-of-ours"]["primary_recommendation"] == "cuda"
    assert set(answers) == {"bert-tiny", "unet-of-ours"}
    assert chosen.of_no_known_family("classification") == ["unet-of-ours"]
    assert {one["model"] for one in chosen.rank_models("training")} == set(answers)

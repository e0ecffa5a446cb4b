"""How far estimates reach, and when the first is not clearly the first."""

from __future__ import annotations

from typing import Any

import pytest
from choosing_world import result, selector


def test_what_is_faster_within_the_uncertainty_is_cheaper_too(tmp_path):
    """Between 100 ms for 1.00 and 99 ms for 1.02 nothing is clear, whichever weighs more."""
    several = (result(latency_p50_ms=100.0), result(hardware="cuda", latency_p50_ms=102.0))

    def prices(row: Any) -> float | None:
        hour = {"cpu": 1.0, "cuda": 1.0}[row["hardware"]]
        return hour / row["throughput"]

    config = {"selection_criteria": {"inference": {"latency_weight": 0, "throughput_weight": 0,
              "memory_weight": 0, "compatibility_weight": 1}},
              "compatibility": {"*": {name: {"compatible": True, "performance_rating": "high"}
                                      for name in ("cpu", "cuda")}}}  # fmt: skip
    answer = selector(tmp_path, *several, prices=prices, config_path=config).select_hardware(
        "embedding", "bert-tiny", available_hardware=["cpu", "cuda"]
    )
    assert answer["primary_recommendation"] == "cpu"
    assert answer["no_clear_winner_between"] == ["cpu", "cuda"]


@pytest.mark.parametrize("importance", ["low", "medium", "high"])
def test_importance_does_not_move_what_cannot_be_otherwise(tmp_path, importance):
    """100 ms of a batch of 32 is no less than 3.1 ms, and no more than 100, for one item."""
    config = {"model_families": {"vision": {"batch_size_importance": importance}}}
    found = selector(
        tmp_path,
        result(model="resnet50", family="vision", latency_p50_ms=200.0),
        result(model="resnet50", family="vision", hardware="cuda", batch_size=32,
               latency_p50_ms=100.0),
        config_path=config,
    )  # fmt: skip
    said = found.select_hardware("vision", "resnet50")["all_scores"]["cuda"]["predictions"]
    assert said["latency_low"] == pytest.approx(100.0 / 32)
    assert said["latency_high"] == pytest.approx(100.0)
    # Beyond what was measured it is a guess, and a larger batch still takes no less.
    more = found.select_hardware("vision", "resnet50", 33)["all_scores"]["cuda"]["predictions"]
    assert more["latency_low"] >= 100.0 / 1.03


def test_a_device_is_no_rival_of_its_own_platform(tmp_path):
    chosen = selector(tmp_path, result(), result(hardware="cuda", latency_p50_ms=2.0))
    answer = chosen.select_hardware(
        "embedding", "bert-tiny", available_hardware=["cuda", "cuda:A card", "cpu"]
    )
    assert answer["no_clear_winner_between"] == []
    assert answer["clear_winner"]


def test_what_nobody_wants_is_no_clear_winner(tmp_path):
    none = {"availability_factor": 0}
    config = {"hardware_preferences": {"cpu": none, "cuda": none}}
    chosen = selector(tmp_path, result(), result(hardware="cuda"), config_path=config)
    answer = chosen.select_hardware("embedding", "bert-tiny", available_hardware=["cpu", "cuda"])
    assert not answer["clear_winner"]


@pytest.mark.parametrize(("batch", "clear"), [(256, True), (4, False)])
def test_a_phone_is_no_rival_of_a_card_that_was_measured(tmp_path, batch, clear):
    """An estimate from a far smaller batch may be off by more than places differ."""
    model = {"model": "ours", "family": "vision", "image_size": 224}
    chosen = selector(
        tmp_path,
        result(**model, hardware="cuda", batch_size=batch, latency_p50_ms=0.85 * batch),
        result(**model, hardware="qnn", device_name="A phone", latency_p50_ms=0.9),
    )
    answer = chosen.select_hardware(
        model_name="ours", batch_size=batch, available_hardware=["cuda", "qnn"]
    )
    assert answer["primary_recommendation"] == "cuda"
    assert answer["all_scores"]["qnn"]["basis"] == "extrapolated"
    assert answer["clear_winner"] is clear

"""How far estimates reach, and when the first is not clearly the first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector


def peers(hardware: str, step: float) -> list[dict[str, Any]]:
    """Six other models whose steps take so long for an item's million operations."""
    return [
        result(
            model=f"peer-{n}", hardware=hardware, flops=1e6 * n, parameters=1000 * n,
            latency_p50_ms=step * n,
        )
        for n in range(2, 8)
    ]  # fmt: skip


@pytest.mark.parametrize(("step", "clear"), [(1.0, False), (1.01, False), (1.2, True)])
def test_a_tie_of_estimates_is_no_clear_winner(tmp_path: Path, step: float, clear: bool) -> None:
    found = selector(tmp_path, *peers("cuda", 1.0), *peers("cpu", step))
    answer = found.select_hardware(
        "embedding", "unseen", available_hardware=["cpu", "cuda"], flops=5e6
    )
    assert {one["basis"] for one in answer["all_scores"].values()} == {"roofline"}
    assert answer["clear_winner"] is clear


def test_what_is_faster_within_the_uncertainty_is_cheaper_too(tmp_path: Path) -> None:
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
def test_importance_does_not_move_what_cannot_be_otherwise(tmp_path: Path, importance: str) -> None:
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


@pytest.mark.parametrize("known", [{"flops": 5e6}, {"parameters": 5000}])
def test_large_batches_of_other_models_tell_little_of_one_item(
    tmp_path: Path, known: dict[str, Any]
) -> None:
    """What 1024 items take together, one takes between all of and a thousandth of."""
    large = [
        one | {"batch_size": 1024, "flops": 1024 * one["flops"], "series_key": f"{one['model']}-l"}
        for one in peers("cuda", 20.0)
    ]
    found = selector(tmp_path, *peers("cpu", 1.0), *large)
    answer = found.select_hardware(
        "embedding", "unseen", available_hardware=["cpu", "cuda"], **known
    )
    said = answer["all_scores"]["cuda"]["predictions"]
    assert said["latency_low"] <= 100.0 / 1024 * 1.01
    assert said["latency_high"] >= 100.0 * 0.99
    assert said["latency"] == pytest.approx(100.0 / 32, rel=0.05)
    assert not answer["clear_winner"]
    assert "measured at batch 1024" in answer["all_scores"]["cuda"]["note"]

    beside = selector(tmp_path, *large, result(model="unseen", latency_p50_ms=10.0))
    answer = beside.select_hardware(
        "embedding", "unseen", available_hardware=["cpu", "cuda"], **known
    )
    assert answer["primary_recommendation"] == "cpu"


def test_how_places_compare_at_a_far_batch_is_no_winner_at_another(tmp_path: Path) -> None:
    both = [
        one | {"batch_size": 256, "flops": 256 * one["flops"]}
        for hardware, step in (("cpu", 30.0), ("cuda", 20.0))
        for one in peers(hardware, step)
    ]
    for one in both:
        one["series_key"] = f"{one['series_key']}-256"
    found = selector(tmp_path, *both)
    for batch, clear in ((256, True), (1, False)):
        answer = found.select_hardware(
            "embedding", "unseen", batch, available_hardware=["cpu", "cuda"], flops=5e6
        )
        assert answer["primary_recommendation"] == "cuda"
        assert answer["clear_winner"] is clear


def test_a_device_is_no_rival_of_its_own_platform(tmp_path: Path) -> None:
    chosen = selector(tmp_path, result(), result(hardware="cuda", latency_p50_ms=2.0))
    answer = chosen.select_hardware(
        "embedding", "bert-tiny", available_hardware=["cuda", "cuda:A card", "cpu"]
    )
    assert answer["no_clear_winner_between"] == []
    assert answer["clear_winner"]


def test_what_nobody_wants_is_no_clear_winner(tmp_path: Path) -> None:
    none = {"availability_factor": 0}
    config = {"hardware_preferences": {"cpu": none, "cuda": none}}
    chosen = selector(tmp_path, result(), result(hardware="cuda"), config_path=config)
    answer = chosen.select_hardware("embedding", "bert-tiny", available_hardware=["cpu", "cuda"])
    assert not answer["clear_winner"]

"""An estimate is no quicker than what a device does, and what the model makes of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.select.evidence.sql import FEWEST_MODELS

#: Operations of one item: a card of 100 a nanosecond, and a phone of 10.
ITEM, CARD, PHONE = 1e9, 1e11, 1e10
ON_PHONE = {"hardware": "qnn", "device_name": "A phone", "runtime": "qnn"}


def devices(models: int = FEWEST_MODELS) -> list[dict[str, Any]]:
    """Other models, all at the best of a card with batches of 256, and of a phone singly."""
    named = [{"model": f"peer-{n}", "family": "vision", "image_size": 224} for n in range(models)]
    return [
        result(**one, **where)
        for number, one in enumerate(named)
        for where in (
            {"hardware": "cuda", "batch_size": 256, "flops": 256 * ITEM * (number + 1),
             "latency_p50_ms": 256 * ITEM * (number + 1) / CARD},
            # The phone's source says nothing of operations.
            {**ON_PHONE, "latency_p50_ms": ITEM * (number + 1) / PHONE},
        )
    ]  # fmt: skip


def ours(share: float, **more: Any) -> list[dict[str, Any]]:
    """A model that reaches a part of the card's best, and takes a millisecond on the phone."""
    model = {"model": "ours", "family": "vision", "image_size": 224}
    return [
        result(**model, hardware="cuda", batch_size=256, flops=256 * ITEM,
               latency_p50_ms=256 * ITEM / CARD / share),
        result(**model, **{**ON_PHONE, "latency_p50_ms": 1e3 * ITEM / PHONE / 100, **more}),
    ]  # fmt: skip


def chosen(folder: Path, *results: dict[str, Any], batch: int = 256) -> dict[str, Any]:
    found = selector(folder, *results).select_hardware(
        model_name="ours", batch_size=batch, available_hardware=["cuda", "qnn"]
    )
    assert found["all_scores"]["cuda"]["basis"] == "measured"
    return found


def test_a_phone_is_no_rival_of_a_card_that_was_measured(tmp_path: Path) -> None:
    """What was guessed of 256 times the batch had let one phone keep up with a large card."""
    card, one = ours(0.06, latency_p50_ms=0.9)
    guessed = chosen(tmp_path, card, one)
    assert guessed["no_clear_winner_between"] == ["cuda", "qnn"]
    known = chosen(tmp_path, card, one, *devices())
    assert known["clear_winner"]
    assert known["primary_recommendation"] == "cuda"
    low = known["all_scores"]["qnn"]["predictions"]["latency_low"]
    assert low == pytest.approx(256 * ITEM / (4 * 0.06 * PHONE), rel=0.05)
    assert "another device's best" in known["all_scores"]["qnn"]["note"]


def test_no_step_is_quicker_than_twice_the_best_of_its_device(tmp_path: Path) -> None:
    card, one = ours(1.0, latency_p50_ms=0.01)  # which cannot be
    said = chosen(tmp_path, card, one, *devices(40))["all_scores"]["qnn"]["predictions"]
    assert said["latency_low"] == pytest.approx(256 * ITEM / (2 * PHONE), rel=0.05)
    assert said["latency"] >= said["latency_low"]
    assert said["throughput"] == pytest.approx(256e3 / said["latency"])


@pytest.mark.parametrize(("models", "share"), [(FEWEST_MODELS - 2, 0.06), (FEWEST_MODELS, 0.01)])
def test_few_models_and_a_card_that_waits_bound_nothing(
    tmp_path: Path, models: int, share: float
) -> None:
    card, one = ours(share, latency_p50_ms=0.9)
    said = chosen(tmp_path, card, one, *devices(models))["all_scores"]["qnn"]
    assert "no less than" not in said["note"]


def test_what_was_measured_is_bounded_by_nothing(tmp_path: Path) -> None:
    card, one = ours(0.06, latency_p50_ms=1e-3)
    there = {**one, "batch_size": 256, "series_key": "ours-256"}
    said = chosen(tmp_path, card, there, *devices())["all_scores"]["qnn"]
    assert said["predictions"]["latency"] == 1e-3


def test_what_a_maker_says_bounds_a_device_that_nobody_else_has_measured(tmp_path: Path) -> None:
    """An RTX 4090 multiplies in fp32 82.6e12 times a second at most."""
    model = {"model": "ours", "family": "vision", "image_size": 224, "flops": 1e12}
    fast = result(**model, hardware="cuda", device_name="NVIDIA GeForce RTX 4090",
                  latency_p50_ms=1.0)  # fmt: skip
    slow = result(**{**model, "flops": 64e12}, batch_size=64, latency_p50_ms=5000.0)
    answer = selector(tmp_path, fast, slow).select_hardware(
        model_name="ours", batch_size=64, available_hardware=["cuda", "cpu"]
    )
    said = answer["all_scores"]["cuda"]
    assert said["predictions"]["latency_low"] == pytest.approx(64e12 / 82.6e9, rel=0.05)
    assert "its maker" in said["note"]

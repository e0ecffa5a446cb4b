"""Tokens are no items: every figure says what it counts, and only like is held with like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, selector


def generating(**changes: Any) -> dict[str, Any]:
    """A step that makes ten tokens for each request."""
    usual = {
        "model": "gpt2", "family": "text_generation", "sequence_length": None,
        "prompt_tokens": 128, "new_tokens": 10, "throughput_unit": "tokens/s",
        "latency_p50_ms": 100.0, "batch_size": 1,
    }  # fmt: skip
    body = {**usual, **changes}
    rate = 1e4 * body["batch_size"] / body["latency_p50_ms"]
    return result(**{"throughput": rate, **body})


def told(folder: Path, batch: int, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    question = {"model_family": "text_generation", "model_name": "gpt2", **more}
    return selector(folder, *results).select_hardware(
        batch_size=batch, available_hardware=["cpu"], **question
    )


def test_tokens_stay_tokens_at_other_batches(tmp_path):
    one, eight = generating(), generating(batch_size=8, latency_p50_ms=400.0)
    # At batch 1 it was measured, at 4 it is between batches, above the largest it is predicted.
    for batch, latency in ((1, 100.0), (4, 400.0 ** (2 / 3) * 100.0 ** (1 / 3)), (16, 800.0)):
        answer = told(tmp_path, batch, one, eight)
        said = answer["all_scores"]["cpu"]["predictions"]
        assert said["latency"] == pytest.approx(latency, rel=0.1 if batch == 16 else 1e-6)
        assert said["throughput"] == pytest.approx(
            1e3 * 10 * batch / said["latency"]
        )  # ten an item
        assert said["throughput_unit"] == "tokens"
        assert "items/s" not in answer["explanation"]


def test_tokens_and_items_are_not_held_together(tmp_path):
    tokens = generating()
    items = generating(
        hardware="cuda", latency_p50_ms=90.0, throughput=11.1, throughput_unit="requests/s"
    )
    answer = selector(tmp_path, tokens, items).select_hardware(
        "text_generation", "gpt2", available_hardware=["cpu", "cuda"]
    )
    assert answer["primary_recommendation"] == "cuda"  # which is faster, though 100 > 11.1
    assert "throughput" not in answer["weights"]
    assert answer["weights_left_out"]["throughput"] == "of requests here and of tokens there"


def test_images_and_items_of_a_batch_are_the_same(tmp_path):
    one = result(throughput_unit="images/s")
    other = result(hardware="cuda", throughput_unit=None, latency_p50_ms=4.0)
    answer = selector(tmp_path, one, other).select_hardware("embedding", "bert-tiny")
    assert "throughput" in answer["weights"]


def test_a_price_of_tokens_and_one_of_items_are_not_held_together(tmp_path):
    both = (generating(), generating(hardware="cuda", throughput_unit="requests/s"))

    def prices(row: Any) -> float | None:
        return {"cpu": 1.0, "cuda": 1000.0}[row["hardware"]]

    answer = selector(tmp_path, *both, prices=prices).select_hardware(
        "text_generation", "gpt2", available_hardware=["cpu", "cuda"]
    )
    assert all("cost" not in one["criteria"] for one in answer["all_scores"].values())

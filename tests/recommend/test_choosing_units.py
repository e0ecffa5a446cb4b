"""Tokens are no items: every figure says what it counts, and only like is held with like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_tokens_and_items_are_not_held_together(tmp_path):
    tokens = generating()
    items = generating(
        hardware="cuda", latency_p50_ms=90.0, throughput=11.1, throughput_unit="requests/s"
    )
    answer = selector(tmp_path, tokens, items).select_hardware(
        "text_generation", "gpt2", available_hardware=["cpu", "cuda"], objective="throughput"
    )
    assert answer["primary_recommendation"] == "cuda"  # which is faster, though 100 > 11.1
    own = {"selection_criteria": {"inference": {"throughput_weight": 0.9}}}
    answer = selector(tmp_path, tokens, items, config_path=own).select_hardware(
        "text_generation", "gpt2", available_hardware=["cpu", "cuda"]
    )
    assert "throughput" not in answer["weights"]
    assert answer["weights_left_out"]["throughput"] == "of requests here and of tokens there"


def test_images_and_items_of_a_batch_are_the_same(tmp_path):
    one = result(throughput_unit="images/s")
    other = result(hardware="cuda", throughput_unit=None, latency_p50_ms=4.0)
    own = {"selection_criteria": {"inference": {"throughput_weight": 0.9}}}
    chosen = selector(tmp_path, one, other, config_path=own)
    answer = chosen.select_hardware(model_name="bert-tiny", available_hardware=["cpu", "cuda"])
    assert "throughput" in answer["weights"]

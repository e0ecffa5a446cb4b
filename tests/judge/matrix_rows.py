"""Rows of results as the store gives them, with what a matrix looks at."""

from __future__ import annotations

from typing import Any


def row(**more: Any) -> dict[str, Any]:
    """A verified result of onnxruntime on the CPU at 100 items a second."""
    base: dict[str, Any] = {
        "result_id": "", "run_id": "r1", "launch": 0, "arm": "", "model": "bert-tiny",
        "family": "embedding", "hardware": "cpu", "runtime": "onnxruntime", "device": "cpu:0",
        "precision": "fp32", "mode": "inference", "scenario": "single_stream", "world_size": 1,
        "weights": "random", "data_source": "synthetic", "optimizer": None, "batch_size": 1,
        "sequence_length": 128, "image_size": None, "audio_seconds": None, "denoising_steps": None,
        "prompt_tokens": None, "new_tokens": None, "options": {}, "status": "ok", "reason": None,
        "message": None, "advice": None, "provenance": "measured", "emulated": False,
        "verification": "ok", "verification_error": 1e-6, "nulls": {}, "workarounds": [],
        "throughput": 100.0, "started_at": "2026-01-02T03:04:05.000000Z",
    }  # fmt: skip
    made = {**base, **more}
    if made["hardware"] != "cpu" and "device" not in more:
        made["device"] = f"{made['hardware']}:0"
    return made


def failed(reason: str, **more: Any) -> dict[str, Any]:
    """A result that is not one."""
    gone = {"throughput": None, "verification": "not_done", "verification_error": None}
    said = {"status": "failed", "reason": reason, "message": f"said {reason}"}
    return row(**{**gone, **said, **more})

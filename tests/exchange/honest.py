"""A result of this program whose values follow from each other, and the same as a document."""

from __future__ import annotations

import copy
import json
import statistics
from typing import Any

from accelbench.core.case import PROTOCOL_VERSION, QUESTION
from accelbench.core.identity import IDENTITY_VERSION, digest

_EMPTY = (
    *("first_inference_ms", "warmup_steps", "memory_avg_mb", "unexplained_share"),
    "steps_verified",
)
STEPS = [371_000_000, 380_000_000, 402_000_000, 433_000_000, 543_000_000]


def honest() -> dict[str, Any]:
    """Return a measured result with samples; each call gives a new one."""
    steps = [ns / 1e6 for ns in STEPS]
    mean = statistics.fmean(steps)
    asked = {
        "v": IDENTITY_VERSION, "model": "bert-tiny", "config": "abc", "unit": None,
        "runtime": "pytorch", "hardware": "cpu", "precision": "fp32",
        "shapes": {"batch": 1, "sequence": 128}, "mode": "inference", "scenario": "single_stream",
        "world": 1, "options": {"lr": 0.1},
    }  # fmt: skip
    case = digest(asked)
    series = {"v": IDENTITY_VERSION, "case": case, "device": "f" * 16, "threads": 2}
    place = {"run": "r", "case": case, "device": "cpu:0", "launch": 0, "arm": ""}
    body = {
        "result_id": digest({"v": IDENTITY_VERSION, **place}, length=24), "run_id": "r",
        "case_id": case, "series_key": digest({**series, "protocol": PROTOCOL_VERSION}),
        "protocol_version": PROTOCOL_VERSION, "launch": 0, "arm": "", "device": "cpu:0",
        "device_name": "A processor", "device_fingerprint": "f" * 16, "threads": 2, "world_size": 1,
        "mode": "inference",
        **{name: asked[name] for name in ("model", "runtime", "hardware", "precision", "options")},
        "scenario": "single_stream", "batch_size": 1, "sequence_length": 128, "status": "ok",
        "provenance": "measured",
        "conditions": {QUESTION: {"config": "abc"}, "rules": {"iterations": len(STEPS)}},
        "quality": "fixed", "cpu_wait_share": 0.01, "precision_proof": "proven",
        "nulls": dict.fromkeys(_EMPTY, "of no interest here"), "latency_mean_ms": mean,
        "latency_p50_ms": statistics.median(steps), "latency_min_ms": min(steps),
        "latency_max_ms": max(steps), "latency_std_ms": statistics.stdev(steps),
        "latency_ci_low_ms": min(steps), "latency_ci_high_ms": max(steps),
        "sample_count": len(steps), "sampling_ms": sum(steps) + 1, "throughput": 1e3 / mean,
        "throughput_unit": "sequences/s", "memory_peak_mb": 40.0, "samples": {"step": list(STEPS)},
        "sampling": {"step": {"timing": "each"}}, "started_at": "2026-01-02T03:04:05.000000Z",
    }  # fmt: skip
    return copy.deepcopy(body)


def document(*bodies: dict[str, Any]) -> str:
    """Return a JSON document of results, a value a line."""
    return json.dumps({"results": list(bodies)}, indent=1)

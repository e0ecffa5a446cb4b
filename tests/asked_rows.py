"""A row of results as a comparison reads it."""

from __future__ import annotations

from typing import Any


def row(**changes: Any) -> dict[str, Any]:
    """One launch, measured; with these columns instead. Its mean goes with its median."""
    median = changes.get("latency_p50_ms")
    mean = {} if median is None else {"latency_mean_ms": median * 9.0 / 8.0}
    return {
        "model": "bert-tiny", "family": "embedding", "mode": "inference", "hardware": "cpu",
        "device_name": "A processor", "runtime": "pytorch", "precision": "fp32", "batch_size": 1,
        "sequence_length": 128, "scenario": "single_stream", "world_size": 1, "weights": "random",
        "data_source": "synthetic", "threads": 2, "compiled": False, "options": {}, "run_id": "r1",
        "status": "ok", "provenance": "measured", "emulated": False,
        "started_at": "2026-01-01 00:00:00", "latency_p50_ms": 8.0, "latency_mean_ms": 9.0,
        "throughput": None, "memory_peak_mb": 100.0, "weights_digest": "w", "workarounds": [],
        "conditions": {"versions": {"torch": "2.13"}}, **mean, **changes,
    }  # fmt: skip

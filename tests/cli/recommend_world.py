"""Results that `recommend` is asked about, and its answers."""

from __future__ import annotations

from typing import Any

from shells import Command

DB = "accelbench.duckdb"
CARD = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0, "throughput": 500.0}
BATCH_8 = {"batch_size": 8, "latency_p50_ms": 40.0, "throughput": 200.0, "memory_peak_mb": 300.0}
#: What a run says of its figures, and an import may not.
ASKED = {
    "scenario": "single_stream",
    "world_size": 1,
    "weights": "random",
    "data_source": "synthetic",
}


def answer(recommend: Command, *words: object) -> Any:
    (found,) = recommend.json(*words)["recommendations"]
    return found

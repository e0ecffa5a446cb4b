"""Results in a database that nobody had to measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.store.journal import Journal
from accelbench.store.opening import open_store

MACHINE = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}


def store(
    path: Path,
    *changes: dict[str, Any],
    run: str = "r",
    about: Mapping[str, Any] | None = None,
    **environment: Any,
) -> None:
    """Results of one run in the journals of a database, as a measurement leaves them."""
    database = open_store(path)
    database.ensure()
    with Journal.create(database.journals, run) as journal:
        body = {"started_at": "2026-01-01T00:00:00Z", "environment": MACHINE | environment}
        body |= about or {}
        journal.append(Fact(RUN_STARTED, run, body))
        for number, change in enumerate(changes):
            median, batch = change.get("latency_p50_ms"), change.get("batch_size", 1)
            rate, mean = change.get("throughput"), dict[str, float]()
            if median is not None:  # a mean and a rate say the same
                mean["latency_mean_ms"] = (
                    1e3 * batch / rate if rate and batch else median * 8.5 / 8.0
                )
            if mean and batch:
                mean["throughput"] = 1e3 * batch / mean["latency_mean_ms"]
            result = {
                "model": "bert-tiny", "mode": "inference", "hardware": "cpu",
                "device_name": "A processor", "runtime": "pytorch", "precision": "fp32",
                "batch_size": 1, "sequence_length": 128, "status": "ok", "provenance": "measured",
                "options": {}, "latency_p50_ms": 8.0, "latency_mean_ms": 8.5, "throughput": 120.0,
                "memory_peak_mb": 100.0, "started_at": "2026-01-02T03:04:05.000000Z", **mean,
                **change,
            }  # fmt: skip
            key = str(change.get("result_id", f"{run}-{number}"))
            journal.append(Fact(RESULT, key, result))

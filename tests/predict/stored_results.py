"""A database with results that nobody had to measure, for the tests of predicting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal


def measured_store(path: Path, *changes: dict[str, Any], run: str = "r") -> Database:
    """The database, filled: each change is a result of bert-tiny on a CPU, changed."""
    database = Database(path)
    database.ensure()
    by_run: dict[str, list[dict[str, Any]]] = {}
    for change in changes:
        by_run.setdefault(change.pop("run_id", run), []).append(change)
    for name, entries in by_run.items():
        with Journal.create(database.journals, name) as journal:
            journal.append(Fact(RUN_STARTED, name, {"started_at": "2026-01-01T00:00:00Z"}))
            for number, change in enumerate(entries):
                result = {
                    "model": "bert-tiny", "family": "embedding", "mode": "inference",
                    "hardware": "cpu", "device_name": "A processor", "runtime": "pytorch",
                    "precision": "fp32", "batch_size": 1, "sequence_length": 128, "status": "ok",
                    "provenance": "measured", "options": {}, "latency_mean_ms": 8.0,
                    "memory_peak_mb": 100.0, "started_at": "2026-01-02T03:04:05.000000Z", **change,
                }  # fmt: skip
                journal.append(Fact(RESULT, f"{name}-{number}", result))
    database.fill()
    return database

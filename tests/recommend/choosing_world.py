"""Results to choose by, and selectors over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.recommend.selector import HardwareSelector
from accelbench.store.database import Database
from accelbench.store.journal import Journal

_MACHINE = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}
DEVICES = {"cpu": "A processor", "cuda": "A card", "openvino": "A processor", "rocm": "A red card"}


def result(**changes: Any) -> dict[str, Any]:
    """One launch, measured and verified; its throughput follows from its latency."""
    body = {
        "model": "bert-tiny", "family": "embedding", "mode": "inference", "hardware": "cpu",
        "runtime": "pytorch", "precision": "fp32", "batch_size": 1, "sequence_length": 128,
        "scenario": "single_stream", "world_size": 1, "weights": "random",
        "data_source": "synthetic", "compiled": False, "options": {}, "status": "ok",
        "provenance": "measured", "verification": "ok", "parameters": 4_385_920,
        "latency_p50_ms": 8.0, "memory_peak_mb": 100.0, "launch": 0,
        "started_at": "2026-01-02T03:04:05.000000Z", **changes,
    }  # fmt: skip
    body.setdefault("device_name", DEVICES.get(body["hardware"], body["hardware"]))
    if body["status"] == "ok" and "throughput" not in changes:
        body["throughput"] = 1e3 * body["batch_size"] / body["latency_p50_ms"]
    names = ("model", "hardware", "device_name", "runtime", "precision", "batch_size", "mode")
    body.setdefault("series_key", "/".join(str(body[name]) for name in names))
    return body


def stored(path: Path, *results: dict[str, Any], run: str = "r1", machine: str = "lab") -> Path:
    """A database with these results of a run."""
    database = Database(path)
    database.ensure()
    in_journal(database, *results, run=run, machine=machine)
    database.fill()
    return path


def in_journal(
    database: Database, *results: dict[str, Any], run: str, machine: str = "lab"
) -> None:
    """Results of a run beside a database, which does not have them yet."""
    with Journal.create(database.journals, run) as journal:
        about = {
            "started_at": "2026-01-01T00:00:00Z",
            "environment": _MACHINE | {"machine": machine},
        }
        journal.append(Fact(RUN_STARTED, run, about))
        for number, one in enumerate(results):
            journal.append(Fact(RESULT, f"{run}-{number}", one))


def selector(folder: Path, *results: dict[str, Any], **more: Any) -> HardwareSelector:
    """Of these results; of none where there are none."""
    if not results:
        return HardwareSelector(folder / "nothing.duckdb", **more)
    path = folder / f"results-{len(list(folder.glob('*.duckdb')))}.duckdb"
    return HardwareSelector(stored(path, *results), **more)

"""A small database with something of everything, and names that somebody chose with bad intent."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_STARTED, Fact
from accelbench.present.dashboard import serve
from accelbench.present.dashboard.guard import AccessRule
from accelbench.present.dashboard.routes import application
from accelbench.store.database import Database
from accelbench.store.journal import Journal
from hostile_names import FEW as HOSTILE

MACHINE = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}
OTHER = {**MACHINE, "machine": "office"}


def result(**changes: Any) -> dict[str, Any]:
    """One launch, measured, with these columns instead; its mean is its median."""
    median = changes.get("latency_p50_ms")
    if median is not None:
        changes = {"latency_mean_ms": median, **changes}
    row = {
        "model": "bert-tiny", "family": "embedding", "architecture": "encoder-only",
        "mode": "inference", "hardware": "cpu", "device_name": "A processor",
        "device_fingerprint": "f1", "runtime": "pytorch", "precision": "fp32", "batch_size": 1,
        "sequence_length": 128, "threads": 2, "scenario": "single_stream", "world_size": 1,
        "launch": 0, "status": "ok", "provenance": "measured", "quality": "converged",
        "verification": "ok", "emulated": False, "options": {}, "latency_p50_ms": 8.0,
        "latency_mean_ms": 8.5, "latency_ci_low_ms": 7.9, "latency_ci_high_ms": 8.1,
        "throughput": 120.0, "throughput_unit": "sequences/s", "memory_peak_mb": 100.0,
        "sample_count": 3, "weights_digest": "w", "workarounds": [],
        "evidence": {"devices": ["cpu:0"], "engine": "pytorch 2.13", "details": {"graph": [1, 2]}},
        "nulls": {"latency_p99_ms": "needs an effective n of 1000"},
        "conditions": {"versions": {"torch": "2.13"}},
        "samples": {"step": [7_900_000, 8_000_000, 8_100_000]},
        "started_at": "2026-01-02T03:04:05.000000Z", "finished_at": "2026-01-02T03:04:06.000000Z",
        **changes,
    }  # fmt: skip
    asked = [str(row.get(n)) for n in ("model", "mode", "hardware", "runtime", "precision")]
    row.setdefault("case_id", "/".join([*asked, str(row.get("batch_size"))]))
    if row["status"] == "ok":
        row.setdefault("series_key", f"{row['case_id']}@{row['device_fingerprint']}")
    return row


def store(
    database: Database,
    run: str,
    *results: Mapping[str, Any],
    machine: Mapping[str, Any] = MACHINE,
    ended: bool = True,
    **about: Any,
) -> None:
    """A run in a journal, as a measurement leaves it, and in the database."""
    with Journal.create(database.journals, run) as journal:
        begin(journal, run, machine, **about)
        for number, one in enumerate(results):
            journal.append(Fact(RESULT, f"{run}-{number}", dict(one)))
        if ended:
            finished = {"finished_at": "2026-02-01T00:00:00Z", "status": "finished"}
            journal.append(Fact(RUN_FINISHED, f"{run}-end", finished))
    database.fill()


def stored_in(path: Path, *results: Mapping[str, Any], run: str = "r", **about: Any) -> Database:
    """Return a database with one run of these results, in a folder or at the path of a file."""
    database = Database(path if path.suffix == ".duckdb" else path / "a.duckdb")
    database.ensure()
    if results:
        store(database, run, *results, **about)
    return database


def begin(journal: Journal, run: str, machine: Mapping[str, Any] = MACHINE, **about: Any) -> None:
    """The first fact of a run."""
    started = {
        "run_id": run, "started_at": "2026-01-01T00:00:00Z", "command": "accelbench run bert-tiny",
        "environment": machine, "git_commit": "0123456789abcdef", **about,
    }  # fmt: skip
    journal.append(Fact(RUN_STARTED, run, started))


def world(path: Path) -> Database:
    """A database: nights of which one became slower, other platforms and kinds, failures."""
    database = Database(path)
    database.ensure()
    for night in range(6):
        slower = 1.5 if night >= 3 else 1.0
        store(
            database,
            f"night-{night}",
            *(
                result(
                    launch=launch,
                    latency_p50_ms=slower * (8.0 + 0.01 * launch + 0.002 * night),
                    throughput=120.0 / slower,
                    started_at=f"2026-01-{night + 2:02}T03:04:05.000000Z",
                )
                for launch in range(3)
            ),
        )
    store(database, "others", *_others())
    store(
        database,
        "office",
        result(latency_p50_ms=4.0, throughput=240.0, model="bert-tiny"),
        machine=OTHER,
    )
    return database


def _others() -> list[dict[str, Any]]:
    gpu = {"hardware": "cuda", "device_name": "NVIDIA A100", "device_fingerprint": "f2"}
    web = {"hardware": "webgpu", "runtime": "browser", "device_fingerprint": "f3"}
    return [
        result(batch_size=8, latency_p50_ms=40.0, throughput=200.0),
        result(
            **gpu, latency_p50_ms=1.0, provenance="imported", conditions={"source": {"name": "s"}}
        ),
        result(**gpu, latency_p50_ms=0.5, provenance="simulated", batch_size=8, samples={}),
        result(**gpu, latency_p50_ms=0.7, provenance="predicted", batch_size=32, samples={}),
        result(**web, emulated=True, latency_p50_ms=99.0),
        result(
            model="vit-tiny",
            family="vision",
            mode="training",
            sequence_length=None,
            image_size=64,
            status="failed",
            reason="fallback",
            message="It ran somewhere else.",
            advice="Look at the device.",
        ),
    ]


def hostile(path: Path) -> Database:
    """A database in which every text that somebody chooses was chosen with bad intent."""
    database = Database(path)
    database.ensure()
    for number, name in enumerate(HOSTILE):
        store(
            database,
            f"h{number}",
            result(
                **dict.fromkeys(
                    ("model", "hardware", "runtime", "device_name", "precision", "weights"), name
                ),
                family=name,
                quality=name,
                throughput_unit=name,
                evidence={name: {name: [name, {name: name}]}},
                conditions={name: name},
                warnings=[name],
                workarounds=[name],
                nulls={"latency_p99_ms": name},
                options={"scripted.option": name},
            ),
            result(
                model=name, status="failed", reason=name, message=name, advice=name, batch_size=2
            ),
            machine={**MACHINE, "machine": name, name: name},
            command=name,
            label=name,
            git_commit=name,
        )
    return database


def visitor(database: Database, door: AccessRule | None = None, **more: Any) -> TestClient:
    """Somebody who looks at the dashboard of a store, on this machine."""
    more = {"base_url": "http://127.0.0.1:8501", "follow_redirects": False, **more}
    return TestClient(application(database, door), **more)


@contextmanager
def served(database: Database) -> Iterator[str]:
    """The dashboard of a store on a socket of its own: its address."""
    made = serve.listening("127.0.0.1", 0)
    begun: queue.Queue[serve.Stop] = queue.Queue()
    arguments = (application(database), made, begun.put)
    thread = threading.Thread(target=serve.serve, args=arguments, daemon=True)
    thread.start()
    stop = begun.get(timeout=30)
    try:
        yield f"http://127.0.0.1:{made.getsockname()[1]}"
    finally:
        stop()
        thread.join(30)

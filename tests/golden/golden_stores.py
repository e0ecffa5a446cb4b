"""Build the fixed stores whose answers are recorded: one small, one of every kind, one of many."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_STARTED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal

Row = dict[str, Any]

LAB = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}
OFFICE = {**LAB, "machine": "office", "cpu": "Another processor", "cpus_logical": 8}
_CPU = {"hardware": "cpu", "device_name": "A processor", "device_fingerprint": "cpu-1"}
_OTHER_CPU = {**_CPU, "device_name": "Another processor", "device_fingerprint": "cpu-2"}
_A100 = {"hardware": "cuda", "device_name": "NVIDIA A100", "device_fingerprint": "a100-1"}
_OPENVINO = {**_CPU, "hardware": "openvino", "runtime": "openvino"}
_MODELS: Mapping[str, Mapping[str, Any]] = {
    "bert-tiny": {"family": "embedding", "architecture": "encoder-only", "sequence_length": 128},
    "vit-tiny": {"family": "vision", "architecture": "vision-transformer", "image_size": 224},
    "gpt2-tiny": {"family": "generation", "architecture": "decoder-only", "sequence_length": 128},
}
_STEP_MS = {"bert-tiny": 8.0, "vit-tiny": 20.0, "gpt2-tiny": 5.0}
_NO_FIGURES = dict.fromkeys(
    (
        *("latency_p50_ms", "latency_mean_ms", "latency_ci_low_ms", "latency_ci_high_ms"),
        *("throughput", "memory_peak_mb", "sample_count", "quality", "verification", "samples"),
    )
)


def _launch(model: str, step_ms: float, **columns: Any) -> Row:
    """Return one measured launch; the columns given replace its own."""
    batch = columns.get("batch_size", 1)
    row = {
        "model": model,
        "mode": "inference",
        "runtime": "pytorch",
        "precision": "fp32",
        "batch_size": 1,
        "threads": 2,
        "scenario": "single_stream",
        "world_size": 1,
        "launch": 1,
        "status": "ok",
        "provenance": "measured",
        "quality": "converged",
        "verification": "ok",
        "emulated": False,
        "options": {},
        "latency_p50_ms": step_ms,
        "latency_mean_ms": step_ms * 1.02,
        "latency_std_ms": step_ms * 0.03,
        "latency_ci_low_ms": step_ms * 0.99,
        "latency_ci_high_ms": step_ms * 1.01,
        "latency_p90_ms": step_ms * 1.1,
        "latency_p95_ms": step_ms * 1.2,
        "latency_p99_ms": step_ms * 1.4,
        "throughput": 1e3 * batch / (step_ms * 1.02),
        "throughput_unit": "images/s" if model.startswith("vit") else "sequences/s",
        "memory_peak_mb": 100.0 + 4.0 * batch,
        "first_inference_ms": step_ms * 3.0,
        "sample_count": 60,
        "effective_sample_count": 50.0,
        "weights_digest": f"weights of {model}",
        "conditions": {"versions": {"torch": "2.13.0"}},
        "evidence": {"devices": ["cpu:0"]},
        "workarounds": [],
        **_CPU,
        **_MODELS[model],
        **columns,
    }
    asked = ("model", "mode", "hardware", "runtime", "precision", "batch_size", "threads")
    case = "/".join(str(row[name]) for name in asked)
    row.setdefault("case_id", case)
    if row["status"] == "ok" and row["provenance"] == "measured":
        row.setdefault("series_key", f"{case}@{row['device_fingerprint']}")
    return row


def _launches(
    by: random.Random, count: int, model: str, step_ms: float, **columns: Any
) -> list[Row]:
    return [
        _launch(model, step_ms * by.uniform(0.99, 1.01), launch=number + 1, **columns)
        for number in range(count)
    ]


def _append_run(
    database: Database,
    run: str,
    rows: list[Row],
    day: int,
    machine: Mapping[str, Any] = LAB,
    *,
    finished: bool = True,
    **about: Any,
) -> None:
    """Write one run into a journal, as a measurement does."""
    began = f"2026-01-{day:02}T00:00:00.000000Z"
    started = {
        "run_id": run,
        "started_at": began,
        "command": "accelbench run bert-tiny",
        "environment": dict(machine),
        "git_commit": "0123456789abcdef",
        "label": f"run {run}",
        **about,
    }
    with Journal.create(database.journals, run) as journal:
        journal.append(Fact(RUN_STARTED, run, started))
        for number, row in enumerate(rows):
            minute = f"2026-01-{day:02}T{number // 60:02}:{number % 60:02}:00.000000Z"
            moments = {"started_at": minute, "finished_at": minute}
            journal.append(Fact(RESULT, f"{run}-{number}", moments | row))
        if finished:
            ended = {"finished_at": f"2026-01-{day:02}T23:00:00Z", "status": "finished"}
            journal.append(Fact(RUN_FINISHED, f"{run}-end", ended))


def build_small(path: Path) -> Database:
    """Build three runs of three models on two platforms; the third run is 40 % slower."""
    by, database = random.Random(1), Database(path)
    database.ensure()
    for day, factor in ((1, 1.0), (2, 1.01), (3, 1.4)):
        rows = []
        for model, step_ms in _STEP_MS.items():
            for batch in (1, 8):
                for where, speed in (
                    ({"runtime": "pytorch"}, 1.0),
                    ({"runtime": "onnxruntime"}, 1.6),
                    (_OPENVINO, 2.1),
                ):
                    step = step_ms * batch**0.9 * factor / speed
                    rows += _launches(by, 5, model, step, batch_size=batch, **where)
        _append_run(database, f"r{day}", rows, day)
    database.fill()
    return database


def build_every_kind(path: Path) -> Database:
    """Build launches of each kind that decides nothing, next to launches that decide."""
    by, database = random.Random(2), Database(path)
    database.ensure()
    wide = {"quality": "unusable", "latency_ci_low_ms": 2.0, "latency_ci_high_ms": 30.0}
    rows = [
        *_launches(by, 5, "bert-tiny", 8.0),
        *_launches(by, 5, "bert-tiny", 4.0, runtime="onnxruntime"),
        *_launches(by, 5, "vit-tiny", 20.0, **wide),
        *_launches(by, 5, "vit-tiny", 11.0, runtime="onnxruntime"),
        *_launches(by, 2, "gpt2-tiny", 5.0, quality="unusable", cpu_wait_share=0.8),
        *_launches(by, 3, "gpt2-tiny", 5.0),
        *_launches(by, 5, "gpt2-tiny", 2.0, runtime="onnxruntime", verification="failed"),
        *_launches(by, 2, "vit-tiny", 9.0, precision="int8", verification_error=0.02),
        _launch("bert-tiny", 8.0, batch_size=8, quality="unusable", unexplained_share=0.7),
        _launch("bert-tiny", 1.0, **_A100, status="out_of_memory", reason="memory", **_NO_FIGURES),
        _launch("vit-tiny", 1.0, **_A100, status="failed", reason="crash", **_NO_FIGURES),
        _launch(
            "bert-tiny",
            1.0,
            **{**_CPU, "hardware": "qnn"},
            status="unsupported",
            reason="precision",
            message="QNN has no fp32.",
            **_NO_FIGURES,
        ),
        _launch(
            "bert-tiny", 3.0, **{**_CPU, "hardware": "webnn"}, runtime="browser", emulated=True
        ),
        _launch("bert-tiny", 1.1, **_A100, provenance="simulated", verification="not_done"),
    ]
    _append_run(database, "kinds", rows, 1)
    again = [
        *_launches(by, 5, "bert-tiny", 8.1),
        *_launches(by, 5, "vit-tiny", 10.0, runtime="onnxruntime", weights_digest="new weights"),
    ]
    _append_run(database, "again", again, 2)
    _append_run(database, "cut-off", _launches(by, 2, "bert-tiny", 2.0), 3, finished=False)
    imported = [
        _launch(
            model,
            0.8,
            **{**_A100, "device_fingerprint": None},
            precision="fp16",
            provenance="imported",
            quality=None,
            verification=None,
            batch_size=batch,
            conditions={"engine": f"torch {version}", "source": {"name": "a table"}},
        )
        for model in ("bert-tiny", "vit-tiny")
        for batch in (1, 64)
        for version in ("2.4", "2.9")
    ]
    _append_run(database, "import", imported, 4, machine={})
    database.fill()
    return database


def build_many_machines(path: Path) -> Database:
    """Build nights of two machines and two versions of PyTorch, with a card in one of them."""
    by, database = random.Random(3), Database(path)
    database.ensure()
    for day in range(1, 9):
        torch = "2.12.0" if day < 5 else "2.13.0"
        for name, machine, devices in (
            ("lab", LAB, (({**_CPU}, 1.0), ({**_A100}, 9.0))),
            ("office", OFFICE, (({**_OTHER_CPU}, 1.7),)),
        ):
            rows = list(_night(by, torch, devices))
            packages = {"packages": {"torch": torch}}
            _append_run(database, f"{name}-{day}", rows, day, {**machine, **packages})
    database.fill()
    return database


def _night(
    by: random.Random, torch: str, devices: tuple[tuple[Mapping[str, Any], float], ...]
) -> Iterator[Row]:
    faster = 1.25 if torch == "2.13.0" else 1.0
    for model, step_ms in _STEP_MS.items():
        for device, speed in devices:
            for mode, slower in (("inference", 1.0), ("training", 3.0)):
                step = step_ms * slower / speed / faster
                versions = {"versions": {"torch": torch}}
                about = {"mode": mode, "conditions": versions, **device}
                yield from _launches(by, 3, model, step, **about)


STORES = {
    "small": build_small,
    "every kind": build_every_kind,
    "many machines": build_many_machines,
}

"""A store that looks as if people had worked with it: chance decides, from a seed.

Twenty models on four devices of two machines, by three engines, in nights of two versions of their
packages; tables of others of two versions each, predictions, simulations and a stand-in's times.
Launches fail, say wrong outputs, are unusable, and know a mean, a median, a rate or a tail alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard_world import MACHINE, OTHER, begin, result

from accelbench.core.facts import RESULT, RUN_FINISHED, Fact
from accelbench.store.database import Database
from accelbench.store.files import Files
from accelbench.store.journal import Journal

Result = dict[str, Any]

_NAMES = ("bert", "vit", "gpt2", "resnet", "t5")
_SIZES = ("tiny", "small", "base", "large")
_FAMILIES = {"bert": "embedding", "vit": "vision", "resnet": "vision"}
_TASKS = {"bert": "text-embedding", "vit": "image-classification", "gpt2": "text-generation"}
_DEVICES = (
    ("lab", "cpu", "A processor", "f1"),
    ("lab", "cuda", "NVIDIA A100", "f2"),
    ("office", "cpu", "Another processor", "f3"),
    ("office", "rocm", "AMD MI300X", "f4"),
)
_MACHINES: Mapping[str, Mapping[str, Any]] = {"lab": MACHINE, "office": OTHER}
_ENGINES = ("pytorch", "onnxruntime", "openvino")
_NIGHTS = 6
_QUALITIES = ("converged",) * 8 + ("noise_limited", "unsteady", "throttled", "unusable", None)
#: What a launch of a question knows of its step.
_KNOWS = ("all",) * 8 + ("no rate", "no mean", "some means", "rate", "tail")


class _Unsynced(Files):
    """Files whose bytes nobody waits for: four thousand of these waits took thirteen seconds."""

    def sync(self, fd: int) -> None:
        """Nothing is lost here that matters."""


@dataclass(frozen=True)
class Question:
    """What is asked, where, and what an answer of it knows."""

    asked: Mapping[str, Any]
    step_ms: float
    knows: str
    launches: int
    failing: float


def lived(path: Path, seed: int) -> Database:
    """A database of such a store, filled from journals as every store is."""
    by = random.Random(seed)
    database = Database(path)
    database.ensure()
    ours = {name: list(_questions(by, name)) for name in _MACHINES}
    for night in range(_NIGHTS):
        for name, questions in ours.items():
            torch = "2.12" if night < _NIGHTS // 2 else "2.13"
            software = {"packages": {"torch": torch}}
            machine = {**_MACHINES[name], **software}
            asked = [one for one in questions if by.random() < 0.4]
            launches = (row for one in asked for row in _launches(by, one, night))
            rows = [{**row, "conditions": software} for row in launches]
            _stored(database, f"{name}-{night}", rows, machine, night)
    for number in range(2):
        _stored(database, f"import-{number}", list(_theirs(by, number)), None, number)
    _stored(database, "made-up", list(_nobodys(by)), MACHINE, _NIGHTS)
    database.fill()
    return database


def _stored(
    database: Database, run: str, rows: list[Result], machine: Mapping[str, Any] | None, night: int
) -> None:
    with Journal.create(database.journals, run, _Unsynced()) as journal:
        began = f"2026-03-{night + 1:02}T00:00:00Z"
        begin(journal, run, machine or {}, started_at=began, command=f"accelbench run {run}")
        for number, row in enumerate(rows):
            journal.append(Fact(RESULT, f"{run}-{number}", row))
        ended = {"finished_at": began, "status": "finished"}
        journal.append(Fact(RUN_FINISHED, f"{run}-end", ended))


def _models() -> Iterator[dict[str, Any]]:
    for at, name in enumerate(_NAMES):
        for larger, size in enumerate(_SIZES):
            yield {
                "model": f"{name}-{size}",
                "family": _FAMILIES.get(name, "generation"),
                "task": _TASKS.get(name),
                "parameters": int(4e6 * (at + 1) * 3**larger),
                "sequence_length": None if name in ("vit", "resnet") else 128,
                "image_size": 224 if name in ("vit", "resnet") else None,
            }


def _questions(by: random.Random, machine: str) -> Iterator[Question]:
    """What a machine is asked night by night; each combination once."""
    for model in _models():
        for owner, hardware, device, fingerprint in _DEVICES:
            if owner != machine:
                continue
            grid = [
                (engine, precision, batch, mode)
                for engine in _ENGINES
                for precision in ("fp32", "fp16", "int8")
                for batch in (1, 8, 32)
                for mode in ("inference", "training")
                if mode == "inference" or (engine == "pytorch" and precision == "fp32")
            ]
            for engine, precision, batch, mode in by.sample(grid, 8):
                yield Question(
                    {
                        **model,
                        "hardware": hardware,
                        "device_name": device,
                        "device_fingerprint": fingerprint,
                        "runtime": engine,
                        "precision": precision,
                        "batch_size": batch,
                        "mode": mode,
                        "optimizer": "adamw" if mode == "training" else None,
                    },
                    by.uniform(0.4, 60.0) * batch**0.8,
                    by.choice(_KNOWS),
                    by.choice((1, 2, 3, 5)),
                    by.choice((0.0,) * 6 + (0.2, 0.6, 1.0)),
                )


def _launches(by: random.Random, one: Question, night: int) -> Iterator[Result]:
    drift = one.step_ms * by.choice((1.0,) * 5 + (1.4,))
    for launch in range(one.launches):
        moment = f"2026-03-{night + 1:02}T{launch:02}:{by.randrange(60):02}:{by.randrange(60):02}Z"
        about = {**one.asked, "launch": launch, "started_at": moment}
        if by.random() < one.failing:
            failed = result(**about, status="failed", reason=by.choice(("crash", "fallback")))
            failed |= _NO_FIGURES
            if by.random() < 0.7:  # it had a device before it failed
                failed["series_key"] = f"{failed['case_id']}@{one.asked['device_fingerprint']}"
            yield failed
            continue
        yield result(
            **about,
            **_figures(by, one, drift * by.uniform(0.97, 1.03)),
            quality=by.choice(_QUALITIES),
            verification=by.choice(("ok",) * 60 + ("failed",)),
        )


_NO_FIGURES = dict.fromkeys(
    (
        *("latency_p50_ms", "latency_mean_ms", "latency_ci_low_ms", "latency_ci_high_ms"),
        *("throughput", "memory_peak_mb", "sample_count", "quality", "verification"),
    )
)


def _figures(by: random.Random, one: Question, step: float) -> Result:
    """What one launch came to, as far as it knows."""
    batch = one.asked["batch_size"]
    median = step * by.uniform(0.95, 1.0)
    known: Result = {
        "latency_p50_ms": median, "latency_mean_ms": step, "latency_ci_low_ms": median * 0.99,
        "latency_ci_high_ms": median * 1.02, "latency_std_ms": step * 0.05,
        "effective_sample_count": by.choice((3.0, 12.0, 60.0)), "latency_p90_ms": step * 1.1,
        "latency_p95_ms": step * 1.2, "latency_p99_ms": step * 1.4,
        "latency_p99_rough": by.random() < 0.3,
        "throughput": 1e3 * batch / step * by.uniform(0.97, 1.0),
        "throughput_unit": "tokens/s" if one.asked["model"].startswith("gpt2") else "images/s",
        "memory_peak_mb": by.choice((None, by.uniform(50.0, 9000.0))),
        "first_inference_ms": step * 3.0, "sample_count": by.randrange(10, 400),
        "energy_per_item_joules": by.choice((None, None, step / 100.0)),
        "ttft_ms": by.choice((None, None, step * 2.0)),
        "tpot_ms": by.choice((None, None, step / 4.0)),
        "flops": by.choice((None, int(1e9 * batch))),
        "cost_usd": by.choice((None, None, None, step / 7.0)),
        "verification_error": by.choice((None, by.uniform(1e-7, 1e-3))), "samples": {},
    }  # fmt: skip
    lacking: Mapping[str, tuple[str, ...]] = {
        "no rate": ("throughput", "throughput_unit"),
        "no mean": ("latency_mean_ms",),
        "some means": ("latency_mean_ms",) if by.random() < 0.5 else (),
        "rate": tuple(name for name in known if name.startswith("latency_")),
        "tail": (
            *("latency_p50_ms", "latency_mean_ms", "throughput", "latency_ci_low_ms"),
            *("latency_ci_high_ms", "latency_p90_ms", "latency_std_ms"),
        ),
    }
    return known | dict.fromkeys(lacking.get(one.knows, ()))


def _theirs(by: random.Random, number: int) -> Iterator[Result]:
    """A table of somebody else's: two versions of an engine, some figures of two days."""
    for model in _models():
        for engine in ("torch 2.4", "torch 2.9"):
            batch = by.choice((1, 64, None))
            asked = {
                **model, "hardware": "cuda",
                "device_name": ("NVIDIA RTX 3090", "NVIDIA RTX 4090")[number],
                "device_fingerprint": None, "runtime": "pytorch", "precision": "fp16",
                "batch_size": batch,
            }  # fmt: skip
            knows = by.choice(("all", "no rate", "rate", "tail"))
            one = Question({**asked, "batch_size": batch or 1}, by.uniform(1, 90), knows, 1, 0.0)
            for day in range(by.choice((1, 1, 2))):
                yield result(
                    **{
                        **_figures(by, one, one.step_ms * (1 + day)),
                        **asked,
                        "provenance": "imported",
                        "series_key": None,
                        "quality": None,
                        "verification": None,
                        "started_at": f"2025-0{day + 1}-01T00:00:00Z",
                        "conditions": {"engine": engine, "source": {"name": f"table {number}"}},
                    }
                )


def _nobodys(by: random.Random) -> Iterator[Result]:
    """What nobody measured: predicted, simulated, and timed with a stand-in for the device."""
    for model in _models():
        for provenance, emulated in (
            ("predicted", False),
            ("simulated", False),
            ("measured", True),
        ):
            asked = {
                **model,
                "hardware": "webgpu" if emulated else "cuda",
                "device_name": "A browser" if emulated else "NVIDIA B200",
                "device_fingerprint": f"f-{provenance}",
                "runtime": "browser" if emulated else "pytorch",
                "precision": "fp16",
                "batch_size": by.choice((1, 8)),
            }
            one = Question(asked, by.uniform(0.5, 9.0), "all", 1, 0.0)
            yield result(
                **_figures(by, one, one.step_ms),
                **asked,
                provenance=provenance,
                emulated=emulated,
                started_at="2026-03-09T00:00:00Z",
            )

"""A small set of results of every provenance, made up: what charts are tested with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from made_up_ranks import OF_RANKS, distributed, one_process

from accelbench.exchange.prices import Prices
from accelbench.judge.costs import with_costs
from accelbench.judge.history import HistoryPoint as Moment
from accelbench.judge.history import Series
from accelbench.judge.matrix import matrix
from accelbench.judge.points import points
from accelbench.judge.verdicts import METRICS
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Picture, Roof, Subject, picture
from made_up_calibration import made_calibration, with_collectives
from one_series import series_of

PRICES = Prices({"cpu": 0.1, "NVIDIA GeForce RTX 4090": 0.69, "mps": 0.4})
LAB = "lab (AMD EPYC, 2 CPUs, 24 GiB)"
_DEVICES = {"cpu": "AMD EPYC", "cuda": "NVIDIA GeForce RTX 4090", "webgpu": "llvmpipe"}
_SKEW = (0.97, 1.0, 1.02, 0.99, 1.01, 1.0, 0.98, 1.03, 1.0, 4.0)
#: What people, and those who mean ill, may call a model.
HOSTILE = (
    "<script>alert(1)</script>",
    "'; DROP TABLE benchmark_results; --",
    "../../etc/passwd",
    "🦙-7b",
    "model\u202egnp.exe",
    "zero\x00byte",
    "x" * 300,
    '"quoted" & </svg> ]]>',
)


def values(spec: Any) -> list[dict[str, Any]]:
    """All that a specification draws, wherever it is."""
    if isinstance(spec, list):
        return [found for one in spec for found in values(one)]
    if not isinstance(spec, dict):
        return []
    own = spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
    return [*own, *(found for name, one in spec.items() if name != "data" for found in values(one))]


def result(**more: Any) -> dict[str, Any]:
    """One result, measured on the CPU unless something else is said."""
    batch, ms = more.get("batch_size", 1), more.pop("ms", 10.0)
    hardware = more.get("hardware", "cpu")
    return {
        "model": "resnet-tiny", "architecture": "vision", "mode": "inference", "hardware": hardware,
        "device_name": _DEVICES.get(hardware, hardware), "runtime": "pytorch", "precision": "fp32",
        "batch_size": batch, "image_size": 64, "options": {}, "status": "ok",
        "provenance": "measured", "run_id": "run-1", "launch": 0,
        "started_at": "2026-01-02T03:04:05Z", "latency_p50_ms": ms, "latency_mean_ms": ms,
        "throughput": 1e3 * batch / ms, "sample_count": 10, "memory_peak_mb": 100.0 + 20 * batch,
        "flops": batch * 4e9, "bytes_moved": 1e8 + batch * 1e7, "load_ms": 80.0,
        "first_inference_ms": 6 * ms, **more,
    }  # fmt: skip


def results(model: str = "resnet-tiny", slower: float = 1.0, **more: Any) -> list[dict[str, Any]]:
    """A model on five platforms, each of another provenance, in two batches."""
    found: list[dict[str, Any]] = []
    for batch in (1, 4):
        ms = batch * slower
        wide = {"latency_ci_low_ms": 1.5 * ms, "latency_ci_high_ms": 3.5 * ms}
        near = {"latency_ci_low_ms": 18.0 * ms, "latency_ci_high_ms": 23.0 * ms}
        unknown = {"sample_count": None, "load_ms": None, "first_inference_ms": None}
        here: tuple[Mapping[str, Any], ...] = (
            {"ms": 20.0 * ms, **near},
            {"ms": 12.0 * ms, "runtime": "onnxruntime"},
            {"ms": 1.5 * ms, "hardware": "cuda", "provenance": "simulated", **unknown},
            {"ms": 2.5 * ms, "hardware": "rocm", "provenance": "predicted", **wide, **unknown},
            {"ms": 5.0 * ms, "hardware": "mps", "provenance": "imported"},
            {"ms": 900.0 * ms, "hardware": "webgpu", "emulated": True},
        )
        found += (result(model=model, batch_size=batch, **one, **more) for one in here)
    found.append(result(model=model, ms=60.0 * slower, mode="training", **more))
    found.append(result(model=model, ms=9.0 * slower, precision="bf16", **more))
    return found


def subject(
    *more: dict[str, Any],
    names: tuple[str, str] = ("resnet-tiny", "bert-tiny"),
    metered: bool = False,
) -> Subject:
    """Two models of two architectures, their samples, history, matrix and limits.

    Metered, what was measured has its energy: 30 W, in ONNX Runtime 45.
    """
    first, second = names
    rows = [
        *results(first),
        *results(second, 1.7, architecture="encoder-only", image_size=None, sequence_length=128),
        *more,
    ]
    rows = [{**row, "result_id": f"r{number}"} for number, row in enumerate(rows)]
    if metered:
        rows = [{**row, **_energy(row)} for row in rows]
    measured = [row for row in rows if row["provenance"] == "measured"]
    samples = {
        str(row["result_id"]): [row["latency_p50_ms"] * skew for skew in _SKEW] for row in measured
    }
    rated = [
        row
        for row in rows
        if row["provenance"] in ("measured", "imported")
        and (row["mode"], row["precision"]) == ("inference", "fp32")
    ]
    roofs = [
        Roof("cuda", "NVIDIA GeForce RTX 4090", "fp32", 8.26e13, 1.008e12, "its maker's document"),
        Roof("cpu", "AMD EPYC", "fp32", 1.2e12, 4e10, "measured here"),
    ]
    history = [_stepped(rows[0]), _emulated(rows[5])]
    priced = with_costs(rows, PRICES, {})
    return Subject(points(priced), samples, history, matrix(rated), roofs, LAB, priced, PRICES)


def subject_for(chart: str, names: tuple[str, str] = ("resnet-tiny", "bert-tiny")) -> Subject:
    """The same; for the chart of training with another platform that a model was trained on."""
    trained = result(model=names[0], ms=20.0, mode="training", hardware="cuda")
    more = [trained] * (chart == "training-cost")
    if chart in OF_RANKS:
        more = ranks_of_a_model(names[1])
    known = subject(*more, names=names, metered=chart == "energy-latency")
    if chart == "collectives":
        return replace(known, collectives=with_collectives(made_calibration()).collectives)
    return known


def ranks_of_a_model(model: str) -> list[dict[str, Any]]:
    """A model trained by one process and by several: on GPUs by two strategies, and on the CPU."""
    about = {"model": model, "batch_size": 32, "image_size": None, "sequence_length": 128}
    cuda = result(**about, hardware="cuda", ms=80.0, mode="training", **one_process(4))
    cpu = result(**about, ms=640.0, mode="training", **one_process(1))
    several = [
        result(**about, hardware=hardware, mode="training", ms=ms, **distributed(*shared))
        for hardware, ms, shared in (
            ("cuda", 43.0, ("ddp", 2, 80 / 86)),
            ("cuda", 23.0, ("ddp", 4, 80 / 92)),
            ("cuda", 13.0, ("ddp", 8, 80 / 104)),
            ("cuda", 47.0, ("fsdp2", 2, 80 / 94)),
            ("cuda", 28.0, ("fsdp2", 4, 80 / 112)),
            ("cpu", 345.0, ("ddp", 2, 640 / 690)),
        )
    ]
    return [cuda, cpu, *several]


def drawn(chart: str, given: Subject | None = None) -> Picture:
    """The picture of a chart, of the made-up set if nothing else is given."""
    made = picture(CHARTS[chart], given or subject_for(chart))
    assert made is not None
    return made


def spec_of(chart: str, names: tuple[str, str] = ("resnet-tiny", "bert-tiny")) -> dict[str, Any]:
    """Its specification."""
    return drawn(chart, subject_for(chart, names)).spec


def _energy(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["provenance"] != "measured":
        return {}
    watts = 45.0 if row["runtime"] == "onnxruntime" else 30.0
    joules = watts * row["latency_p50_ms"] / 1e3
    return {
        "power_watts": watts,
        "energy_joules": joules,
        "energy_per_item_joules": joules / row["batch_size"],
    }


def _stepped(row: Mapping[str, Any]) -> Series:
    """Twelve runs, slower by three tenths since the ninth, with one odd run before."""
    values = [20.0, 20.1, 19.9, 27.0, 20.0, 20.1, 19.9, 20.0, 26.0, 26.1, 25.9, 26.0]
    return series_of(row, METRICS[0], _moments(values), 0.03)


def _emulated(row: Mapping[str, Any]) -> Series:
    return series_of(row, METRICS[0], _moments([900.0, 901.0]), 0.03)


def _moments(values: list[float]) -> list[Moment]:
    return [
        Moment(f"2026-01-{2 * day + 1:02} 10:00:00+00", f"run-{day}", f"abc{day:04}", value, 2)
        for day, value in enumerate(values)
    ]

"""Small tables in the formats of public ones, with figures that no chance repeats.

Each figure has six digits of a seeded generator: one that stands somewhere and is in no row of its
table was made up on the way.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import source_rows
import yaml
from carried import SourceRow
from dashboard_world import result, store

from accelbench.exchange.imports.reading import read_import
from accelbench.store.database import Database

MODELS = ("net_a", "net_b", "net_c")


class Figures:
    """A seeded generator of figures."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def ms(self, about: float) -> float:
        """Milliseconds within a quarter of some."""
        return float(f"{about * self._random.uniform(0.75, 1.25):.6g}")

    def rate(self, batch: int, ms: float) -> float:
        """Items a second as publishers have it: near what the latency says."""
        return float(f"{1e3 * batch / ms * self._random.uniform(0.996, 1.004):.6g}")

    def mb(self) -> float:
        return float(f"{self._random.uniform(50.0, 900.0):.6g}")


def timm(folder: Path) -> Path:
    """Result files of timm: two cards, two versions, one of them compiled too."""
    made = Figures(1)
    for name, batches in (
        ("benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv", (1024, 768, 1024)),
        ("benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv", (1024, 768, 256)),
        ("benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv", (1024, 1024, 256)),
        ("benchmark-infer-fp32-nchw-pt240-cpu-i9_10940x-dynamo.csv", (1, 1, 1)),
        ("benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv", (256, 256, 128)),
    ):
        prefix = name.split("-")[1]
        fields = ("samples_per_sec", "step_time", "batch_size", "img_size")
        with (folder / name).open("w", newline="", encoding="utf-8") as stream:
            lines = csv.writer(stream)
            lines.writerow(["model", *(f"{prefix}_{field}" for field in fields), "param_count"])
            for model, batch in zip(MODELS, batches, strict=True):
                ms = made.ms(40.0 if batch == 1 else batch / 4)
                lines.writerow([model, made.rate(batch, ms), ms, batch, 224, 25.5])
    return folder


def aihub(folder: Path) -> Path:
    """Two models of AI Hub on two phones, by two engines in two precisions."""
    made = Figures(2)
    for model in MODELS[:2]:
        precisions: dict[str, Any] = {}
        for precision in ("float", "w8a8"):
            devices = {
                device: {
                    runtime: {
                        "job_id": f"j{model[-1]}{number}{precision}{runtime}",
                        "job_status": "Passed",
                        "inference_time_milliseconds": made.ms(3.0),
                        "estimated_peak_memory_range_mb": {"min": 0, "max": round(made.mb())},
                        "primary_compute_unit": "NPU",
                        "layer_counts": {"total": 7, "npu": 7},
                        "tool_versions": {"qairt": "2.42.0"},
                    }
                    for runtime in ("qnn_dlc", "tflite")
                }
                for number, device in enumerate(("A phone", "Another phone"))
            }
            precisions[precision] = {"components": {"Net": {"performance_metrics": devices}}}
        (folder / model).mkdir(parents=True)
        (folder / model / "perf.yaml").write_text(yaml.safe_dump({"precisions": precisions}))
        (folder / model / "info.yaml").write_text(f"id: {model}\ndomain: Computer Vision\n")
    return folder


def mlperf(folder: Path) -> Path:
    """A summary of MLPerf: all scenarios, two submissions that ran alike, an open division."""
    made, found = Figures(3), []
    systems = (("Somebody", 4), ("Somebody else", 4), ("Somebody", 8))
    for number, (submitter, cards) in enumerate(systems):
        about = {
            "ID": f"9.9-{number:04}", "Submitter": submitter, "Model": "resnet",
            "Category": "closed", "System": f"A server {number}", "Platform": f"p{number}",
            "Nodes": 1, "Processor": "A processor", "a#": cards,
            "Accelerator": "NVIDIA H200-SXM-141GB", "Software": "TensorRT 10.11, CUDA 12.9",
            "weight_data_types": "fp8",
        }  # fmt: skip
        for scenario, unit, about_size in (
            ("Offline", "Samples/s", 500_000.0),
            ("Server", "Queries/s", 400_000.0),
            ("SingleStream", "Latency (ms)", 0.8),
            ("MultiStream", "Latency (ms)", 2.0),
        ):
            value = {"Performance_Result": made.ms(about_size), "Performance_Units": unit}
            found.append({**about, "Scenario": scenario, **value})
    found += [
        {
            **found[0], "ID": f"9.9-1{number}", "Category": "open", "UsedModel": used,
            "Performance_Result": made.ms(about_size),
        }
        for number, (used, about_size) in enumerate((("net_a", 1e5), ("net_b", 3e3)))
    ]  # fmt: skip
    path = folder / "summary_results.json"
    path.write_text(json.dumps(found, indent=0), encoding="utf-8")
    return path


def _line(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "source": "somebody", "source_commit": "abc", "license": "MIT", "model": model,
        "family": "net", "params_m": 5.5, "gmacs": 0.5, "hardware_name": "A board",
        "hardware_kind": "cpu", "framework": "ncnn", "runtime": "ncnn cpu", "precision": "fp16",
        "batch_size": 1, "img_size": 224, "seq_len": None, "mode": "inference",
        "latency_ms": None, "throughput": None, "throughput_unit": "samples/s",
        "memory_mb": None, **changes,
        "extra": json.dumps(changes.get("extra", {})),
    }  # fmt: skip


def ncnn(folder: Path) -> Path:
    """A tidy table of ncnn: two boards, their GPU, two numbers of threads."""
    made, lines = Figures(4), []
    for model in MODELS:
        for board in ("A board", "Another board"):
            for kind, threads in (("cpu", 1), ("cpu", 4), ("vulkan", 1)):
                ms = made.ms(30.0)
                extra = {"num_threads": threads, "powersave": 2, "loop_count": 10}
                if kind == "vulkan":
                    extra["gpu_device"] = 0
                lines.append(
                    _line(
                        model, hardware_name=board, hardware_kind=kind, runtime=f"ncnn {kind}",
                        latency_ms=ms, throughput=made.rate(1, ms),
                        extra={**extra, "min_ms": made.ms(15.0), "max_ms": made.ms(60.0)},
                    )
                )  # fmt: skip
    return _written(folder, lines)


def tidy(folder: Path) -> Path:
    """A tidy table of what is no mean: medians, derived latencies, percentiles, open entries."""
    made, lines = Figures(5), []
    card = {"hardware_kind": "cuda", "framework": "pytorch", "runtime": "torch 2.4.0 eager"}
    for name in ("A card", "Another card"):
        for batch in (12, 24):
            median = made.ms(batch * 2.0)
            lines.append(
                _line(
                    "net_a", **card, hardware_name=name, batch_size=batch, latency_ms=median,
                    throughput=1e3 * batch / median, memory_mb=made.mb(),
                    extra={"mean_ms": made.ms(batch * 2.6), "n_gpus": 1},
                )
            )  # fmt: skip
        rate = made.ms(500.0)
        lines.append(
            _line(
                "net_b", hardware_name=name, hardware_kind="hailo", framework="hailort",
                runtime="hailo-dfc 5", batch_size=8, latency_ms=8e3 / rate, throughput=rate,
                extra={"latency_is_derived": True},
            )
        )  # fmt: skip
    for number, right in enumerate(("74.046", "75.760", "75.760")):
        said = {
            "Scenario": "Offline", "Category": "open", "Accuracy": f"acc: {right}",
            "ID": f"9.9-{number}", "System": "A server", "Submitter": "Somebody",
            "Platform": f"p{number}",
        }  # fmt: skip
        lines.append(_line("resnet", batch_size=None, throughput=made.ms(3e3), extra=said))
    said = {"Scenario": "SingleStream", "Category": "closed"}
    lines.append(_line("resnet", batch_size=None, latency_ms=made.ms(2.0), extra=said))
    return _written(folder, lines)


def _written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / "table.parquet"
    pq.write_table(pa.Table.from_pylist(lines), path)
    return path


def _each(reader: Callable[[Path], Iterator[SourceRow]], pattern: str) -> Any:
    return lambda path: [row for one in sorted(path.rglob(pattern)) for row in reader(one)]


#: Of each format the name under which it is imported, a small table, and what reads its figures.
FORMATS: Mapping[str, tuple[str, Callable[[Path], Path], Callable[[Path], list[SourceRow]]]] = {
    "timm": ("timm", timm, _each(source_rows.timm, "*.csv")),
    "aihub": ("aihub", aihub, _each(source_rows.aihub, "perf.yaml")),
    "mlperf": ("mlperf", mlperf, lambda path: list(source_rows.mlperf(path))),
    "ncnn": ("tidy", ncnn, lambda path: list(source_rows.tidy(path))),
    "tidy": ("tidy", tidy, lambda path: list(source_rows.tidy(path))),
}


def imported(database: Database, kind: str, path: Path) -> None:
    """Bring a table into a database."""
    found = read_import(kind, path)
    database.bring_in(found.run_id, found.facts, found.bodies, found.queries)


def measured(database: Database) -> list[SourceRow]:
    """Two runs of ours: three platforms, two batches, launches with intervals and percentiles."""
    made, source = Figures(6), []
    database.ensure()
    gpu = {"hardware": "cuda", "device_name": "A card", "device_fingerprint": "f2"}
    ov = {"hardware": "openvino", "runtime": "openvino", "device": "openvino:cpu"}
    for night in range(2):
        rows = []
        for place in ({}, gpu, ov):
            for batch in (1, 8):
                about, memory = made.ms(8.0 * batch), made.mb()
                for launch in range(3):
                    rows.append(_launch(made, about, memory, batch, launch, night, place))
                    source.append(_source(rows[-1], night))
        store(database, f"night-{night}", *rows)
    return source


_OTHERS = {"p90": 1.2, "p95": 1.3, "p99": 1.5}


def _launch(
    made: Figures, about: float, memory: float, batch: int, launch: int, night: int, place: Any
) -> dict[str, Any]:
    ms = float(f"{about * (1 + 0.003 * launch):.6g}")
    mean = float(f"{ms * 1.0123:.6g}")
    return result(
        launch=launch, batch_size=batch, latency_p50_ms=ms, latency_mean_ms=mean,
        **{f"latency_{name}_ms": float(f"{ms * by:.6g}") for name, by in _OTHERS.items()},
        latency_min_ms=float(f"{ms * 0.91:.6g}"), latency_max_ms=float(f"{ms * 1.9:.6g}"),
        latency_ci_low_ms=float(f"{ms * 0.987:.6g}"), latency_ci_high_ms=float(f"{ms * 1.014:.6g}"),
        first_inference_ms=made.ms(90.0), throughput=1e3 * batch / mean,
        memory_peak_mb=memory, started_at=f"2026-01-{night + 2:02}T03:04:05.000000Z",
        sample_count=120, samples={}, **place,
    )  # fmt: skip


def _source(row: Mapping[str, Any], night: int) -> SourceRow:
    ends = ("min_ms", "max_ms", "ci_low_ms", "ci_high_ms")
    named = {"mean": "mean", "p50": "p50", **{name: name for name in _OTHERS}}
    times = {name: row[f"latency_{column}_ms"] for name, column in named.items()}
    times["first"] = row["first_inference_ms"]
    others = [row[f"latency_{end}"] for end in ends]
    # An interval of the median, around the mean.
    around = row["latency_mean_ms"] / row["latency_p50_ms"]
    others += [row[f"latency_{end}"] * around for end in ends[2:]]
    asked = (row["hardware"], row["batch_size"], night)
    memory, batch = row["memory_peak_mb"], row["batch_size"]
    rate, series = row["throughput"], asked[:2]
    return SourceRow(row["model"], asked, batch, times, rate, memory, others, series)

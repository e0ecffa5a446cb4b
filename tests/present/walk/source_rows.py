"""What tables of public measurements say, read without accelbench: by the formats' own words."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import yaml
from carried import SourceRow

_TAILS = {"singlestream": ("p90", 1), "multistream": ("p99", 8)}

#: Of what the tables say beside their columns, what was asked.
_OF_A_QUESTION = (
    "Scenario",
    "n_gpus",
    "num_threads",
    "powersave",
    "gpu_device",
    "layout",
    "System",
    "Submitter",
    "Platform",
)


def tidy(path: Path) -> Iterator[SourceRow]:
    """A table in the tidy schema."""
    with duckdb.connect() as con:
        done = con.execute("FROM read_parquet(?)", [str(path)])
        names = [about[0] for about in done.description or ()]
        while lines := done.fetchmany(10_000):
            for line in lines:
                row = dict(zip(names, line, strict=True))
                extra = json.loads(row.pop("extra") or "{}")
                yield _of_tidy(row, extra)


def _of_tidy(row: dict[str, Any], extra: dict[str, Any]) -> SourceRow:
    figures = {name: row.pop(name) for name in ("latency_ms", "throughput", "memory_mb")}
    times: dict[str, float] = {}
    statistic, batch = _TAILS.get(str(extra.get("Scenario")).lower(), ("mean", row["batch_size"]))
    if "mean_ms" in extra:  # then what stands in the column is another figure
        times["mean"], statistic = extra["mean_ms"], "p50"
    if figures["latency_ms"] and not extra.get("latency_is_derived"):
        times[statistic] = figures["latency_ms"]
    if "p95_ms" in extra:
        times["p95"] = extra["p95_ms"]
    ends = [extra[name] for name in ("min_ms", "max_ms", "std_ms") if extra.get(name)]
    asked = {name: value for name, value in row.items() if name not in ("params_m", "gmacs")}
    asked |= {name: extra.get(name) for name in _OF_A_QUESTION}
    model = str(row["model"])
    if extra.get("Category") == "open":  # of which network nobody says, but how right it is
        name, value = re.findall(r"(\w+): *([0-9.]+)", extra["Accuracy"])[0]
        model = f"{model}-open/{name}-{value}"
    rate = figures["throughput"]
    if "mean_ms" in extra:
        rate = 1e3 * batch / extra["mean_ms"]
    return SourceRow(
        model,
        json.dumps(asked, default=str, sort_keys=True),
        batch,
        times,
        rate,
        figures["memory_mb"],
        ends,
    )


def timm(path: Path) -> Iterator[SourceRow]:
    """A file of timm's."""
    prefix = path.name.split("-")[1]
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            if line[f"{prefix}_step_time"]:
                yield SourceRow(
                    line["model"],
                    (path.name, line[f"{prefix}_batch_size"], line.get(f"{prefix}_img_size")),
                    int(float(line[f"{prefix}_batch_size"])),
                    {"mean": float(line[f"{prefix}_step_time"])},
                    float(line[f"{prefix}_samples_per_sec"]),
                )


def aihub(path: Path) -> Iterator[SourceRow]:
    """A model's `perf.yaml` of AI Hub."""
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    info = path.with_name("info.yaml")
    model = (
        yaml.safe_load(info.read_text(encoding="utf-8"))["id"]
        if info.exists()
        else path.parent.name
    )
    for precision, part in whole["precisions"].items():
        several = len(part["components"]) > 1
        for component, one in part["components"].items():
            name = f"{model}/{component}" if several else model
            for device, runtimes in (one.get("performance_metrics") or {}).items():
                for runtime, job in runtimes.items():
                    if job["job_status"] == "Passed":
                        asked = (precision, component, device, runtime)
                        yield _of_job(name, asked, job)


def _of_job(model: str, asked: tuple[str, ...], job: dict[str, Any]) -> SourceRow:
    ms = float(job["inference_time_milliseconds"])
    most = job["estimated_peak_memory_range_mb"]["max"]
    return SourceRow(model, asked, 1, {"mean": ms}, 1e3 / ms, most or None)


def mlperf(path: Path) -> Iterator[SourceRow]:
    """A summary of MLPerf Inference."""
    for one in json.loads(path.read_text(encoding="utf-8")):
        model = one["Model"]
        if one.get("Category") == "open":
            used = one.get("UsedModel", model)
            model = f"{model}-open" if used == model else f"{model}-open/{used}"
        value = float(one["Performance_Result"])
        asked = tuple(
            str(one.get(name))
            for name in (
                *("Scenario", "Accelerator", "Processor", "a#", "Nodes", "weight_data_types"),
                *("System", "Submitter", "Platform", "Software"),
            )
        )
        if one["Performance_Units"] == "Latency (ms)":
            name, batch = _TAILS[one["Scenario"].lower()]
            yield SourceRow(model, asked, batch, {name: value})
        else:
            yield SourceRow(model, (*asked, one["Performance_Units"]), None, {}, value)

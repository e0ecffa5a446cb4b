"""pytest-benchmark's `--benchmark-json`: one row per test, on the machine that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.possible import OTHERS
from accelbench.exchange.imports.records import Record, object_of, objects_in
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "*.json"

_MS = 1e3
_STATISTICS = {
    "mean": "latency_mean_ms", "median": "latency_p50_ms", "min": "latency_min_ms",
    "max": "latency_max_ms", "stddev": "latency_std_ms",
}  # fmt: skip
#: What a test may say of itself in `benchmark.extra_info` or its parameters, by our names.
_TEXTS = ("model", "family", "hardware", "runtime", "precision", "mode", "device_name")
_WHOLES = ("batch_size", "sequence_length", "image_size", "threads")


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per test."""
    whole = object_of(file)
    machine = whole.of("machine_info")
    common = {**_machine(machine), "started_at": whole.time("datetime")}
    conditions = _conditions(whole, machine)
    for record in objects_in(file, whole.list("benchmarks"), "benchmark"):
        columns, samples = _figures(record.of("stats"))
        row = {**common, **_asked(record), **columns}
        yield imported(source, row, conditions, samples, at=record, rates=OTHERS)


def _asked(record: Record) -> dict[str, Any]:
    case: dict[str, Any] = {"model": record.text("fullname"), "options": {}}
    for place in ("params", "extra_info"):
        if not record.has(place):
            continue
        fields = record.of(place)
        case |= {name: fields.text(name) for name in _TEXTS if fields.has(name)}
        case |= {name: fields.whole(name) for name in _WHOLES if fields.has(name)}
        rest = set(fields.values) - {*_TEXTS, *_WHOLES}
        case["options"] |= {name: str(fields.values[name]) for name in sorted(rest)}
    return case


def _figures(stats: Record) -> tuple[dict[str, Any], dict[str, list[float]]]:
    figures: dict[str, Any] = {
        column: stats.number(name) * _MS for name, column in _STATISTICS.items()
    }
    figures["sample_count"] = stats.whole("rounds")
    figures |= {"throughput": stats.number("ops", above=0), "throughput_unit": "calls/s"}
    samples = {}
    if stats.has("data"):
        samples["step"] = [value * _MS for value in stats.numbers("data")]
    return figures, samples


def _machine(machine: Record) -> dict[str, Any]:
    name = machine.text("machine") if machine.has("machine") else None
    if machine.has("cpu"):
        cpu = machine.of("cpu")
        name = next((cpu.text(n) for n in ("brand_raw", "brand") if cpu.has(n)), name)
    return {"hardware": "cpu", "runtime": "python", "device_name": name}


def _conditions(whole: Record, machine: Record) -> dict[str, Any]:
    info = {name: machine.text(name) for name in ("python_version", "system") if machine.has(name)}
    if whole.has("commit_info"):
        commit = whole.of("commit_info")
        info |= {f"commit_{n}": commit.text(n) for n in ("id", "branch") if commit.has(n)}
    return info

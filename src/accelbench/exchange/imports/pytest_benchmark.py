"""Importer of pytest-benchmark's `--benchmark-json`: one row per test, on the machine it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.plausible_values import OTHER_RATE_TOLERANCE
from accelbench.exchange.imports.records import Record, iter_objects, read_object
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "*.json"

_MS = 1e3
_STATISTICS = {
    "mean": "latency_mean_ms", "median": "latency_p50_ms", "min": "latency_min_ms",
    "max": "latency_max_ms", "stddev": "latency_std_ms",
}  # fmt: skip
#: Columns that a test may set in `benchmark.extra_info` or its parameters.
_TEXTS = ("model", "family", "hardware", "runtime", "precision", "mode", "device_name")
_WHOLES = ("batch_size", "sequence_length", "image_size", "threads")


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per test."""
    whole = read_object(file)
    machine = whole.child("machine_info")
    common = {**_read_machine(machine), "started_at": whole.time("datetime")}
    conditions = _read_conditions(whole, machine)
    for record in iter_objects(file, whole.list("benchmarks"), "benchmark"):
        columns, samples = _read_values(record.child("stats"))
        row = {**common, **_read_configuration(record), **columns}
        yield build_result(source, row, conditions, samples, at=record, rates=OTHER_RATE_TOLERANCE)


def _read_configuration(record: Record) -> dict[str, Any]:
    case: dict[str, Any] = {"model": record.text("fullname"), "options": {}}
    for place in ("params", "extra_info"):
        fields = record.child_or_empty(place)
        case |= {**fields.texts(*_TEXTS), **fields.wholes(*_WHOLES)}
        rest = set(fields.values) - {*_TEXTS, *_WHOLES}
        case["options"] |= {name: str(fields.values[name]) for name in sorted(rest)}
    return case


def _read_values(stats: Record) -> tuple[dict[str, Any], dict[str, list[float]]]:
    figures: dict[str, Any] = {
        column: stats.number(name) * _MS for name, column in _STATISTICS.items()
    }
    figures["sample_count"] = stats.whole("rounds")
    figures |= {"throughput": stats.number("ops", above=0), "throughput_unit": "calls/s"}
    samples = {}
    if stats.has("data"):
        samples["step"] = [value * _MS for value in stats.numbers("data")]
    return figures, samples


def _read_machine(machine: Record) -> dict[str, Any]:
    names = machine.child_or_empty("cpu").texts("brand_raw", "brand") | machine.texts("machine")
    return {"hardware": "cpu", "runtime": "python", "device_name": next(iter(names.values()), None)}


def _read_conditions(whole: Record, machine: Record) -> dict[str, Any]:
    commit = whole.child_or_empty("commit_info").texts("id", "branch")
    return {
        **machine.texts("python_version", "system"),
        **{f"commit_{name}": text for name, text in commit.items()},
    }

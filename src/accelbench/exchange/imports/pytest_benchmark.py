"""pytest-benchmark's `--benchmark-json`: one row per test, on the machine that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.plausible_values import OTHER_RATE_TOLERANCE
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
        yield imported(source, row, conditions, samples, at=record, rates=OTHER_RATE_TOLERANCE)


def _asked(record: Record) -> dict[str, Any]:
    case: dict[str, Any] = {"model": record.text("fullname"), "options": {}}
    for place in ("params", "extra_info"):
        fields = record.part(place)
        case |= {**fields.texts(*_TEXTS), **fields.wholes(*_WHOLES)}
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
    names = machine.part("cpu").texts("brand_raw", "brand") | machine.texts("machine")
    return {"hardware": "cpu", "runtime": "python", "device_name": next(iter(names.values()), None)}


def _conditions(whole: Record, machine: Record) -> dict[str, Any]:
    commit = whole.part("commit_info").texts("id", "branch")
    return {
        **machine.texts("python_version", "system"),
        **{f"commit_{name}": text for name, text in commit.items()},
    }

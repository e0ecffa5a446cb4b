"""Importer of MLPerf Inference's `summary_results.json`: results of submitters, by scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.ranges import OPERATIONS
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports.records import MalformedError, Record, iter_objects, read_json
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "summary_results.json"

_LATENCY = "Latency (ms)"
#: Column of a scenario's latency, by MLPerf's rules a percentile of its queries, and the samples of
#: a query.
_LATENCIES = {"SingleStream": ("latency_p90_ms", 1), "MultiStream": ("latency_p99_ms", 8)}
_SCENARIOS = {
    "Offline": "offline", "Server": "server", "Interactive": "interactive",
    "SingleStream": "single_stream", "MultiStream": "multi_stream",
}  # fmt: skip
_VENDORS = (("nvidia", "cuda"), ("amd instinct", "rocm"), ("tpu", "tpu"))
#: Engines by a word in the list of software; the first match counts.
_ENGINES = {
    "tensorrt": "tensorrt", "vllm": "vllm", "openvino": "openvino", "onnxruntime": "onnxruntime",
    "tflite": "tflite", "pytorch": "pytorch", "llmboost": "llmboost", "sglang": "sglang",
    "shark": "shark-ai",
}  # fmt: skip
#: Any other engine; the conditions contain its name.
_OTHER_ENGINE = "other"
_TYPES = {"fp32", "fp16", "bf16", "fp8", "fp4", "int8", "uint8", "int4"}
_CONDITIONS = (
    *("ID", "Submitter", "System", "Platform", "Suite", "Category", "Availability", "version"),
    *("Software", "operating_system", "Processor", "Accuracy", "Notes", "Power_Units"),
)


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line of the summary."""
    entries = read_json(file)
    if not isinstance(entries, list):
        raise MalformedError(file, 1, None, "a list of results was expected")
    for record in iter_objects(file, entries):
        conditions = record.texts(*_CONDITIONS)
        yield build_result(
            source, {**_read_configuration(record), **_read_values(record)}, conditions, at=record
        )


def _read_configuration(record: Record) -> dict[str, Any]:
    scenario = record.text("Scenario")
    if scenario not in _SCENARIOS:
        record.refuse("Scenario", f"{in_quotes(scenario)} is not a known scenario")
    accelerator = record.optional_text("Accelerator") or ""
    per_node = (record.optional_whole("a#") if accelerator else None) or 1
    count = per_node * (record.optional_whole("Nodes") or 1)
    name = accelerator or record.text("Processor")
    kind = (record.optional_text("weight_data_types") or "").lower()
    return {
        "model": _read_model(record),
        "hardware": _find_hardware(accelerator),
        "device_name": f"{count}x {name}" if count > 1 else name,
        "runtime": _find_engine(record.optional_text("Software") or ""),
        "precision": kind if kind in _TYPES else None,
        "scenario": _SCENARIOS[scenario],
        "world_size": count,
    }


def _read_model(record: Record) -> str:
    name = record.text("Model")
    if record.optional_text("Category") != "open":
        return name
    used = record.optional_text("UsedModel") or name
    return f"{name}-open" if used == name else f"{name}-open/{used}"


def _read_values(record: Record) -> Mapping[str, Any]:
    value = record.number("Performance_Result", above=0)
    unit = record.text("Performance_Units")
    figures: dict[str, Any] = {}
    if record.has("Power_Result"):
        figures["extra"] = {"mlperf_power": record.number("Power_Result", within=OPERATIONS)}
    if unit != _LATENCY:
        if not unit.endswith("/s"):
            record.refuse(
                "Performance_Units",
                f"{in_quotes(unit)} is neither {in_quotes(_LATENCY)} nor a rate per second",
            )
        return {**figures, "throughput": value, "throughput_unit": unit.lower()}
    scenario = record.text("Scenario")
    if scenario not in _LATENCIES:
        record.refuse("Performance_Units", f"the result of {scenario} is not a latency")
    column, batch = _LATENCIES[scenario]
    return {**figures, column: value, "batch_size": batch}


def _find_hardware(accelerator: str) -> str:
    if not accelerator:
        return "cpu"
    low = accelerator.lower()
    return next((kind for word, kind in _VENDORS if word in low), "other")


def _find_engine(software: str) -> str:
    low = re.sub(r"[^a-z]", "", software.lower())
    return next((name for word, name in _ENGINES.items() if word in low), _OTHER_ENGINE)

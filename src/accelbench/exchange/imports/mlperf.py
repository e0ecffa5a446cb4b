"""MLPerf Inference's `summary_results.json`: results of submitters, by scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.ranges import OPERATIONS
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports.records import MalformedError, Record, json_of, objects_in
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "summary_results.json"

_LATENCY = "Latency (ms)"
#: A scenario's latency is a percentile of its queries, by MLPerf's rules, and each query of
#: MultiStream has eight samples.
_LATENCIES = {"SingleStream": ("latency_p90_ms", 1), "MultiStream": ("latency_p99_ms", 8)}
_SCENARIOS = {
    "Offline": "offline", "Server": "server", "Interactive": "interactive",
    "SingleStream": "single_stream", "MultiStream": "multi_stream",
}  # fmt: skip
_VENDORS = (("nvidia", "cuda"), ("amd instinct", "rocm"), ("tpu", "tpu"))
#: The engine, by a word of its in the list of software; the first that is found.
_ENGINES = {
    "tensorrt": "tensorrt", "vllm": "vllm", "openvino": "openvino", "onnxruntime": "onnxruntime",
    "tflite": "tflite", "pytorch": "pytorch", "llmboost": "llmboost", "sglang": "sglang",
    "shark": "shark-ai",
}  # fmt: skip
#: One that is not among them: its name stands in the conditions.
_ANOTHER = "other"
_TYPES = {"fp32", "fp16", "bf16", "fp8", "fp4", "int8", "uint8", "int4"}
_KEPT = (
    *("ID", "Submitter", "System", "Platform", "Suite", "Category", "Availability", "version"),
    *("Software", "operating_system", "Processor", "Accuracy", "Notes", "Power_Units"),
)


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line of the summary."""
    entries = json_of(file)
    if not isinstance(entries, list):
        raise MalformedError(file, 1, None, "a list of results was expected")
    for record in objects_in(file, entries):
        conditions = record.texts(*_KEPT)
        yield imported(source, {**_asked(record), **_figures(record)}, conditions, at=record)


def _asked(record: Record) -> dict[str, Any]:
    scenario = record.text("Scenario")
    if scenario not in _SCENARIOS:
        record.wrong("Scenario", f"no scenario is called {in_quotes(scenario)}")
    accelerator = record.text_if("Accelerator") or ""
    per_node = (record.whole_if("a#") if accelerator else None) or 1
    count = per_node * (record.whole_if("Nodes") or 1)
    name = accelerator or record.text("Processor")
    kind = (record.text_if("weight_data_types") or "").lower()
    return {
        "model": _model(record),
        "hardware": _hardware(accelerator),
        "device_name": f"{count}x {name}" if count > 1 else name,
        "runtime": _engine(record.text_if("Software") or ""),
        "precision": kind if kind in _TYPES else None,
        "scenario": _SCENARIOS[scenario],
        "world_size": count,
    }


def _model(record: Record) -> str:
    name = record.text("Model")
    if record.text_if("Category") != "open":
        return name
    used = record.text_if("UsedModel") or name
    return f"{name}-open" if used == name else f"{name}-open/{used}"


def _figures(record: Record) -> Mapping[str, Any]:
    value = record.number("Performance_Result", above=0)
    unit = record.text("Performance_Units")
    figures: dict[str, Any] = {}
    if record.has("Power_Result"):
        figures["extra"] = {"mlperf_power": record.number("Power_Result", within=OPERATIONS)}
    if unit != _LATENCY:
        if not unit.endswith("/s"):
            record.wrong(
                "Performance_Units",
                f"{in_quotes(unit)} is neither {in_quotes(_LATENCY)} nor so many a second",
            )
        return {**figures, "throughput": value, "throughput_unit": unit.lower()}
    scenario = record.text("Scenario")
    if scenario not in _LATENCIES:
        record.wrong("Performance_Units", f"no latency is the result of {scenario}")
    column, batch = _LATENCIES[scenario]
    return {**figures, column: value, "batch_size": batch}


def _hardware(accelerator: str) -> str:
    if not accelerator:
        return "cpu"
    low = accelerator.lower()
    return next((kind for word, kind in _VENDORS if word in low), "other")


def _engine(software: str) -> str:
    low = re.sub(r"[^a-z]", "", software.lower())
    return next((name for word, name in _ENGINES.items() if word in low), _ANOTHER)

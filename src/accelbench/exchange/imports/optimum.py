"""Importer of optimum-benchmark's reports: configuration and results, with every sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.precision import PRECISIONS, parse_precision
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports.records import Record, read_object
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "benchmark*.json"

_PER_UNIT = {"s": 1e3, "ms": 1.0}
#: The mode of each task. A step of text generation is a whole request.
_STEPS = {"forward": "inference", "generate": "inference", "call": "inference", "train": "training"}
_FAMILIES = {
    "feature-extraction": "embedding", "fill-mask": "embedding", "text-classification": "embedding",
    "text-generation": "text_generation", "text2text-generation": "text_generation",
    "image-classification": "vision", "object-detection": "vision",
    "semantic-segmentation": "vision", "automatic-speech-recognition": "audio",
    "audio-classification": "audio", "image-to-text": "multimodal",
}  # fmt: skip
_STATISTICS = {
    "mean": "latency_mean_ms", "p50": "latency_p50_ms", "p90": "latency_p90_ms",
    "p95": "latency_p95_ms", "p99": "latency_p99_ms", "stdev": "latency_std_ms",
}  # fmt: skip

_MEMORY = {
    "max_ram": "host_memory_peak_mb", "max_allocated": "device_memory_peak_mb",
    "max_reserved": "device_memory_reserved_mb",
}  # fmt: skip

#: Columns of the mean of parts that are not steps.
_MEANS = {
    "load": ("load_ms",), "load_model": ("load_ms",), "prefill": ("prefill_ms", "ttft_ms"),
    "decode": ("decode_ms",), "per_token": ("tpot_ms",),
}  # fmt: skip


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per report."""
    whole = read_object(file)
    config, report = whole.child("config"), whole.child("report")
    parts = {name: report.child(name) for name in report.values if report.has(name)}
    step = next((name for name in _STEPS if name in parts), None)
    if step is None:
        generated = "prefill" in parts and "decode" in parts
        if not generated:
            report.refuse(
                "forward", f"the report has none of {', '.join(_STEPS)}, prefill with decode"
            )
    columns, samples = _read_values(parts, step)
    case = _read_configuration(config, "training" if step == "train" else "inference")
    yield build_result(source, {**case, **columns}, _read_versions(config), samples, at=report)


def _read_configuration(config: Record, mode: str) -> dict[str, Any]:
    backend, scenario = config.child("backend"), config.child("scenario")
    shapes, environment = (
        scenario.child_or_empty("input_shapes"),
        config.child_or_empty("environment"),
    )
    device = backend.text("device")
    hardware = device.partition(":")[0]
    if hardware == "cuda" and backend.has("device_ids") and _is_amd(environment):
        hardware = "rocm"
    types = backend.texts("torch_dtype", "dtype", "precision")
    task = backend.optional_text("task")
    return {
        "model": backend.text("model"),
        "task": task,
        "family": _FAMILIES.get(task or ""),
        "hardware": hardware,
        "device_name": _find_device_name(hardware, environment),
        "runtime": backend.text("name"),
        "precision": _parse_precision(next(iter(types.values()), "float32").lower()),
        "batch_size": shapes.optional_whole("batch_size"),
        "sequence_length": shapes.optional_whole("sequence_length"),
        "image_size": shapes.optional_whole("height"),
        "new_tokens": scenario.child_or_empty("generate_kwargs").optional_whole("max_new_tokens")
        or scenario.optional_whole("new_tokens"),
        "mode": mode,
        "compiled": backend.has("torch_compile") and backend.text("torch_compile") == "True",
    }


def _parse_precision(word: str) -> str:
    known = set(PRECISIONS) | {"float32", "float16", "bfloat16"}
    return parse_precision(word) if word in known else word


def _is_amd(environment: Record) -> bool:
    return any("amd" in name.lower() for name in _read_gpus(environment))


def _read_gpus(environment: Record) -> list[str]:
    if not environment.has("gpu"):
        return []
    names = environment.list("gpu")
    if not all(isinstance(name, str) for name in names):
        environment.refuse("gpu", "names were expected")
    return list(names)


def _find_device_name(hardware: str, environment: Record) -> str | None:
    if hardware == "cpu":
        return environment.optional_text("cpu")
    return next(iter(_read_gpus(environment)), None)


def _read_versions(config: Record) -> dict[str, Any]:
    backend, environment = config.child("backend"), config.child_or_empty("environment")
    versions = {backend.text("name"): backend.text("version")} if backend.has("version") else {}
    named = environment.texts(*(name for name in environment.values if name.endswith("_version")))
    return versions | {name.removesuffix("_version"): text for name, text in named.items()}


def _read_values(
    parts: Mapping[str, Record], step: str | None
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    figures: dict[str, Any] = {}
    samples: dict[str, list[float]] = {}
    for name, part in parts.items():
        if not part.has("latency"):
            continue
        latency = part.child("latency")
        if name == step:
            figures |= _read_statistics(latency)
            samples["step"] = [value * _read_scale(latency) for value in latency.numbers("values")]
        for column in _MEANS.get(name, ()):
            figures[column] = latency.number("mean") * _read_scale(latency)
    if step is None and {"prefill_ms", "decode_ms"} <= figures.keys():
        figures["latency_mean_ms"] = figures["prefill_ms"] + figures["decode_ms"]
    head = parts.get(step or "decode")
    if head is not None:
        figures |= _read_rate(head.child_or_empty("throughput")) if head.has("throughput") else {}
        figures |= _read_memory(head.child_or_empty("memory"))
    return figures, samples


def _read_statistics(latency: Record) -> dict[str, Any]:
    figures = latency.measurements(_STATISTICS, _read_scale(latency))
    return {**figures, "sample_count": latency.optional_whole("count")}


def _read_rate(throughput: Record) -> dict[str, Any]:
    value, unit = throughput.number("value", above=0), throughput.text("unit")
    if unit == "tokens/s":
        return {"tokens_per_second": value}
    return {"throughput": value, "throughput_unit": unit}


def _read_memory(memory: Record) -> dict[str, Any]:
    """Return the allocator's peak, else the process's; optimum-benchmark's MB are 10^6 bytes."""
    figures: dict[str, Any] = memory.measurements(_MEMORY, 1e6 / 2**20)
    peak = figures.get("device_memory_peak_mb", figures.get("host_memory_peak_mb"))
    if peak is not None:
        figures["memory_peak_mb"] = peak
        figures["memory_source"] = "optimum-benchmark"
    return figures


def _read_scale(latency: Record) -> float:
    unit = latency.optional_text("unit") or "s"
    if unit not in _PER_UNIT:
        latency.refuse("unit", f"{in_quotes(unit)} is not a known unit of time")
    return _PER_UNIT[unit]

"""optimum-benchmark's reports: the configuration and its results, with every sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.possible import ABOVE_ZERO
from accelbench.core.precision import PRECISIONS, parse_precision
from accelbench.core.visible import in_quotes
from accelbench.exchange.imports.records import Record, object_of
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "benchmark*.json"

_PER_UNIT = {"s": 1e3, "ms": 1.0}
#: What one step is, by the task: a whole request where text is made.
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

#: Of a part that is no step, the columns of its mean.
_MEANS = {
    "load": ("load_ms",), "load_model": ("load_ms",), "prefill": ("prefill_ms", "ttft_ms"),
    "decode": ("decode_ms",), "per_token": ("tpot_ms",),
}  # fmt: skip


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per report."""
    whole = object_of(file)
    config, report = whole.of("config"), whole.of("report")
    parts = {name: report.of(name) for name in report.values if report.has(name)}
    step = next((name for name in _STEPS if name in parts), None)
    if step is None:
        generated = "prefill" in parts and "decode" in parts
        if not generated:
            report.wrong("forward", f"there is none of {', '.join(_STEPS)}, prefill with decode")
    columns, samples = _figures(parts, step)
    case = _asked(config, "training" if step == "train" else "inference")
    yield imported(source, {**case, **columns}, _versions(config), samples, at=report)


def _asked(config: Record, mode: str) -> dict[str, Any]:
    backend, scenario = config.of("backend"), config.of("scenario")
    shapes = scenario.of("input_shapes") if scenario.has("input_shapes") else None
    environment = config.of("environment") if config.has("environment") else None
    device = backend.text("device")
    hardware = device.partition(":")[0]
    if hardware == "cuda" and backend.has("device_ids") and environment and _is_amd(environment):
        hardware = "rocm"
    dtype = next((n for n in ("torch_dtype", "dtype", "precision") if backend.has(n)), None)
    word = backend.text(dtype).lower() if dtype else "float32"
    task = backend.text("task") if backend.has("task") else None
    return {
        "model": backend.text("model"),
        "task": task,
        "family": _FAMILIES.get(task or ""),
        "hardware": hardware,
        "device_name": _device_name(hardware, environment),
        "runtime": backend.text("name"),
        "precision": _precision(word),
        "batch_size": _shape(shapes, "batch_size"),
        "sequence_length": _shape(shapes, "sequence_length"),
        "image_size": _shape(shapes, "height"),
        "new_tokens": _new_tokens(scenario),
        "mode": mode,
        "compiled": backend.has("torch_compile") and backend.text("torch_compile") == "True",
    }


def _precision(word: str) -> str:
    known = set(PRECISIONS) | {"float32", "float16", "bfloat16"}
    return parse_precision(word) if word in known else word


def _shape(shapes: Record | None, name: str) -> int | None:
    return shapes.whole(name) if shapes is not None and shapes.has(name) else None


def _new_tokens(scenario: Record) -> int | None:
    if scenario.has("generate_kwargs"):
        words = scenario.of("generate_kwargs")
        if words.has("max_new_tokens"):
            return words.whole("max_new_tokens")
    return scenario.whole("new_tokens") if scenario.has("new_tokens") else None


def _is_amd(environment: Record) -> bool:
    return any("amd" in name.lower() for name in _gpus(environment))


def _gpus(environment: Record) -> list[str]:
    if not environment.has("gpu"):
        return []
    names = environment.list("gpu")
    if not all(isinstance(name, str) for name in names):
        environment.wrong("gpu", "names were expected")
    return list(names)


def _device_name(hardware: str, environment: Record | None) -> str | None:
    if environment is None:
        return None
    if hardware == "cpu":
        return environment.text("cpu") if environment.has("cpu") else None
    return next(iter(_gpus(environment)), None)


def _versions(config: Record) -> dict[str, Any]:
    versions = {}
    backend = config.of("backend")
    if backend.has("version"):
        versions[backend.text("name")] = backend.text("version")
    if config.has("environment"):
        environment = config.of("environment")
        versions |= {
            name.removesuffix("_version"): environment.text(name)
            for name in environment.values
            if name.endswith("_version") and environment.has(name)
        }
    return versions


def _figures(
    parts: Mapping[str, Record], step: str | None
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    figures: dict[str, Any] = {}
    samples: dict[str, list[float]] = {}
    for name, part in parts.items():
        if not part.has("latency"):
            continue
        latency = part.of("latency")
        if name == step:
            figures |= _statistics(latency)
            samples["step"] = [value * _scale(latency) for value in latency.numbers("values")]
        for column in _MEANS.get(name, ()):
            figures[column] = latency.number("mean") * _scale(latency)
    if step is None and {"prefill_ms", "decode_ms"} <= figures.keys():
        figures["latency_mean_ms"] = figures["prefill_ms"] + figures["decode_ms"]
    head = parts.get(step or "decode")
    if head is not None and head.has("throughput"):
        figures |= _rate(head.of("throughput"))
    if head is not None and head.has("memory"):
        figures |= _memory(head.of("memory"))
    return figures, samples


def _statistics(latency: Record) -> dict[str, Any]:
    scale = _scale(latency)
    statistics: dict[str, Any] = {
        column: latency.number(word, above=0 if column in ABOVE_ZERO else None) * scale
        for word, column in _STATISTICS.items()
        if latency.has(word)
    }
    if latency.has("count"):
        statistics["sample_count"] = latency.whole("count")
    return statistics


def _rate(throughput: Record) -> dict[str, Any]:
    value, unit = throughput.number("value", above=0), throughput.text("unit")
    if unit == "tokens/s":
        return {"tokens_per_second": value}
    return {"throughput": value, "throughput_unit": unit}


def _memory(memory: Record) -> dict[str, Any]:
    """Return the allocator's peak, else the process's; their MB are 10^6 bytes."""
    figures: dict[str, Any] = {}
    for field, column in (
        ("max_ram", "host_memory_peak_mb"),
        ("max_allocated", "device_memory_peak_mb"),
        ("max_reserved", "device_memory_reserved_mb"),
    ):
        if memory.has(field):
            figures[column] = memory.number(field) * 1e6 / 2**20
    peak = figures.get("device_memory_peak_mb", figures.get("host_memory_peak_mb"))
    if peak is not None:
        figures["memory_peak_mb"] = peak
        figures["memory_source"] = "optimum-benchmark"
    return figures


def _scale(latency: Record) -> float:
    unit = latency.text("unit") if latency.has("unit") else "s"
    if unit not in _PER_UNIT:
        latency.wrong("unit", f"{in_quotes(unit)} is no unit of time that is known")
    return _PER_UNIT[unit]

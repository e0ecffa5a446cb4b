"""optimum-benchmark's reports: the configuration and its results, with every sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.precision import PRECISIONS, parse_precision
from accelbench.core.safe_text import in_quotes
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

_MEMORY = {
    "max_ram": "host_memory_peak_mb", "max_allocated": "device_memory_peak_mb",
    "max_reserved": "device_memory_reserved_mb",
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
    shapes, environment = scenario.part("input_shapes"), config.part("environment")
    device = backend.text("device")
    hardware = device.partition(":")[0]
    if hardware == "cuda" and backend.has("device_ids") and _is_amd(environment):
        hardware = "rocm"
    types = backend.texts("torch_dtype", "dtype", "precision")
    task = backend.text_if("task")
    return {
        "model": backend.text("model"),
        "task": task,
        "family": _FAMILIES.get(task or ""),
        "hardware": hardware,
        "device_name": _device_name(hardware, environment),
        "runtime": backend.text("name"),
        "precision": _precision(next(iter(types.values()), "float32").lower()),
        "batch_size": shapes.whole_if("batch_size"),
        "sequence_length": shapes.whole_if("sequence_length"),
        "image_size": shapes.whole_if("height"),
        "new_tokens": scenario.part("generate_kwargs").whole_if("max_new_tokens")
        or scenario.whole_if("new_tokens"),
        "mode": mode,
        "compiled": backend.has("torch_compile") and backend.text("torch_compile") == "True",
    }


def _precision(word: str) -> str:
    known = set(PRECISIONS) | {"float32", "float16", "bfloat16"}
    return parse_precision(word) if word in known else word


def _is_amd(environment: Record) -> bool:
    return any("amd" in name.lower() for name in _gpus(environment))


def _gpus(environment: Record) -> list[str]:
    if not environment.has("gpu"):
        return []
    names = environment.list("gpu")
    if not all(isinstance(name, str) for name in names):
        environment.wrong("gpu", "names were expected")
    return list(names)


def _device_name(hardware: str, environment: Record) -> str | None:
    if hardware == "cpu":
        return environment.text_if("cpu")
    return next(iter(_gpus(environment)), None)


def _versions(config: Record) -> dict[str, Any]:
    backend, environment = config.of("backend"), config.part("environment")
    versions = {backend.text("name"): backend.text("version")} if backend.has("version") else {}
    named = environment.texts(*(name for name in environment.values if name.endswith("_version")))
    return versions | {name.removesuffix("_version"): text for name, text in named.items()}


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
    if head is not None:
        figures |= _rate(head.part("throughput")) if head.has("throughput") else {}
        figures |= _memory(head.part("memory"))
    return figures, samples


def _statistics(latency: Record) -> dict[str, Any]:
    figures = latency.figures(_STATISTICS, _scale(latency))
    return {**figures, "sample_count": latency.whole_if("count")}


def _rate(throughput: Record) -> dict[str, Any]:
    value, unit = throughput.number("value", above=0), throughput.text("unit")
    if unit == "tokens/s":
        return {"tokens_per_second": value}
    return {"throughput": value, "throughput_unit": unit}


def _memory(memory: Record) -> dict[str, Any]:
    """Return the allocator's peak, else the process's; their MB are 10^6 bytes."""
    figures: dict[str, Any] = memory.figures(_MEMORY, 1e6 / 2**20)
    peak = figures.get("device_memory_peak_mb", figures.get("host_memory_peak_mb"))
    if peak is not None:
        figures["memory_peak_mb"] = peak
        figures["memory_source"] = "optimum-benchmark"
    return figures


def _scale(latency: Record) -> float:
    unit = latency.text_if("unit") or "s"
    if unit not in _PER_UNIT:
        latency.wrong("unit", f"{in_quotes(unit)} is no unit of time that is known")
    return _PER_UNIT[unit]

"""OpenVINO's `benchmark_app -report_type no_counters -json_stats`: one model on one device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from accelbench.exchange.imports.records import Record, object_of
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "benchmark_report*.json"

_UNSAID = "UNSPECIFIED"
_LATENCY = re.compile(r"latency \((?:(\d+) percentile\) \()?ms\)")
_COLUMNS = {
    "avg latency": "latency_mean_ms", "min latency": "latency_min_ms",
    "max latency": "latency_max_ms", "first inference time (ms)": "first_inference_ms",
    "compile model time (ms)": "compile_ms", "read model time (ms)": "load_ms",
}  # fmt: skip
#: The percentiles that have a column.
_PERCENTILES = {n: f"latency_p{n}_ms" for n in (50, 90, 95, 99)}


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per report."""
    whole = object_of(file)
    setup, results = whole.of("configuration_setup"), whole.of("execution_results")
    columns = {**_asked(whole, setup), **_figures(results)}
    yield imported(source, columns, _conditions(setup), at=results)


def _asked(whole: Record, setup: Record) -> dict[str, Any]:
    path = _path(whole)
    device = setup.text("target device")
    precision = setup.text_if("precision") or _UNSAID
    options: dict[str, Any] = {"api": setup.text("API").lower()}
    if (requests := setup.whole_if("number of parallel infer requests")) is not None:
        options["requests"] = requests
    return {
        "model": setup.text("topology") if path is None else PurePath(path).stem,
        "hardware": "openvino",
        "device": f"openvino:{device.lower()}",
        "device_name": device,
        "runtime": "openvino",
        "precision": None if precision == _UNSAID else precision.lower(),
        "batch_size": setup.whole("batch size"),
        # Requests beside each other fill the device, and wait for each other.
        "scenario": "single_stream" if options["api"] == "sync" else "offline",
        "options": options,
    }


def _path(whole: Record) -> str | None:
    words = whole.part("cmd_options").texts("m", "-m", "path_to_model")
    return next(iter(words.values()), None)


def _figures(results: Record) -> dict[str, Any]:
    figures: dict[str, Any] = results.figures(_COLUMNS)
    for name in results.values:
        match = _LATENCY.fullmatch(name)
        column = match and _PERCENTILES.get(int(match[1] or 50))
        if column:
            figures[column] = results.number(name, above=0)
    figures["sample_count"] = results.whole_if("total number of iterations")
    figures |= {"throughput": results.number("throughput", above=0), "throughput_unit": "items/s"}
    return figures


def _conditions(setup: Record) -> dict[str, Any]:
    streams = re.compile(r"number of (\w+) streams")
    matches = ((streams.fullmatch(name), name) for name in setup.values)
    return {f"{match[1].lower()}_streams": setup.text(name) for match, name in matches if match}

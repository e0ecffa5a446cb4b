"""Importer of OpenVINO's `benchmark_app -report_type no_counters -json_stats`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from accelbench.exchange.imports.records import Record, read_object
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "benchmark_report*.json"

_UNSPECIFIED = "UNSPECIFIED"
_LATENCY = re.compile(r"latency \((?:(\d+) percentile\) \()?ms\)")
_COLUMNS = {
    "avg latency": "latency_mean_ms", "min latency": "latency_min_ms",
    "max latency": "latency_max_ms", "first inference time (ms)": "first_inference_ms",
    "compile model time (ms)": "compile_ms", "read model time (ms)": "load_ms",
}  # fmt: skip
#: Columns of percentiles.
_PERCENTILES = {n: f"latency_p{n}_ms" for n in (50, 90, 95, 99)}


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per report."""
    whole = read_object(file)
    setup, results = whole.child("configuration_setup"), whole.child("execution_results")
    columns = {**_read_configuration(whole, setup), **_read_values(results)}
    yield build_result(source, columns, _read_conditions(setup), at=results)


def _read_configuration(whole: Record, setup: Record) -> dict[str, Any]:
    path = _model_path(whole)
    device = setup.text("target device")
    precision = setup.optional_text("precision") or _UNSPECIFIED
    options: dict[str, Any] = {"api": setup.text("API").lower()}
    if (requests := setup.optional_whole("number of parallel infer requests")) is not None:
        options["requests"] = requests
    return {
        "model": setup.text("topology") if path is None else PurePath(path).stem,
        "hardware": "openvino",
        "device": f"openvino:{device.lower()}",
        "device_name": device,
        "runtime": "openvino",
        "precision": None if precision == _UNSPECIFIED else precision.lower(),
        "batch_size": setup.whole("batch size"),
        # Parallel requests fill the device, and wait for each other.
        "scenario": "single_stream" if options["api"] == "sync" else "offline",
        "options": options,
    }


def _model_path(whole: Record) -> str | None:
    words = whole.child_or_empty("cmd_options").texts("m", "-m", "path_to_model")
    return next(iter(words.values()), None)


def _read_values(results: Record) -> dict[str, Any]:
    figures: dict[str, Any] = results.measurements(_COLUMNS)
    for name in results.values:
        match = _LATENCY.fullmatch(name)
        column = match and _PERCENTILES.get(int(match[1] or 50))
        if column:
            figures[column] = results.number(name, above=0)
    figures["sample_count"] = results.optional_whole("total number of iterations")
    figures |= {"throughput": results.number("throughput", above=0), "throughput_unit": "items/s"}
    return figures


def _read_conditions(setup: Record) -> dict[str, Any]:
    streams = re.compile(r"number of (\w+) streams")
    matches = ((streams.fullmatch(name), name) for name in setup.values)
    return {f"{match[1].lower()}_streams": setup.text(name) for match, name in matches if match}

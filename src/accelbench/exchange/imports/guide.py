"""Importer of the Benchmarking guide's CSV, written by its own programs or by accelbench."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelbench.core.axes import size_columns
from accelbench.core.errors import UsageError
from accelbench.core.plausible_values import OTHER_RATE_TOLERANCE, explain_impossible
from accelbench.core.precision import parse_precision
from accelbench.core.safe_text import brief, in_quotes
from accelbench.exchange.guide_csv import VALUE_COLUMNS
from accelbench.exchange.imports.records import Record, read_table
from accelbench.exchange.imports.result_row import Source, build_result

PATTERN = "benchmark_results_*.csv"

NEEDED = ("framework", "model", "device", "batch_size", "dtype", "latency_mean_ms")
_SIZES = (*size_columns(), "threads")
_COUNTS = ("launch", "sample_count")
_BOOLEANS = ("compiled", "latency_p95_rough", "latency_p99_rough")
_TEXTS = (
    "arm",
    *("mode", "optimizer", "weights", "status", "reason", "message", "advice", "quality"),
    *("throughput_unit", "memory_source", "data_source"),
)


def read_rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line."""
    for line in read_table(file, NEEDED):
        conditions = line.texts("git_commit")
        columns = {**_read_configuration(line), **_read_values(line)}
        yield build_result(source, columns, conditions, at=line, rates=OTHER_RATE_TOLERANCE)


def _read_configuration(line: Record) -> dict[str, Any]:
    device = line.text("device")
    kind = line.optional_text("device_type") or device.partition(":")[0]
    case: dict[str, Any] = {
        "model": line.optional_text("model_id") or line.text("model"),
        "runtime": line.text("framework").lower(),
        "hardware": kind.lower(),
        "device": device,
        "batch_size": line.whole("batch_size"),
        "precision": _read_precision(line),
        "image_size": _read_image_size(line),
    }
    case |= line.wholes(*_COUNTS, above=-1)
    # A size of 0 means that the model does not have it.
    case |= {name: size for name, size in line.wholes(*_SIZES, above=-1).items() if size}
    case |= {name: _read_word(line, name) for name in _TEXTS if line.has(name)}
    case |= {name: line.boolean(name) for name in _BOOLEANS if line.has(name)}
    if line.has("timestamp"):
        case["started_at"] = line.time("timestamp")
    return case


def _read_word(line: Record, name: str) -> str:
    word = line.text(name)
    if why := explain_impossible(name, word):
        line.refuse(name, why)
    return word


def _read_precision(line: Record) -> str:
    word = line.text("dtype").removeprefix("torch.")
    try:
        return parse_precision(word)
    except UsageError as error:
        line.refuse("dtype", f"{in_quotes(word)} is not a known precision", error)


def _read_values(line: Record) -> dict[str, float]:
    figures = line.measurements(VALUE_COLUMNS)
    for name, column in VALUE_COLUMNS.items():
        if column in figures and (why := explain_impossible(column, figures[column])):
            line.refuse(name, why)
    if not figures and not line.has("status"):
        line.refuse("latency_mean_ms", "it is missing, and the line has no other value")
    return figures


def _read_image_size(line: Record) -> int | None:
    """Return the side of a square image, from (3, 224, 224) or (8, 3, 224, 224)."""
    if not line.has("input_shape"):
        return None
    try:
        shape = ast.literal_eval(line.text("input_shape"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # of unbalanced brackets
        line.refuse("input_shape", f"{brief(line.text('input_shape'))} is not a shape")
    sides = shape[-2:] if isinstance(shape, tuple) and len(shape) >= 3 else ()
    square = len(sides) == 2 and type(sides[0]) is int and sides[0] == sides[1]
    return int(sides[0]) if square else None

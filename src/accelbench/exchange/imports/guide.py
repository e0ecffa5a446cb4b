"""The Benchmarking guide's CSV, as its own programs and ours write it."""

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
from accelbench.exchange.guide_csv import FIGURES
from accelbench.exchange.imports.records import Record, table_of
from accelbench.exchange.imports.result_row import Source, imported

PATTERN = "benchmark_results_*.csv"

NEEDED = ("framework", "model", "device", "batch_size", "dtype", "latency_mean_ms")
_SIZES = (*size_columns(), "threads")
_COUNTS = ("launch", "sample_count")
_TRUTHS = ("compiled", "latency_p95_rough", "latency_p99_rough")
_TEXTS = (
    "arm",
    *("mode", "optimizer", "weights", "status", "reason", "message", "advice", "quality"),
    *("throughput_unit", "memory_source", "data_source"),
)


def rows(file: Path, source: Source) -> Iterator[dict[str, Any]]:
    """Yield one row per line."""
    for line in table_of(file, NEEDED):
        conditions = line.texts("git_commit")
        columns = {**_asked(line), **_figures(line)}
        yield imported(source, columns, conditions, at=line, rates=OTHER_RATE_TOLERANCE)


def _asked(line: Record) -> dict[str, Any]:
    device = line.text("device")
    kind = line.text_if("device_type") or device.partition(":")[0]
    case: dict[str, Any] = {
        "model": line.text_if("model_id") or line.text("model"),
        "runtime": line.text("framework").lower(),
        "hardware": kind.lower(),
        "device": device,
        "batch_size": line.whole("batch_size"),
        "precision": _precision(line),
        "image_size": _image(line),
    }
    case |= line.wholes(*_COUNTS, above=-1)
    # A size of 0 is one that the model does not have.
    case |= {name: size for name, size in line.wholes(*_SIZES, above=-1).items() if size}
    case |= {name: _word(line, name) for name in _TEXTS if line.has(name)}
    case |= {name: line.truth(name) for name in _TRUTHS if line.has(name)}
    if line.has("timestamp"):
        case["started_at"] = line.time("timestamp")
    return case


def _word(line: Record, name: str) -> str:
    word = line.text(name)
    if why := explain_impossible(name, word):
        line.wrong(name, why)
    return word


def _precision(line: Record) -> str:
    word = line.text("dtype").removeprefix("torch.")
    try:
        return parse_precision(word)
    except UsageError as error:
        line.wrong("dtype", f"no precision is called {in_quotes(word)}", error)


def _figures(line: Record) -> dict[str, float]:
    figures = line.figures(FIGURES)
    for name, column in FIGURES.items():
        if column in figures and (why := explain_impossible(column, figures[column])):
            line.wrong(name, why)
    if not figures and not line.has("status"):
        line.wrong("latency_mean_ms", "it is missing, and no other figure is there")
    return figures


def _image(line: Record) -> int | None:
    """Return the side of a square image, from (3, 224, 224) or (8, 3, 224, 224)."""
    if not line.has("input_shape"):
        return None
    try:
        shape = ast.literal_eval(line.text("input_shape"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # of brackets without an end
        line.wrong("input_shape", f"{brief(line.text('input_shape'))} is no shape")
    sides = shape[-2:] if isinstance(shape, tuple) and len(shape) >= 3 else ()
    square = len(sides) == 2 and type(sides[0]) is int and sides[0] == sides[1]
    return int(sides[0]) if square else None

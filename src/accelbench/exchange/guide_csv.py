"""Result keys and CSV of the Benchmarking guide: its names for our columns, one line per result.

`model` is the requested name, so that the guide's filters find it (`df['model'] == 'resnet50'`);
the catalogue's name is `model_id`. An unknown value is NaN in a result, a float, so that
`f"{…:.2f}"` works on every result, and an empty cell in the CSV.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from accelbench.core.axes import size_columns
from accelbench.core.identity import canonical_json
from accelbench.core.precision import PRECISIONS, long_name
from accelbench.core.safe_text import csv_cell
from accelbench.exchange.result_file import to_row

#: The guide's names of values, and their columns.
VALUE_COLUMNS = {
    "latency_p50_ms": "latency_p50_ms",
    "latency_p95_ms": "latency_p95_ms",
    "latency_p99_ms": "latency_p99_ms",
    "latency_mean_ms": "latency_mean_ms",
    "latency_std_ms": "latency_std_ms",
    "latency_min_ms": "latency_min_ms",
    "latency_max_ms": "latency_max_ms",
    "throughput_ips": "throughput",
    "memory_mb": "memory_peak_mb",
    "compilation_time_ms": "compile_ms",
}
GUIDE_COLUMNS = (
    *("framework", "model", "device", "device_type", "batch_size", "input_shape", "dtype"),
    *VALUE_COLUMNS,
    *("timestamp", "git_commit"),
)
#: Other columns of the configuration. Lines that are equal in these and in the guide's columns
#: differ only in launch or time.
CASE_COLUMNS = (
    *("mode", *size_columns(), "optimizer", "compiled", "threads", "weights", "options"),
    *("launch", "arm"),
)
#: Columns that the guide does not have, and readers of its values need.
OTHER_COLUMNS = (
    *CASE_COLUMNS,
    *("ttft_ms", "tpot_ms"),
    *("status", "reason", "message", "advice", "quality", "warnings", "sample_count"),
    *("latency_p95_rough", "latency_p99_rough", "emulated", "verification", "workarounds"),
    *("throughput_unit", "memory_source", "data_source", "model_id", "run_id", "result_id"),
)
COLUMNS = (*GUIDE_COLUMNS, *OTHER_COLUMNS)


def guide_result(
    body: Mapping[str, Any], model: str, git_commit: str | None, warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a result under the guide's keys, followed by every other column of the store."""
    row = to_row(body)
    shapes = {name: tuple(shape) for name, shape in json.loads(row["input_shape"] or "{}").items()}
    guide = {
        "framework": row["runtime"],
        "model": model,
        "device": row["device"],
        "device_type": row["hardware"],
        "batch_size": row["batch_size"],
        "input_shape": next(iter(shapes.values()), ()),  # the model's first input
        "dtype": _precision_name(row["precision"]),
        **{key: _to_float(row[column]) for key, column in VALUE_COLUMNS.items()},
        "timestamp": row["started_at"],
        "git_commit": git_commit,
    }
    notes = [*(row["warnings"] or ()), *warnings]
    rest = {name: value for name, value in row.items() if name not in guide}
    return {**guide, "model_id": row["model"], "input_shapes": shapes, **rest, "warnings": notes}


def _precision_name(precision: str | None) -> str | None:
    return long_name(precision) if precision in PRECISIONS else precision


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def csv_name(when: datetime) -> str:
    """Return benchmark_results_<YYYYMMDD_HHMMSS>.csv, in UTC like the names of result files."""
    return f"benchmark_results_{when.astimezone(UTC).strftime('%Y%m%d_%H%M%S')}.csv"


def encode(results: Sequence[Mapping[str, Any]], *, header: bool) -> bytes:
    """Return results as lines of CSV, below the header if the file is new."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    if header:
        writer.writerow(COLUMNS)
    for result in results:
        writer.writerow([_format_cell(result.get(name)) for name in COLUMNS])
    return stream.getvalue().encode("utf-8", "backslashreplace")


def parse_header(first_line: str) -> tuple[str, ...]:
    """Return the column names of a file's first line."""
    return tuple(next(csv.reader([first_line]), ()))


def _format_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return csv_cell(value)
    if isinstance(value, tuple):
        return str(value)  # an input shape, in Python's notation
    if isinstance(value, float):
        return repr(value)  # the shortest text that parses to the same number
    if isinstance(value, (list, dict)):
        return canonical_json(value)
    return str(value)

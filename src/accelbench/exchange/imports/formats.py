"""The formats that can be imported, and reading files of one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.exchange.imports import (
    aihub,
    benchmark_app,
    guide,
    mlperf,
    optimum,
    ours,
    parquet,
    pytest_benchmark,
    tables,
    timm,
)
from accelbench.exchange.imports.ours import Run, Table
from accelbench.exchange.imports.result_row import Source

#: None is a line that is there and has no figure: it did not run.
Rows = Callable[[Path, Source], Iterator[dict[str, Any] | None]]
Tables = Callable[[Path, Source, Run], Table]


#: The kind whose lines each say whose they are.
CSV = "csv"
TIDY = "tidy"


@dataclass(frozen=True)
class Kind:
    """A format: its content, whose results they are, and its reader."""

    name: str
    what: str
    pattern: str  # of its files in a folder
    rows: Rows | None = None
    source: str = ""  # where nobody names another
    licence: str = ""
    table: Tables | None = None  # where rows would be too many


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("json", "our result files and exports", ours.JSON_PATTERN, ours.json_rows),
        Kind(CSV, "our exports as CSV", ours.CSV_PATTERN, ours.csv_rows),
        Kind("parquet", "our exports as Parquet", parquet.PATTERN, table=tables.ours),
        Kind(TIDY, "public measurements in one schema", parquet.PATTERN, table=tables.tidy),
        Kind("guide-csv", "the guide's benchmark_results_*.csv", guide.PATTERN, guide.rows),
        Kind("timm", "timm's benchmark-*.csv", timm.PATTERN, timm.rows, "timm", "Apache-2.0"),
        Kind("aihub", "Qualcomm AI Hub's perf.yaml, one or a tree of them", aihub.PATTERN,
             aihub.rows, "qai-hub-models", "BSD-3-Clause"),
        Kind("mlperf", "MLPerf Inference's summary_results.json", mlperf.PATTERN, mlperf.rows,
             "mlperf-inference"),
        Kind("optimum", "optimum-benchmark's reports", optimum.PATTERN, optimum.rows),
        Kind("benchmark-app", "OpenVINO's benchmark_app -json_stats", benchmark_app.PATTERN,
             benchmark_app.rows),
        Kind("pytest-benchmark", "pytest-benchmark's --benchmark-json", pytest_benchmark.PATTERN,
             pytest_benchmark.rows),
    )
}  # fmt: skip


def kind_of(name: str) -> Kind:
    """Return the format of a name."""
    if name not in KINDS:
        raise UsageError(
            f"There is no kind named {in_quotes(name)}.", f"Known: {', '.join(KINDS)}."
        )
    return KINDS[name]


#: What `run --output-dir` makes of the results that lie beside it.
_DERIVED = frozenset({"processed_results", "profiles"})


def files_of(kind: Kind, path: Path) -> list[Path]:
    """Return the file, or those of the format in a folder."""
    try:
        if path.is_file():
            return [path]
        if not path.exists():
            raise UsageError(f"There is no {path}.")
        if not path.is_dir():
            raise UsageError(f"{path} is neither a file nor a folder.")
        files = sorted(
            file
            for file in path.rglob(kind.pattern)
            if file.is_file() and not _DERIVED.intersection(file.relative_to(path).parent.parts)
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not files:
        raise UsageError(f"There is no {kind.pattern} in {path}.")
    return files


def digest_of(files: Sequence[Path]) -> str:
    """Return the digest of the files' content, independent of names and places."""
    each = sorted(map(_digest, files))
    return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from error

"""Exporting results as a table: picks the format, writes whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.exchange.csv_export import write_csv
from accelbench.exchange.json_export import write_json
from accelbench.exchange.parquet_export import write_parquet
from accelbench.exchange.writing import write_exactly

FORMATS = {"csv": write_csv, "json": write_json, "parquet": write_parquet}


def format_for(path: Path, asked: str | None) -> str:
    """The format asked for, else the one the file's suffix names."""
    name = (asked or path.suffix.removeprefix(".")).lower()
    if name not in FORMATS:
        raise UsageError(
            f"There is no format named {name!r}." if name else f"{path} names no format.",
            f"Use --format {', '.join(FORMATS)}.",
        )
    return name


def export(
    path: Path, rows: Sequence[Mapping[str, Any]], name: str, *, samples: bool = False
) -> None:
    """Write rows (with "samples" where asked for) into a new file."""
    names = [column.name for column in COLUMNS] + (["samples"] if samples else [])
    write_exactly(path, lambda written: FORMATS[name](written, names, rows))

"""Exporting results as a table: picks the format, writes whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes
from accelbench.exchange.action_export import write_action
from accelbench.exchange.arrow_export import write_arrow
from accelbench.exchange.bencher_export import write_bencher
from accelbench.exchange.csv_export import write_csv
from accelbench.exchange.json_export import write_json
from accelbench.exchange.junit_export import write_junit
from accelbench.exchange.markdown_export import write_markdown
from accelbench.exchange.parquet_export import write_parquet
from accelbench.exchange.writing import write_exactly

#: Tables of our columns, and what has a form of its own.
TABLES = {"csv": write_csv, "json": write_json, "parquet": write_parquet, "arrow": write_arrow}
REPORTS = {
    "markdown": write_markdown,
    "github-action-benchmark": write_action,
    "bencher": write_bencher,
    "junit": write_junit,
}
FORMATS = (*TABLES, *REPORTS)
#: What a report calls what stands in it, where that is one a question, not one a result.
ENTRIES = {
    "github-action-benchmark": ("entry", "entries"),
    "bencher": ("benchmark", "benchmarks"),
    "junit": ("test case", "test cases"),
}
#: A suffix that is not its format's name.
_SUFFIXES = {"md": "markdown", "xml": "junit", "feather": "arrow"}


def format_for(path: Path, asked: str | None) -> str:
    """The format asked for, else the one the file's suffix names."""
    suffix = path.suffix.removeprefix(".").lower()
    name = (asked or _SUFFIXES.get(suffix, suffix)).lower()
    if name not in FORMATS:
        raise UsageError(
            f"There is no format named {in_quotes(name)}." if name else f"{path} names no format.",
            f"Use --format {', '.join(FORMATS)}.",
        )
    return name


def export(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    *,
    samples: bool = False,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write rows into a new file.

    Args:
        path: The file; its folder is made.
        rows: Results.
        name: The format's name.
        samples: Whether rows have "samples" and "sampling" that a table is to have too.
        runs: What a table is to say of their runs, by id.

    Returns:
        How many entries stand in it: in a table one a result, in most reports one a question.
    """
    counts = [len(rows)]
    if name in REPORTS:
        write_exactly(path, lambda written: counts.append(REPORTS[name](written, rows)))
        return counts[-1]
    names = [column.name for column in COLUMNS] + (["samples", "sampling"] if samples else [])
    write_exactly(path, lambda written: TABLES[name](written, names, rows, runs))
    return len(rows)


def wrote(name: str, entries: int, results: int) -> str:
    """What an export wrote, in words."""
    if name not in ENTRIES:
        return counted(results, "result")
    return f"{counted(entries, *ENTRIES[name])} of {counted(results, 'result')}"

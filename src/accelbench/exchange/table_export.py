"""Exporting results, as a table or a report: picks the format, writes whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.identity import canonical
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes
from accelbench.exchange.action_export import write_action
from accelbench.exchange.bencher_export import write_bencher
from accelbench.exchange.csv_export import write_csv
from accelbench.exchange.json_export import write_json
from accelbench.exchange.junit_export import write_junit
from accelbench.exchange.left_out import Entries
from accelbench.exchange.markdown_export import write_markdown
from accelbench.exchange.run_facts import RUN
from accelbench.exchange.writing import write_exactly
from accelbench.store.copying import copy_arrow, copy_parquet
from accelbench.store.database import Database

#: Tables of our columns: written line by line, or copied as they are stored; and what has a form of
#: its own.
LINES = {"csv": write_csv, "json": write_json}
COPIES = {"parquet": copy_parquet, "arrow": copy_arrow}
TABLES = (*LINES, *COPIES)
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


def format_for(path: Path, option: str | None) -> str:
    """The format asked for, else the one the file's suffix names."""
    suffix = path.suffix.removeprefix(".").lower()
    name = (option or _SUFFIXES.get(suffix, suffix)).lower()
    if name not in FORMATS:
        raise UsageError(
            f"There is no format named {in_quotes(name)}." if name else f"{path} names no format.",
            f"Use --format {', '.join(FORMATS)}.",
        )
    return name


def export_table(
    path: Path,
    database: Database,
    name: str,
    where: str = "",
    params: Sequence[object] = (),
    *,
    samples: bool = False,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Write results of a database into a new file, in columns with the types of the store.

    In columns, JSON is text, samples a map of phase to nanoseconds.

    Args:
        path: The file; its folder is made.
        database: Where they are.
        name: The format's name.
        where: A condition in SQL, with ? for each of the parameters; all results if empty.
        params: Its parameters.
        samples: Whether it is to have "samples" and "sampling" too.
        runs: What it is to say of their runs, by id.

    Returns:
        How many results stand in it.
    """
    if name in COPIES:
        facts = {run: canonical(about) for run, about in (runs or {}).items()}
        run_column = (RUN, facts) if facts else None
        return write_exactly(
            path,
            lambda written: database.copy_results(
                written, COPIES[name], where, params, samples=samples, runs=run_column
            ),
        )
    names = [column.name for column in COLUMNS] + (["samples", "sampling"] if samples else [])
    rows = database.each_result(where, params, samples=samples)
    return write_exactly(path, lambda written: LINES[name](written, names, rows, runs))


def export_report(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> Entries:
    """Write results into a new file in a form of its own, and return how many entries it has.

    Most reports have an entry for each question; Markdown has one for each result, with its run.
    """
    if name == "markdown":
        return write_exactly(path, lambda written: write_markdown(written, rows, runs))
    return write_exactly(path, lambda written: REPORTS[name](written, rows))


def wrote(name: str, entries: int, results: int) -> str:
    """What an export wrote, in words."""
    if name not in ENTRIES:
        return counted(results, "result")
    return f"{counted(entries, *ENTRIES[name])} of {counted(results, 'result')}"

"""The output folder of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelbench.core.unusable_reasons import simulation_of
from accelbench.exchange import aggregate, guide_csv, profile_schema, result_file
from accelbench.exchange.writing import resolve_inside, write_new

#: Folders of charts, and of the journals of a run without a database.
VISUALIZATIONS, JOURNALS = "visualizations", "journals"
_FOLDERS = (aggregate.RAW, aggregate.PROCESSED, profile_schema.FOLDER, VISUALIZATIONS, JOURNALS)


def refuse_links(folder: Path) -> None:
    """Refuse folders that cannot be written, before hours of measuring."""
    for name in _FOLDERS:
        resolve_inside(folder, name)


def write_output(
    folder: Path, run: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Path]]:
    """Write a run's result files, the guide's CSV and the aggregate; return titles and paths."""
    written = [
        ("Result file", path)
        for path in result_file.write_results(resolve_inside(folder, aggregate.RAW), run, results)
    ]
    written.append(("Results saved to", write_guide_csv(folder, run, results)))
    written.append(("Aggregated", aggregate.update_aggregate(folder)))
    return written


def write_guide_csv(
    folder: Path, run: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> Path:
    """Write the guide's CSV of a run into a folder; return its path."""
    names = run.get("names") or {}
    lines = [
        guide_csv.guide_result(row, names.get(row["model"], row["model"]), run.get("git_commit"))
        for row in results
        if simulation_of(row) is None  # the table has no column that marks simulations
    ]
    name = guide_csv.csv_name(datetime.now(UTC))
    table = guide_csv.encode(lines, header=True)
    return write_new(folder, name, table)

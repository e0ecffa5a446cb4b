"""What `run --create-report` leaves: a report, and charts where a folder is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.report.full_report.parts import ReportData
    from accelbench.store.database import Database


def refuse_undrawable() -> None:
    """Say before hours of measuring what would be missing after them."""
    from accelbench.report.charts import draw

    draw.refuse_undrawable("--create-report")


def report_of_run(
    run: Mapping[str, Any],
    bodies: Sequence[Mapping[str, Any]],
    database: Database | None,
    folder: Path | None,
    prices: Prices | None = None,
) -> list[tuple[str, Path]]:
    """Write it.

    Args:
        run: the body of run_started.
        bodies: of the run's results.
        database: what it went into, where there is one.
        folder: where its files go; else the report goes here.
        prices: what figures cost by, where the user gave any.

    Returns:
        What was written, and where.
    """
    from accelbench.cli.services.chart_files import drawn_into
    from accelbench.cli.services.report_files import write
    from accelbench.exchange import tree
    from accelbench.exchange.writing import inside
    from accelbench.report.charts import CHARTS
    from accelbench.report.full_report.parts import report

    if not bodies:
        return []
    known = _known(run, bodies, database, prices)
    path = (folder or Path()) / f"report-{run['run_id']}.html"
    title = f"accelbench run {run.get('label') or run['run_id']}"
    written = [("Report", file) for file in write(path.absolute(), report(known, title), "html")]
    if folder is not None:
        charts, _ = drawn_into(inside(folder, tree.VISUALIZATIONS), known.subject, CHARTS)
        written += [("Chart", chart) for chart in charts]
    return written


def _known(
    run: Mapping[str, Any],
    bodies: Sequence[Mapping[str, Any]],
    database: Database | None,
    prices: Prices | None,
) -> ReportData:
    """From the database, which knows more than a run: its devices' limits."""
    from accelbench.report.full_report.report_data import known_in, known_of

    if database is not None:
        return known_in(database, {"run_id": (str(run["run_id"]),)}, None, prices)
    from accelbench.exchange import result_file
    from accelbench.store.scratch import temporary_folder

    with temporary_folder() as scratch:
        file = scratch / f"{run['run_id']}.json"
        result_file.write_one(file, run, bodies)
        return known_of([file], {}, prices)

"""Reports and charts as files, and exports to experiment trackers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_count, split_words
from accelbench.exchange.titles import run_facts as run_told
from accelbench.exchange.trackers.trackers import TRACKERS, export_to_tracker, find_tracker
from accelbench.exchange.writing import refuse_taken, replace_file, write_exactly
from accelbench.judge.filters import Filters, filters_of, where_of
from accelbench.judge.run_names import only_runs
from accelbench.judge.suggestions import none_found, refuse_unknown
from accelbench.present.terminal.tables import jsonable
from accelbench.store.database import Database

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.present.charts.chart import Chart, Picture, Subject
    from accelbench.present.document import Document
    from accelbench.present.report_parts import ReportData


def write(path: Path, report: Document, form: str) -> list[Path]:
    """Write a report; the pictures of Markdown are in a folder next to it."""
    from accelbench.present.charts import draw
    from accelbench.present.document import ChartBlock

    if form == "html":
        from accelbench.present.pages.document_page import as_html

        text = as_html(report)
        write_exactly(path, lambda place: _put(place, text))
        return [path]
    from accelbench.present.markdown import as_markdown

    folder = path.with_name(f"{path.stem}-charts")
    blocks = (block for section in report.sections for block in section.blocks)
    charts = [block for block in blocks if isinstance(block, ChartBlock)]
    files = {chart.name: f"{folder.name}/{chart.name}.png" for chart in charts}
    text = as_markdown(report, pictures=files)
    write_exactly(path, lambda place: _put(place, text))
    for chart in charts:
        replace_file(folder / f"{chart.name}.png", draw.png(dict(chart.spec)))
    return [path, *(folder / f"{chart.name}.png" for chart in charts)]


def _put(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def refuse_undrawable() -> None:
    """Say before hours of measuring what would be missing after them."""
    from accelbench.present.charts import draw

    draw.refuse_undrawable("--create-report")


def report_of_run(
    run: Mapping[str, Any],
    bodies: Sequence[Mapping[str, Any]],
    database: Database | None,
    folder: Path | None,
    prices: Prices | None = None,
) -> list[tuple[str, Path]]:
    """Write it."""
    from accelbench.exchange import tree
    from accelbench.exchange.writing import resolve_inside
    from accelbench.present.charts import CHARTS
    from accelbench.present.report_parts import report

    if not bodies:
        return []
    known = _known(run, bodies, database, prices)
    path = (folder or Path()) / f"report-{run['run_id']}.html"
    title = f"accelbench run {run.get('label') or run['run_id']}"
    written = [("Report", file) for file in write(path.absolute(), report(known, title), "html")]
    if folder is not None:
        charts, _ = drawn_into(resolve_inside(folder, tree.VISUALIZATIONS), known.subject, CHARTS)
        written += [("Chart", chart) for chart in charts]
    return written


def _known(
    run: Mapping[str, Any],
    bodies: Sequence[Mapping[str, Any]],
    database: Database | None,
    prices: Prices | None,
) -> ReportData:
    """From the database, which knows more than a run: its devices' limits."""
    from accelbench.present.report_data import known_in, known_of

    if database is not None:
        return known_in(database, {"run_id": (str(run["run_id"]),)}, None, prices)
    from accelbench.exchange import result_file
    from accelbench.store.files import create_temporary_folder

    with create_temporary_folder() as scratch:
        file = scratch / f"{run['run_id']}.json"
        result_file.write_result_file(file, run, bodies)
        return known_of([file], {}, prices)


FORMATS = ("png", "svg", "html")


def refuse_undrawable_file(path: Path | None, option: str) -> None:
    """Say before anything is calculated that a picture cannot be written to a file."""
    from accelbench.present.charts.draw import refuse_undrawable

    if path is None:
        return
    if _form(path) not in FORMATS:
        raise UsageError(
            f"{path} is no name of a picture.",
            f"End it with {', '.join(f'.{f}' for f in FORMATS)}.",
        )
    refuse_taken(path)
    refuse_undrawable(option)


def write_picture(path: Path, picture: Picture) -> None:
    """Write a picture in the format that its file's name ends in."""
    data = _drawn(picture, _form(path))
    write_exactly(path.expanduser(), partial(_chart_files_put, data))


def _form(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def drawn_into(
    folder: Path,
    subject: Subject,
    charts: Mapping[str, Chart],
    forms: Sequence[str] = ("png",),
    name_of_file: str | None = None,
) -> tuple[list[Path], list[str]]:
    """Draw each chart that has anything to show."""
    from accelbench.present.charts.chart import picture

    written, empty = [], []
    for name, chart in charts.items():
        drawing = picture(chart, subject)
        if drawing is None:
            empty.append(name)
            continue
        for form in forms:
            path, data = folder / (name_of_file or f"{name}.{form}"), _drawn(drawing, form)
            if name_of_file is None:
                replace_file(path, data)
            else:
                write_exactly(path, partial(_chart_files_put, data))
            written.append(path)
    return written, empty


def _chart_files_put(data: bytes, place: Path) -> None:
    place.write_bytes(data)


def _drawn(picture: Picture, form: str) -> bytes:
    from accelbench.present.charts import draw

    if form == "png":
        return draw.png(picture.spec)
    return (draw.svg(picture.spec) if form == "svg" else draw.page(picture)).encode()


TRACKER_NAMES = tuple(TRACKERS)


def to_tracker(
    place: str, word: str, database: Database, filters: Filters, samples: bool
) -> tuple[dict[str, Any], list[str]]:
    """Write results into a tracker: what came of it, as a document and as lines."""
    tracker = find_tracker(word)
    where, params = stored(filters)
    rows = database.results(where, params, samples=samples)
    done = export_to_tracker(tracker, place, rows, told_runs(database))
    document = {
        "tracker": word,
        "place": place,
        "results": len(rows),
        "written": done.written,
        "there_already": done.known,
        "never_run": done.never_run,
    }
    lines = [f"Wrote {format_count(done.written, 'result')} into {tracker.title} at {place}"]
    if done.known:
        lines.append(f"{format_count(done.known, 'result')} there already.")
    if done.never_run:
        lines.append(f"Left out: {done.never_run} that never ran, unsupported or skipped.")
    if done.written:
        lines.append(tracker.explain_viewing(place))
    return document, lines


def selected(database: Database, models: Sequence[str], runs: Sequence[str]) -> Filters:
    """Return the filter of the results to export; empty if all are."""
    filters = filters_of(models) | only_runs(database, split_words(list(runs)))
    where, params = stored(filters)
    if (
        where
        and not database.query(
            f"SELECT 1 FROM benchmark_results WHERE {where} LIMIT 1",  # noqa: S608 — our columns
            params,
        )[1]
    ):
        raise none_found(database, filters)
    refuse_unknown(database, filters, has_results=True)
    return filters


def stored(filters: Filters) -> tuple[str, list[object]]:
    """Return the condition in SQL of every such result, and its parameters; "" if all are."""
    return where_of(filters, "true") if filters else ("", [])


def told_runs(database: Database) -> dict[str, dict[str, Any]]:
    """What an export says of each run."""
    names, rows = database.query(
        "SELECT run_id, label, git_commit, git_branch, started_at, environment::VARCHAR"
        " AS environment FROM benchmark_runs ORDER BY run_id"
    )
    by_run = {}
    for row in rows:
        about = {name: jsonable(value) for name, value in zip(names, row, strict=True)}
        about["environment"] = json.loads(about["environment"] or "{}")
        by_run[str(about["run_id"])] = run_told(about)
    return by_run


def of_interest(
    rows: Sequence[Mapping[str, Any]], runs: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Results but those of runs that a check made for itself: they are no news of a series."""
    from accelbench.judge.older_runs import is_of_a_check

    labels = {run: str(about.get("label") or "") for run, about in runs.items()}
    own = {run for run, label in labels.items() if is_of_a_check(label)}
    return [row for row in rows if row["run_id"] not in own]

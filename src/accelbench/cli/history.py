"""`accelbench history`: what happened to a question's figures over time, and since which commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.analysis.history import FEWEST_POINTS, Point, Series, series_of
from accelbench.analysis.judging import METRICS, Metric
from accelbench.cli.display.words import other_machines
from accelbench.cli.documents import print_document
from accelbench.cli.filters import filters_of
from accelbench.cli.lists import SpacedLists
from accelbench.cli.missing import NothingMeasuredError
from accelbench.cli.stored import filled, marks, on_one_machine, rows_of
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.core.worth import USABLE_SQL
from accelbench.measure.launches import LEAST_EFFECT

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.store.database import Database

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_METRICS = {metric.name: metric for metric in METRICS}
_COLUMNS = (
    *("series_key", "model", "runtime", "hardware", "device", "device_name", "precision"),
    *("batch_size", "sequence_length", "image_size", "audio_seconds", "prompt_tokens"),
    *("new_tokens", "denoising_steps", "mode", "scenario", "world_size", "options", "threads"),
    *("emulated", "provenance"),
)
#: One point a run; an import brings figures of many moments in one run. What has no moment has no
#: place among points that have.
_POINTS = """
SELECT series_key, coalesce(run_id, ''), min(started_at)::VARCHAR, median({value}), count(*)
FROM benchmark_results
WHERE {where} AND {usable} AND status = 'ok' AND series_key IS NOT NULL AND {value} > 0
  AND started_at IS NOT NULL
GROUP BY series_key, run_id, CASE WHEN run_id LIKE 'import-%' THEN started_at END
QUALIFY count(*) OVER (PARTITION BY series_key) >= {fewest}
"""


@app.command(cls=SpacedLists)
def history(
    models: list[str] = typer.Argument(None, help="Only these models.", show_default=False),
    metric: str = typer.Option("latency", "--metric", help=f"{', '.join(_METRICS)}."),
    threshold: float = typer.Option(
        LEAST_EFFECT, "--threshold", help="Changes below this share are not told: 0.03 for 3 %."
    ),
    hardware: list[str] = typer.Option([], "--hardware", help="Only these platforms."),
    framework: list[str] = typer.Option([], "--framework", "--runtime", help="Only these."),
    precision: list[str] = typer.Option([], "--precision", help="Only these precisions."),
    batch_sizes: list[str] = typer.Option([], "--batch-sizes", "--batch-size", help="Only these."),
    mode: list[str] = typer.Option([], "--mode", help="inference, training; else both."),
    machine: str | None = typer.Option(
        None, "--machine", help="A host name, id or source; else that of the newest result."
    ),
    every: bool = typer.Option(False, "--all", help="Show series in which nothing happened, too."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    db: Path | None = typer.Option(
        None, "--db", help="The database; else $ACCELBENCH_DB, else ./accelbench.duckdb."
    ),
    db_path: Path | None = typer.Option(None, "--db-path", hidden=True),
) -> None:
    """Show steps, spikes and drift in what was measured over time, and between which commits."""
    if metric not in _METRICS:
        raise UsageError(
            f"No metric is called {in_quotes(metric)}.", f"Known: {', '.join(_METRICS)}."
        )
    if not 0 < threshold < 10:
        raise UsageError(f"{threshold:g} is no threshold.", "0.03 stands for 3 %.")
    filters = filters_of(models, hardware, framework, precision, batch_sizes, mode)
    database = filled(db or db_path)
    with database.asking():
        where, values, here, others = on_one_machine(database, filters, machine)
        found = series_in(database, _METRICS[metric], where, values, threshold)
        undated = 0 if found else _without_moment(database, where, values)
    names = [str(one) for one in others]
    if not found:
        raise _no_history(here, undated, names)
    if as_json:
        from accelbench.report.history import document

        whole: dict[str, Any] = {
            "metric": metric,
            "machine": str(here),
            "other_machines": names,
            "threshold": threshold,
            "series": [document(one, points=every or one.changed) for one in found],
            "without_change": len(found) - sum(one.changed for one in found),
        }
        print_document(whole)
        return
    from accelbench.cli.display.history import show

    show([one for one in found if every or one.changed], len(found), str(here), names)


def _without_moment(database: Database, where: str, values: Sequence[Any]) -> int:
    _, ((count,),) = database.query(
        f"SELECT count(*) FROM benchmark_results WHERE {where} AND started_at IS NULL",  # noqa: S608
        values,
    )
    return int(count)


def _no_history(here: Machine, undated: int, others: Sequence[str]) -> NothingMeasuredError:
    """The error, with what would make a history of what there is."""
    measure = "A point of a series is a run: measure the same again, for example each night."
    if undated:
        results = "result has" if undated == 1 else "results have"
        measure = (
            f"{undated:,} {results} no moment, and so no place in a history: import each release"
            " into a new database, by `accelbench db import … --measured-at 2026-08-08`."
        )
    return NothingMeasuredError(
        f"Nothing on {here} was measured {FEWEST_POINTS} times and more.",
        " ".join([measure, *other_machines(others)]),
    )


def series_in(
    database: Database, metric: Metric, where: str, values: Sequence[Any], least: float
) -> list[Series]:
    """Every series with points enough, that which became worst first."""
    usable = USABLE_SQL if metric.timed else "true"
    sql = _POINTS.format(value=metric.sql, where=where, usable=usable, fewest=FEWEST_POINTS)
    _, rows = database.query(sql, values)
    commits = _commits(database)
    points: dict[str, list[Point]] = {}
    for key, run, moment, value, launches in rows:
        point = Point(str(moment or ""), str(run), commits.get(run, ""), float(value), launches)
        points.setdefault(str(key), []).append(point)
    newest = {key: max(several, key=lambda one: one.moment) for key, several in points.items()}
    about = _about(database, newest)
    found = [series_of(about[key], metric, several, least) for key, several in points.items()]
    names = ("model", "series_key")
    return sorted(
        found, key=lambda one: (-(one.newest_step or 0.0), *(str(one.row.get(n)) for n in names))
    )


def _commits(database: Database) -> dict[str, str]:
    _, rows = database.query(
        "SELECT run_id, git_commit FROM benchmark_runs WHERE git_commit IS NOT NULL"
    )
    return {str(run): str(commit) for run, commit in rows}


def _about(database: Database, newest: Mapping[str, Point]) -> dict[str, dict[str, Any]]:
    """A row of each series, of its newest run: what it is of."""
    if not newest:
        return {}
    runs = sorted({point.run_id for point in newest.values()})
    condition = (
        f"series_key IN ({marks(list(newest))}) AND coalesce(run_id, '') IN ({marks(runs)})"
        " QUALIFY row_number() OVER (PARTITION BY series_key ORDER BY started_at DESC) = 1"
    )
    rows = rows_of(database, _COLUMNS, condition, [*newest, *runs])
    return {str(row["series_key"]): row for row in rows}

"""Every series of a store with what it is of, that which became worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.history import FEWEST_DRAWN, Series
from accelbench.analysis.judging import Metric
from accelbench.core.axes import AS_TOLD, columns
from accelbench.core.rows import Row
from accelbench.query.conditions import marks
from accelbench.query.stored_results import rows_of
from accelbench.report.other_series import QUESTION, VARIED, with_others
from accelbench.report.runs_without_figures import Unseen
from accelbench.report.series import Line, nothing_in, points_in, told

if TYPE_CHECKING:
    from accelbench.store.database import Database

_COLUMNS = (
    *("series_key", "model", "runtime", "hardware", "device", "device_name", "precision"),
    *("batch_size", *columns(*AS_TOLD), "mode", "scenario", "world_size", "options", "threads"),
    *("emulated", "provenance", "case_id", "device_fingerprint"),
)


def series_in(
    database: Database, metric: Metric, where: str, values: Sequence[object], least: float
) -> tuple[list[Series], list[Unseen]]:
    """Every series with points enough, that which became worst first, and those without any.

    One point is enough where a run came after it that has no figure.
    """
    lines = points_in(database, metric, where, values)
    nothing = nothing_in(database, metric, where, values)
    shown = {
        key: line
        for key, line in lines.items()
        if len(line.points) >= FEWEST_DRAWN or nothing.newest(key, line.case, line.points)
    }
    if not shown:  # to judge none takes a tenth of a second, for what is imported to judge with
        return [], nothing.unseen(lines)
    about = about_series(database, {key: _newest_run(line) for key, line in shown.items()})
    several = [(about[key], line) for key, line in shown.items()]
    all_series = told(database, several, metric, (where, values), least, nothing)
    names = ("model", "series_key")
    ordered = sorted(
        all_series,
        key=lambda series: (-(series.newest_step or 0.0), *(str(series.row.get(n)) for n in names)),
    )
    return with_others(ordered, _candidates(database, where, values)), nothing.unseen(lines)


def _candidates(database: Database, where: str, values: Sequence[object]) -> list[Row]:
    """Return a row of each series that succeeded, with the number of its runs."""
    names = [name for name in (*QUESTION, *VARIED) if name != "options"]
    chosen = ", ".join(f"any_value({name}) AS {name}" for name in names)
    columns, rows = database.query(
        f"SELECT series_key, {chosen}, any_value(options::VARCHAR) AS options,"  # noqa: S608
        f" count(DISTINCT run_id) AS runs FROM benchmark_results WHERE {where}"
        " AND status = 'ok' AND series_key IS NOT NULL GROUP BY series_key ORDER BY series_key",
        values,
    )
    return [dict(zip(columns, row, strict=True)) for row in rows]


def about_series(database: Database, newest: Mapping[str, str]) -> dict[str, Row]:
    """A row of each series, of its newest run: what it is of."""
    if not newest:
        return {}
    runs = sorted(set(newest.values()))
    condition = (
        f"series_key IN ({marks(list(newest))}) AND coalesce(run_id, '') IN ({marks(runs)})"
        " QUALIFY row_number() OVER (PARTITION BY series_key"
        " ORDER BY coalesce(emulated, false), started_at DESC) = 1"
    )
    rows = rows_of(database, _COLUMNS, condition, [*newest, *runs])
    return {str(row["series_key"]): {**row} for row in rows}


def _newest_run(line: Line) -> str:
    return max(line.points, key=lambda point: point.moment).run_id

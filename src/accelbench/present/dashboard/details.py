"""The launches, run and history of cells, read from the store, and the lines of a snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME
from accelbench.core.rows import Row, number
from accelbench.evidence.launches import COMPARABLE_SQL
from accelbench.judge.filters import marks
from accelbench.judge.history import Series
from accelbench.judge.older_runs import OF_NO_CHECK_SQL
from accelbench.judge.stored_results import rows_of
from accelbench.judge.verdicts import METRICS, Metric
from accelbench.measure.launch_verdicts import LEAST_EFFECT
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.live_runs import LISTED
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.series import (
    QUESTION,
    VARIED,
    Line,
    judge_lines,
    points_in,
    read_gaps,
    with_others,
)

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: A cell of a sweep has five launches; one of an import may have any number.
MOST_LAUNCHES = 40
BY_METRIC = {metric.name: metric for metric in METRICS}
#: The results of a cell's line.
_OF_CELLS = "series_key IN ({marks}) AND {comparable} AND {ours}"
#: The same for failures, which may have no series yet.
_FAILED = (
    "(series_key IN ({marks}) OR (series_key IS NULL AND case_id IN ({cases})))"
    " AND {comparable} AND {ours}"
)


def launches_in(database: Database, results: Sequence[str]) -> list[Row]:
    """Return the launches with these ids, every column, in order of time."""
    if not results:
        return []
    of_them = "result_id IN (SELECT unnest(?::VARCHAR[]))"
    rows = rows_of(database, list(BY_NAME), of_them, [list(results)], launches=True)
    return sorted(rows, key=_moment)


def _moment(row: Row) -> tuple[bool, str, bool, float]:
    moment, launch = row.get("started_at"), number(row, "launch")
    return moment is None, str(moment or ""), launch is None, launch or 0.0


def run_of(database: Database, run_id: str) -> dict[str, Any] | None:
    """Return a run with its recorded environment, or None."""
    names, rows = database.query(
        "SELECT run_id, label, command, status, started_at::VARCHAR AS started_at, git_commit,"
        " environment::VARCHAR AS environment FROM benchmark_runs WHERE run_id = ?",
        [run_id],
    )
    for row in rows:
        known = {name: str(value or "") for name, value in zip(names, row, strict=True)}
        facts = json.loads(known["environment"] or "{}")
        return {**known, "environment": facts if isinstance(facts, Mapping) else {}}
    return None


def results_of(database: Database, run_id: str) -> list[Row]:
    """Return the results of a run and of a fleet's nodes, the newest first."""
    names, rows = database.query(
        f"SELECT {', '.join(LISTED)}, finished_at::VARCHAR AS finished_at"  # noqa: S608 — ours
        " FROM benchmark_results WHERE run_id = ? OR run_id IN (SELECT fleet.run_id FROM fact AS"
        " fleet WHERE fleet.kind = 'run_started' AND fleet.body->>'fleet' = ?)"
        " ORDER BY finished_at DESC, result_id",
        [run_id, run_id],
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def history_of(
    database: Database,
    snapshot: Snapshot,
    cells: Sequence[Cell],
    metric: Metric,
    fewest: int = 1,
) -> list[Series]:
    """Return the histories of cells, those with changes first.

    Cells without a series have none. Series with fewer than `fewest` points are left out, unless a
    run without a result came after them.
    """
    about = {(str(c["series_key"]), c["machine"]): dict(c) for c in cells if c.get("series_key")}
    if not about:
        return []

    def ours(row: Row, run: str) -> bool:
        return bool(snapshot.ran.get(run) == row["machine"])

    with database.keep_open():  # once: to open a million results takes 20 ms each time
        keys = sorted({key for key, _ in about})
        words = {"comparable": COMPARABLE_SQL, "ours": OF_NO_CHECK_SQL}
        where = _OF_CELLS.format(marks=marks(keys), **words)
        lines: dict[tuple[str, str | None], Line] = {}
        for key, line in points_in(database, metric, where, keys).items():
            for point in line.points:
                # A series is of a device, which two machines may have.
                of = (key, snapshot.ran.get(point.run_id))
                if of in about:
                    if of not in lines:
                        lines[of] = replace(line, points=[])
                    lines[of].points.append(point)
        cases = sorted({line.case[0] for line in lines.values() if line.case[0]})
        failed = _FAILED.format(marks=marks(keys), cases=marks(cases) or "NULL", **words)
        nothing = read_gaps(database, metric, failed, [*keys, *cases])
        # In the order of the cells, because the first of equals are drawn.
        kept = [
            (row, line)
            for of, row in about.items()
            if of in lines
            for line in (lines[of],)
            if len(line.points) >= fewest
            or nothing.newest(of[0], line.case, line.points, partial(ours, row))
        ]
        all_series = judge_lines(database, kept, metric, (where, keys), LEAST_EFFECT, nothing, ours)
    if fewest > 1:  # a table of histories; twenty thousand lines would take too long
        all_series = with_others(all_series, _candidates(snapshot, about), (*QUESTION, "machine"))
    return sorted(all_series, key=foremost)


def _candidates(snapshot: Snapshot, about: Mapping[tuple[str, str | None], Row]) -> list[Row]:
    """Return the series of the same models with one run, which no line shows."""
    names = ", ".join(f"any_value({name}) AS {name}" for name in (*QUESTION[1:], *VARIED))
    rows = snapshot.ask(
        f"SELECT series_key, machine, model, {names}, sum(runs) AS runs FROM cell"  # noqa: S608
        " WHERE series_key IS NOT NULL AND status = 'ok' AND kind IN ('measured', 'imported')"
        " AND model IN (SELECT unnest(?::VARCHAR[]))"
        " GROUP BY series_key, machine, model HAVING sum(runs) = 1 ORDER BY series_key, machine",
        [sorted({str(row["model"]) for row in about.values()})],
    )
    return [*rows]


def foremost(series: Series) -> tuple[bool, float]:
    """Return a sort key: series with changes first, the worst before all."""
    return not series.is_eventful, -(series.newest_step or 0.0)


def why_empty(rows: Sequence[Row]) -> dict[str, str]:
    """Return each column that is empty in some launch, and why."""
    reasons: dict[str, str] = {}
    for row in rows:
        nulls = row.get("nulls")
        if isinstance(nulls, Mapping):
            for name, why in nulls.items():
                reasons.setdefault(str(name), str(why))
    return dict(sorted(reasons.items()))


#: So many words of a search are used.
_MOST_WORDS = 8
_SEARCHED = "lower(concat_ws(' ', model, runtime, hardware, device_name, precision))"
_NEWEST = "moment DESC, lower(model), model, key"
#: Columns that find and order the lines of a page.
_ORDERING = (
    "series_key, machine, moment, key, model, hardware, device_name, runtime, precision, batch_size"
)
_BY_NAME = "lower(model), model, hardware, device_name, runtime, precision, batch_size, key"


@dataclass(frozen=True)
class LineOrder:
    """A selection of lines and their order."""

    words: str = ""  # each is in the name of the model, engine, platform, device or precision
    changed: Sequence[tuple[str, str]] = ()  # series and machine of the first; the newest follow
    by_name: bool = False  # order by name instead


EVERY_LINE = LineOrder()


def lines_of(
    snapshot: Snapshot, query: PageQuery, most: int, order: LineOrder
) -> tuple[list[Cell], int]:
    """Return a page of the lines with several runs, and the number of lines.

    A line has versions, each of which is a cell: its newest cell represents it.
    """
    where, values = query.where()
    for word in order.words.lower().split()[:_MOST_WORDS]:
        where += f" AND contains({_SEARCHED}, ?)"
        values.append(word)
    lines = (
        "SELECT * FROM (SELECT rowid AS spot, sum(runs) OVER line AS of_line,"  # noqa: S608
        f" row_number() OVER (line ORDER BY moment DESC, key) AS nth, {_ORDERING} FROM cell"
        f" WHERE {where} AND series_key IS NOT NULL AND moment IS NOT NULL"
        " AND kind IN ('measured', 'imported')"
        " WINDOW line AS (PARTITION BY series_key, machine)) WHERE nth = 1 AND of_line > 1"
    )
    series = [key for key, _ in order.changed]
    machines = [machine for _, machine in order.changed]
    by = _BY_NAME if order.by_name else f"place NULLS LAST, {_NEWEST}"
    here = snapshot.ask(
        "WITH first AS (SELECT unnest(?::VARCHAR[]) AS of_series,"  # noqa: S608
        " unnest(?::VARCHAR[]) AS of_machine, unnest(?::INTEGER[]) AS place)"
        f" SELECT spot, count(*) OVER () AS every FROM ({lines}) AS line"
        " LEFT JOIN first ON series_key = of_series AND coalesce(machine, '') = of_machine"
        f" ORDER BY {by} LIMIT {most} OFFSET {(query.page - 1) * most}",
        [series, machines, list(range(len(series))), *values],
    )
    if not here:
        (count,) = snapshot.ask(f"SELECT count(*) AS every FROM ({lines})", values)  # noqa: S608
        return [], count["every"]
    rows = snapshot.lying([row["spot"] for row in here], "* EXCLUDE (results)")
    return rows, here[0]["every"]

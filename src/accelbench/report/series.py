"""Lines over time as a store has them: one point a run, with what software it ran.

An import brings figures of many moments in one run, and of many versions: each is a point. What a
run of ours ran is the run's own environment, which is read once and not of every result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from accelbench.analysis.history import Point, Series, every_series
from accelbench.analysis.judging import Metric
from accelbench.analysis.standing import SOFTWARE, Software, software
from accelbench.core.worth import SETTLED_SQL, USABLE_SQL

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: What has no moment has no place among points that have.
_COUNTS = (
    "{where} AND {usable} AND status = 'ok' AND series_key IS NOT NULL AND {value} > 0"
    " AND started_at IS NOT NULL"
)
_RUNS = f"""
SELECT series_key, coalesce(run_id, ''), min(started_at)::VARCHAR, median({{value}}), count(*)
FROM benchmark_results WHERE {_COUNTS} AND coalesce(run_id, '') NOT LIKE 'import-%'
GROUP BY series_key, run_id
"""  # noqa: S608 — our words
_IMPORTS = f"""
SELECT series_key, run_id, started_at::VARCHAR, conditions::VARCHAR, list({{value}})
FROM benchmark_results WHERE {_COUNTS} AND run_id LIKE 'import-%'
GROUP BY series_key, run_id, started_at, conditions
"""  # noqa: S608
_EACH = f"""
SELECT series_key, coalesce(run_id, ''), list({{value}} ORDER BY started_at, launch),
    bool_and({SETTLED_SQL})
FROM benchmark_results WHERE {_COUNTS} AND series_key IN ({{keys}})
    AND coalesce(run_id, '') NOT LIKE 'import-%'
GROUP BY series_key, run_id
"""  # noqa: S608


def points_in(
    database: Database, metric: Metric, where: str, values: Sequence[Any]
) -> dict[str, list[Point]]:
    """The points of each series, in any order.

    Args:
        database: the store.
        metric: of which figure.
        where: which results, in SQL.
        values: its parameters.
    """
    runs = _runs(database)
    nothing: tuple[str, Software] = ("", ())
    found: dict[str, list[Point]] = {}
    _, rows = database.query(_sql(_RUNS, metric, where), values)
    for key, run, moment, value, launches in rows:
        commit, ran = runs.get(run, nothing)
        found.setdefault(key, []).append(Point(moment, run, commit, value, launches, ran))
    if any(run.startswith("import-") for run in runs):
        _, rows = database.query(_sql(_IMPORTS, metric, where), values)
        for point, key in _imported(rows):
            found.setdefault(key, []).append(point)
    return found


def told(
    database: Database,
    several: Iterable[tuple[Mapping[str, Any], Sequence[Point]]],
    metric: Metric,
    where: tuple[str, Sequence[Any]],
    least: float,
) -> list[Series]:
    """Series of these points; of those whose newest is off, every launch is looked at.

    Args:
        database: the store.
        several: what each is of, with its points.
        metric: of which figure.
        where: the results that points were made of, in SQL, and its parameters.
        least: what a change has to exceed, as a share.
    """
    found = every_series(several, metric, least)
    off = {number: one for number, one in enumerate(found) if one.course and one.course.unconfirmed}
    keys = sorted({str(one.row["series_key"]) for one in off.values()})
    if not keys:
        return found
    marks = ", ".join("?" * len(keys))
    sql = _sql(_EACH, metric, where[0], keys=marks)
    _, rows = database.query(sql, [*where[1], *keys])
    each = {(key, run): (tuple(values), settled) for key, run, values, settled in rows}
    again = [
        (
            one.row,
            [
                _whole(point, each.get((one.row["series_key"], point.run_id)))
                for point in one.points
            ],
        )
        for one in off.values()
    ]
    for number, one in zip(off, every_series(again, metric, least), strict=True):
        found[number] = replace(one, points=found[number].points)
    return found


def _whole(point: Point, known: tuple[tuple[float, ...], bool] | None) -> Point:
    return point if known is None else point._replace(each=known[0], settled=bool(known[1]))


def _sql(text: str, metric: Metric, where: str, **more: str) -> str:
    usable = USABLE_SQL if metric.timed else "true"
    return text.format(value=metric.sql, where=where, usable=usable, **more)


def _imported(rows: Iterable[Sequence[Any]]) -> Iterable[tuple[Point, str]]:
    """Points of imports, each with its series; jobs of one version are launches of one point."""
    launches: dict[tuple[str, str, str, int], list[float]] = {}
    known: dict[Software, int] = {}
    numbers: dict[str | None, int] = {}
    for key, run, moment, conditions, values in rows:
        number = numbers.get(conditions)
        if number is None:
            ran = software({"conditions": json.loads(conditions or "{}")})
            number = numbers[conditions] = known.setdefault(ran, len(known))
        place = (key, run, moment, number)
        if place in launches:
            launches[place] += values
        else:
            launches[place] = values
    ran_with = list(known)
    for (key, run, moment, number), each in launches.items():
        value = each[0] if len(each) == 1 else median(each)
        yield Point(moment, run, "", value, len(each), ran_with[number]), key


def _runs(database: Database) -> dict[str, tuple[str, Software]]:
    """Of each run its commit and what software it ran."""
    _, rows = database.query("SELECT run_id, git_commit, environment::VARCHAR FROM benchmark_runs")
    versions: dict[str | None, Software] = {None: ()}
    found = {}
    for run, commit, text in rows:
        ran = versions.get(text)
        if ran is None:
            environment = json.loads(text)
            about = {name: environment.get(name) for name in SOFTWARE}
            ran = versions[text] = software({"conditions": about})
        found[str(run)] = (str(commit or ""), ran)
    return found

"""Lines over time as a store has them: one point a run, with what software it ran.

An import brings figures of many moments in one run, and of many versions: each is a point, but for
those that are carried forward from an earlier release. What a run of ours ran is the run's own
environment, which is read once and not of every result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any

from accelbench.analysis.carried import job_of
from accelbench.analysis.history import Gap, HistoryPoint, Series, every_series, with_gap
from accelbench.analysis.judging import Metric
from accelbench.analysis.standing import SOFTWARE, Software, software
from accelbench.core.failing import (
    FAILED,
    LAUNCHED,
    whole_runs_sql,
    why_unusable,
    wrong_sql,
)
from accelbench.core.provenance import OF_IMPORT_SQL
from accelbench.core.worth import SETTLED_SQL, USABLE_SQL, answered_sql

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: What has no moment has no place among points that have.
_COUNTS = (
    "{where} AND {usable} AND {answered} AND series_key IS NOT NULL AND {value} > 0"
    " AND started_at IS NOT NULL"
)
_RUNS = f"""
SELECT series_key, coalesce(run_id, ''), min(started_at)::VARCHAR, {{figures}}
FROM {{results}} WHERE {_COUNTS} AND coalesce(run_id, '') NOT LIKE 'import-%'
GROUP BY series_key, run_id
"""  # noqa: S608 — our words
_IMPORTS = f"""
SELECT series_key, run_id, started_at::VARCHAR, conditions::VARCHAR, {{figures}}
FROM {{results}} WHERE {_COUNTS} AND run_id LIKE 'import-%'
GROUP BY series_key, run_id, started_at, conditions
"""  # noqa: S608
_EACH = f"""
SELECT series_key, coalesce(run_id, ''), bool_and({SETTLED_SQL}), {{figures}}
FROM {{results}} WHERE {_COUNTS} AND series_key IN ({{keys}})
    AND coalesce(run_id, '') NOT LIKE 'import-%'
GROUP BY series_key, run_id
"""  # noqa: S608
#: Of each run the launches of a series that came to nothing. What failed before it had an engine is
#: of no series, but of a case on a device.
_NOTHING = f"""
SELECT series_key, case_id, coalesce(device_fingerprint, ''), run_id, max(started_at)::VARCHAR,
    max({LAUNCHED}), max({FAILED}), bool_or({{wrong}}), bool_or({{answered}}),
    bool_or(NOT {{usable}}), arg_max(coalesce(reason, status), started_at) FILTER (NOT {{answered}})
FROM {{results}}
WHERE {{where}} AND NOT coalesce({{usable}} AND {{answered}} AND {{value}} > 0, false)
    AND status <> 'skipped' AND started_at IS NOT NULL
    AND coalesce(run_id, '') <> '' AND NOT {OF_IMPORT_SQL}
GROUP BY series_key, case_id, device_fingerprint, run_id ORDER BY max(started_at), run_id
"""  # noqa: S608 — our words


#: A series by one figure, and its points.
Line = tuple[Metric, list[HistoryPoint]]


def points_in(
    database: Database, metric: Metric, where: str, values: Sequence[Any]
) -> dict[str, Line]:
    """The points of each series, in any order, by the figure that most of its runs have.

    A run that has a mean alone is no point among medians.

    Args:
        database: the store.
        metric: of which figure.
        where: which results, in SQL.
        values: its parameters.
    """
    runs = _runs(database)
    nothing: tuple[str, Software] = ("", ())
    every: list[dict[str, list[HistoryPoint]]] = [{} for _ in metric.alternatives]
    there = _there(database)
    asked = _sql(_RUNS, metric, where, "median({0}), count({0})", there)
    _, rows = database.query(asked, values)
    for key, run, moment, *figures in rows:
        commit, ran = runs.get(run, nothing)
        for found, value, launches in zip(every, figures[::2], figures[1::2], strict=True):
            if launches:
                point = HistoryPoint(moment, run, commit, value, launches, ran)
                found.setdefault(key, []).append(point)
    if any(run.startswith("import-") for run in runs):
        listed = "list({0}) FILTER ({0} > 0)"
        _, rows = database.query(_sql(_IMPORTS, metric, where, listed, there), values)
        for found, several in zip(every, _each(rows, len(every)), strict=True):
            for point, key in _imported(several):
                found.setdefault(key, []).append(point)
    return _by_one_figure(metric, every)


def _by_one_figure(
    metric: Metric, every: Sequence[Mapping[str, list[HistoryPoint]]]
) -> dict[str, Line]:
    """Of each series the figure that makes most points, and of as many the first."""
    chosen: dict[str, Line] = {}
    for one, found in zip(metric.alternatives, every, strict=True):
        for key, points in found.items():
            if key not in chosen or len(chosen[key][1]) < len(points):
                chosen[key] = one, points
    return chosen


def _each(rows: Sequence[Sequence[Any]], many: int) -> Iterable[list[Sequence[Any]]]:
    """Rows with the values of each of several figures, where they have any."""
    for at in range(-many, 0):
        yield [(*row[:-many], row[at]) for row in rows if row[at]]


def told(
    database: Database,
    several: Iterable[tuple[Mapping[str, Any], Metric, Sequence[HistoryPoint]]],
    metric: Metric,
    where: tuple[str, Sequence[Any]],
    least: float,
    ours: Callable[[Mapping[str, Any], str], bool] | None = None,
) -> list[Series]:
    """Series of these points; of those whose newest is off, every launch is looked at.

    A run without a figure that is newer than all of them is told of.

    Args:
        database: the store.
        several: what each is of, by which figure, with its points.
        metric: what was asked for, of which they are.
        where: the results that points were made of, in SQL, and its parameters.
        least: what a change has to exceed, as a share.
        ours: whether a run may be one of a series; any may, where nothing is said.
    """
    found = _looked_at(database, several, metric, where, least)
    nothing = _gaps(database, metric, where)
    if not nothing:
        return found
    return [
        one if (gap := _newest_gap(one, nothing, ours)) is None else with_gap(one, gap)
        for one in found
    ]


def _newest_gap(
    series: Series,
    nothing: Mapping[tuple[str, ...], Sequence[Gap]],
    ours: Callable[[Mapping[str, Any], str], bool] | None,
) -> Gap | None:
    """The newest run that came to nothing, where no point is as new."""
    row, newest = series.row, series.points[-1]
    runs = {point.run_id for point in series.points}
    case = (str(row.get("case_id")), str(row.get("device_fingerprint") or ""))
    known = [gap for key in ((str(row["series_key"]),), case) for gap in nothing.get(key, ())]
    later = [
        gap
        for gap in known
        if gap.moment > newest.moment
        and gap.run_id not in runs
        and (ours is None or ours(row, gap.run_id))
    ]
    return max(later, default=None)


def _gaps(
    database: Database, metric: Metric, where: tuple[str, Sequence[Any]]
) -> dict[tuple[str, ...], list[Gap]]:
    """Runs that came to nothing, by series, or by case and device where no series is known."""
    there = _there(database)
    _, rows = database.query(_sql(_NOTHING, metric, where[0], "{0}", there), where[1])
    found: dict[tuple[str, ...], list[Gap]] = {}
    for series, case, device, run, moment, launched, failed, *became in rows:
        key = (str(case), str(device)) if series is None else (str(series),)
        why = _why_nothing({FAILED: failed, LAUNCHED: launched}, metric, *became)
        found.setdefault(key, []).append(Gap(moment, run, why))
    return found


def _why_nothing(
    counts: Mapping[str, Any], metric: Metric, wrong: bool, ran: bool, useless: bool, reason: str
) -> str:
    """Why a run has no figure, as the end of a sentence."""
    if wrong:
        return "wrong outputs"
    said = str(reason or "").replace("_", " ")
    if not ran:
        return said
    if useless:
        return ": ".join(filter(None, (f"unusable, {why_unusable([counts])}", said)))
    return f"its {metric.name} is not known"


def _looked_at(
    database: Database,
    several: Iterable[tuple[Mapping[str, Any], Metric, Sequence[HistoryPoint]]],
    metric: Metric,
    where: tuple[str, Sequence[Any]],
    least: float,
) -> list[Series]:
    found = every_series(several, least)
    off = {number: one for number, one in enumerate(found) if one.course and one.course.unconfirmed}
    keys = sorted({str(one.row["series_key"]) for one in off.values()})
    if not keys:
        return found
    marks = ", ".join("?" * len(keys))
    listed = "list({0} ORDER BY started_at, launch) FILTER ({0} > 0)"
    sql = _sql(_EACH, metric, where[0], listed, _there(database), keys=marks)
    _, rows = database.query(sql, [*where[1], *keys])
    each = {(key, run): (settled, values) for key, run, settled, *values in rows}
    again = [
        (
            one.row,
            one.metric,
            [
                _whole(point, each.get((one.row["series_key"], point.run_id)), at)
                for point in one.points
            ],
        )
        for one in off.values()
        for at in (metric.alternatives.index(one.metric),)
    ]
    for number, one in zip(off, every_series(again, least), strict=True):
        found[number] = replace(one, points=found[number].points)
    return found


def _whole(
    point: HistoryPoint, known: tuple[bool, Sequence[Sequence[float]]] | None, at: int
) -> HistoryPoint:
    if known is None:
        return point
    return point._replace(each=tuple(known[1][at]), settled=bool(known[0]))


def _there(database: Database) -> set[str]:
    """Columns of the store: one that an older version made lacks the newest."""
    return {str(name) for name, *_ in database.query("DESCRIBE benchmark_results")[1]}


def _sql(
    text: str, metric: Metric, where: str, figure: str, there: Container[str], **more: str
) -> str:
    """A question with what is asked of each figure that may stand for a metric."""
    usable = USABLE_SQL if metric.timed else "true"
    figures = ", ".join(figure.format(one.sql) for one in metric.alternatives)
    return text.format(
        value=metric.sql,
        figures=figures,
        where=where,
        usable=usable,
        answered=answered_sql(there),
        wrong=wrong_sql(there),
        results=whole_runs_sql(there),
        **more,
    )


def _imported(rows: Iterable[Sequence[Any]]) -> Iterable[tuple[HistoryPoint, str]]:
    """Points of imports, each with its series; jobs of one version are launches of one point.

    What a later release carries forward of a job is no point, and is counted by the first.
    """
    launches: dict[tuple[str, str, str, int], list[float]] = {}
    again: Counter[tuple[str, str, str, int]] = Counter()
    jobs: dict[tuple[str, str, str, int], str] = {}
    known: dict[Software, int] = {}
    about: dict[str | None, tuple[int, str | None]] = {}
    first: dict[tuple[str, str, tuple[float, ...]], tuple[str, str, str, int]] = {}
    for key, run, moment, text, values in sorted(rows, key=itemgetter(2)):
        if text not in about:
            conditions = json.loads(text or "{}")
            number = known.setdefault(software({"conditions": conditions}), len(known))
            about[text] = number, job_of(conditions)
        number, job = about[text]
        place = (key, run, moment, number)
        if job is not None:
            jobs.setdefault(place, job)
            measured_at = first.setdefault((key, job, tuple(sorted(values))), place)
            if measured_at[2] != moment:
                again[measured_at] += len(values)
                continue
        launches.setdefault(place, []).extend(values)
    ran_with = list(known)
    for place, each in launches.items():
        key, run, moment, number = place
        value = each[0] if len(each) == 1 else median(each)
        point = HistoryPoint(moment, run, "", value, len(each), ran_with[number])
        yield point._replace(carried=again[place], job=jobs.get(place, "")), key


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

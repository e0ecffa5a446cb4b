"""Lines over time as a store has them: one point a run, with what software it ran.

An import brings figures of many moments in one run, and of many versions: each is a point, but for
those that are carried forward from an earlier release. What a run of ours ran is the run's own
environment, which is read once and not of every result.

What points of a line are figures of, and what is known of their outputs, as a store has it.

Most series are of one thing in all their runs, of which a line of ten thousand runs has many: what
is the same in all of them is read once for the series.

Every series of a store with what it is of, that which became worst first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from accelbench.core.axes import AS_TOLD, columns
from accelbench.core.rows import Row
from accelbench.evidence.launches import SOFTWARE
from accelbench.judge import history
from accelbench.judge.accuracies import Outputs
from accelbench.judge.attempts import VERIFIED
from accelbench.judge.filters import marks
from accelbench.judge.republished import job_of
from accelbench.judge.stored_results import rows_of
from accelbench.judge.verdicts import METRICS, UNIT_SQL, Metric
from accelbench.judge.versions import Software, software
from accelbench.present.other_series import (
    NOTHING,
    QUESTION,
    VARIED,
    Case,
    Nothing,
    Unseen,
    with_others,
)

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Of launches, beside their series. An owner's code that is changed goes on with its line, which
#: is to say since which commit it is slower; another file is another graph.
_KINDS = {
    "weights_digest": "CASE WHEN weights = 'code' THEN NULL ELSE weights_digest END",
    "workarounds": "CASE WHEN len(workarounds) > 0 THEN workarounds::VARCHAR ELSE '' END",
    "provenance": "provenance",
    "throughput_unit": UNIT_SQL,
}
_NEEDS = {"throughput_unit": "throughput_unit"}  # of a rate alone
#: Of their outputs, with what makes one of several launches.
_OUTPUTS = {
    "verification": (f"(verification IN ({', '.join(map(repr, VERIFIED))}))", "bool_or"),
    "verification_error": ("verification_error", "max"),
}

KindsAndOutputs = tuple[history.Kinds, Outputs]


class KindsRead:
    """Columns to ask for of a run or a series, and objects of what they say."""

    def __init__(self, metric: Metric) -> None:
        self._names = [name for name in _KINDS if metric.rated or name not in _NEEDS]
        self._outputs = [*_OUTPUTS.values()]
        self._kinds: dict[tuple[object, ...], history.Kinds] = {}
        self._known: dict[tuple[object, ...], Outputs] = {}

    @property
    def sql(self) -> str:
        """What to ask for of a run: the least and the largest of each kind, and its outputs."""
        ends = (f"{end}({_KINDS[name]})" for name in self._names for end in ("min", "max"))
        return ", ".join((*ends, *(f"{merge}({sql})" for sql, merge in self._outputs)))

    @property
    def sql_of_all(self) -> str:
        """What to ask for of a series: the least, the largest and the number of each."""
        each = (*(_KINDS[name] for name in self._names), *(sql for sql, _ in self._outputs))
        return ", ".join(f"min({sql}), max({sql}), count({sql})" for sql in each)

    def of(self, row: Sequence[object]) -> KindsAndOutputs:
        """What a run is of, of which alike runs share one object: most are alike."""
        count = 2 * len(self._names)
        ends, outputs = tuple(row[:count]), tuple(row[count:])
        kinds = self._kinds.get(ends)
        if kinds is None:
            kinds = self._kinds[ends] = self._rows(ends[::2], ends[1::2])
        known = self._known.get(outputs)
        if known is None:
            verified, error = outputs
            known = self._known[outputs] = Outputs(
                bool(verified), error if isinstance(error, int | float) else None
            )
        return kinds, known

    def of_all(self, count: int, row: Sequence[object]) -> KindsAndOutputs | None:
        """What every run of a series is of; None where they differ.

        Args:
            count: how many launches it has.
            row: of `sql_of_all`.
        """
        least, most, counts = row[::3], row[1::3], row[2::3]
        if any(number not in (0, count) for number in counts) or list(least) != list(most):
            return None
        kinds = len(self._names)
        ends = (end for pair in zip(least[:kinds], most[:kinds], strict=True) for end in pair)
        return self.of((*ends, *least[kinds:]))

    def _rows(self, least: Sequence[object], most: Sequence[object]) -> history.Kinds:
        rows = [
            {name: _value(name, value) for name, value in zip(self._names, end, strict=True)}
            | {"throughput": 1.0}  # its unit is that of a rate, said or made of a step
            for end in (least, most)
        ]
        return (rows[0],) if rows[0] == rows[1] else tuple(rows)


def _value(name: str, value: object) -> object:
    return ([value] if value else []) if name == "workarounds" else value


#: That nothing stood in for the device, in SQL: such times are nobody's.
_REAL = "(NOT coalesce(emulated, false))"
#: What has no moment has no place among points that have.
_COUNTS = (
    "{where} AND {usable} AND {answered} AND {real} AND series_key IS NOT NULL AND {value} > 0"
    " AND started_at IS NOT NULL"
)
_RUNS = f"""
SELECT series_key, coalesce(run_id, ''), min(started_at)::VARCHAR, {{figures}}
FROM {{results}} WHERE {_COUNTS} AND NOT of_import
GROUP BY series_key, run_id
"""  # noqa: S608 — our words
#: What differs in few series is read of a series first, and of its runs only where it does.
_SERIES = f"""
SELECT series_key, any_value(case_id), any_value(device_fingerprint), count(*), {{constant}}
FROM {{results}} WHERE {_COUNTS} AND NOT of_import
GROUP BY series_key
"""  # noqa: S608
_DIFFERENT = f"""
SELECT series_key, coalesce(run_id, ''), {{about}}
FROM {{results}} WHERE {_COUNTS} AND series_key IN ({{keys}})
    AND NOT of_import
GROUP BY series_key, run_id
"""  # noqa: S608
_IMPORTS = f"""
SELECT series_key, run_id, started_at::VARCHAR, conditions::VARCHAR, {{about}}, {{figures}}
FROM {{results}} WHERE {_COUNTS} AND of_import
GROUP BY series_key, run_id, started_at, conditions
"""  # noqa: S608
_EACH = f"""
SELECT series_key, coalesce(run_id, ''), bool_and(settled), {{figures}}
FROM {{results}} WHERE {_COUNTS} AND series_key IN ({{keys}})
    AND NOT of_import
GROUP BY series_key, run_id
"""  # noqa: S608

#: A row of an import up to its figures, and the values of one of them.
ValuedRow = tuple[Sequence[object], list[float]]


@dataclass(frozen=True)
class Line:
    """The points of a series, in any order, by one figure."""

    metric: Metric
    points: list[history.HistoryPoint]
    case: Case  # what it is of, with its device


def points_in(
    database: Database, metric: Metric, where: str, values: Sequence[object]
) -> dict[str, Line]:
    """The points of each series, in any order, by the figure that most of its runs have.

    A run that has a mean alone is no point among medians, and what was emulated is none at all.

    Args:
        database: the store.
        metric: of which figure.
        where: which results, in SQL.
        values: its parameters.
    """
    runs = _runs(database)
    nothing: tuple[str, Software] = ("", ())
    every: list[dict[str, list[history.HistoryPoint]]] = [{} for _ in metric.alternatives]
    reading = KindsRead(metric)
    cases, kinds_of, kinds_in = _kinds_of_runs(database, metric, (where, values), reading)
    _, rows = database.query(_sql(_RUNS, metric, where, "median({0}), count({0})"), values)
    # Of its figures each is followed by how many launches it is of.
    for key, run, moment, *figures in cast("list[tuple[str, str, str, *tuple[Any, ...]]]", rows):
        known = kinds_of.get(key) or kinds_in.get((key, run))
        if known is None:
            continue  # written since the kinds were read: the next look has it
        kinds, outputs = known
        commit, ran = runs.get(run, nothing)
        for by_series, value, launches in zip(every, figures[::2], figures[1::2], strict=True):
            if launches:
                point = history.HistoryPoint(
                    moment, run, commit, value, launches, ran, kinds=kinds, outputs=outputs
                )
                by_series.setdefault(key, []).append(point)
    if any(run.startswith("import-") for run in runs):
        listed = "list({0}) FILTER ({0} > 0)"
        _, rows = database.query(_sql(_IMPORTS, metric, where, listed), values)
        for by_series, several in zip(every, _each(rows, len(every)), strict=True):
            for point, key in _imported(several, reading):
                by_series.setdefault(key, []).append(point)
    chosen = _by_one_figure(metric, every)
    return {key: Line(*line, cases.get(key, ("", ""))) for key, line in chosen.items()}


def _kinds_of_runs(
    database: Database,
    metric: Metric,
    where: tuple[str, Sequence[object]],
    reading: KindsRead,
) -> tuple[dict[str, Case], dict[str, KindsAndOutputs], dict[tuple[str, str], KindsAndOutputs]]:
    _, records = database.query(_sql(_SERIES, metric, where[0], ""), where[1])
    rows = cast("list[tuple[str, str | None, str | None, int, *tuple[object, ...]]]", records)
    cases = {key: (str(case or ""), str(device or "")) for key, case, device, *_ in rows}
    alike = {key: reading.of_all(count, more) for key, _, _, count, *more in rows}
    differ = sorted(key for key, kinds in alike.items() if kinds is None)
    each: dict[tuple[str, str], KindsAndOutputs] = {}
    if differ:
        sql = _sql(_DIFFERENT, metric, where[0], "", keys=marks(differ))
        _, records = database.query(sql, [*where[1], *differ])
        each = {(str(key), str(run)): reading.of(more) for key, run, *more in records}
    return cases, {key: kinds for key, kinds in alike.items() if kinds is not None}, each


def _by_one_figure(
    metric: Metric, every: Sequence[Mapping[str, list[history.HistoryPoint]]]
) -> dict[str, tuple[Metric, list[history.HistoryPoint]]]:
    chosen: dict[str, tuple[Metric, list[history.HistoryPoint]]] = {}
    for alternative, by_series in zip(metric.alternatives, every, strict=True):
        for key, points in by_series.items():
            if key not in chosen or len(chosen[key][1]) < len(points):
                chosen[key] = alternative, points
    return chosen


def _each(rows: Sequence[Sequence[object]], many: int) -> Iterable[list[ValuedRow]]:
    for at in range(-many, 0):
        yield [
            (row[:-many], values) for row in rows if isinstance(values := row[at], list) and values
        ]


def nothing_in(database: Database, metric: Metric, where: str, values: Sequence[object]) -> Nothing:
    """The runs of such results that came to no figure."""
    usable = "times_usable" if metric.timed else "true"
    fine = f"({usable} AND answered AND {_REAL})"
    others = "".join(
        f"bool_or(coalesce({fine} AND {other.sql} > 0, false)), "
        for other in METRICS
        if other.name != metric.name
    )
    _, rows = database.query(
        _sql(
            NOTHING,
            metric,
            where,
            "{0}",
            others=others,
            fine=fine,
        ),
        values,
    )
    return Nothing(metric, rows)


def told(
    database: Database,
    several: Iterable[tuple[Row, Line]],
    metric: Metric,
    where: tuple[str, Sequence[object]],
    least: float,
    nothing: Nothing,
    ours: Callable[[Row, str], bool] | None = None,
) -> list[history.Series]:
    """Series of these points; of those whose newest is off, every launch is looked at.

    A run without a figure that is newer than all of them is told of.

    Args:
        database: the store.
        several: what each is of, with its points.
        metric: what was asked for, of which they are.
        where: the results that points were made of, in SQL, and its parameters.
        least: what a change has to exceed, as a share.
        nothing: runs without a figure.
        ours: whether a run may be one of a series; any may, where nothing is said.
    """
    lines = list(several)
    all_series = _looked_at(
        database, [(row, line.metric, line.points) for row, line in lines], metric, where, least
    )
    return [
        _with_gaps(series, row, line, nothing, ours)
        for series, (row, line) in zip(all_series, lines, strict=True)
    ]


def _with_gaps(
    series: history.Series,
    row: Row,
    line: Line,
    nothing: Nothing,
    ours: Callable[[Row, str], bool] | None,
) -> history.Series:
    may_be = None if ours is None else lambda run: ours(row, run)
    about = (str(row["series_key"]), line.case, line.points, may_be)
    gap, left_out = nothing.newest(*about), tuple(nothing.left_out(*about))
    series = replace(series, left_out=left_out) if left_out else series
    return series if gap is None else history.with_gap(series, gap)


def _looked_at(
    database: Database,
    several: Iterable[tuple[Row, Metric, Sequence[history.HistoryPoint]]],
    metric: Metric,
    where: tuple[str, Sequence[object]],
    least: float,
) -> list[history.Series]:
    all_series = history.every_series(several, least)
    off = {
        number: series
        for number, series in enumerate(all_series)
        if series.course and series.course.unconfirmed
    }
    keys = sorted({str(series.row["series_key"]) for series in off.values()})
    if not keys:
        return all_series
    listed = "list({0} ORDER BY started_at, launch) FILTER ({0} > 0)"
    sql = _sql(_EACH, metric, where[0], listed, keys=marks(keys))
    _, records = database.query(sql, [*where[1], *keys])
    rows = cast("list[tuple[str, str, bool, *tuple[Sequence[float], ...]]]", records)
    each = {(key, run): (settled, values) for key, run, settled, *values in rows}
    again = [
        (
            series.row,
            series.metric,
            [
                _whole(point, each.get((str(series.row["series_key"]), point.run_id)), at)
                for point in series.points
            ],
        )
        for series in off.values()
        for at in (_place(series.metric, metric),)
    ]
    for number, update in zip(off, history.every_series(again, least), strict=True):
        all_series[number] = replace(update, points=all_series[number].points)
    return all_series


def _place(told: Metric, asked: Metric) -> int:
    return [one.statistic for one in asked.alternatives].index(told.statistic)


def _whole(
    point: history.HistoryPoint, known: tuple[bool, Sequence[Sequence[float]]] | None, at: int
) -> history.HistoryPoint:
    if known is None:
        return point
    return point._replace(each=tuple(known[1][at]), settled=bool(known[0]))


def _sql(text: str, metric: Metric, where: str, figure: str, **more: str) -> str:
    usable = "times_usable" if metric.timed else "true"
    figures = ", ".join(figure.format(alternative.sql) for alternative in metric.alternatives)
    reading = KindsRead(metric)
    return text.format(
        value=metric.sql,
        figures=figures,
        where=where,
        usable=usable,
        real=_REAL,
        emulated=f"NOT {_REAL}",
        about=reading.sql,
        constant=reading.sql_of_all,
        answered="answered",
        wrong="wrong_outputs",
        results="launches",
        **more,
    )


def _imported(
    rows: Iterable[ValuedRow], reading: KindsRead
) -> Iterable[tuple[history.HistoryPoint, str]]:
    """Yield points of imports with their series; launches of one version are one point.

    What a later release carries forward is not a point; the first one counts it.
    """
    launches: dict[tuple[str, str, str, int], list[float]] = {}
    again: Counter[tuple[str, str, str, int]] = Counter()
    jobs: dict[tuple[str, str, str, int], str] = {}
    known: dict[Software, int] = {}
    by_text: dict[str | None, tuple[int, str | None]] = {}
    first: dict[tuple[str, str, tuple[float, ...]], tuple[str, str, str, int]] = {}
    of: dict[tuple[str, str, str, int], tuple[history.Kinds, Outputs]] = {}
    for row, values in sorted(rows, key=lambda line: str(line[0][2])):
        key, run, moment = (str(word) for word in row[:3])
        text = None if row[3] is None else str(row[3])
        if text not in by_text:
            conditions = json.loads(text or "{}")
            number = known.setdefault(software({"conditions": conditions}), len(known))
            by_text[text] = number, job_of(conditions)
        number, job = by_text[text]
        place = (key, run, moment, number)
        if job is not None:
            jobs.setdefault(place, job)
            measured_at = first.setdefault((key, job, tuple(sorted(values))), place)
            if measured_at[2] != moment:
                again[measured_at] += len(values)
                continue
        launches.setdefault(place, []).extend(values)
        of.setdefault(place, reading.of(row[4:]))
    ran_with = list(known)
    for place, each in launches.items():
        key, run, moment, number = place
        value = each[0] if len(each) == 1 else median(each)
        point = history.HistoryPoint(moment, run, "", value, len(each), ran_with[number])
        kinds, outputs = of[place]
        carried, job = again[place], jobs.get(place, "")
        yield point._replace(carried=carried, job=job, kinds=kinds, outputs=outputs), key


def _runs(database: Database) -> dict[str, tuple[str, Software]]:
    _, rows = database.query("SELECT run_id, git_commit, environment::VARCHAR FROM benchmark_runs")
    versions: dict[str | None, Software] = {None: ()}
    runs = {}
    for run, commit, recorded in rows:
        text = None if recorded is None else str(recorded)
        ran = versions.get(text)
        if ran is None:
            environment = json.loads(text or "")
            about = {name: environment.get(name) for name in SOFTWARE}
            ran = versions[text] = software({"conditions": about})
        runs[str(run)] = (str(commit or ""), ran)
    return runs


_COLUMNS = (
    *("series_key", "model", "runtime", "hardware", "device", "device_name", "precision"),
    *("batch_size", *columns(*AS_TOLD), "mode", "scenario", "world_size", "options", "threads"),
    *("emulated", "provenance", "case_id", "device_fingerprint"),
)


def series_in(
    database: Database, metric: Metric, where: str, values: Sequence[object], least: float
) -> tuple[list[history.Series], list[Unseen]]:
    """Every series with points enough, that which became worst first, and those without any.

    One point is enough where a run came after it that has no figure.
    """
    lines = points_in(database, metric, where, values)
    nothing = nothing_in(database, metric, where, values)
    shown = {
        key: line
        for key, line in lines.items()
        if len(line.points) >= history.FEWEST_DRAWN or nothing.newest(key, line.case, line.points)
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

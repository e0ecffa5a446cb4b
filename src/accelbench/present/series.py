"""Lines over time as a store has them: one point a run, with the software that it ran.

An import brings values of many moments and versions in one run. Each is a point, except those that
are carried forward from an earlier release. The software of a run of ours is the run's environment,
which is read once and not from every result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from accelbench.core.axes import TITLE_ORDER, size_columns
from accelbench.core.formatting import format_count
from accelbench.core.rows import Row, number
from accelbench.core.safe_text import visible
from accelbench.core.unusable_reasons import (
    FAILED,
    LAUNCHED,
    MOSTLY_FAILED,
    failed_launches_text,
    is_mostly_failed,
    reason_texts,
)
from accelbench.core.vocabulary import VERIFIED
from accelbench.evidence.launches import SOFTWARE
from accelbench.judge import history
from accelbench.judge.accuracies import Outputs
from accelbench.judge.filters import marks
from accelbench.judge.history import Gap, HistoryPoint, OtherSeries, Series
from accelbench.judge.questions import flat
from accelbench.judge.stored_results import rows_of
from accelbench.judge.verdicts import METRICS, UNIT_SQL, Metric
from accelbench.judge.versions import Software, job_of, software
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Columns in which another series of a question is the same.
QUESTION = (
    *("model", "hardware", "device_name", "runtime", "precision", "batch_size"),
    *size_columns(*TITLE_ORDER),
    *("mode", "scenario", "world_size"),
)
#: Columns in which it may differ.
VARIED = ("threads", "options")
#: Other series that a line names.
_MOST_NAMED = 3


def with_others(
    all_series: Sequence[Series], candidates: Iterable[Row], same: Sequence[str] = QUESTION
) -> list[Series]:
    """Return the series, each with the other series of its question that are not among them."""
    shown = {series.row.get("series_key") for series in all_series}
    by_question: dict[tuple[str, ...], list[Row]] = {}
    for row in candidates:
        if row.get("series_key") not in shown:
            by_question.setdefault(_values(row, same), []).append(row)
    return [
        replace(series, others=tuple(_others(series.row, by_question.get(question, ()))))
        for series in all_series
        for question in (_values(series.row, same),)
    ]


def left_out_text(series: Series) -> str:
    """Return which runs and series a line does not contain, and how to see them; else ""."""
    parts, commands = [], []
    if series.left_out:
        reasons = Counter(gap.why for gap in series.left_out)
        listed = "; ".join(f"{count} {why}" for why, count in reasons.most_common())
        parts.append(f"{format_count(len(series.left_out), 'run')} ({listed})")
        commands.append("run")
    for other in series.others[:_MOST_NAMED]:
        differs = ", ".join(f"{name} {value}" for name, value in other.differs.items())
        parts.append(f"{format_count(other.runs, 'run')} of another series ({visible(differs)})")
    if more := len(series.others[_MOST_NAMED:]):
        parts.append(f"{more} more series")
    if any("threads" in other.differs for other in series.others):
        commands.append("threads")
    elif series.others:
        commands.append("run")
    if not parts:
        return ""
    model = visible(str(series.row.get("model")))
    how = " or ".join(
        f"`accelbench compare {model} --by {axis}`" for axis in dict.fromkeys(commands)
    )
    return phrase("history.left-out", parts="; ".join(parts), how=how)


def _others(row: Row, candidates: Iterable[Row]) -> Iterable[OtherSeries]:
    own = _varied(row)
    for other in candidates:
        theirs = _varied(other)
        differs = {
            name: theirs.get(name, "default")
            for name in (*theirs, *(name for name in own if name not in theirs))
            if theirs.get(name) != own.get(name)
        }
        if differs:
            runs = int(number(other, "runs") or 0)
            yield OtherSeries(str(other.get("series_key")), runs, differs)


def _varied(row: Row) -> dict[str, str]:
    threads, options = row.get("threads"), row.get("options") or {}
    known = json.loads(options) if isinstance(options, str) else options
    named = flat(known) if isinstance(known, Mapping) else {}
    return {**({"threads": str(threads)} if threads is not None else {}), **named}


def _values(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in names)


#: What a line is of, for runs that are of no series: its case and its device.
Case = tuple[str, str]


@dataclass(frozen=True)
class Unseen:
    """A series of which no run has the figure that is asked for, though something ran."""

    series_key: str
    runs: int  # as far as they are told apart: of an import, its moments
    newest: Gap
    metrics: tuple[str, ...]  # what is known of it instead


@dataclass
class _OfSeries:
    gaps: list[Gap] = field(default_factory=list)
    ran: set[str] = field(default_factory=set)  # moments, of imports, or runs in which it ran
    metrics: dict[str, None] = field(default_factory=dict)
    newest: Gap | None = None


class RunsWithoutResult:
    """All runs that came to nothing, by series, or by case and device where no series is known."""

    def __init__(self, metric: Metric, rows: Iterable[Row]) -> None:
        self._of: dict[tuple[str, ...], _OfSeries] = {}
        for row in rows:
            series = row["series_key"]
            key = (
                (str(row["case_id"] or ""), str(row["device"]))
                if series is None
                else (str(series),)
            )
            entry = self._of.setdefault(key, _OfSeries())
            gap = Gap(str(row["last"]), str(row["run_id"]), _why(metric, row))
            if not row["of_import"]:  # of an import, what lacks a figure is no run without one
                entry.gaps.append(gap)
            if row["ran"]:
                moments = {str(row["first"]), str(row["last"])}
                entry.ran |= moments if row["of_import"] else {str(row["run_id"])}
                entry.newest = gap
            entry.metrics |= dict.fromkeys(m.name for m in METRICS if row.get(f"has_{m.name}"))

    def newest(
        self,
        series: str,
        case: Case,
        points: Sequence[HistoryPoint],
        may_be: Callable[[str], bool] | None = None,
    ) -> Gap | None:
        """The newest run that came to nothing, if no point of a line is as new."""
        if not self._of:
            return None
        last = max(point.moment for point in points)
        every = self.left_out(series, case, points, may_be)
        return max((gap for gap in every if gap.moment > last), default=None)

    def left_out(
        self,
        series: str,
        case: Case,
        points: Sequence[HistoryPoint],
        may_be: Callable[[str], bool] | None = None,
    ) -> list[Gap]:
        """Return every run that may be of a line and has no point in it, in order of time."""
        runs = {point.run_id for point in points}
        keys = dict.fromkeys(((series,), case, (case[0], "")))
        known = (gap for key in keys if key in self._of for gap in self._of[key].gaps)
        kept = (gap for gap in known if gap.run_id not in runs)
        return sorted({gap for gap in kept if may_be is None or may_be(gap.run_id)})

    def unseen(self, lines: Mapping[str, object]) -> list[Unseen]:
        """Series that ran twice and more and have no point, by key."""
        return [
            Unseen(key[0], len(entry.ran), entry.newest, tuple(entry.metrics))
            for key, entry in sorted(self._of.items())
            if len(key) == 1 and key[0] not in lines and len(entry.ran) > 1 and entry.newest
        ]


def _why(metric: Metric, row: Row) -> str:
    if row["wrong"]:
        return "wrong outputs"
    cause = str(row["cause"] or "").replace("_", " ")
    if not row["ran"]:
        return cause
    if unusable := reason_texts(row["why_unusable"]):
        why = failed_launches_text([row]) if is_mostly_failed([row]) else unusable
        return ": ".join(filter(None, (f"unusable, {why}", cause)))
    return "emulated" if row["emulated"] else phrase("history.metric-unknown", name=metric.name)


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


class KindReader:
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
        """What every run of a series of `count` launches is of; None where they differ."""
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
#: One run of ours, and the launches of one moment and version of an import.
_BY_RUN, _BY_VERSION = "series_key, run_id", "series_key, run_id, started_at, conditions"


def _sql(metric: Metric, where: str, columns: str, by: str, only: str = "NOT of_import") -> str:
    # What has no moment has no place among points that have.
    return (
        f"SELECT series_key, {columns} FROM launches WHERE {where} AND {_usable(metric)}"  # noqa: S608
        f" AND answered AND {_REAL} AND series_key IS NOT NULL AND {metric.sql} > 0"
        f" AND started_at IS NOT NULL AND {only} GROUP BY {by}"
    )


def _usable(metric: Metric) -> str:
    return "times_usable" if metric.timed else "true"


def _figures(metric: Metric, form: str) -> str:
    return ", ".join(form.format(alternative.sql) for alternative in metric.alternatives)


#: Of a point of an import: its series, run, moment and version.
_Place = tuple[str, str, str, int]
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
    """Return the points of each series, in any order, by the figure that most of its runs have.

    A run that has a mean alone is no point among medians, and what was emulated is none at all.
    """
    runs = _runs(database)
    nothing: tuple[str, Software] = ("", ())
    every: list[dict[str, list[HistoryPoint]]] = [{} for _ in metric.alternatives]
    reading = KindReader(metric)
    cases, kinds_of, kinds_in = _kinds_of_runs(database, metric, (where, values), reading)
    # Each of its figures is followed by the number of launches with it.
    figures = _figures(metric, "median({0}), count({0})")
    columns = f"coalesce(run_id, ''), min(started_at)::VARCHAR, {figures}"
    _, rows = database.query(_sql(metric, where, columns, _BY_RUN), values)
    for key, run, moment, *known in cast("list[tuple[str, str, str, *tuple[Any, ...]]]", rows):
        about = kinds_of.get(key) or kinds_in.get((key, run))
        if about is None:
            continue  # written since the kinds were read: the next look has it
        kinds, outputs = about
        commit, ran = runs.get(run, nothing)
        for by_series, value, launches in zip(every, known[::2], known[1::2], strict=True):
            if launches:
                point = HistoryPoint(
                    moment, run, commit, value, launches, ran, kinds=kinds, outputs=outputs
                )
                by_series.setdefault(key, []).append(point)
    if any(run.startswith("import-") for run in runs):
        listed = _figures(metric, "list({0}) FILTER ({0} > 0)")
        columns = f"run_id, started_at::VARCHAR, conditions::VARCHAR, {reading.sql}, {listed}"
        sql = _sql(metric, where, columns, _BY_VERSION, "of_import")
        _, rows = database.query(sql, values)
        for place, by_series in zip(range(-len(every), 0), every, strict=True):
            several = [
                (row[: -len(every)], each)
                for row in rows
                if isinstance(each := row[place], list) and each
            ]
            for point, key in _import_points(several, reading):
                by_series.setdefault(key, []).append(point)
    chosen = _by_one_figure(metric, every)
    return {key: Line(*line, cases.get(key, ("", ""))) for key, line in chosen.items()}


def _kinds_of_runs(
    database: Database, metric: Metric, where: tuple[str, Sequence[object]], reading: KindReader
) -> tuple[dict[str, Case], dict[str, KindsAndOutputs], dict[tuple[str, str], KindsAndOutputs]]:
    # What differs in few series is read of a series first, and of its runs only if it does: to read
    # it of each of 96,000 runs took 1.7 s instead of 0.6 s.
    columns = f"any_value(case_id), any_value(device_fingerprint), count(*), {reading.sql_of_all}"
    _, records = database.query(_sql(metric, where[0], columns, "series_key"), where[1])
    rows = cast("list[tuple[str, str | None, str | None, int, *tuple[object, ...]]]", records)
    cases = {key: (str(case or ""), str(device or "")) for key, case, device, *_ in rows}
    alike = {key: reading.of_all(count, more) for key, _, _, count, *more in rows}
    differ = sorted(key for key, kinds in alike.items() if kinds is None)
    each: dict[tuple[str, str], KindsAndOutputs] = {}
    if differ:
        only = f"NOT of_import AND series_key IN ({marks(differ)})"
        sql = _sql(metric, where[0], f"coalesce(run_id, ''), {reading.sql}", _BY_RUN, only)
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


def read_gaps(
    database: Database, metric: Metric, where: str, values: Sequence[object]
) -> RunsWithoutResult:
    """Return the runs of such results that came to no figure.

    What failed before it had an engine is of no series, but of a case on a device, or, without one,
    on all devices.
    """
    usable = _usable(metric)
    fine = f"({usable} AND answered AND {_REAL})"
    others = "".join(
        f"bool_or(coalesce({fine} AND {other.sql} > 0, false)) AS has_{other.name}, "
        for other in METRICS
        if other.name != metric.name
    )
    names, rows = database.query(
        f"""
SELECT series_key, case_id, coalesce(device_fingerprint, '') AS device, run_id, of_import,
    min(started_at)::VARCHAR AS first, max(started_at)::VARCHAR AS last, {others}
    max({LAUNCHED}) AS {LAUNCHED}, max({FAILED}) AS {FAILED},
    bool_or({MOSTLY_FAILED}) AS {MOSTLY_FAILED}, bool_or(wrong_outputs) AS wrong,
    bool_or(answered) AS ran, bool_or(NOT {_REAL}) AS emulated,
    list(DISTINCT unusable_reason ORDER BY unusable_reason) FILTER (NOT {usable}) AS why_unusable,
    arg_max(coalesce(reason, status), started_at) FILTER (NOT answered) AS cause
FROM launches
WHERE {where} AND NOT coalesce({fine} AND {metric.sql} > 0, false)
    AND status <> 'skipped' AND started_at IS NOT NULL AND coalesce(run_id, '') <> ''
GROUP BY series_key, case_id, device_fingerprint, run_id, of_import ORDER BY max(started_at), run_id
""",  # noqa: S608 — our words
        values,
    )
    return RunsWithoutResult(metric, [dict(zip(names, row, strict=True)) for row in rows])


def judge_lines(
    database: Database,
    several: Iterable[tuple[Row, Line]],
    metric: Metric,
    where: tuple[str, Sequence[object]],
    least: float,
    nothing: RunsWithoutResult,
    ours: Callable[[Row, str], bool] | None = None,
) -> list[history.Series]:
    """Return series of these points; if the newest of one is off, its launches are looked at.

    A run without a figure that is newer than all points is a gap of the series.

    Args:
        database: the store.
        several: what each is of, with its points.
        metric: what was asked for.
        where: the results of the points, in SQL, and its parameters.
        least: what a change has to exceed, as a share.
        nothing: runs without a figure.
        ours: whether a run may be one of a series; by default any may.
    """
    lines = list(several)
    all_series = _look_at_launches(
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
    nothing: RunsWithoutResult,
    ours: Callable[[Row, str], bool] | None,
) -> history.Series:
    may_be = None if ours is None else lambda run: ours(row, run)
    about = (str(row["series_key"]), line.case, line.points, may_be)
    gap, left_out = nothing.newest(*about), tuple(nothing.left_out(*about))
    series = replace(series, left_out=left_out) if left_out else series
    return series if gap is None else history.with_gap(series, gap)


def _look_at_launches(
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
    listed = _figures(metric, "list({0} ORDER BY started_at, launch) FILTER ({0} > 0)")
    columns = f"coalesce(run_id, ''), bool_and(settled), {listed}"
    only = f"NOT of_import AND series_key IN ({marks(keys)})"
    sql = _sql(metric, where[0], columns, _BY_RUN, only)
    _, records = database.query(sql, [*where[1], *keys])
    rows = cast("list[tuple[str, str, bool, *tuple[Sequence[float], ...]]]", records)
    each = {(key, run): (settled, values) for key, run, settled, *values in rows}
    statistics = [one.statistic for one in metric.alternatives]
    again = [
        (
            series.row,
            series.metric,
            [
                _with_launches(point, each.get((str(series.row["series_key"]), point.run_id)), at)
                for point in series.points
            ],
        )
        for series in off.values()
        for at in (statistics.index(series.metric.statistic),)
    ]
    for place, update in zip(off, history.every_series(again, least), strict=True):
        all_series[place] = replace(update, points=all_series[place].points)
    return all_series


def _with_launches(
    point: history.HistoryPoint, known: tuple[bool, Sequence[Sequence[float]]] | None, at: int
) -> history.HistoryPoint:
    if known is None:
        return point
    return point._replace(each=tuple(known[1][at]), settled=bool(known[0]))


def _import_points(
    rows: Iterable[ValuedRow], reading: KindReader
) -> Iterable[tuple[history.HistoryPoint, str]]:
    """Yield points of imports with their series; launches of one version are one point.

    What a later release carries forward is not a point; the first one counts it.
    """
    launches: dict[_Place, list[float]] = {}
    again: Counter[_Place] = Counter()
    jobs: dict[_Place, str] = {}
    known: dict[Software, int] = {}
    by_text: dict[str | None, tuple[int, str | None]] = {}
    first: dict[tuple[str, str, tuple[float, ...]], _Place] = {}
    of: dict[_Place, KindsAndOutputs] = {}
    for row, values in sorted(rows, key=lambda line: str(line[0][2])):
        key, run, moment = (str(word) for word in row[:3])
        text = None if row[3] is None else str(row[3])
        if text not in by_text:
            conditions = json.loads(text or "{}")
            version = known.setdefault(software({"conditions": conditions}), len(known))
            by_text[text] = version, job_of(conditions)
        version, job = by_text[text]
        place = (key, run, moment, version)
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
        key, run, moment, version = place
        value, (kinds, outputs) = each[0] if len(each) == 1 else median(each), of[place]
        point = HistoryPoint(moment, run, "", value, len(each), ran_with[version])
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
    *(
        "batch_size",
        *size_columns(*TITLE_ORDER),
        "mode",
        "scenario",
        "world_size",
        "options",
        "threads",
    ),
    *("emulated", "provenance", "case_id", "device_fingerprint"),
)


def series_in(
    database: Database, metric: Metric, where: str, values: Sequence[object], least: float
) -> tuple[list[history.Series], list[Unseen]]:
    """Every series with points enough, that which became worst first, and those without any.

    One point is enough where a run came after it that has no figure.
    """
    lines = points_in(database, metric, where, values)
    nothing = read_gaps(database, metric, where, values)
    shown = {
        key: line
        for key, line in lines.items()
        if len(line.points) >= history.FEWEST_DRAWN or nothing.newest(key, line.case, line.points)
    }
    if not shown:  # to judge none takes a tenth of a second, for what is imported to judge with
        return [], nothing.unseen(lines)
    newest = {
        key: max(line.points, key=lambda point: point.moment).run_id for key, line in shown.items()
    }
    about = about_series(database, newest)
    several = [(about[key], line) for key, line in shown.items()]
    all_series = judge_lines(database, several, metric, (where, values), least, nothing)
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

"""Series over time as a document, and in plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.formatting import format_count, format_value
from accelbench.core.result_statistics import changes_text, ends_document
from accelbench.exchange.titles import format_title
from accelbench.judge.history import Gap, HistoryPoint, Series, same_jobs
from accelbench.judge.versions import in_short
from accelbench.measure.launch_verdicts import LEAST_EFFECT
from accelbench.present.document import Document, DocumentSection, Notes
from accelbench.present.series import left_out_text
from accelbench.present.terminal.console import console
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.measure.changes import SeriesChanges


_LEVELS = "▁▂▃▄▅▆▇█"
_WIDEST = 60
_MUCH = 10.0
_SHORT = 10  # characters of a commit
_MARKS = 6  # changes of software, and of what it is of, that are told


def history_document(
    shown: Sequence[Series],
    answers: Mapping[str, int],
    left: int,
    machine: str,
    notes: Sequence[str] = (),
    data: Callable[[], Mapping[str, object]] = dict,
) -> Document:
    """Return series as a document: for each its course in a line and what happened."""
    same = same_jobs(shown)
    widest = max(min(_WIDEST, console().width - 2), 1)
    sections = [
        DocumentSection(
            _heading(series),
            [
                Notes(
                    [
                        _course_of(series, widest),
                        _level(series),
                        *_lines(series),
                        *_of_same_jobs(same.get(str(series.row.get("series_key")), ())),
                    ],
                    is_indented=True,
                )
            ],
        )
        for series in shown
    ]
    counts = ", ".join(f"{count} {answer}" for answer, count in answers.items())
    many = format_count(sum(answers.values()), "series", "series")
    more = [f"{left} not shown, by --all."] if left else []
    closing = Notes([f"Of {many}: {counts}.", *more, *notes])
    return Document(f"On {machine}", [*sections, closing], data=data)


def _course_of(series: Series, widest: int) -> str:
    newest = len(series.points) - _WIDEST
    parts = [[series.points[at].value for at in part if at >= newest] for part in series.stretches]
    # What no history tells of is flat: stretched to the whole height, noise looks like a step.
    course = series.course
    told = course and (course.steps or course.spikes or course.drift or course.unconfirmed)
    least = 0.0 if told else LEAST_EFFECT
    return "|".join(spark(part, least) for part in parts if part)[-widest:]


def _level(series: Series) -> str:
    level, unit = series.newest_level, series.metric.header
    interval = (
        level.spread.text(level.value, format_value, noun=("run", "runs")) if level.spread else ""
    )
    apart = f" {interval}" if interval.startswith("±") else f" ({interval})" if interval else ""
    since = series.points[level.since].moment[:10]
    runs = format_count(level.runs, "run")
    return phrase(
        "history.level-since",
        value=format_value(level.value),
        unit=unit,
        apart=apart,
        runs=runs,
        since=since,
    )


def spark(values: Sequence[float], least: float = 0.0) -> str:
    """Return the newest points as a line from low to high; a smaller share than `least` is flat."""
    newest = values[-_WIDEST:]
    low, high = min(newest), max(newest)
    if high <= low * (1.0 + least):
        return _LEVELS[0] * len(newest)
    scale = (len(_LEVELS) - 1) / (high - low)
    return "".join(_LEVELS[round((value - low) * scale)] for value in newest)


def _heading(series: Series) -> str:
    values = [series.points[at].value for at in series.stretches[-1]]
    since = f" since {series.points[series.partings[-1].at].moment[:10]}" if series.partings else ""
    where = f", {series.row['device_name']}" if series.row.get("device_name") else ""
    emulated = ", emulated" if series.row.get("emulated") else ""
    return (
        f"{format_title(series.row)}{where}{emulated}: {series.metric.title}"
        f" {format_value(values[-1])}"
        f" {series.metric.header}, {format_count(len(series.points), 'run')},"
        f" {format_value(min(values))} … {format_value(max(values))}{since}"
    )


def _lines(series: Series) -> Iterable[str]:
    yield series.said[:1].upper() + series.said[1:]
    course = series.course
    if course is not None:
        yield from _happened(series, course)
    for parting in series.partings[-_MARKS:]:
        before, since = series.points[parting.at - 1], series.points[parting.at]
        yield phrase(
            "history.not-alike",
            said=parting.said,
            before=_place(before),
            since=_place(since),
        )
    if again := series.carried_forward:
        results = format_count(again, "later result")
        yield phrase("history.carried-forward-earlier", results=results)
    if text := left_out_text(series):
        yield text
    marks = series.software_changes
    if len(marks) > _MARKS:
        yield phrase("history.earlier-changes-software", marks=len(marks) - _MARKS)
    for at, what in marks[-_MARKS:]:
        yield f"{in_short(what)} at {_place(series.points[at])}"


def _of_same_jobs(others: Sequence[Series]) -> Iterable[str]:
    if others:
        names = dict.fromkeys(
            str(series_.row.get("device_name") or format_title(series_.row)) for series_ in others
        )
        yield phrase("history.same-jobs", names=", ".join(names))


def _happened(series: Series, course: SeriesChanges) -> Iterable[str]:
    for step in course.steps:
        worse = (step.share > 0) == series.metric.lower_is_better
        word = "worse" if worse else series.doubt_of(step.at) or "better"
        interval = changes_text(step.low, step.high, _share)
        before, since = series.points[step.at - 1], series.points[step.at]
        yield phrase(
            "history.step",
            share=_share(step.share),
            interval=interval,
            word=word,
            before=_place(before),
            since=_place(since),
        )
    for spike in series.first_off:
        at = _place(series.points[spike.at])
        yield phrase("history.first-point-off", share=_share(spike.share), at=at)
    for spike in series.came_back:
        yield phrase(
            "history.spike",
            share=_share(spike.share),
            points=_place(series.points[spike.at]),
        )
    if course.drift is not None:
        crept = _place(series.points[course.drift.since])
        yield phrase("history.drift", share=_share(course.drift.share), crept=crept)
    if course.unconfirmed is not None:
        last = course.unconfirmed
        again = "" if series.alone is not None else "; measure again"  # which the answer says
        yield phrase(
            "history.newest-unconfirmed",
            share=_share(last.share),
            points=_place(series.points[last.at]),
            again=again,
        )


def _share(share: float) -> str:
    return f"{share:+.1%}" if share < _MUCH else f"{format_value(1.0 + share)}×"


def _place(point: HistoryPoint) -> str:
    commit = f" {point.commit[:_SHORT]}" if point.commit else ""
    return f"{point.moment[:16]}{commit}"


def document(
    series: Series, *, points: bool = True, same: Sequence[Series] = ()
) -> dict[str, object]:
    """All that is known of it; shares are of the figure itself, by its own sign.

    `same` are other series that the same jobs measured. Points are most of what is written.
    """
    course, gap = series.course, series.gap
    steps = course.steps if course else ()
    drift = course.drift if course else None
    last = course.unconfirmed if course else None
    return {
        "what": format_title(series.row),
        "series_key": series.row.get("series_key"),
        "device_name": series.row.get("device_name"),
        "unit": series.metric.header,
        "figure": series.metric.statistic and series.metric.statistic.value,
        "changed": series.has_changed,
        "answer": None if series.answer is None else series.answer.value,
        "said": series.said,
        "point_count": len(series.points),
        "carried_forward": series.carried_forward,
        "same_jobs_as": [other.row.get("series_key") for other in same],
        "newest": _point(series.points[-1]),
        "newest_level": _level_document(series),
        "left_out": {
            "said": left_out_text(series) or None,
            "runs": [_gap(one) for one in series.left_out],
            "other_series": [
                {"series_key": one.series_key, "runs": one.runs, "differs": dict(one.differs)}
                for one in series.others
            ],
        },
        "newest_without_figure": None if gap is None else _gap(gap),
        "noise": course.noise if course else None,
        "points": [_point(point) for point in series.points] if points else None,
        "steps": [
            {
                "at": step.at,
                "after": _point(series.points[step.at - 1]),
                "since": _point(series.points[step.at]),
                "change": step.share,
                "low": step.low,
                "high": step.high,
                "worse": (step.share > 0) == series.metric.lower_is_better,
                "doubt": series.doubt_of(step.at) or None,
                "p_value": step.p_value,
            }
            for step in steps
        ],
        "software_changes": [
            {
                "at": at,
                "started_at": series.points[at].moment,
                "said": in_short(what),
                "changes": list(what),
            }
            for at, what in series.software_changes
        ],
        "not_alike": [
            {
                "at": parting.at,
                "started_at": series.points[parting.at].moment,
                "said": parting.said,
                "what": list(parting.what),
            }
            for parting in series.partings
        ],
        "spikes": [{"at": spike.at, "change": spike.share} for spike in series.came_back],
        "first_off": [{"at": spike.at, "change": spike.share} for spike in series.first_off],
        "beside_first": series.beside_first,
        "drift": None
        if drift is None
        else {"since": drift.since, "change": drift.share, "p_value": drift.p_value},
        "unconfirmed": None if last is None else {"at": last.at, "change": last.share},
        "by_newest_alone": series.alone is not None,
    }


def _level_document(series: Series) -> dict[str, object]:
    level = series.newest_level
    return {
        "value": level.value,
        **ends_document(level.spread),
        "runs": level.runs,
        "since": series.points[level.since].moment,
    }


def _gap(gap: Gap) -> dict[str, object]:
    return {"started_at": gap.moment, "run_id": gap.run_id, "why": gap.why}


def _point(point: HistoryPoint) -> dict[str, object]:
    return {
        "started_at": point.moment,
        "run_id": point.run_id,
        "git_commit": point.commit or None,
        "value": point.value,
        "launches": point.launches,
    }

"""A series over time in plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.figures import ends_document
from accelbench.exchange.titles import title
from accelbench.judge.history import Gap, HistoryPoint, Series
from accelbench.judge.versions import in_short
from accelbench.present.other_series import left_out_text


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
        "what": title(series.row),
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
        "newest_level": _level(series),
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


def _level(series: Series) -> dict[str, object]:
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

"""Measurements that a source publishes again: later releases carry them forward. Pure.

A source that publishes tables by release, as AI Hub does, lists a job in every release until
another is run. Results of one job with one figure are one measurement, whatever the days of the
releases: as independent runs they would make one figure a level, and narrow its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accelbench.core.columns import STEP_MS
from accelbench.core.rows import Json, Row, record

#: The condition that names the job, of results as a source published them or within what it said.
_JOB = "job_id"
#: What stands for no job.
_NONE = ("", "null", "None")
_FIGURES = ("series_key", *STEP_MS, "throughput")


def job_of(conditions: Json) -> str | None:
    """The job that measured a result; None where its source names none."""
    details = conditions.get("said")
    within = details.get(_JOB) if isinstance(details, Mapping) else None
    job = conditions.get(_JOB) or within
    return None if job is None or str(job) in _NONE else str(job)


def counted_once(rows: Iterable[Row]) -> list[Row]:
    """Rows without those that publish an earlier measurement again; the order stays."""
    rows = list(rows)
    first: dict[tuple[object, ...], str] = {}
    keys = [_measurement(row) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        if key is not None:
            moment = str(row.get("started_at") or "")
            first[key] = min(first.get(key, moment), moment)
    return [
        row
        for row, key in zip(rows, keys, strict=True)
        if key is None or str(row.get("started_at") or "") == first[key]
    ]


def published_again(before: Iterable[Row], now: Iterable[Row]) -> str | None:
    """The job that both sides are of, where all of now is measurements that the other has too.

    Of such sides nobody knows whether anything changed: it was measured once.
    """
    known = {_measurement(row) for row in before}
    here = {_measurement(row) for row in now}
    if not here or None in here or not here <= known:
        return None
    return ", ".join(sorted({str(key[0]) for key in here if key}))


def _measurement(row: Row) -> tuple[object, ...] | None:
    """What results of one measurement have in common; None where nobody says the job."""
    job = job_of(record(row, "conditions"))
    if job is None:
        return None
    return job, row.get("device_name"), *(row.get(name) for name in _FIGURES)

"""Versions of the software that ran: of an engine, and what changed along a line. Pure.

Measurements that a source publishes again: later releases carry them forward. Pure.

A source that publishes tables by release, as AI Hub does, lists a job in every release until
another is run. Results of one job with one figure are one measurement, whatever the days of the
releases: as independent runs they would make one figure a level, and narrow its interval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from accelbench.core.columns import STEP_MS
from accelbench.core.devices import engine_package, engine_packages
from accelbench.core.rows import Json, Row, record
from accelbench.core.vocabulary import Provenance
from accelbench.judge.questions import flat

#: Names of conditions are told without what all packages have in common.
_PACKAGES = "packages."
#: Changes that are named; more are counted.
_MOST = 3
_NUMBER = re.compile(r"(\d+)")

Software = tuple[tuple[str, str], ...]

#: Conditions that are no software: what a run was asked, what the machine lent it, and the commit,
#: which a history is of.
_NO_SOFTWARE = ("rules.", "effective_", "variables.", "allocator", "commit")
#: Thousands of results share a few objects of conditions, which stay as they are.
_KNOWN: dict[int, tuple[Json, Software]] = {}
_MOST_KNOWN = 4096


def software(row: Row) -> Software:
    """Return the conditions that distinguish ways of running, by name: versions, and more."""
    conditions = record(row, "conditions")
    known = _KNOWN.get(id(conditions))
    if known is not None and known[0] is conditions:
        return known[1]
    versions = tuple(
        sorted((k, v) for k, v in flat(conditions).items() if not k.startswith(_NO_SOFTWARE))
    )
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[id(conditions)] = (conditions, versions)
    return versions


def engine_version(row: Row) -> str:
    """The engine of a result with its version, as `torch 2.4`; "" where nobody says one.

    An import names both in one, with what else there is to say of it: torch 2.4 eager.
    """
    engine = str(row.get("runtime") or "")
    package = engine_package(engine)
    known = {name.rpartition(".")[2]: value for name, value in software(row)}
    if package in known:
        return f"{package} {known[package]}"
    label = known.get("engine", "")
    return label if _NUMBER.search(label) else ""


def versions_apart(rows: Iterable[Row]) -> bool:
    """Whether figures beside each other are of several versions, which has to be said of each.

    Different engines have different versions: of ours, which one machine has installed together,
    that says nothing. What others published is of whatever they had.
    """
    known: dict[str, set[str]] = {}
    published = False
    for row in rows:
        known.setdefault(str(row.get("runtime")), set()).add(engine_version(row))
        published = published or row.get("provenance") == Provenance.IMPORTED
    several = [versions - {""} for versions in known.values()]
    return any(len(versions) > 1 for versions in several) or (
        published and len(set().union(*several)) > 1
    )


def changes(before: Software, after: Software) -> list[str]:
    """What differs, as `torch 2.12 → 2.13`; nothing where either side says nothing."""
    return [] if before == after or not before or not after else list(_changes(before, after))


@lru_cache(maxsize=1024)
def _changes(before: Software, after: Software) -> tuple[str, ...]:
    """Thousands of lines have the same few."""
    then, now = dict(before), dict(after)
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    names.sort(key=_place)
    return tuple(_change(name, then.get(name), now.get(name)) for name in names)


def in_short(entries: Sequence[str]) -> str:
    """Changes in a line."""
    more = len(entries) - _MOST
    return ", ".join([*entries[:_MOST], *([f"and {more} more"] if more > 0 else [])])


def natural(version: str) -> list[tuple[int, str]]:
    """What puts versions in their order: 1.9 before 1.10."""
    parts = _NUMBER.split(version)
    return [(int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts)]


def _place(name: str) -> tuple[int, str]:
    """What makes a step quicker or slower most often comes first: engines, and what is theirs."""
    short = _short(name)
    first = ("engine", *engine_packages(), "accelbench", "python")
    return (first.index(short) if short in first else len(first)), short


def _change(name: str, before: str | None, after: str | None) -> str:
    short = _short(name)
    if before is None:
        return f"{short} {after} is new"
    if after is None:
        return f"{short} {before} is gone"
    # An import names an engine in one with its version: torch 1.10 eager.
    return f"{before} → {after}" if short == "engine" else f"{short} {before} → {after}"


def _short(name: str) -> str:
    return name.removeprefix(_PACKAGES)


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

"""One value a question and place, of the newest run that has it: what is watched over time.

Launches are the unit of replication: the value is their median, its range the lowest and highest
of two or more.
What differs in device, threads or compilation is another series. Rows that do not say that they
are launches of one run are none: of an import, each version of the software is an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from accelbench.core.columns import STEP_MS
from accelbench.core.identity import canonical
from accelbench.core.launch_failures import of_whole_runs
from accelbench.core.provenance import comparable, source_of
from accelbench.core.vocabulary import Status
from accelbench.core.worth import answered, usable_launches
from accelbench.exchange.entry_names import KINDS, told_apart
from accelbench.exchange.titles import title

Row = Mapping[str, Any]

#: Beside what was asked, what makes a series: where it ran, and how.
_PLACE = ("device_fingerprint", "device_name", "threads", "compiled")


@dataclass(frozen=True)
class SeriesMeasure:
    """A figure that is watched: its columns, the first that is known, and its unit."""

    name: str
    columns: tuple[str, ...]
    unit: str


LATENCY = SeriesMeasure("latency", STEP_MS, "ms")
THROUGHPUT = SeriesMeasure("throughput", ("throughput",), "items/s")
MEMORY = SeriesMeasure("memory", ("memory_peak_mb",), "MB")
MEASURES = (LATENCY, THROUGHPUT, MEMORY)


@dataclass(frozen=True)
class Value:
    """What launches came to.

    One launch says nothing of how launches differ: its range is not known, and none is written.
    """

    median: float
    low: float | None
    high: float | None
    launches: int


def newest(rows: Iterable[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Each entry by a name of its own, with the launches of the newest run of its series.

    What nobody measured is left out, and so is what was emulated: its times are nobody's.
    """
    by_question: dict[str, list[Row]] = {}
    for row in of_whole_runs(rows):
        if comparable(row) and not row.get("emulated"):
            by_question.setdefault(title(row), []).append(row)
    for question, group in sorted(by_question.items()):
        entries = [entry for series in _series(group) for entry in _entries(series)]
        names = told_apart(question, [entry[0] for entry in entries])
        yield from sorted(zip(names, entries, strict=True), key=lambda named: named[0])


def value(rows: Sequence[Row], measure: SeriesMeasure) -> Value | None:
    """The figure of the launches that ended well; None where none has it, or it is of no use."""
    ended = [row for row in rows if answered(row)]
    counted = ended if measure is MEMORY else usable_launches(ended)
    figures = [_first(row, measure.columns) for row in counted]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    low, high = (min(known), max(known)) if len(known) > 1 else (None, None)
    return Value(median(known), low, high, len(known))


def _series(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """Rows of one question by where they ran."""
    by_place: dict[tuple[Any, ...], list[Row]] = {}
    unopened = []
    for row in rows:
        if row.get("series_key") is None and row.get("status") != Status.OK:
            unopened.append(row)
        else:
            by_place.setdefault(_place(row), []).append(row)
    # What never got as far as an engine does not know its threads: it is of a series that it may
    # be of, so that a pipeline sees what used to work and does not any more.
    for row in unopened:
        place = _place(row)
        near = (other for other in by_place if _may_be(place, other))
        chosen = max(near, key=lambda other: _nearness(by_place[other], row), default=place)
        by_place.setdefault(chosen, []).append(row)
    return by_place.values()


def _place(row: Row) -> tuple[Any, ...]:
    return (*(row.get(name) for name in _PLACE), source_of(row))


def _may_be(place: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(a is None or a == b for a, b in zip(place, other, strict=True))


def _nearness(series: Sequence[Row], row: Row) -> tuple[bool, str]:
    same_run = any(launch.get("run_id") == row.get("run_id") for launch in series)
    return same_run, max(map(_moment, series))


def _entries(series: Sequence[Row]) -> list[list[Row]]:
    """The launches of the newest run of a series; several entries where rows are no launches."""
    last = max(series, key=_moment)
    group = list(series)
    if moment := _moment(last):
        group = [row for row in series if row.get("run_id") == last.get("run_id")]
        kinds = _kinds(group)
        if len(kinds) > 1 and all(map(_are_launches, kinds)):
            return kinds
        if not _are_launches(group):  # an import brings figures of many moments in one run
            group = [row for row in group if _moment(row) == moment]
    if _are_launches(group):
        return [group]
    alike: dict[str, list[Row]] = {}
    for row in group:
        key = canonical([row.get("series_key"), row.get("conditions")])
        alike.setdefault(key, []).append(row)
    return [
        part
        for several in alike.values()
        for part in ([several] if _are_launches(several) else [[row] for row in several])
    ]


def _kinds(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of a run by what makes figures those of different things: weights and workarounds.

    A launch that came to nothing may have been of any of them: it is of each that lacks its number.
    """
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("status") == Status.OK:
            kinds.setdefault(canonical([*map(row.get, KINDS)]), []).append(row)
    for lost in (row for row in rows if row.get("status") != Status.OK):
        number = _number(lost)
        lacking = [kind for kind in kinds.values() if number not in map(_number, kind)]
        for kind in lacking or [kinds.setdefault("", [])]:
            kind.append(lost)
    return list(kinds.values())


def _number(row: Row) -> tuple[str, Any]:
    return row.get("arm") or "", row.get("launch")


def _are_launches(rows: Sequence[Row]) -> bool:
    """Whether run, series and numbers say that rows are launches of one run."""
    if len(rows) == 1:
        return True
    runs = {row.get("run_id") for row in rows}
    series = {row["series_key"] for row in rows if row.get("series_key") is not None}
    numbers = {_number(row) for row in rows}
    numbered = all(row.get("launch") is not None for row in rows)
    return numbered and len(runs) == 1 and len(series) <= 1 and len(numbers) == len(rows)


def _moment(row: Row) -> str:
    return str(row.get("started_at") or "")


def _first(row: Row, columns: Sequence[str]) -> float | None:
    return next((float(row[name]) for name in columns if row.get(name) is not None), None)

"""One value per question and place, of the newest run that has it: what is watched over time.

Launches are the unit of replication: the value is their median, with their range. A different
device, thread count or compilation is another series. An import has an entry per software version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from accelbench.core.columns import STEP_MS
from accelbench.core.devices import fingerprint_label
from accelbench.core.identity import canonical_json
from accelbench.core.unusable_reasons import source_of
from accelbench.core.vocabulary import Status
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement, merge_groups
from accelbench.exchange.titles import title

Row = Mapping[str, Any]
Fact = Callable[[Row], str]

#: What makes figures of one question those of different things.
KINDS = ("weights_digest", "workarounds")
#: Of a digest as much as tells two apart.
_DIGEST = 8

#: Words of somebody's conditions that are longer say more than a name can hold.
_LONGEST = 40


def told_apart(question: str, rows: Sequence[Row]) -> list[str]:
    """Return a name for each entry, by one of its rows; only the question if there is one entry."""
    words: list[list[str]] = [[] for _ in rows]
    if len(rows) > 1:
        for fact in _FACTS:
            _add(words, [fact(row) for row in rows], always=True)
        for alike in _not_apart(words):
            some, shared = [rows[i] for i in alike], [words[i] for i in alike]
            for fact in _ladder(some):
                if not _not_apart(shared):
                    break
                _add(shared, [fact(row) for row in some])
    return [_name(question, parts) for parts in words]


def _name(question: str, parts: Sequence[str]) -> str:
    known = [word for word in parts if word]
    return f"{question} ({', '.join(known)})" if known else question


def _add(words: list[list[str]], more: Sequence[str], *, always: bool = False) -> None:
    """Add a fact in which entries differ; unless `always`, only if it separates more of them."""
    together = [[*parts, word] for parts, word in zip(words, more, strict=True)]
    if len(set(more)) > 1 if always else _different(together) > _different(words):
        for entry, word in zip(words, more, strict=True):
            entry.append(word)


def _different(words: Sequence[Sequence[str]]) -> int:
    return len({tuple(word for word in parts if word) for parts in words})


def _not_apart(words: Sequence[Sequence[str]]) -> list[list[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, parts in enumerate(words):
        groups.setdefault(tuple(word for word in parts if word), []).append(number)
    return [alike for alike in groups.values() if len(alike) > 1]


def _ladder(rows: Sequence[Row]) -> Iterator[Fact]:
    conditions = [dict(_leaves(row.get("conditions"))) for row in rows]
    yield fingerprint_label
    yield _workarounds
    yield _weights
    names = list(dict.fromkeys(name for leaves in conditions for name in leaves))
    for name in sorted(names, key=lambda name: not _is_a_word(conditions, name)):
        yield lambda row, name=name: _condition(row, name)  # type: ignore[misc]
    yield lambda row: f"run {row.get('run_id')}"
    yield lambda row: f"result {row.get('result_id')}"


def _is_a_word(conditions: Sequence[Mapping[str, Any]], name: str) -> bool:
    values = [leaves[name] for leaves in conditions if name in leaves]
    return all(isinstance(value, str) and len(value) <= _LONGEST for value in values)


def _condition(row: Row, name: str) -> str:
    value = dict(_leaves(row.get("conditions"))).get(name)
    return "" if value in (None, "") else f"{name}={value}"


def _leaves(conditions: Any) -> Iterator[tuple[str, Any]]:
    for name, value in conditions.items() if isinstance(conditions, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif not isinstance(value, list):
            yield str(name), value


def _workarounds(row: Row) -> str:
    done = ",".join(map(str, row.get("workarounds") or ()))
    return f"workarounds {done}" if done else ""


def _weights(row: Row) -> str:
    digest = str(row.get("weights_digest") or "").rpartition(":")[2]
    return f"weights {digest[:_DIGEST]}" if digest else ""


def _threads(row: Row) -> str:
    count = row.get("threads")
    return "" if count is None else f"{count} thread{'' if count == 1 else 's'}"


_FACTS: tuple[Fact, ...] = (
    lambda row: str(row.get("device_name") or ""),
    _threads,
    lambda row: "compiled" if row.get("compiled") else "",
    lambda row: f"of {source_of(row)}" if source_of(row) else "",
)


#: Beside what was asked, what makes a series: where it ran, and how.
_PLACE = ("device_fingerprint", "device_name", "threads", "compiled")


@dataclass(frozen=True)
class SeriesMeasure:
    """A watched value: its columns, the first known one counts, and its unit."""

    name: str
    columns: tuple[str, ...]
    unit: str


LATENCY = SeriesMeasure("latency", STEP_MS, "ms")
THROUGHPUT = SeriesMeasure("throughput", ("throughput",), "items/s")
MEMORY = SeriesMeasure("memory", ("memory_peak_mb",), "MB")
MEASURES = (LATENCY, THROUGHPUT, MEMORY)


@dataclass(frozen=True)
class Value:
    """Value of launches.

    One launch does not show how launches differ: its range is unknown, and none is written.
    """

    median: float
    low: float | None
    high: float | None
    launches: int


class SeriesEntry(NamedTuple):
    """The launches of the newest run of a series, by a name of its own."""

    name: str
    launches: Sequence[Row]
    measured: RunMeasurement


def newest(rows: Iterable[Row]) -> Iterator[SeriesEntry]:
    """Yield the entry of each series.

    Unmeasured and emulated results are left out.
    """
    by_question: dict[str, list[Row]] = {}
    for row in launches_of(rows):
        if row["comparable"] and not row.get("emulated"):
            by_question.setdefault(title(row), []).append(row)
    named: list[tuple[str, list[Row]]] = []
    for question, group in sorted(by_question.items()):
        entries = [entry for series in _series(group) for entry in _entries(series)]
        names = told_apart(question, [entry[0] for entry in entries])
        named += sorted(zip(names, entries, strict=True), key=lambda pair: pair[0])
    found = merge_groups([[row for row in of if row["answered"]] for _, of in named])
    for (name, launches), measurement in zip(named, found, strict=True):
        yield SeriesEntry(name, launches, measurement)


def value(measured: RunMeasurement, measure: SeriesMeasure) -> Value | None:
    """Return the value of a measurement; None if no launch has it, or it is unusable."""
    counted = measured.launches if measure is MEMORY else measured.usable_rows
    figures = [_first(row, measure.columns) for row in counted]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    low, high = (min(known), max(known)) if len(known) > 1 else (None, None)
    return Value(median(known), low, high, len(known))


def _series(rows: Iterable[Row]) -> Iterable[list[Row]]:
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
    """Return the launches of a series' newest run; several entries if rows are not launches."""
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
        key = canonical_json([row.get("series_key"), row.get("conditions")])
        alike.setdefault(key, []).append(row)
    return [
        part
        for several in alike.values()
        for part in ([several] if _are_launches(several) else [[row] for row in several])
    ]


def _kinds(rows: Sequence[Row]) -> list[list[Row]]:
    """Split rows of a run by weights and workarounds.

    A failed launch may belong to any of them: it belongs to each that lacks its number.
    """
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("status") == Status.OK:
            kinds.setdefault(canonical_json([*map(row.get, KINDS)]), []).append(row)
    for lost in (row for row in rows if row.get("status") != Status.OK):
        number = _number(lost)
        lacking = [kind for kind in kinds.values() if number not in map(_number, kind)]
        for kind in lacking or [kinds.setdefault("", [])]:
            kind.append(lost)
    return list(kinds.values())


def _number(row: Row) -> tuple[str, Any]:
    return row.get("arm") or "", row.get("launch")


def _are_launches(rows: Sequence[Row]) -> bool:
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

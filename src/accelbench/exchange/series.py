"""Series over time: one value per configuration and device, from the newest run that has it.

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
from accelbench.exchange.titles import format_title

Row = Mapping[str, Any]
Describe = Callable[[Row], str]

#: Columns that make results of one configuration incomparable.
KINDS = ("weights_digest", "workarounds")
#: Characters of a digest that distinguish two in practice.
_DIGEST_LENGTH = 8

#: Longest value of a user's condition that fits into a name.
_MAX_VALUE_LENGTH = 40


def name_entries(question: str, rows: Sequence[Row]) -> list[str]:
    """Return a name for each entry, from one of its rows; one entry needs only the question."""
    words: list[list[str]] = [[] for _ in rows]
    if len(rows) > 1:
        for fact in _FACTS:
            _add_words(words, [fact(row) for row in rows], always=True)
        for equal in _group_equal(words):
            some, shared = [rows[i] for i in equal], [words[i] for i in equal]
            for fact in _iter_facts(some):
                if not _group_equal(shared):
                    break
                _add_words(shared, [fact(row) for row in some])
    return [_format_name(question, parts) for parts in words]


def _format_name(question: str, parts: Sequence[str]) -> str:
    known = [word for word in parts if word]
    return f"{question} ({', '.join(known)})" if known else question


def _add_words(words: list[list[str]], more: Sequence[str], *, always: bool = False) -> None:
    """Add a fact in which entries differ; unless `always`, only if it separates more entries."""
    together = [[*parts, word] for parts, word in zip(words, more, strict=True)]
    if len(set(more)) > 1 if always else _count_distinct(together) > _count_distinct(words):
        for entry, word in zip(words, more, strict=True):
            entry.append(word)


def _count_distinct(words: Sequence[Sequence[str]]) -> int:
    return len({tuple(word for word in parts if word) for parts in words})


def _group_equal(words: Sequence[Sequence[str]]) -> list[list[int]]:
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, parts in enumerate(words):
        groups.setdefault(tuple(word for word in parts if word), []).append(number)
    return [equal for equal in groups.values() if len(equal) > 1]


def _iter_facts(rows: Sequence[Row]) -> Iterator[Describe]:
    conditions = [dict(_iter_leaves(row.get("conditions"))) for row in rows]
    yield fingerprint_label
    yield _format_workarounds
    yield _format_weights
    names = list(dict.fromkeys(name for leaves in conditions for name in leaves))
    for name in sorted(names, key=lambda name: not _is_short_text(conditions, name)):
        yield lambda row, name=name: _format_condition(row, name)  # type: ignore[misc]
    yield lambda row: f"run {row.get('run_id')}"
    yield lambda row: f"result {row.get('result_id')}"


def _is_short_text(conditions: Sequence[Mapping[str, Any]], name: str) -> bool:
    values = [leaves[name] for leaves in conditions if name in leaves]
    return all(isinstance(value, str) and len(value) <= _MAX_VALUE_LENGTH for value in values)


def _format_condition(row: Row, name: str) -> str:
    value = dict(_iter_leaves(row.get("conditions"))).get(name)
    return "" if value in (None, "") else f"{name}={value}"


def _iter_leaves(conditions: Any) -> Iterator[tuple[str, Any]]:
    for name, value in conditions.items() if isinstance(conditions, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _iter_leaves(value)
        elif not isinstance(value, list):
            yield str(name), value


def _format_workarounds(row: Row) -> str:
    done = ",".join(map(str, row.get("workarounds") or ()))
    return f"workarounds {done}" if done else ""


def _format_weights(row: Row) -> str:
    digest = str(row.get("weights_digest") or "").rpartition(":")[2]
    return f"weights {digest[:_DIGEST_LENGTH]}" if digest else ""


def _format_threads(row: Row) -> str:
    count = row.get("threads")
    return "" if count is None else f"{count} thread{'' if count == 1 else 's'}"


_FACTS: tuple[Describe, ...] = (
    lambda row: str(row.get("device_name") or ""),
    _format_threads,
    lambda row: "compiled" if row.get("compiled") else "",
    lambda row: f"of {source_of(row)}" if source_of(row) else "",
)


#: Columns of a series besides the configuration: the device, and how it ran.
_DEVICE_COLUMNS = ("device_fingerprint", "device_name", "threads", "compiled")


@dataclass(frozen=True)
class SeriesMeasure:
    """Watched value with its columns, of which the first known one counts, and its unit."""

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

    The range of one launch is unknown, because it does not show how launches differ.
    """

    median: float
    low: float | None
    high: float | None
    launches: int


class SeriesEntry(NamedTuple):
    """Launches of the newest run of a series, with a unique name."""

    name: str
    launches: Sequence[Row]
    measured: RunMeasurement


def newest_entries(rows: Iterable[Row]) -> Iterator[SeriesEntry]:
    """Yield the entry of each series, without unmeasured and emulated results."""
    by_question: dict[str, list[Row]] = {}
    for row in launches_of(rows):
        if row["comparable"] and not row.get("emulated"):
            by_question.setdefault(format_title(row), []).append(row)
    named: list[tuple[str, list[Row]]] = []
    for question, group in sorted(by_question.items()):
        entries = [entry for series in _split_series(group) for entry in _split_entries(series)]
        names = name_entries(question, [entry[0] for entry in entries])
        named += sorted(zip(names, entries, strict=True), key=lambda pair: pair[0])
    found = merge_groups([[row for row in of if row["answered"]] for _, of in named])
    for (name, launches), measurement in zip(named, found, strict=True):
        yield SeriesEntry(name, launches, measurement)


def measure_value(measured: RunMeasurement, measure: SeriesMeasure) -> Value | None:
    """Return the value of a measurement; None if no launch has it, or it is unusable."""
    counted = measured.launches if measure is MEMORY else measured.usable_rows
    figures = [_first_value(row, measure.columns) for row in counted]
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    low, high = (min(known), max(known)) if len(known) > 1 else (None, None)
    return Value(median(known), low, high, len(known))


def _split_series(rows: Iterable[Row]) -> Iterable[list[Row]]:
    by_device: dict[tuple[Any, ...], list[Row]] = {}
    without_engine = []
    for row in rows:
        if row.get("series_key") is None and row.get("status") != Status.OK:
            without_engine.append(row)
        else:
            by_device.setdefault(_device_key(row), []).append(row)
    # A launch that failed before its engine started has no thread count. It joins a series that it
    # may belong to, so that a pipeline sees that a configuration no longer works.
    for row in without_engine:
        device = _device_key(row)
        candidates = (other for other in by_device if _is_compatible(device, other))
        chosen = max(
            candidates, key=lambda other: _rank_series(by_device[other], row), default=device
        )
        by_device.setdefault(chosen, []).append(row)
    return by_device.values()


def _device_key(row: Row) -> tuple[Any, ...]:
    return (*(row.get(name) for name in _DEVICE_COLUMNS), source_of(row))


def _is_compatible(place: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(a is None or a == b for a, b in zip(place, other, strict=True))


def _rank_series(series: Sequence[Row], row: Row) -> tuple[bool, str]:
    same_run = any(launch.get("run_id") == row.get("run_id") for launch in series)
    return same_run, max(map(_start_time, series))


def _split_entries(series: Sequence[Row]) -> list[list[Row]]:
    """Return the launches of a series' newest run; several entries if rows are not launches."""
    last = max(series, key=_start_time)
    group = list(series)
    if moment := _start_time(last):
        group = [row for row in series if row.get("run_id") == last.get("run_id")]
        kinds = _split_kinds(group)
        if len(kinds) > 1 and all(map(_are_launches, kinds)):
            return kinds
        if not _are_launches(group):  # an import has results of many times in one run
            group = [row for row in group if _start_time(row) == moment]
    if _are_launches(group):
        return [group]
    equal: dict[str, list[Row]] = {}
    for row in group:
        key = canonical_json([row.get("series_key"), row.get("conditions")])
        equal.setdefault(key, []).append(row)
    return [
        part
        for several in equal.values()
        for part in ([several] if _are_launches(several) else [[row] for row in several])
    ]


def _split_kinds(rows: Sequence[Row]) -> list[list[Row]]:
    """Split rows of a run by weights and workarounds.

    A failed launch may belong to any kind: it is added to each that lacks its number.
    """
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("status") == Status.OK:
            kinds.setdefault(canonical_json([*map(row.get, KINDS)]), []).append(row)
    for failed in (row for row in rows if row.get("status") != Status.OK):
        number = _launch_number(failed)
        lacking = [kind for kind in kinds.values() if number not in map(_launch_number, kind)]
        for kind in lacking or [kinds.setdefault("", [])]:
            kind.append(failed)
    return list(kinds.values())


def _launch_number(row: Row) -> tuple[str, Any]:
    return row.get("arm") or "", row.get("launch")


def _are_launches(rows: Sequence[Row]) -> bool:
    if len(rows) == 1:
        return True
    runs = {row.get("run_id") for row in rows}
    series = {row["series_key"] for row in rows if row.get("series_key") is not None}
    numbers = {_launch_number(row) for row in rows}
    numbered = all(row.get("launch") is not None for row in rows)
    return numbered and len(runs) == 1 and len(series) <= 1 and len(numbers) == len(rows)


def _start_time(row: Row) -> str:
    return str(row.get("started_at") or "")


def _first_value(row: Row, columns: Sequence[str]) -> float | None:
    return next((float(row[name]) for name in columns if row.get(name) is not None), None)

"""Figures as machines read them: numbers under keys and columns, each of which says its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from carried import Kind
from printed import Printed

from accelbench.core.columns import COLUMNS

#: What the columns of a result are of, by their units.
_OF_UNIT = {"ms": Kind.TIME, "items/s": Kind.RATE, "tokens/s": Kind.RATE}
_OF_COLUMN = {
    one.name: Kind.MEMORY if one.unit.startswith("MB") else _OF_UNIT[one.unit]
    for one in COLUMNS
    if one.unit in _OF_UNIT or one.unit.startswith("MB")
}
KEYS: Mapping[str, Kind] = {
    **_OF_COLUMN,
    **dict.fromkeys(("latency_ms", "baseline_latency_ms", "latency", "tail", "ms"), Kind.TIME),
    **dict.fromkeys(
        ("item_ms", "baseline_item_ms", "alike_item_ms_low", "alike_item_ms_high"), Kind.ITEM
    ),
    **dict.fromkeys(
        ("baseline_throughput", "alike_throughput_low", "alike_throughput_high"), Kind.RATE
    ),
    **dict.fromkeys(("memory_mb", "memory"), Kind.MEMORY),
    **dict.fromkeys(("speedup", "memory_ratio", "times_as_fast", "speedup_by_means"), Kind.RATIO),
}
#: Numbers that are no figures of a row: what was asked, counts, and how sure a comparison is.
NO_FIGURES = frozenset(
    (
        *(one.name for one in COLUMNS if one.name not in _OF_COLUMN),
        *("launches", "baseline_launches", "launches_set_aside", "newer_launches_set_aside"),
        *("unusable_launches_left_out", "launches_tried", "failed_launches", "interval_level"),
        *(
            "speedup_low",
            "speedup_high",
            "efficiency",
            "point_count",
            "carried_forward",
            "fastest_of",
            "at",
            "since",
            "without_change",
        ),
        *("runs", "set_aside", "answered", "samples", "batch", "number", "launch", "threads"),
        *("worse_by", "worse_by_low", "worse_by_high", "limit", "noise", "least_shown", "change"),
        *("noise_of_runs", "noise_of_runs_freedom", "launches_before", "launches_now", "p_value"),
        *("launches_required_now", "launches_required_a_side", "threshold", "moved_together_by"),
        *("times_as_fast_low", "times_as_fast_high", "score", "rank", "size_bytes"),
        *("probability", "fits_probability", "changes_with"),  # of predictions
        *("schema_version", "batches", "batch_sizes", "parameters", "results_by_status"),
        *("configurations", "clusters"),  # counts
        *("x", "x2", "order", "price_per_hour", "latency_low", "latency_high", "outliers"),
        *("warnings", "workarounds", "format_version", "baseline", "key"),
        *("throughput_low", "throughput_high", "memory_high", "known", "cpus", "memory_gib"),
        *("results", "devices", "throughput_per_device"),  # the throughput beside it, divided
        "speed_vs_cpu",  # the mean of ratios over batches, of which test_one_ratio tells
    )
)
#: Objects in which keys are names, or which say by themselves that nothing in them was measured.
_APART = frozenset(
    (
        *("tables", "results_by_status", "results_by_provenance", "runs_by_status", "options"),
        *("factors", "criteria", "weights", "answers", "evidence", "conditions", "environment"),
        *("extra", "sizes", "thresholds", "config", "rule", "limits"),
        "latency_interval",  # its ends are of the figure beside it, which is held itself
        "implausible_rate",  # why a result counts nowhere: a calculation with the documented peak
    )
)
_VALUES = frozenset(
    ("value", "before", "now", "lower_value", "upper_value", "after", "low", "high")
)


def figures_of_document(
    document: Any, unit: str = "", path: str = "", key: str = ""
) -> Iterator[Printed]:
    """Numbers of a JSON document that are figures; what is not known to be none is of no kind.

    Args:
        document: or a part of it.
        unit: what `value` and the like are of, as an object above them says.
        path: where the part is.
        key: its name.
    """
    if isinstance(document, Mapping):
        if _estimated(document):
            return
        said = document.get("unit") or unit
        left_out = ("low", "high") if _is_change(document) else ()
        if document.get("memory_basis") not in (None, "measured"):
            left_out = ("memory_mb",)
        document = {name: part for name, part in document.items() if name not in left_out}
        for name, part in document.items():
            if name not in _APART:
                inner = str(name) if re.search(r"\((ms|items/s|MB)\)$", str(name)) else str(said)
                yield from figures_of_document(part, inner, f"{path}.{name}", str(name))
    elif isinstance(document, list | tuple):
        for number, part in enumerate(document):
            yield from figures_of_document(part, unit, f"{path}[{number}]", key)
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield from _one(float(document), key, unit, path)


def _one(value: float, key: str, unit: str, path: str) -> Iterator[Printed]:
    kind = _of_unit(unit) if key in _VALUES else KEYS.get(key)
    if kind is not None:
        yield Printed(kind, value, abs(value) * 1e-9, f"{path} = {value!r} {unit}")
    elif key not in NO_FIGURES:
        yield Printed(Kind.UNKNOWN, value, 0.0, f"{path} = {value!r}")


def _of_unit(unit: str) -> Kind | None:
    low = unit.lower()
    if "an item" in low and "ms" in low:
        return Kind.ITEM
    if "ms" in re.split(r"\W+", low):
        return Kind.TIME
    if "/s" in low:
        return Kind.RATE
    return Kind.MEMORY if "mb" in re.split(r"\W+", low) else None


def _estimated(document: Mapping[str, Any]) -> bool:
    """A recommendation of what nobody measured: it says so."""
    return document.get("basis") not in (None, "measured") or document.get("provenance") in (
        "predicted",
        "simulated",
    )


def _is_change(document: Mapping[str, Any]) -> bool:
    """A step of a history has the ends of its change, as shares."""
    return "change" in document and "low" in document


def figures_of_row(row: Mapping[str, str | None]) -> Iterator[Printed]:
    """Those of a line of a CSV file."""
    for name, text in row.items():
        try:
            value = float(text or "")
        except ValueError:
            continue
        yield from _one(value, name, "", f"{row.get('model')} {name}")


def figures_of_spec(spec: Any, title: str = "") -> Iterator[Printed]:
    """Those of a Vega-Lite specification: the values of each layer, by what its axes say."""
    fields = {**_titles(spec)}
    for record in _records(spec):
        several = (record.get("launches") or 1) > 1
        for name, value in record.items():
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            said = fields.get(name, "")
            if name in ("low", "high"):
                if several:
                    continue  # of launches: `carried` has those of the same question alone
                said = fields.get("value", "")
            kind = _of_unit(said)
            if kind is not None:
                yield Printed(
                    kind, float(value), abs(value) * 1e-9, f"{title}: {name} {record}"[:300]
                )
            elif name not in NO_FIGURES and not said:
                yield Printed(Kind.UNKNOWN, float(value), 0.0, f"{title}: {name} {record}"[:300])


def _titles(spec: Any) -> dict[str, str]:
    """Of each field that is drawn, the title of its axis or line."""
    found: dict[str, str] = {}
    for one in _channels(spec):
        title = one.get("title") or (one.get("axis") or {}).get("title")
        if title and not found.get(one["field"]):
            found[one["field"]] = str(title)
    return found


def _channels(spec: Any) -> Iterator[Mapping[str, Any]]:
    """Whatever draws a field, in the order of the specification."""
    if isinstance(spec, Mapping):
        if "field" in spec:
            yield spec
        for name, part in spec.items():
            if name != "values":
                yield from _channels(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from _channels(part)


def _records(spec: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(spec, Mapping):
        for name, part in spec.items():
            if name == "values" and isinstance(part, list):
                yield from (one for one in part if isinstance(one, Mapping))
            else:
                yield from _records(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from _records(part)

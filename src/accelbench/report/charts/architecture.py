"""Architectures beside each other: every model of each, on each platform. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from accelbench.analysis.points import Point
from accelbench.core.figures import items
from accelbench.core.precision import is_exact
from accelbench.report.charts.axes import Spec, axis, layer, named
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import (
    Panel,
    Record,
    arranged,
    dots,
    ends,
    hardware_legend,
    kind_legend,
    record,
    tooltip,
)
from accelbench.report.charts.theme import MIDDLE_TICK
from accelbench.report.charts.words import emulated, safe

_TITLE = "latency of an item, ms"
#: More models than this share their architecture's line.
_MOST_LINES = 20
#: Precisions that the note names.
_MOST_NAMED = 4


def _best(points: Sequence[Point]) -> list[Point]:
    best: dict[object, Point] = {}
    for point in points:
        row = point.row
        key = (point.machine, point.kind, *(row.get(n) for n in ("model", "hardware", "mode")))
        if key not in best or _rank(point) < _rank(best[key]):
            best[key] = point
    return list(best.values())


def _rank(point: Point) -> tuple[bool, bool, float]:
    """Rank points: unusable ones, and those quantised with a large or unknown error, come last."""
    assert point.latency is not None
    return not point.usable, not is_exact(point.row), point.latency.value / items(point.row)


def _name(point: Point) -> str:
    row = point.row
    return safe(row.get("architecture") or row.get("family") or "of no known architecture")


def _drawn(subject: Subject) -> ChartBody | None:
    timed = [point for point in subject.points if point.timed and point.latency]
    best = _best(timed)
    if len({_name(point) for point in best}) < 2:
        return None
    models = {point.row.get("model") for point in best}
    records = [_record(point, len(models) <= _MOST_LINES) for point in best]
    modes = sorted({datum["mode"] for datum in records})
    scale = axis(_TITLE, ends(records))
    panels = []
    for mode in modes:
        several = sorted(
            (datum for datum in records if datum["mode"] == mode),
            key=lambda datum: (datum["architecture"], datum["line"], datum["value"]),
        )
        title = mode if len(modes) > 1 else ""
        panels.append(Panel(title, (), several, _layers(several, scale.of("value")), {"step": 22}))
    notes = ["Of each model and platform its fastest way and batch."]
    precisions = Counter(
        str(point.row["precision"]) for point in best if point.row.get("precision")
    )
    if len(precisions) > 1:
        listing = ", ".join(f"{safe(name)} {n}" for name, n in precisions.most_common(_MOST_NAMED))
        more = "" if len(precisions) <= _MOST_NAMED else " and others"
        notes.append(f"Marks are of several precisions: {listing}{more}.")
    if len(models) > _MOST_LINES:
        notes.append("A mark is a model; a tick the median of its line.")
    notes += emulated(
        len(_best([point for point in subject.points if not point.timed and point.latency]))
    )
    return ChartBody(
        arranged(panels, [*kind_legend(records), *hardware_legend(records)]), best, notes, records
    )


def _record(point: Point, alone: bool) -> Record:
    assert point.latency is not None
    n, span = items(point.row), point.latency
    each = span.times(1 / n)
    architecture = _name(point)
    line = f"{architecture} · {safe(point.row.get('model'), 26)}" if alone else architecture
    return record(point, each, architecture=architecture, line=line)


def _layers(records: Sequence[Record], x: Spec) -> list[Spec]:
    names = list(dict.fromkeys(datum["line"] for datum in records))
    y = named("line", names, grid=True)
    marks = dots({"x": x, "y": y, "tooltip": tooltip(_TITLE, records)}, 70)
    if all(datum["line"] != datum["architecture"] for datum in records):
        return [marks]
    known = {
        name: [
            datum["value"] for datum in records if datum["line"] == name and "quality" not in datum
        ]
        for name in names
    }
    middles = [{"line": name, "middle": median(of)} for name, of in known.items() if of]
    place = {"x": {**x, "field": "middle"}, "y": y}
    return [marks, layer("tick", place, of=middles, **MIDDLE_TICK)]


ARCHITECTURES = Chart(
    "architecture",
    "Architectures",
    "how models of each architecture compare",
    "models of two architectures",
    _drawn,
)

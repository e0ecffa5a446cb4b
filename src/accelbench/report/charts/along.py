"""Charts along an axis: platforms, precisions, engines, inference and training beside each other.

In each panel stands one question of one model, at every place of the axis where it was answered.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from accelbench.analysis.points import Point, Span
from accelbench.analysis.questions import AXES, Axis
from accelbench.report.charts.chart import MOST_PANELS, Chart, Drawn, Spec, Subject
from accelbench.report.charts.marks import (
    Record,
    hardware_colour,
    measure,
    panels,
    record,
    tooltip,
    whiskers,
)
from accelbench.report.charts.words import apart, counted, safe, way

#: More bars in one panel are read by nobody.
_MOST_BARS = 10

Figure = Callable[[Point], Span | None]
#: One question's points, at several places of an axis.
Beside = Sequence[Point]


def beside_each_other(points: Iterable[Point], axis: Axis) -> list[list[Point]]:
    """Of each model and machine its most answered question, where two places answered it."""
    asked: dict[object, list[Point]] = {}
    for one in points:
        asked.setdefault((one.machine, axis.question(one.row)), []).append(one)
    best: dict[object, list[Point]] = {}
    for several in asked.values():
        row = several[0].row
        model = (several[0].machine, row.get("model"), _kept_apart(row, axis))
        best[model] = max(best.get(model, []), several, key=lambda one: _places(one, axis))
    found = [several for several in best.values() if _places(several, axis)[0] > 1]
    return sorted(found, key=lambda one: (-_places(one, axis)[0], str(one[0].row.get("model"))))


def _kept_apart(row: object, axis: Axis) -> object:
    """What a model has a panel of its own for."""
    assert isinstance(row, dict)
    return row.get("mode") if axis.name != "mode" else None


def _places(points: Beside, axis: Axis) -> tuple[int, int, int]:
    """At how many places it was answered, how often, and how small its batch is."""
    if not points:
        return (0, 0, 0)
    places = {axis.value(one.row) for one in points}
    return len(places), len(points), -int(points[0].row.get("batch_size") or 0)


def _drawn(subject: Subject, axis: Axis, figure: Figure, title: str) -> Drawn | None:
    timed = [one for one in subject.points if one.timed and figure(one)]
    found = beside_each_other(timed, axis)
    if not found:
        return None
    shown = found[:MOST_PANELS]
    names = _panel_names(shown, axis)
    records: list[Record] = []
    drawn: list[Point] = []
    more = 0
    for several, name in zip(shown, names, strict=True):
        bars = _bars(several, axis)
        more += len(several) - len(bars)
        drawn += [one for one, _ in bars]
        records += (
            record(one, span, panel=name, bar=bar)
            for one, bar in bars
            if (span := figure(one)) is not None
        )
    return Drawn(_body(records, title), drawn, _notes(subject, len(found), more), records)


def _panel_names(shown: Sequence[Beside], axis: Axis) -> list[str]:
    """The model's, with whatever else tells two panels apart, and its batch."""
    rows = [several[0].row for several in shown]
    names = [
        ", ".join(
            [
                str(row.get("model")),
                *([] if axis.name == "mode" else [str(row.get("mode"))]),
                f"batch {row.get('batch_size') or 1}",
            ]
        )
        for row in rows
    ]
    if len(set(names)) < len(names):
        names = [f"{a} · {b}" for a, b in zip(names, apart(rows, ("model", "mode")), strict=True)]
    return [safe(name, 48) for name in names]


def _bars(points: Beside, axis: Axis) -> list[tuple[Point, str]]:
    """Each with its name, those of a platform together; the fastest where there are too many."""
    rows = [one.row for one in points]
    names = [f"{row.get('mode')} · {way(row)}" if axis.name == "mode" else way(row) for row in rows]
    if len(set(names)) < len(names):
        more = apart(rows, ("model", "mode", "hardware", "runtime", "precision"))
        names = [safe(f"{a} · {b}" if b else a, 60) for a, b in zip(names, more, strict=True)]
    pairs = sorted(zip(points, names, strict=True), key=lambda one: _time(one[0]))[:_MOST_BARS]
    return sorted(pairs, key=lambda one: (str(one[0].row.get("hardware")), _time(one[0])))


def _time(point: Point) -> float:
    return point.latency.value if point.latency else 0.0


def _body(records: Sequence[Record], title: str) -> Spec:
    bars = {
        "field": "bar",
        "type": "nominal",
        "title": None,
        "sort": list(dict.fromkeys(one["bar"] for one in records)),
        "axis": {"labelLimit": 200, "ticks": False, "domain": False},
    }
    values = [one["value"] for one in records]
    place = {"y": bars, "x": measure("value", title, values, zero=True)}
    area = {
        "mark": {"type": "bar", "strokeWidth": 1.5},
        "encoding": {
            **place,
            "fill": {"field": "paint", "type": "nominal", "scale": None},
            "stroke": hardware_colour(records, legend=None),
            "tooltip": tooltip(title, records),
        },
    }
    figures = {
        "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 11.5, "color": "#1b1f24"},
        "encoding": {
            "y": bars,
            "x": {**place["x"], "field": "end"},
            "text": {"field": "said"},
        },
    }
    most = median(values) if values else 0
    for one in records:
        one["end"] = max(one["value"], one["high"] or 0.0)
        one["said"] = f"{one['value']:.3g}" if most < 1e5 else f"{one['value']:,.0f}"
    layers = [area, *whiskers(records, "x", place), figures]
    return panels(layers, records, {"step": 24}, x="independent", y="independent")


def _notes(subject: Subject, found: int, more: int) -> list[str]:
    notes = []
    if found > MOST_PANELS:
        notes.append(f"{counted(found - MOST_PANELS, 'more model')} not drawn: name those to see.")
    if more:
        notes.append(f"{counted(more, 'slower bar')} not drawn: narrow it down.")
    if emulated := sum(not one.timed for one in subject.points):
        notes.append(f"{counted(emulated, 'emulated cell')} not drawn: such times mean nothing.")
    return notes


def _latency(axis: str) -> Callable[[Subject], Drawn | None]:
    return lambda s: _drawn(s, AXES[axis], lambda one: one.latency, "latency of a batch, ms")


def _throughput(axis: str) -> Callable[[Subject], Drawn | None]:
    return lambda s: _drawn(s, AXES[axis], lambda one: one.throughput, "throughput, items/s")


def _memory(axis: str) -> Callable[[Subject], Drawn | None]:
    return lambda s: _drawn(s, AXES[axis], lambda one: one.memory, "peak memory, MB (2^20)")


HARDWARE_LATENCY = Chart(
    "hardware-latency",
    "Hardware: latency",
    "how fast each platform is",
    "a model on two platforms or engines",
    _latency("hardware"),
)
HARDWARE_THROUGHPUT = Chart(
    "hardware-throughput",
    "Hardware: throughput",
    "how many items a second each platform brings",
    "a model on two platforms or engines",
    _throughput("hardware"),
)
HARDWARE_MEMORY = Chart(
    "hardware-memory",
    "Hardware: memory",
    "how much memory each takes",
    "a model on two platforms, with its memory",
    _memory("hardware"),
)
PRECISIONS = Chart(
    "precision",
    "Precisions",
    "what a narrower precision brings",
    "a model in two precisions",
    _latency("precision"),
)
FRAMEWORKS = Chart(
    "framework",
    "Frameworks",
    "which engine is fastest on the same platform",
    "a model by two engines on a platform",
    _latency("runtime"),
)
MODES = Chart(
    "training-inference",
    "Training against inference",
    "how much longer a training step takes than an inference step",
    "a model in inference and in training",
    _latency("mode"),
)

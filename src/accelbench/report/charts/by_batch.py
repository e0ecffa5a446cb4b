"""What a larger batch does to latency, throughput and memory. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelbench.analysis.points import Point, Span, fastest_of_each
from accelbench.analysis.questions import Key, values
from accelbench.core.columns import ASKED
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import Axis, Spec, own_axes, shared
from accelbench.report.charts.chart import Chart, Drawn, Subject
from accelbench.report.charts.look import dash_scale
from accelbench.report.charts.marks import (
    Record,
    dots,
    ends,
    kind_legend,
    record,
    tooltip,
    whiskers,
)
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import emulated, left_out, safe
from accelbench.report.charts.words import ALIKE, WAY, told

#: More ways of running, each a line in its own dashes, are a tangle.
_MOST_WAYS = 8

Figure = Callable[[Point], Span | None]


@dataclass(frozen=True)
class _Line:
    """What differs in its batch alone."""

    points: Sequence[Point]
    way: str

    @property
    def panel(self) -> Key:
        return values(self.points[0].row, ALIKE)


def lines_of(subject: Subject, figure: Figure, title: str) -> Drawn | None:
    """A line for each way of running, along its batches; None where nothing has two."""
    known = [one for one in subject.points if one.row.get("batch_size") and figure(one)]
    lines = _lines([one for one in known if one.timed])
    if not lines:
        return None
    kept = _most_common(lines)
    panels: dict[Key, list[_Line]] = {}
    for line in kept:
        panels.setdefault(line.panel, []).append(line)
    shown = sorted(panels.values(), key=lambda one: -sum(len(line.points) for line in one))
    shown = shown[:MOST_PANELS]
    records = [[_record(p, figure, line.way) for line in one for p in line.points] for one in shown]
    axes = shared(title, [ends(several) for several in records])
    notes = [
        *own_axes(axes),
        *left_out(len(panels) - len(shown), "panel", advice="name the models to see"),
        *left_out(len(lines) - len(kept), "line"),
        *emulated(len(known) - sum(one.timed for one in known)),
    ]
    drawn = [point for one in shown for line in one for point in line.points]
    everything = [one for several in records for one in several]
    return Drawn(_body(shown, records, axes, title), drawn, notes, everything)


def _lines(points: Sequence[Point]) -> list[_Line]:
    """A single batch shows nothing of what a larger one does, and is no line."""
    found: dict[object, list[Point]] = {}
    columns = tuple(name for name in ASKED if name != "batch_size")
    for one in fastest_of_each(points):
        found.setdefault((one.machine, one.kind, values(one.row, columns)), []).append(one)
    ordered = [
        sorted(line, key=lambda one: int(one.row["batch_size"]))
        for line in found.values()
        if len(line) > 1
    ]
    if not ordered:
        return []
    names = told([line[0] for line in ordered], WAY, longest=60).apart
    return [_Line(line, name) for line, name in zip(ordered, names, strict=True)]


def _most_common(lines: Sequence[_Line]) -> list[_Line]:
    """Lines of the ways that most models were run in: a legend is of so many and no more."""
    ways = Counter(line.way for line in lines)
    known = {way for way, _ in ways.most_common(_MOST_WAYS)}
    return [line for line in lines if line.way in known]


def _record(point: Point, figure: Figure, way: str) -> Record:
    span = figure(point)
    assert span is not None
    return record(point, span, line=way)


def _body(
    shown: Sequence[Sequence[_Line]],
    records: Sequence[Sequence[Record]],
    axes: Sequence[Axis],
    title: str,
) -> Spec:
    everything = [one for several in records for one in several]
    batches = sorted({one["batch"] for one in everything})
    x = {
        "field": "batch",
        "type": "quantitative",
        "title": "batch size (log)",
        "scale": {
            "type": "log",
            "base": 2,
            "domain": [batches[0] / 1.15, batches[-1] * 1.15],
            "nice": False,
        },
        "axis": {"values": batches, "format": "d", "labelOverlap": True, "grid": False},
    }
    way = _way(everything)
    names = [safe(one[0].points[0].row.get("model"), 36) for one in shown]
    abouts = [told([p for line in one for p in line.points]).together for one in shown]
    panels = [
        Panel(name, [about], several, _layers(several, x, axis.of("value"), way, title))
        for name, about, several, axis in zip(names, abouts, records, axes, strict=True)
    ]
    return arranged(panels, kind_legend(everything))


def _way(records: Sequence[Record]) -> dict[str, Spec]:
    """How a line ran, by its platform's colour and by its dashes, in one legend."""
    hardware = {one["line"]: one["hardware"] for one in records}
    names = list(hardware)
    legend = (
        {
            "title": None,
            "symbolType": "stroke",
            "symbolSize": 700,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
        }
        if len(names) > 1
        else None
    )
    form: Spec = {"field": "line", "type": "nominal", "sort": names, "legend": legend}
    colours = {"domain": names, "range": [colour_of(hardware[name]) for name in names]}
    return {
        "color": {**form, "scale": colours},
        "strokeDash": {**form, "scale": dash_scale(names)},
    }


def _layers(
    records: Sequence[Record], x: Spec, y: Spec, way: dict[str, Spec], title: str
) -> list[Spec]:
    place = {"x": x, "y": y}
    band: Spec = {
        "transform": [{"filter": "datum.kind === 'predicted' && isValid(datum.low)"}],
        "mark": {"type": "area", "opacity": 0.22},
        "encoding": {
            "x": x,
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": way["color"],
        },
    }
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {**place, **way},
    }
    banded = any(one["kind"] == "predicted" and one["low"] for one in records)
    solid = [one for one in records if one["kind"] != "predicted"]
    marks = dots({**place, "tooltip": tooltip(title, records)}, 60)
    return [*([band] if banded else []), line, *whiskers(solid, "y", place), marks]


def _chart(quantity: str, name: str, answers: str, needs: str, figure: Figure, title: str) -> Chart:
    return Chart(
        f"{name}-by-batch",
        f"{quantity} against batch size",
        answers,
        needs,
        lambda subject: lines_of(subject, figure, title),
    )


LATENCY_BY_BATCH = _chart(
    "Latency",
    "latency",
    "how long a step takes as its batch grows",
    "a model at two batch sizes",
    lambda one: one.latency,
    "latency of a batch, ms",
)
THROUGHPUT_BY_BATCH = _chart(
    "Throughput",
    "throughput",
    "how many items a second a larger batch brings",
    "a model at two batch sizes",
    lambda one: one.throughput,
    "throughput, items/s",
)
MEMORY_BY_BATCH = _chart(
    "Memory",
    "memory",
    "how much memory a larger batch takes",
    "a model at two batch sizes, with its memory",
    lambda one: one.memory,
    "peak memory, MB (2^20)",
)

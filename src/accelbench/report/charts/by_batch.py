"""What a larger batch does to latency, throughput and memory. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accelbench.analysis.points import FigureInterval, Point
from accelbench.analysis.questions import Key
from accelbench.core.rates import ITEMS, kind_of_unit, unit_of
from accelbench.report.charts.axes import ChartAxis, Spec, in_their_unit, own_axes, shared
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.lines import (
    MARGIN,
    Line,
    lines_of,
    most_common,
    side_by_side,
    way_of,
)
from accelbench.report.charts.marks import (
    COLOUR,
    Record,
    beyond,
    cut_off,
    dots,
    ends,
    kind_legend,
    record,
    tooltip,
    whiskers,
)
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import OF_A_STAND_IN, emulated, left_out, safe
from accelbench.report.charts.words import Devices, told

#: An interval is drawn this many times further than all figures reach.
_FURTHEST = 1.6

Figure = Callable[[Point], FigureInterval | None]


def along_batches(subject: Subject, figure: Figure, title: str) -> ChartBody | None:
    """A line for each way of running, along its batches; None where nothing has two."""
    known = [point for point in subject.points if point.row.get("batch_size") and figure(point)]
    lines = lines_of([point for point in known if point.timed], subject.devices)
    if not lines:
        return None
    kept = most_common(lines)
    panels: dict[Key, list[Line]] = {}
    for line in kept:
        # A rate of tokens is none beside one of images; of a line all are of one unit.
        kind = kind_of_unit(unit_of(line.points[0].row)) if ITEMS in title else ""
        panels.setdefault((kind, *line.panel), []).append(line)
    shown = sorted(panels.values(), key=lambda panel: -sum(len(line.points) for line in panel))
    shown = shown[:MOST_PANELS]
    records = [_records(panel, figure, title) for panel in shown]
    axes = shared(title, [reach(several) for several in records])
    notes = [
        *own_axes(axes),
        *cut_off(beyond(*pair) for pair in zip(records, axes, strict=True)),
        *left_out(len(panels) - len(shown), "panel", advice="name the models to see"),
        *left_out(len(lines) - len(kept), "line"),
        *_emulated(known, shown, title),
    ]
    drawn = [point for panel in shown for line in panel for point in line.points]
    everything = [datum for several in records for datum in several]
    return ChartBody(_body(shown, records, axes, subject.devices), drawn, notes, everything)


def _emulated(known: Sequence[Point], shown: Sequence[Sequence[Line]], title: str) -> list[str]:
    """How many would be on lines of these panels, had their times a meaning."""
    panels = {line.panel for panel in shown for line in panel}
    lines = lines_of([point for point in known if not point.timed])
    number = sum(len(line.points) for line in lines if line.panel in panels)
    return emulated(number, OF_A_STAND_IN) if "memory" in title else emulated(number)


def _records(lines: Sequence[Line], figure: Figure, title: str) -> list[Record]:
    timed, rate = "memory" not in title, title.endswith(ITEMS)
    records = []
    for line in lines:
        for point in line.points:
            span = figure(point)
            assert span is not None
            records.append(record(point, span, timed=timed, rate=rate, line=line.way))
    return records


def reach(records: Sequence[Record]) -> list[float | None]:
    """What an axis has to hold: figures, and of their intervals what is not too far from them."""
    least = min(datum["value"] for datum in records) / _FURTHEST
    most = max(datum["value"] for datum in records) * _FURTHEST
    return [end and min(max(end, least), most) for end in ends(records)]


def batch_axis(records: Sequence[Record]) -> Spec:
    """The channel of batches, of all panels alike: each doubles."""
    batches = sorted({datum["batch"] for datum in records})
    return {
        "field": "at",
        "type": "quantitative",
        "title": "batch size (log)",
        "scale": {
            "type": "log",
            "base": 2,
            "domain": [batches[0] / MARGIN, batches[-1] * MARGIN],
            "nice": False,
        },
        "axis": {"values": batches, "format": "d", "labelOverlap": True, "grid": False},
    }


def _body(
    shown: Sequence[Sequence[Line]],
    records: Sequence[Sequence[Record]],
    axes: Sequence[ChartAxis],
    devices: Devices,
) -> Spec:
    everything = [datum for several in records for datum in several]
    x = batch_axis(everything)
    way = way_of(everything)
    names = [safe(panel[0].points[0].row.get("model"), 36) for panel in shown]
    drawn = [p for panel in shown for line in panel for p in line.points]
    abouts = [
        told([p for line in panel for p in line.points], among=drawn, devices=devices).together
        for panel in shown
    ]
    named = [
        in_their_unit(axis, (point.row for line in lines for point in line.points))
        for axis, lines in zip(axes, shown, strict=True)
    ]
    panels = [
        Panel(name, [about], several, line_layers(several, x, axis, way))
        for name, about, several, axis in zip(
            names, abouts, map(side_by_side, records), named, strict=True
        )
    ]
    return arranged(panels, kind_legend(everything))


def line_layers(
    records: Sequence[Record], x: Spec, scale: ChartAxis, way: dict[str, Spec]
) -> list[Spec]:
    """Lines over batches with their intervals, and a band around what was predicted."""
    y = scale.of("value")
    place = {"x": x, "y": y}
    band: Spec = {
        "transform": [{"filter": "datum.kind === 'predicted' && isValid(datum.low)"}],
        "mark": {"type": "area", "opacity": 0.22, "clip": True},
        "encoding": {
            "x": x,
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": way["color"],
        },
    }
    line: Spec = {
        "mark": {"type": "line"},
        "encoding": {**place, **way},
    }
    banded = any(datum["kind"] == "predicted" and datum["low"] for datum in records)
    solid = [datum for datum in records if datum["kind"] != "predicted"]
    coloured = {**place, "color": COLOUR}
    marks = dots({**place, "tooltip": tooltip(scale.title, records)}, 60)
    return [*([band] if banded else []), line, *whiskers(solid, "y", coloured, scale), marks]


def _chart(quantity: str, name: str, answers: str, needs: str, figure: Figure, title: str) -> Chart:
    return Chart(
        f"{name}-by-batch",
        f"{quantity} against batch size",
        answers,
        needs,
        lambda subject: along_batches(subject, figure, title),
    )


LATENCY_BY_BATCH = _chart(
    "Latency",
    "latency",
    "how long a step takes as its batch grows",
    "a model at two batch sizes",
    lambda point: point.latency,
    "latency of a batch, ms",
)
THROUGHPUT_BY_BATCH = _chart(
    "Throughput",
    "throughput",
    "how many items a second a larger batch brings",
    "a model at two batch sizes",
    lambda point: point.throughput,
    "throughput, items/s",
)
MEMORY_BY_BATCH = _chart(
    "Memory",
    "memory",
    "how much memory a larger batch takes",
    "a model at two batch sizes, with its memory",
    lambda point: point.memory,
    "peak memory, MB (2^20)",
)

"""What a larger batch does to latency, throughput and memory. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2

from accelbench.core.figures import ITEMS, kind_of_unit, unit_of
from accelbench.core.rows import number
from accelbench.hardware.common import colour_of
from accelbench.judge.points import FigureInterval, Point, alike_together
from accelbench.judge.questions import AXES, Key
from accelbench.present.charts.axes import (
    ChartAxis,
    Spec,
    grouped,
    in_their_unit,
    layer,
    legend,
    own_axes,
    shared,
)
from accelbench.present.charts.chart import Chart, ChartBody, Subject, declare_chart
from accelbench.present.charts.marks import (
    COLOUR,
    MOST_PANELS,
    Panel,
    Record,
    arranged,
    beyond,
    cut_off,
    dots,
    ends,
    kind_legend,
    record,
    tooltip,
    whiskers,
)
from accelbench.present.charts.theme import INK, LINE_WIDTHS, PANEL_WIDE, engine_dashes
from accelbench.present.charts.words import (
    ALIKE,
    OF_A_STAND_IN,
    WAY,
    Devices,
    emulated,
    left_out,
    safe,
    told,
)
from accelbench.present.texts import phrase

#: More ways of running, each a line in its own dashes, are a tangle.
_MOST_WAYS = 8
#: Beside the first and the last batch.
MARGIN = 1.15
#: Pixels between two lines' marks of one batch, and between those of the first and the last.
_BESIDE, _TOGETHER = 3.0, 14.0


@dataclass(frozen=True)
class Line:
    """What differs in its batch alone."""

    points: Sequence[Point]
    way: str

    @property
    def panel(self) -> Key:
        """The work that it is of."""
        return self.points[0].asked_in(ALIKE)


def lines_of(
    points: Sequence[Point],
    devices: Devices | None = None,
    fewest: int = 2,
    names_by: Sequence[str] = WAY,
) -> list[Line]:
    """A single batch shows nothing of what a larger one does, and is no line.

    Lines have `fewest` batches or more: of 1 a mark may stand alone.
    """
    batch = AXES["batch"]
    groups = alike_together(points, lambda one: (one.kind, one.question(batch)), only=True)
    ordered = [
        sorted(line, key=lambda point: number(point.row, "batch_size") or 0)
        for line in groups.values()
        if len(line) >= fewest
    ]
    if not ordered:
        return []
    names = told([line[0] for line in ordered], names_by, longest=60, devices=devices).apart
    return [Line(line, name) for line, name in zip(ordered, names, strict=True)]


def most_common(lines: Sequence[Line]) -> list[Line]:
    """Lines of the ways that most models were run in: a legend is of so many and no more."""
    ways = Counter(line.way for line in lines)
    known = {way for way, _ in ways.most_common(_MOST_WAYS)}
    return [line for line in lines if line.way in known]


def side_by_side(records: Sequence[Record]) -> list[Record]:
    """Lines a little beside each other, so that their intervals do not lie on each other."""
    names = list(dict.fromkeys(record["line"] for record in records))
    batches = [record["batch"] for record in records]
    wide = max(batches) / min(batches) * MARGIN**2
    apart = min(_BESIDE, _TOGETHER / len(names)) / PANEL_WIDE
    return [
        {**record, "at": record["batch"] * wide ** (apart * (place - (len(names) - 1) / 2))}
        for record in records
        for place in (names.index(record["line"]),)
    ]


def way_of(records: Sequence[Record], *, in_panels: bool = False) -> dict[str, Spec]:
    """How a line ran, by its platform's colour, its engine's dashes and a width, in one legend.

    In panels of one device each the marks have that device's colour, and the legend has none.
    """
    first = {str(record["line"]): record for record in reversed(records)}
    names = list(dict.fromkeys(str(record["line"]) for record in records))
    engines = {name: str(first[name]["runtime"]) for name in names}
    seen: Counter[tuple[str, str]] = Counter()
    widths = {}
    for name, engine in engines.items():
        kind = ("" if in_panels else str(first[name]["hardware"]), engine)
        widths[name] = LINE_WIDTHS[seen[kind] % len(LINE_WIDTHS)]
        seen[kind] += 1
    ink = {"symbolStrokeColor": INK} if in_panels else {}
    strokes = legend(symbolType="stroke", symbolSize=700, **ink) if len(names) > 1 else None

    def channel(values: Mapping[str, object]) -> Spec:
        return grouped("line", values, strokes) | {"sort": names}

    width = channel(widths)
    width["scale"]["type"] = "ordinal"
    ways = {
        "strokeDash": channel({name: engine_dashes(one) for name, one in engines.items()}),
        "strokeWidth": width,
    }
    if in_panels:
        return {"color": COLOUR, "detail": {"field": "line", "type": "nominal"}, **ways}
    colours = {name: colour_of(str(first[name]["hardware"])) for name in names}
    return {"color": channel(colours), **ways}


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
    # Those that would be on lines of these panels, had their times a meaning.
    works = {line.panel for panel in shown for line in panel}
    stand_ins = lines_of([point for point in known if not point.timed])
    like_these = sum(len(line.points) for line in stand_ins if line.panel in works)
    notes = [
        *own_axes(axes),
        *cut_off(beyond(*pair) for pair in zip(records, axes, strict=True)),
        *left_out(len(panels) - len(shown), "panel", advice=phrase("charts.name-models")),
        *left_out(len(lines) - len(kept), "line"),
        *emulated(like_these, *([OF_A_STAND_IN] if "memory" in title else [])),
    ]
    drawn = [point for panel in shown for line in panel for point in line.points]
    everything = [datum for several in records for datum in several]
    return ChartBody(_body(shown, records, axes, subject.devices), drawn, notes, everything)


def _records(lines: Sequence[Line], figure: Figure, title: str) -> list[Record]:
    timed, rate = "memory" not in title, title.endswith(ITEMS)
    records = []
    for line in lines:
        for point in line.points:
            span = figure(point)
            assert span is not None
            records.append(record(point, span, timed=timed, rate=rate, line=line.way))
    return records


def reach(records: Sequence[Record], furthest: float = _FURTHEST) -> list[float | None]:
    """What an axis has to hold: figures, and of their intervals what is not too far from them."""
    least = min(datum["value"] for datum in records) / furthest
    most = max(datum["value"] for datum in records) * furthest
    return [end and min(max(end, least), most) for end in ends(records)]


def batch_axis(records: Sequence[Record], field: str = "at", *, powers: bool = False) -> Spec:
    """The channel of batches, of all panels alike: each doubles.

    Its lines are at the batches, or at the powers of two among them.
    """
    batches = sorted({datum["batch"] for datum in records})
    ticks = [2**n for n in range(ceil(log2(batches[0])), floor(log2(batches[-1])) + 1)]
    lines = ticks if powers and len(ticks) > 1 else batches
    ends = [batches[0] / MARGIN, batches[-1] * MARGIN]
    return {
        "field": field,
        "type": "quantitative",
        "title": "batch size (log)",
        "scale": {"type": "log", "base": 2, "domain": ends, "nice": False},
        "axis": {"values": lines, "format": "d", "labelOverlap": True, "grid": False},
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
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    where = "datum.kind === 'predicted' && isValid(datum.low)"
    channels = {"x": x, **ends, "color": way["color"]}
    band = layer("area", channels, where=where, opacity=0.22, clip=True)
    line = layer("line", {**place, **way})
    banded = any(datum["kind"] == "predicted" and datum["low"] for datum in records)
    solid = [datum for datum in records if datum["kind"] != "predicted"]
    coloured = {**place, "color": COLOUR}
    marks = dots({**place, "tooltip": tooltip(scale.title, records)}, 60)
    return [*([band] if banded else []), line, *whiskers(solid, "y", coloured, scale), marks]


def _chart(name: str, figure: Figure, title: str) -> Chart:
    return declare_chart(name, lambda subject: along_batches(subject, figure, title))


LATENCY_BY_BATCH = _chart(
    "latency-by-batch", lambda point: point.latency, phrase("charts.axis-latency")
)
THROUGHPUT_BY_BATCH = _chart(
    "throughput-by-batch", lambda point: point.throughput, "throughput, items/s"
)
MEMORY_BY_BATCH = _chart("memory-by-batch", lambda point: point.memory, "peak memory, MB (2^20)")

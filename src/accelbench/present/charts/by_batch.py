"""What a larger batch does, and one model everywhere it ran: a panel for each device. Pure.

If most ways have one batch only, devices stand below each other, and a mark is a way of running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2

from accelbench.core.formatting import format_count
from accelbench.core.result_statistics import throughput_unit, unit_kind
from accelbench.core.rows import number
from accelbench.hardware.common import colour_of
from accelbench.judge.points import Point, alike_of_each, alike_together
from accelbench.judge.questions import AXES, Key, physical
from accelbench.present.charts import axes, words
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.marks import (
    COLOUR,
    LATENCY,
    MOST_PANELS,
    Panel,
    Quantity,
    arranged,
    beyond,
    cut_off,
    dots,
    draw_panels,
    ends,
    legends,
    panel_notes,
    record,
    tooltip,
    whiskers,
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
        return self.points[0].asked_in(words.ALIKE)


def lines_of(
    points: Sequence[Point],
    devices: words.Devices | None = None,
    fewest: int = 2,
    names_by: Sequence[str] = words.WAY,
) -> list[Line]:
    """Lines along batches, each of `fewest` or more: a single batch shows no effect of size."""
    batch = AXES["batch"]
    groups = alike_together(points, lambda one: (one.kind, one.question(batch)), only=True)
    ordered = [
        sorted(line, key=lambda point: number(point.row, "batch_size") or 0)
        for line in groups.values()
        if len(line) >= fewest
    ]
    if not ordered:
        return []
    names = words.told([line[0] for line in ordered], names_by, longest=60, devices=devices).apart
    return [Line(line, name) for line, name in zip(ordered, names, strict=True)]


def most_common(lines: Sequence[Line]) -> list[Line]:
    """Lines of the ways that most models were run in: a legend is of so many and no more."""
    ways = Counter(line.way for line in lines)
    known = {way for way, _ in ways.most_common(_MOST_WAYS)}
    return [line for line in lines if line.way in known]


def side_by_side(records: Sequence[axes.Record]) -> list[axes.Record]:
    """Lines a little beside each other, so that their intervals do not lie on each other."""
    names = list(dict.fromkeys(record["line"] for record in records))
    batches = [record["batch"] for record in records]
    wide = max(batches) / min(batches) * MARGIN**2
    apart = min(_BESIDE, _TOGETHER / len(names)) / axes.PANEL_WIDE
    return [
        {**record, "at": record["batch"] * wide ** (apart * (place - (len(names) - 1) / 2))}
        for record in records
        for place in (names.index(record["line"]),)
    ]


def way_of(records: Sequence[axes.Record], *, in_panels: bool = False) -> dict[str, axes.Spec]:
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
        widths[name] = axes.LINE_WIDTHS[seen[kind] % len(axes.LINE_WIDTHS)]
        seen[kind] += 1
    ink = {"symbolStrokeColor": axes.INK} if in_panels else {}
    strokes = axes.legend(symbolType="stroke", symbolSize=700, **ink) if len(names) > 1 else None

    def channel(values: Mapping[str, object]) -> axes.Spec:
        return axes.grouped("line", values, strokes) | {"sort": names}

    width = channel(widths)
    width["scale"]["type"] = "ordinal"
    ways = {
        "strokeDash": channel({name: axes.engine_dashes(one) for name, one in engines.items()}),
        "strokeWidth": width,
    }
    if in_panels:
        return {"color": COLOUR, "detail": {"field": "line", "type": "nominal"}, **ways}
    colours = {name: colour_of(str(first[name]["hardware"])) for name in names}
    return {"color": channel(colours), **ways}


#: An interval is drawn this many times further than all figures reach.
_FURTHEST = 1.6


def along_batches(subject: Subject, quantity: Quantity = LATENCY) -> ChartBody | None:
    """A line for each way of running, along its batches; None where nothing has two."""
    known = [p for p in subject.points if p.row.get("batch_size") and quantity.figure(p)]
    lines = lines_of([point for point in known if point.timed], subject.devices)
    if not lines:
        return None
    kept = most_common(lines)
    panels: dict[Key, list[Line]] = {}
    for line in kept:
        # A rate of tokens is none beside one of images; of a line all are of one unit.
        kind = unit_kind(throughput_unit(line.points[0].row)) if quantity.rate else ""
        panels.setdefault((kind, *line.panel), []).append(line)
    shown = sorted(panels.values(), key=lambda panel: -sum(len(line.points) for line in panel))
    shown = shown[:MOST_PANELS]
    groups = [[point for line in panel for point in line.points] for panel in shown]
    drawn = [point for points in groups for point in points]
    records = [
        side_by_side([quantity.record(p, line=line.way) for line in panel for p in line.points])
        for panel in shown
    ]
    scales = axes.shared(quantity.title, [reach(several) for several in records])
    everything = [datum for several in records for datum in several]
    x, way = batch_axis(everything), way_of(everything)
    views = [
        (
            [words.told(points, among=drawn, devices=subject.devices).together],
            line_layers(several, x, scale, way),
        )
        for points, several, scale in zip(
            groups, records, axes.in_their_units(scales, groups), strict=True
        )
    ]
    # Those that would be on lines of these panels, had their times a meaning.
    works = {line.panel for panel in shown for line in panel}
    stand_ins = lines_of([point for point in known if not point.timed])
    notes = [
        *panel_notes(scales, records, len(panels) - len(shown)),
        *words.left_out(len(lines) - len(kept), "line"),
        *quantity.stand_ins(sum(len(line.points) for line in stand_ins if line.panel in works)),
    ]
    return draw_panels(groups, records, views, notes)


def reach(records: Sequence[axes.Record], furthest: float = _FURTHEST) -> list[float | None]:
    """What an axis has to hold: figures, and of their intervals what is not too far from them."""
    least = min(datum["value"] for datum in records) / furthest
    most = max(datum["value"] for datum in records) * furthest
    return [end and min(max(end, least), most) for end in ends(records)]


def batch_axis(
    records: Sequence[axes.Record], field: str = "at", *, powers: bool = False
) -> axes.Spec:
    """The channel of batches, with lines at the batches, or at the powers of two among them."""
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


def line_layers(
    records: Sequence[axes.Record], x: axes.Spec, scale: axes.ChartAxis, way: dict[str, axes.Spec]
) -> list[axes.Spec]:
    """Lines over batches with their intervals, and a band around what was predicted."""
    y = scale.of("value")
    place = {"x": x, "y": y}
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    where = "datum.kind === 'predicted' && isValid(datum.low)"
    channels = {"x": x, **ends, "color": way["color"]}
    band = axes.layer("area", channels, where=where, opacity=0.22, clip=True)
    line = axes.layer("line", {**place, **way})
    banded = any(datum["kind"] == "predicted" and datum["low"] for datum in records)
    solid = [datum for datum in records if datum["kind"] != "predicted"]
    coloured = {**place, "color": COLOUR}
    marks = dots({**place, "tooltip": tooltip(scale.title, records)}, 60)
    return [*([band] if banded else []), line, *whiskers(solid, "y", coloured, scale), marks]


#: A panel is of one device: what is in it is told apart by how it ran.
_WAY = tuple(name for name in words.WAY if name not in (words.PLACE, words.SOFTWARE, "machine"))
#: A single figure is beside nothing.
_FEWEST = 2
#: More panels, or devices below each other, are no picture any more.
_MOST_PANELS, _MOST_DEVICES = 12, 40
_COLUMNS = 3


def draw_model(subject: Subject) -> ChartBody | None:
    """The model with the most configurations of one question, everywhere it ran."""
    known = [point for point in subject.points if point.latency and point.row.get("batch_size")]
    works: dict[Key, list[Point]] = {}
    for point in known:
        if point.timed:
            works.setdefault(point.asked_in(words.ALIKE), []).append(point)
    work = max(works.values(), key=len, default=[])
    if len(work) < _FEWEST:
        return None
    alike = alike_of_each(work, lambda _: "")
    lines = lines_of(alike, subject.devices, 1, _WAY)
    several = 2 * sum(len(line.points) > 1 for line in lines) >= len(lines)
    body = _over_batches(lines, alike) if several else _below_each_other(subject, alike)
    model = words.safe(work[0].row.get("model"), 48)
    about = words.told(alike, words.ALIKE).together
    notes = [
        f"{model}: {about}." if about else f"{model}.",
        *body.notes,
        *words.left_out(len(works) - 1, "question", advice=phrase("charts.name-model-mode")),
        *words.emulated(sum(not point.timed for point in known)),
    ]
    return ChartBody(body.body, body.points, notes, body.records)


def _by_device(points: Sequence[Point]) -> dict[tuple[str, str], list[Point]]:
    devices: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(points, key=_item_ms):
        devices.setdefault((str(physical(point.row)), point.machine), []).append(point)
    # Of devices that are alike, or without a usable figure, the order of rows says nothing.
    return dict(sorted(devices.items(), key=lambda one: (min(map(_item_ms, one[1])), one[0])))


def _item_ms(point: Point) -> float:
    return point.item_ms if point.usable else float("inf")


def _names(devices: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    several = Counter(device for device, _ in devices)
    return {
        (device, machine): words.safe(
            f"{words.short_device(device)} · {machine.split(' (')[0]}"
            if several[device] > 1
            else words.short_device(device),
            40,
        )
        for device, machine in devices
    }


def _over_batches(lines: Sequence[Line], points: Sequence[Point]) -> ChartBody:
    kept = most_common(lines)
    panels: dict[tuple[str, str], list[Line]] = {}
    places = {id(point): place for place, some in _by_device(points).items() for point in some}
    order = list(dict.fromkeys(places.values()))
    for line in kept:
        panels.setdefault(places[id(line.points[0])], []).append(line)
    shown = [place for place in order if place in panels][:_MOST_PANELS]
    records = {
        place: [
            record(point, point.latency, line=line.way)
            for line in panels[place]
            for point in line.points
            if point.latency is not None
        ]
        for place in shown
    }
    everything = [datum for several in records.values() for datum in several]
    scale = axes.axis(
        LATENCY.title, [end for some in records.values() for end in reach(some)], log=True
    )
    x, way = batch_axis(everything), way_of(everything, in_panels=True)
    names = _names(order)
    views = [
        Panel(names[place], [], side_by_side(some), line_layers(side_by_side(some), x, scale, way))
        for place, some in records.items()
    ]
    drawn = [p for place in shown for line in panels[place] for p in line.points]
    notes = [
        *cut_off([beyond(everything, scale)]),
        *words.left_out(len(panels) - len(shown), "device"),
        *words.left_out(len(lines) - len(kept), "line"),
    ]
    return ChartBody(arranged(views, legends(everything), _COLUMNS), drawn, notes, everything)


def _below_each_other(subject: Subject, points: Sequence[Point]) -> ChartBody:
    devices = _by_device(points)
    names = _names(list(devices))
    shown = list(devices)[:_MOST_DEVICES]
    drawn = [point for place in shown for point in devices[place]]
    several = len({number(point.row, "batch_size") for point in drawn}) > 1
    place_of = {
        id(point): names[place] + (f" · batch {point.row['batch_size']}" if several else "")
        for place in shown
        for point in devices[place]
    }
    drawn.sort(key=lambda point: number(point.row, "batch_size") or 0)
    ways = words.told(drawn, _WAY, longest=40, devices=subject.devices).apart
    records = [
        record(point, point.latency, cell=place_of[id(point)], way=way or point.kind)
        for point, way in zip(drawn, ways, strict=True)
        if point.latency is not None
    ]
    common = [way for way, _ in Counter(str(datum["way"]) for datum in records).most_common()]
    colours = dict(zip(common, axes.GROUP_COLOURS, strict=False))
    shapes = dict(zip(common, axes.GROUP_SHAPES, strict=False))
    for datum in records:
        colour = colours.get(str(datum["way"]), axes.REST_COLOUR)
        hollow = datum["kind"] == "imported" or "quality" in datum
        datum |= {"colour": colour, "paint": axes.PAPER if hollow else colour}
        datum["form"] = shapes.get(str(datum["way"]), "circle")
    scale = axes.axis(LATENCY.title, reach(records), log=True)
    batches = {datum["batch"] for datum in records}
    grey = len(common) - len(colours)
    notes = [
        *([phrase("charts.all-at-batch", batches=batches.pop())] if len(batches) == 1 else []),
        *cut_off([beyond(records, scale)]),
        *words.left_out(len(devices) - len(shown), "device"),
        *([phrase("charts.ways-in-grey", grey=format_count(grey, "way"))] if grey > 0 else []),
    ]
    return ChartBody(_strip(records, scale, colours, shapes), drawn, notes, records)


def _strip(
    records: Sequence[axes.Record],
    scale: axes.ChartAxis,
    colours: Mapping[str, str],
    shapes: Mapping[str, str],
) -> axes.Spec:
    y = axes.named("cell", (datum["cell"] for datum in records), labelLimit=300, grid=True)
    place: axes.Spec = {"x": scale.of("value"), "y": y}
    marks = dots({**place, "tooltip": tooltip(scale.title, records)}, 70)
    shown = axes.legend(symbolSize=90)
    ways = {
        "stroke": axes.grouped("way", colours, shown),
        "shape": axes.grouped("way", shapes, shown),
    }
    legends = [axes.layer("point", ways, opacity=0, strokeWidth=1.8)] if len(colours) > 1 else []
    layers = [*legends, *whiskers(records, "x", place, scale), marks]
    return axes.view(records, 420, {"step": 22}, *layers)

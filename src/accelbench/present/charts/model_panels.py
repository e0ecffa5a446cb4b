"""One model everywhere it ran: a panel a device, lines over batches, all on one scale. Pure.

If most ways have one batch only, devices stand below each other, and a mark is a way of running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from accelbench.core.nouns import counted
from accelbench.core.rows import number
from accelbench.judge.points import Point, alike_of_each
from accelbench.judge.questions import Key, physical
from accelbench.present.charts.axes import (
    ChartAxis,
    Spec,
    axis,
    grouped,
    layer,
    legend,
    named,
    view,
)
from accelbench.present.charts.by_batch import (
    Line,
    batch_axis,
    line_layers,
    lines_of,
    most_common,
    reach,
    side_by_side,
    way_of,
)
from accelbench.present.charts.chart import ChartBody, Subject, declare_chart
from accelbench.present.charts.marks import (
    Panel,
    Record,
    arranged,
    beyond,
    cut_off,
    dots,
    hardware_legend,
    kind_legend,
    record,
    tooltip,
    whiskers,
)
from accelbench.present.charts.theme import GROUP_COLOURS, GROUP_SHAPES, PAPER, REST_COLOUR
from accelbench.present.charts.words import (
    ALIKE,
    PLACE,
    SOFTWARE,
    WAY,
    emulated,
    left_out,
    safe,
    short_device,
    told,
)
from accelbench.present.texts import phrase

#: A panel is of one device: what is in it is told apart by how it ran.
_WAY = tuple(name for name in WAY if name not in (PLACE, SOFTWARE, "machine"))
#: A single figure is beside nothing.
_FEWEST = 2
#: More panels, or devices below each other, are no picture any more.
_MOST_PANELS, _MOST_DEVICES = 12, 40
_COLUMNS = 3
_LATENCY = phrase("charts.axis-latency")


def _drawn(subject: Subject) -> ChartBody | None:
    known = [point for point in subject.points if point.latency and point.row.get("batch_size")]
    works: dict[Key, list[Point]] = {}
    for point in known:
        if point.timed:
            works.setdefault(point.asked_in(ALIKE), []).append(point)
    work = max(works.values(), key=len, default=[])
    if len(work) < _FEWEST:
        return None
    alike = alike_of_each(work, lambda _: "")
    lines = lines_of(alike, subject.devices, 1, _WAY)
    several = 2 * sum(len(line.points) > 1 for line in lines) >= len(lines)
    body = _over_batches(lines, alike) if several else _below_each_other(subject, alike)
    model = safe(work[0].row.get("model"), 48)
    about = told(alike, ALIKE).together
    notes = [
        f"{model}: {about}." if about else f"{model}.",
        *body.notes,
        *left_out(len(works) - 1, "question", advice=phrase("charts.name-model-mode")),
        *emulated(sum(not point.timed for point in known)),
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
        (device, machine): safe(
            f"{short_device(device)} · {machine.split(' (')[0]}"
            if several[device] > 1
            else short_device(device),
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
    scale = axis(_LATENCY, [end for some in records.values() for end in reach(some)], log=True)
    x, way = batch_axis(everything), way_of(everything, in_panels=True)
    names = _names(order)
    views = [
        Panel(names[place], [], side_by_side(some), line_layers(side_by_side(some), x, scale, way))
        for place, some in records.items()
    ]
    legends = [*kind_legend(everything), *hardware_legend(everything)]
    drawn = [p for place in shown for line in panels[place] for p in line.points]
    notes = [
        *cut_off([beyond(everything, scale)]),
        *left_out(len(panels) - len(shown), "device"),
        *left_out(len(lines) - len(kept), "line"),
    ]
    return ChartBody(arranged(views, legends, _COLUMNS), drawn, notes, everything)


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
    ways = told(drawn, _WAY, longest=40, devices=subject.devices).apart
    records = [
        record(point, point.latency, cell=place_of[id(point)], way=way or point.kind)
        for point, way in zip(drawn, ways, strict=True)
        if point.latency is not None
    ]
    common = [way for way, _ in Counter(str(datum["way"]) for datum in records).most_common()]
    colours = dict(zip(common, GROUP_COLOURS, strict=False))
    shapes = dict(zip(common, GROUP_SHAPES, strict=False))
    for datum in records:
        colour = colours.get(str(datum["way"]), REST_COLOUR)
        hollow = datum["kind"] == "imported" or "quality" in datum
        datum |= {"colour": colour, "paint": PAPER if hollow else colour}
        datum["form"] = shapes.get(str(datum["way"]), "circle")
    scale = axis(_LATENCY, reach(records), log=True)
    batches = {datum["batch"] for datum in records}
    grey = len(common) - len(colours)
    notes = [
        *([phrase("charts.all-at-batch", batches=batches.pop())] if len(batches) == 1 else []),
        *cut_off([beyond(records, scale)]),
        *left_out(len(devices) - len(shown), "device"),
        *([phrase("charts.ways-in-grey", grey=counted(grey, "way"))] if grey > 0 else []),
    ]
    return ChartBody(_strip(records, scale, colours, shapes), drawn, notes, records)


def _strip(
    records: Sequence[Record],
    scale: ChartAxis,
    colours: Mapping[str, str],
    shapes: Mapping[str, str],
) -> Spec:
    y = named("cell", (datum["cell"] for datum in records), labelLimit=300, grid=True)
    place: Spec = {"x": scale.of("value"), "y": y}
    marks = dots({**place, "tooltip": tooltip(scale.title, records)}, 70)
    shown = legend(symbolSize=90)
    ways = {"stroke": grouped("way", colours, shown), "shape": grouped("way", shapes, shown)}
    legends = [layer("point", ways, opacity=0, strokeWidth=1.8)] if len(colours) > 1 else []
    layers = [*legends, *whiskers(records, "x", place, scale), marks]
    return view(records, 420, {"step": 22}, *layers)


MODEL_PANELS = declare_chart("model-panels", _drawn)

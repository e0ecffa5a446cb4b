"""Measured cells under the limits of their device: operations a second against intensity. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.devices import devices_of, sharing
from accelbench.core.nouns import listed
from accelbench.hardware.common import colour_of
from accelbench.judge.points import Point
from accelbench.present.charts.axes import Spec, as_stored, axis, layer
from accelbench.present.charts.chart import ChartBody, Roof, Subject, declare_chart
from accelbench.present.charts.marks import (
    COLOUR,
    Panel,
    Record,
    arranged,
    dots,
    hardware_legend,
    kind_legend,
    labels,
    record,
    tooltip,
)
from accelbench.present.charts.theme import dash_scale
from accelbench.present.charts.words import (
    EVERYTHING,
    Devices,
    emulated,
    in_common,
    left_out,
    safe,
    short_device,
    told,
)
from accelbench.present.texts import phrase

_X, _Y = phrase("charts.axis-intensity"), phrase("charts.axis-operations")
_MOST = 400
#: So many of them are numbered and named.
_MOST_NAMED = 8


def _drawn(subject: Subject) -> ChartBody | None:
    known = [
        point
        for point in subject.points
        if point.latency and point.metric("flops") and point.metric("bytes_moved")
    ]
    timed = [point for point in known if point.timed]
    if not timed:
        return None
    shown = timed[:_MOST]
    records = _numbered([_cell(point) for point in shown])
    hardware = {datum["hardware"] for datum in records}
    roofs = [roof for roof in subject.roofs if roof.hardware in hardware]
    if not roofs:  # marks below nothing say how near they come to nothing
        return None
    reach = [datum["intensity"] for datum in records]
    lines = [line for roof in roofs for line in _roof(roof, reach)]
    notes = [phrase("charts.operations-counted")]
    notes += sorted({f"{safe(roof.name)}, {roof.precision}: {roof.source}" for roof in roofs})
    if bare := sorted(hardware - {roof.hardware for roof in roofs}):
        notes.append(phrase("charts.no-roof", bare=listed(bare)))
    if any("devices" in datum and datum["hardware"] != "cpu" for datum in records):
        notes.append(phrase("charts.operations-of-each-device"))
    notes += left_out(len(timed) - _MOST, "configuration")
    notes += emulated(len(known) - len(timed))
    notes += _names(shown, records, subject.devices)
    return ChartBody(_body(records, lines), shown, notes, records)


def _cell(point: Point) -> Record:
    flops, moved = point.metric("flops"), point.metric("bytes_moved")
    assert flops is not None
    assert moved is not None
    assert point.latency is not None
    # A roof is one device's. Processes on a CPU share it, whole.
    devices = devices_of(point.row) if sharing(point.row) == "devices" else 1
    rate = flops.value / devices / point.latency.value / 1e6
    more = {"intensity": flops.value / moved.value, "value": rate}
    return record(point, point.latency) | more | {"low": None, "high": None}


def _numbered(records: Sequence[Record]) -> list[Record]:
    order = sorted(range(len(records)), key=lambda i: -records[i]["value"])
    ranks = {i: number for number, i in enumerate(order, 1)}
    return [{**datum, "number": ranks[i]} for i, datum in enumerate(records)]


def _names(shown: Sequence[Point], records: Sequence[Record], devices: Devices) -> list[str]:
    order = sorted(zip(records, shown, strict=True), key=lambda pair: pair[0]["number"])
    named = [point for _, point in order]
    names = told(named, EVERYTHING, ("model",), 72, devices=devices)
    lines = [f"{number}  {name}" for number, name in enumerate(names.apart[:_MOST_NAMED], 1)]
    more = len(shown) - len(lines)
    rest = [phrase("charts.more-in-table", more=more)] if more else []
    return [*in_common(names.together), *lines, *rest]


def _roof(roof: Roof, reach: Sequence[float]) -> list[Record]:
    ridge = roof.operations_per_second / roof.bytes_per_second
    low, high = min(*reach, ridge) / 2, max(*reach, ridge) * 2
    measured = f", measured {roof.measured_on}" if roof.measured_on else ""
    about = {
        "hardware": safe(roof.hardware),
        "device": safe(roof.name),
        "colour": colour_of(roof.hardware),
        "roof": safe(f"{short_device(roof.name)}, {roof.precision}{measured}", 60),
    }
    return [
        {
            **about,
            "intensity": x,
            "end": x == high,
            "limit": min(roof.operations_per_second, x * roof.bytes_per_second) / 1e9,
        }
        for x in (low, ridge, high)
    ]


def _body(records: Sequence[Record], lines: Sequence[Record]) -> Spec:
    everything = [*records, *lines]
    x = axis(_X, [datum["intensity"] for datum in everything], log=True).of("intensity")
    heights = [datum.get(name) for datum in everything for name in ("value", "limit")]
    up = axis(_Y, heights, log=True)
    fields = [*tooltip(_Y, records), {"field": "intensity", "title": _X, "format": ",.3~r"}]
    place = {"x": x, "y": up.of("value")}
    marks = dots({**place, "tooltip": fields, "opacity": {"value": 0.85}}, 50)
    text = labels({**place, "text": {"field": "number"}}, dx=10, fontWeight=600)
    numbers = {"transform": [{"filter": f"datum.number <= {_MOST_NAMED}"}], **text}
    layers = [*_roofs(lines, x, up.of("limit")), marks, numbers]
    legends = [*kind_legend(records), *hardware_legend(records)]
    return arranged([Panel("", (), records, layers)], legends)


def _roofs(lines: Sequence[Record], x: Spec, y: Spec) -> list[Spec]:
    if not lines:
        return []
    names = list(dict.fromkeys(datum["roof"] for datum in lines))
    dash = {**as_stored("roof"), "scale": dash_scale(names), "legend": None}
    place = {"x": x, "y": y}
    label = labels({**place, "text": {"field": "roof"}}, align="right", dy=-7)
    ends = {"data": {"values": [datum for datum in lines if datum["end"]]}}
    line = {**place, "stroke": COLOUR, "strokeDash": dash}
    return [layer("line", line, of=lines, strokeWidth=2), {**ends, **label}]


ROOFLINE = declare_chart("roofline", _drawn)

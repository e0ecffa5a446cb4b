"""Latency against throughput and energy, and operations against the limits of a device. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log

from accelbench.core.devices import device_count, sharing_unit
from accelbench.core.formatting import join_first
from accelbench.core.result_statistics import throughput_unit, unit_kind
from accelbench.core.unusable_reasons import COMPARABLE
from accelbench.hardware.common import colour_of
from accelbench.judge.points import Point
from accelbench.judge.questions import Key
from accelbench.present.charts import axes, words
from accelbench.present.charts.axes import Record, axis, numbers
from accelbench.present.charts.chart import ChartBody, Roof, Subject
from accelbench.present.charts.marks import (
    COLOUR,
    LATENCY,
    MOST_PANELS,
    THROUGHPUT,
    UNUSABLE,
    Panel,
    Quantity,
    arranged,
    dots,
    draw_panels,
    labels,
    legends,
    panel_notes,
    record,
    tooltip,
)
from accelbench.present.texts import phrase

#: A front of more has its fastest named.
_MOST_NAMED = 6
#: Numbers nearer to each other than this, in pixels, would lie on each other.
_NEAR = 11
#: Where a number stands beside its mark.
_SIDES = {"above": {"dy": -10}, "below": {"dy": 12}, "right": {"dx": 12}}
#: What is said of each number, where not all marks of its panel have it in common.
_WAYS = (words.PLACE, "runtime", "precision", "batch_size")
_RAN = tuple(name for name in words.WAY if name != "machine")
#: A hatching or a hollow mark that is pale is none, and what was predicted is pale already.
_CLEAR = f"datum.front || datum.kind === 'simulated' || datum.kind === 'predicted' || {UNUSABLE}"
_TOLD = tuple(name for name in words.EVERYTHING if name != "model")


def front(places: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each (latency, throughput) whether no other is as good in one and better in the other."""
    order = sorted(range(len(places)), key=lambda i: (places[i][0], -places[i][1]))
    best, last = -inf, -1.0
    flags = [False] * len(places)
    for i in order:
        latency, rate = places[i]
        flags[i] = rate > best or (rate == best and latency == last)
        if rate > best:
            best, last = rate, latency
    return flags


def draw_front(subject: Subject, quantity: Quantity = THROUGHPUT) -> ChartBody | None:
    """A panel for each work, with latency along and the quantity up."""
    known = [point for point in subject.points if point.latency and quantity.figure(point)]
    by_work: dict[Key, list[Point]] = {}
    for point in known:
        if point.timed:
            by_work.setdefault(_work(point), []).append(point)
    # If they differ in their batch only, a single line beats nothing and is unbeaten.
    several = [panel for panel in by_work.values() if len(panel) > 2 and words.vary(panel, _RAN)]
    if not several:
        return None
    shown = sorted(several, key=lambda panel: -len(panel))[:MOST_PANELS]
    records = [_records(panel, quantity) for panel in shown]
    across = axes.shared(LATENCY.title, [[datum["ms"] for datum in group] for group in records])
    up = axes.shared(quantity.title, [[datum["value"] for datum in group] for group in records])
    jobs = {_work(panel[0]) for panel in shown}
    drawn = [point for panel in shown for point in panel]
    named = axes.in_their_units(up, shown)
    views = [
        (
            _named(panel, group, drawn, subject.devices),
            _layers(group, x, y, falling=not quantity.rate),
        )
        for panel, group, x, y in zip(shown, records, across, named, strict=True)
    ]
    own = across if axes.own_axes(across) else up
    notes = [
        phrase("charts.front-legend"),
        *panel_notes(own, records, len(several) - len(shown)),
        *words.emulated(sum(not point.timed and _work(point) in jobs for point in known)),
    ]
    return draw_panels(shown, records, views, notes, legends)


def _work(point: Point) -> Key:
    return (point.machine, unit_kind(throughput_unit(point.row)), *point.asked_in(words.ALIKE))


def _records(points: Sequence[Point], quantity: Quantity) -> list[Record]:
    records = []
    for point in points:
        assert point.latency is not None
        more = {"ms": point.latency.value, "low": None, "high": None}
        records.append(quantity.record(point) | more)
    real = [i for i, point in enumerate(points) if point.kind in COMPARABLE and point.usable]
    sign = 1 if quantity.rate else -1
    best = front([(records[i]["ms"], sign * records[i]["value"]) for i in real])
    on_it = [i for i, good in zip(real, best, strict=True) if good]
    ranks = {i: n for n, i in enumerate(sorted(on_it, key=lambda i: records[i]["ms"]), 1)}
    return [
        {**datum, "front": i in ranks, "number": ranks.get(i, 0)} for i, datum in enumerate(records)
    ]


def _named(
    points: Sequence[Point],
    records: Sequence[Record],
    drawn: Sequence[Point],
    devices: words.Devices,
) -> list[str]:
    ways = words.varied(points, _WAYS)
    together = words.told(points, _TOLD, ways, among=drawn, devices=devices).together
    numbered = sorted((datum["number"], i) for i, datum in enumerate(records) if datum["front"])
    if not numbered:
        return [together]
    names = words.told([points[i] for _, i in numbered], _TOLD, ways, 44, drawn, devices).apart
    lines = [f"{number}  {name}" for (number, _), name in zip(numbered, names, strict=True)]
    more = len(lines) - _MOST_NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return [together, *lines[:_MOST_NAMED], *rest]


def _layers(
    records: Sequence[Record], across: axes.ChartAxis, up: axes.ChartAxis, *, falling: bool = False
) -> list[axes.Spec]:
    place = {"x": across.of("ms"), "y": up.of("value")}
    form: axes.Spec = {"interpolate": "step-after", "color": axes.INK, "strokeWidth": 1.2}
    line = axes.layer("line", place, where="datum.front", **form)
    tips = [*tooltip(up.title, records), *numbers(ms=LATENCY.title)]
    clear = {"condition": {"test": _CLEAR, "value": 1}, "value": 0.35}
    marks = dots({**place, "tooltip": tips, "opacity": clear}, 60)
    return [line, marks, *_numbers(records, place, across, up, falling=falling)]


def _numbers(
    records: Sequence[Record],
    place: axes.Spec,
    across: axes.ChartAxis,
    up: axes.ChartAxis,
    *,
    falling: bool,
) -> list[axes.Spec]:
    """Place numbers above marks, or below if one is in the way; reversed on a falling line."""
    on_it = sorted(
        (datum for datum in records if datum["front"]), key=lambda datum: datum["number"]
    )
    placed: dict[str, list[Record]] = {side: [] for side in _SIDES}
    first, second = ("below", "above") if falling else ("above", "below")
    last = {"above": (-99.0, -99.0), "below": (-99.0, -99.0)}
    for label in on_it[:_MOST_NAMED]:
        if falling and label is on_it[-1] and len(on_it) > 1:
            # Below it the axis may be in the way, and no line goes on.
            placed["right"].append(label)
            continue
        at = (
            _pixel(label["ms"], across) * axes.PANEL_WIDE,
            _pixel(label["value"], up) * axes.PANEL_HIGH,
        )
        side = first if _apart(at, last[first]) else second
        if not _apart(at, last[side]):
            continue
        last[side] = at
        placed[side].append(label)
    channels = {**place, "text": {"field": "number"}}
    return [
        {"data": {"values": several}, **labels(channels, fontWeight=600, **_SIDES[side])}
        for side, several in placed.items()
        if several
    ]


def _apart(place: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(place[0] - other[0]) > _NEAR or abs(place[1] - other[1]) > _NEAR


def _pixel(value: float, axis: axes.ChartAxis) -> float:
    if axis.log:
        return log(value / axis.low) / log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


ENERGY = Quantity(phrase("charts.axis-energy"), lambda point: point.energy_per_item)

_X, _Y = phrase("charts.axis-intensity"), phrase("charts.axis-operations")
_MOST = 400
#: So many of them are numbered and named.
_MOST_NUMBERED = 8


def draw_roofline(subject: Subject) -> ChartBody | None:
    """Operations a second against intensity, under the limits of their device."""
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
    notes += sorted({f"{words.safe(roof.name)}, {roof.precision}: {roof.source}" for roof in roofs})
    if bare := sorted(hardware - {roof.hardware for roof in roofs}):
        notes.append(phrase("charts.no-roof", bare=join_first(bare)))
    if any("devices" in datum and datum["hardware"] != "cpu" for datum in records):
        notes.append(phrase("charts.operations-of-each-device"))
    notes += words.left_out(len(timed) - _MOST, "configuration")
    notes += words.emulated(len(known) - len(timed))
    notes += _names(shown, records, subject.devices)
    return ChartBody(_body(records, lines), shown, notes, records)


def _cell(point: Point) -> Record:
    flops, moved = point.metric("flops"), point.metric("bytes_moved")
    assert flops is not None
    assert moved is not None
    assert point.latency is not None
    # A roof is one device's. Processes on a CPU share it, whole.
    devices = device_count(point.row) if sharing_unit(point.row) == "devices" else 1
    rate = flops.value / devices / point.latency.value / 1e6
    more = {"intensity": flops.value / moved.value, "value": rate}
    return record(point, point.latency) | more | {"low": None, "high": None}


def _numbered(records: Sequence[Record]) -> list[Record]:
    order = sorted(range(len(records)), key=lambda i: -records[i]["value"])
    ranks = {i: number for number, i in enumerate(order, 1)}
    return [{**datum, "number": ranks[i]} for i, datum in enumerate(records)]


def _names(shown: Sequence[Point], records: Sequence[Record], devices: words.Devices) -> list[str]:
    order = sorted(zip(records, shown, strict=True), key=lambda pair: pair[0]["number"])
    named = [point for _, point in order]
    names = words.told(named, words.EVERYTHING, ("model",), 72, devices=devices)
    lines = [f"{number}  {name}" for number, name in enumerate(names.apart[:_MOST_NUMBERED], 1)]
    more = len(shown) - len(lines)
    rest = [phrase("charts.more-in-table", more=more)] if more else []
    return [*words.in_common(names.together), *lines, *rest]


def _roof(roof: Roof, reach: Sequence[float]) -> list[Record]:
    ridge = roof.operations_per_second / roof.bytes_per_second
    low, high = min(*reach, ridge) / 2, max(*reach, ridge) * 2
    measured = f", measured {roof.measured_on}" if roof.measured_on else ""
    about = {
        "hardware": words.safe(roof.hardware),
        "device": words.safe(roof.name),
        "colour": colour_of(roof.hardware),
        "roof": words.safe(f"{words.short_device(roof.name)}, {roof.precision}{measured}", 60),
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


def _body(records: Sequence[Record], lines: Sequence[Record]) -> axes.Spec:
    everything = [*records, *lines]
    x = axis(_X, [datum["intensity"] for datum in everything], log=True).of("intensity")
    heights = [datum.get(name) for datum in everything for name in ("value", "limit")]
    up = axis(_Y, heights, log=True)
    fields = [*tooltip(_Y, records), {"field": "intensity", "title": _X, "format": ",.3~r"}]
    place = {"x": x, "y": up.of("value")}
    marks = dots({**place, "tooltip": fields, "opacity": {"value": 0.85}}, 50)
    text = labels({**place, "text": {"field": "number"}}, dx=10, fontWeight=600)
    numbers = {"transform": [{"filter": f"datum.number <= {_MOST_NUMBERED}"}], **text}
    layers = [*_roofs(lines, x, up.of("limit")), marks, numbers]
    return arranged([Panel("", (), records, layers)], legends(records))


def _roofs(lines: Sequence[Record], x: axes.Spec, y: axes.Spec) -> list[axes.Spec]:
    if not lines:
        return []
    names = list(dict.fromkeys(datum["roof"] for datum in lines))
    dashes = [axes.DASHES[place % len(axes.DASHES)] for place in range(len(names))]
    dash = {**axes.as_stored("roof"), "scale": {"domain": names, "range": dashes}, "legend": None}
    place = {"x": x, "y": y}
    label = labels({**place, "text": {"field": "roof"}}, align="right", dy=-7)
    ends = {"data": {"values": [datum for datum in lines if datum["end"]]}}
    line = {**place, "stroke": COLOUR, "strokeDash": dash}
    return [axes.layer("line", line, of=lines, strokeWidth=2), {**ends, **label}]

"""Latency against throughput: which ways of running a model no other one beats in both. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from accelbench.analysis.points import Point
from accelbench.analysis.questions import Key, values
from accelbench.core.provenance import COMPARABLE
from accelbench.core.rates import kind_of_unit, unit_of
from accelbench.report.charts.axes import ChartAxis, Spec, in_their_unit, own_axes, shared
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import (
    UNUSABLE,
    Record,
    dots,
    hardware_legend,
    kind_legend,
    record,
    tooltip,
)
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import emulated, left_out, safe
from accelbench.report.charts.theme import INK, PANEL_HIGH, PANEL_WIDE
from accelbench.report.charts.words import ALIKE, EVERYTHING, PLACE, Devices, told, varied

_LATENCY, _THROUGHPUT = "mean latency of a batch, ms", "throughput, items/s"
#: A front of more has its fastest named.
_MOST_NAMED = 6
#: Numbers nearer to each other than this, in pixels, would lie on each other.
_NEAR = 11
#: What is said of each number, where not all marks of its panel have it in common.
_WAYS = (PLACE, "runtime", "precision", "batch_size")
#: A hatching or a hollow mark that is pale is none, and what was predicted is pale already.
_CLEAR = f"datum.front || datum.kind === 'simulated' || datum.kind === 'predicted' || {UNUSABLE}"
_TOLD = tuple(name for name in EVERYTHING if name != "model")


def front(places: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each (latency, throughput) whether no other is as good in one and better in the other."""
    order = sorted(range(len(places)), key=lambda i: (places[i][0], -places[i][1]))
    best, last = 0.0, -1.0
    found = [False] * len(places)
    for i in order:
        latency, rate = places[i]
        found[i] = rate > best or (rate == best and latency == last)
        if rate > best:
            best, last = rate, latency
    return found


def _drawn(subject: Subject) -> ChartBody | None:
    known = [one for one in subject.points if one.latency and one.throughput]
    timed = [one for one in known if one.timed]
    asked: dict[Key, list[Point]] = {}
    for one in timed:
        asked.setdefault(_work(one), []).append(one)
    several = [found for found in asked.values() if len(found) > 2]
    if not several:
        return None
    shown = sorted(several, key=lambda found: -len(found))[:MOST_PANELS]
    groups = [_records(found) for found in shown]
    across = shared(_LATENCY, [[one["ms"] for one in group] for group in groups])
    up = shared(_THROUGHPUT, [[one["value"] for one in group] for group in groups])
    there = {_work(found[0]) for found in shown}
    titles = [safe(found[0].row.get("model"), 36) for found in shown]
    drawn = [one for found in shown for one in found]
    named = [
        in_their_unit(scale, (point.row for point in found))
        for scale, found in zip(up, shown, strict=True)
    ]
    panels = [
        Panel(
            title,
            _named(found, records, drawn, subject.devices),
            records,
            _layers(records, x, y),
        )
        for title, found, records, x, y in zip(titles, shown, groups, across, named, strict=True)
    ]
    notes = [
        "On the line, numbered: what no other one measured beats in both.",
        *(own_axes(across) or own_axes(up)),
        *left_out(len(several) - len(shown), "panel", advice="name the models to see"),
        *emulated(sum(not one.timed and _work(one) in there for one in known)),
    ]
    everything = [one for group in groups for one in group]
    legends = [*kind_legend(everything), *hardware_legend(everything)]
    return ChartBody(arranged(panels, legends), drawn, notes, everything)


def _work(point: Point) -> Key:
    """What a panel is of."""
    return (point.machine, kind_of_unit(unit_of(point.row)), *values(point.row, ALIKE))


def _records(found: Sequence[Point]) -> list[Record]:
    """With the number of each that is on the front; what nobody measured, or nobody
    knows well enough, is on none."""
    records = []
    for one in found:
        assert one.latency is not None
        assert one.throughput is not None
        more = {"ms": one.latency.value, "low": None, "high": None}
        records.append(record(one, one.throughput, rate=True) | more)
    real = [i for i, one in enumerate(found) if one.kind in COMPARABLE and one.usable]
    best = front([(records[i]["ms"], records[i]["value"]) for i in real])
    on_it = [i for i, good in zip(real, best, strict=True) if good]
    ranks = {i: n for n, i in enumerate(sorted(on_it, key=lambda i: records[i]["ms"]), 1)}
    return [
        {**one, "front": i in ranks, "number": ranks.get(i, 0)} for i, one in enumerate(records)
    ]


def _named(
    found: Sequence[Point], records: Sequence[Record], drawn: Sequence[Point], devices: Devices
) -> list[str]:
    """What each number is: there is no room beside the marks."""
    ways = varied(found, _WAYS)
    together = told(found, _TOLD, ways, among=drawn, devices=devices).together
    numbered = sorted((one["number"], i) for i, one in enumerate(records) if one["front"])
    if not numbered:
        return [together]
    names = told([found[i] for _, i in numbered], _TOLD, ways, 44, drawn, devices).apart
    lines = [f"{number}  {name}" for (number, _), name in zip(numbered, names, strict=True)]
    more = len(lines) - _MOST_NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return [together, *lines[:_MOST_NAMED], *rest]


def _layers(records: Sequence[Record], across: ChartAxis, up: ChartAxis) -> list[Spec]:
    place = {"x": across.of("ms"), "y": up.of("value")}
    best = [{"filter": "datum.front"}]
    line: Spec = {
        "transform": best,
        "mark": {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.2},
        "encoding": place,
    }
    told_of = [*tooltip(up.title, records), {"field": "ms", "title": _LATENCY}]
    marks = dots({**place, "tooltip": told_of}, 60)
    marks["encoding"]["opacity"] = {"condition": {"test": _CLEAR, "value": 1}, "value": 0.35}
    return [line, marks, *_numbers(records, place, across, up)]


def _numbers(
    records: Sequence[Record], place: Spec, across: ChartAxis, up: ChartAxis
) -> list[Spec]:
    """Above their marks, and below where the one before would be in the way."""
    on_it = sorted((one for one in records if one["front"]), key=lambda one: one["number"])
    above: list[Record] = []
    below: list[Record] = []
    last = {"above": (-99.0, -99.0), "below": (-99.0, -99.0)}
    for one in on_it[:_MOST_NAMED]:
        at = (_pixel(one["ms"], across) * PANEL_WIDE, _pixel(one["value"], up) * PANEL_HIGH)
        side = "above" if _apart(at, last["above"]) else "below"
        if not _apart(at, last[side]):
            continue
        last[side] = at
        (above if side == "above" else below).append(one)
    mark: Spec = {"type": "text", "fontSize": 11.5, "fontWeight": 600, "color": INK}
    return [
        {
            "data": {"values": several},
            "mark": {**mark, "dy": dy},
            "encoding": {**place, "text": {"field": "number"}},
        }
        for several, dy in ((above, -10), (below, 12))
        if several
    ]


def _apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) > _NEAR or abs(one[1] - other[1]) > _NEAR


def _pixel(value: float, axis: ChartAxis) -> float:
    """How far along its axis it stands."""
    if axis.log:
        return log(value / axis.low) / log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


PARETO = Chart(
    "pareto",
    "Latency against throughput",
    "which ways of running no other one beats",
    "a model run in three ways",
    _drawn,
)

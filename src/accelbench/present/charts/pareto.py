"""Latency against throughput and energy: which ways of running no other one beats. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, log

from accelbench.core.figures import kind_of_unit, unit_of
from accelbench.core.worth import COMPARABLE
from accelbench.judge.points import FigureInterval, Point
from accelbench.judge.questions import Key
from accelbench.present.charts.axes import (
    ChartAxis,
    Spec,
    in_their_unit,
    layer,
    numbers,
    own_axes,
    shared,
)
from accelbench.present.charts.chart import ChartBody, Subject, declare_chart
from accelbench.present.charts.marks import (
    MOST_PANELS,
    UNUSABLE,
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
from accelbench.present.charts.theme import INK, PANEL_HIGH, PANEL_WIDE
from accelbench.present.charts.words import (
    ALIKE,
    EVERYTHING,
    PLACE,
    WAY,
    Devices,
    emulated,
    left_out,
    safe,
    told,
    varied,
    vary,
)
from accelbench.present.texts import phrase

_LATENCY = phrase("charts.axis-latency")
#: A front of more has its fastest named.
_MOST_NAMED = 6
#: Numbers nearer to each other than this, in pixels, would lie on each other.
_NEAR = 11
#: Where a number stands beside its mark.
_SIDES = {"above": {"dy": -10}, "below": {"dy": 12}, "right": {"dx": 12}}
#: What is said of each number, where not all marks of its panel have it in common.
_WAYS = (PLACE, "runtime", "precision", "batch_size")
_RAN = tuple(name for name in WAY if name != "machine")
#: A hatching or a hollow mark that is pale is none, and what was predicted is pale already.
_CLEAR = f"datum.front || datum.kind === 'simulated' || datum.kind === 'predicted' || {UNUSABLE}"
_TOLD = tuple(name for name in EVERYTHING if name != "model")


@dataclass(frozen=True)
class Tradeoff:
    """What stands against latency."""

    figure: Callable[[Point], FigureInterval | None]
    title: str  # of its axis, with the unit
    lower_is_better: bool = False
    rate: bool = False  # it counts items, whose unit its axis tells

    def of(self, point: Point) -> FigureInterval:
        """The figure of a point that has it."""
        known = self.figure(point)
        assert known is not None
        return known


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


def _drawn(tradeoff: Tradeoff, subject: Subject) -> ChartBody | None:
    known = [point for point in subject.points if point.latency and tradeoff.figure(point)]
    timed = [point for point in known if point.timed]
    by_work: dict[Key, list[Point]] = {}
    for cell in timed:
        by_work.setdefault(_work(cell), []).append(cell)
    # If they differ in their batch only, a single line beats nothing and is unbeaten.
    several = [panel for panel in by_work.values() if len(panel) > 2 and vary(panel, _RAN)]
    if not several:
        return None
    shown = sorted(several, key=lambda panel: -len(panel))[:MOST_PANELS]
    groups = [_records(panel, tradeoff) for panel in shown]
    across = shared(_LATENCY, [[datum["ms"] for datum in group] for group in groups])
    up = shared(tradeoff.title, [[datum["value"] for datum in group] for group in groups])
    jobs = {_work(panel[0]) for panel in shown}
    titles = [safe(panel[0].row.get("model"), 36) for panel in shown]
    drawn = [point for panel in shown for point in panel]
    named = [
        in_their_unit(scale, (point.row for point in panel))
        for scale, panel in zip(up, shown, strict=True)
    ]
    panels = [
        Panel(
            title,
            _named(panel, records, drawn, subject.devices),
            records,
            _layers(records, x, y, falling=tradeoff.lower_is_better),
        )
        for title, panel, records, x, y in zip(titles, shown, groups, across, named, strict=True)
    ]
    notes = [
        phrase("charts.front-legend"),
        *(own_axes(across) or own_axes(up)),
        *left_out(len(several) - len(shown), "panel", advice=phrase("charts.name-models")),
        *emulated(sum(not point.timed and _work(point) in jobs for point in known)),
    ]
    everything = [datum for group in groups for datum in group]
    legends = [*kind_legend(everything), *hardware_legend(everything)]
    return ChartBody(arranged(panels, legends), drawn, notes, everything)


def _work(point: Point) -> Key:
    return (point.machine, kind_of_unit(unit_of(point.row)), *point.asked_in(ALIKE))


def _records(points: Sequence[Point], tradeoff: Tradeoff) -> list[Record]:
    records = []
    for point in points:
        assert point.latency is not None
        more = {"ms": point.latency.value, "low": None, "high": None}
        records.append(record(point, tradeoff.of(point), rate=tradeoff.rate) | more)
    real = [i for i, point in enumerate(points) if point.kind in COMPARABLE and point.usable]
    sign = -1 if tradeoff.lower_is_better else 1
    best = front([(records[i]["ms"], sign * records[i]["value"]) for i in real])
    on_it = [i for i, good in zip(real, best, strict=True) if good]
    ranks = {i: n for n, i in enumerate(sorted(on_it, key=lambda i: records[i]["ms"]), 1)}
    return [
        {**datum, "front": i in ranks, "number": ranks.get(i, 0)} for i, datum in enumerate(records)
    ]


def _named(
    points: Sequence[Point], records: Sequence[Record], drawn: Sequence[Point], devices: Devices
) -> list[str]:
    ways = varied(points, _WAYS)
    together = told(points, _TOLD, ways, among=drawn, devices=devices).together
    numbered = sorted((datum["number"], i) for i, datum in enumerate(records) if datum["front"])
    if not numbered:
        return [together]
    names = told([points[i] for _, i in numbered], _TOLD, ways, 44, drawn, devices).apart
    lines = [f"{number}  {name}" for (number, _), name in zip(numbered, names, strict=True)]
    more = len(lines) - _MOST_NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return [together, *lines[:_MOST_NAMED], *rest]


def _layers(
    records: Sequence[Record], across: ChartAxis, up: ChartAxis, *, falling: bool = False
) -> list[Spec]:
    place = {"x": across.of("ms"), "y": up.of("value")}
    form: Spec = {"interpolate": "step-after", "color": INK, "strokeWidth": 1.2}
    line = layer("line", place, where="datum.front", **form)
    tips = [*tooltip(up.title, records), *numbers(ms=_LATENCY)]
    clear = {"condition": {"test": _CLEAR, "value": 1}, "value": 0.35}
    marks = dots({**place, "tooltip": tips, "opacity": clear}, 60)
    return [line, marks, *_numbers(records, place, across, up, falling=falling)]


def _numbers(
    records: Sequence[Record], place: Spec, across: ChartAxis, up: ChartAxis, *, falling: bool
) -> list[Spec]:
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
        at = (_pixel(label["ms"], across) * PANEL_WIDE, _pixel(label["value"], up) * PANEL_HIGH)
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


def _pixel(value: float, axis: ChartAxis) -> float:
    if axis.log:
        return log(value / axis.low) / log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


PARETO = declare_chart(
    "pareto",
    partial(_drawn, Tradeoff(lambda point: point.throughput, "throughput, items/s", rate=True)),
)
_ENERGY = Tradeoff(
    lambda point: point.energy_per_item, phrase("charts.axis-energy"), lower_is_better=True
)
ENERGY_LATENCY = declare_chart("energy-latency", partial(_drawn, _ENERGY))

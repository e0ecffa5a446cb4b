"""What more processes bring: throughput beside that of one process, taken as often. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import log10

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.identity import canonical_json
from accelbench.core.rows import number, record
from accelbench.judge.points import FigureInterval, Point
from accelbench.judge.process_spread import ranks_of
from accelbench.judge.questions import Key, values
from accelbench.present.charts import axes, marks
from accelbench.present.charts.chart import ChartBody, Subject
from accelbench.present.charts.words import emulated, safe, told
from accelbench.present.texts import phrase

_APART = phrase("charts.scaling-other-run")
#: Of options, how processes share the work; threads are compared by how many each has.
_OF_SHARING = frozenset(("strategy", "accumulate", "threads"))
_WORK = tuple(
    name for name in CONFIGURATION_COLUMNS if name not in ("world_size", "threads", "options")
)
#: An interval is drawn this many times further than the ideal reaches.
_FURTHEST = 1.3
#: Pixels of a line's name.
_LINE_HEIGHT = 14


@dataclass(frozen=True)
class ScalingLine:
    """The same work by one process and, shared by one strategy, by several."""

    strategy: str
    alone: Point
    together: Sequence[Point]  # fewest processes first

    @property
    def points(self) -> Sequence[Point]:
        """All of them, the one process first."""
        return (self.alone, *self.together)

    @property
    def of_one_run(self) -> bool:
        """Whether its last point's efficiency is compared with the one process that is drawn."""
        return self.alone.row.get("run_id") == self.together[-1].row.get("run_id")


def processes_of(point: Point) -> int:
    """How many processes took part."""
    return int(number(point.row, "world_size") or 1)


def scaling_lines(points: Iterable[Point]) -> list[ScalingLine]:
    """A line for each work and strategy of which one process's throughput is known as well.

    Of several ways that differ in micro-batches alone the fastest stands.
    """
    known = [point for point in points if point.throughput]
    if all(processes_of(point) == 1 for point in known):
        return []
    alone: dict[Key, Point] = {}
    lines: dict[tuple[Key, str], dict[int, Point]] = {}
    for point in sorted(known, key=lambda point: (point.usable, -point.item_ms)):
        # The fastest comes last, and what is usable after what is not: it stays.
        if processes_of(point) == 1:
            alone[_work(point)] = point
        else:
            strategy = str(record(point.row, "options").get("strategy") or "")
            lines.setdefault((_work(point), strategy), {})[processes_of(point)] = point
    return [
        ScalingLine(strategy, alone[work], [by_count[count] for count in sorted(by_count)])
        for (work, strategy), by_count in sorted(
            lines.items(), key=lambda entry: (str(entry[0][0]), entry[0][1])
        )
        if work in alone
    ]


def _work(point: Point) -> Key:
    row = point.row
    options = {n: v for n, v in record(row, "options").items() if n not in _OF_SHARING}
    threads = _threads_of_each(point) if row.get("hardware") == "cpu" else None
    return (point.machine, point.kind, *values(row, _WORK), canonical_json(options), threads)


def _threads_of_each(point: Point) -> int | None:
    ranks = ranks_of(point.row)
    if ranks and ranks[0].threads is not None:
        return ranks[0].threads
    threads = number(point.row, "threads")
    return None if threads is None else int(threads) // processes_of(point)


def draw_scaling(subject: Subject) -> ChartBody | None:
    """A panel for each work that one process and several did."""
    lines = scaling_lines(point for point in subject.points if point.timed)
    if not lines:
        return None
    panels: dict[int, list[ScalingLine]] = {}
    for line in lines:
        panels.setdefault(id(line.alone), []).append(line)
    ordered = sorted(panels.values(), key=lambda panel: -_most([panel]))
    shown = ordered[: marks.MOST_PANELS]
    log = axes.far([1.0, float(_most(shown))])
    groups = [[point for line in panel for point in line.points] for panel in shown]
    drawn = [point for points in groups for point in points]
    records = [_records(panel) for panel in shown]
    scales = [axes.axis(marks.THROUGHPUT.title, _reach(several), log=log) for several in records]
    views = [
        (
            [told(points, among=drawn, devices=subject.devices).together],
            _layers(several, _across(several, log), scale, len(shown) == 1),
        )
        for points, several, scale in zip(
            groups, records, axes.in_their_units(scales, groups), strict=True
        )
    ]
    stand_ins = scaling_lines(point for point in subject.points if not point.timed)
    apart = any(not line.of_one_run for panel in shown for line in panel)
    notes = [
        phrase("charts.scaling-legend"),
        *([_APART] if apart else []),
        *marks.panel_notes(scales, records, len(ordered) - len(shown)),
        *emulated(sum(len(line.together) for line in stand_ins)),
    ]
    return marks.draw_panels(groups, records, views, notes)


def _most(panels: Iterable[Sequence[ScalingLine]]) -> int:
    return max(processes_of(line.points[-1]) for panel in panels for line in panel)


def _records(lines: Sequence[ScalingLine]) -> list[axes.Record]:
    records = []
    for line in lines:
        base = line.alone.throughput
        assert base is not None
        for point in line.points:
            span, count = point.throughput, processes_of(point)
            assert span is not None
            efficiency = point.metric("scaling_efficiency") if count > 1 else None
            more: axes.Record = {
                "strategy": safe(line.strategy),
                "processes": count,
                "ideal": base.value * count,
                "efficiency": None if efficiency is None else efficiency.value,
                "said": _said(line, efficiency) if point is line.points[-1] else "",
            }
            records.append(marks.record(point, span, rate=True, **more))
    return records


def _said(line: ScalingLine, efficiency: FigureInterval | None) -> str:
    name = safe(line.strategy, 20)
    if efficiency is None or not line.of_one_run:
        return name
    percent = 100 * efficiency.value
    return f"{name} {percent:.0f} %" if percent >= 1 else f"{name} {percent:.1g} %"


def _reach(records: Sequence[axes.Record]) -> list[float | None]:
    figures = [datum[name] for datum in records for name in ("value", "ideal")]
    least, most = min(figures) / _FURTHEST, max(figures) * _FURTHEST
    intervals = [datum[name] for datum in records for name in ("low", "high")]
    return [*figures, *(end and min(max(end, least), most) for end in intervals)]


def _across(records: Sequence[axes.Record], log: bool) -> axes.Spec:
    counts = sorted({datum["processes"] for datum in records})
    reach = counts[-1] - 1
    # On the right there has to be room for the lines' names.
    ends = [1 / 1.15, counts[-1] ** 1.4] if log else [1 - 0.08 * reach, counts[-1] + 0.4 * reach]
    kind: axes.Spec = {"type": "log", "base": 2} if log else {"zero": False}
    return {
        "field": "processes",
        "type": "quantitative",
        "title": "processes (log)" if log else "processes",
        "scale": {**kind, "domain": ends, "nice": False},
        "axis": {"values": counts, "format": "d", "labelOverlap": True, "grid": False},
    }


def _layers(
    records: Sequence[axes.Record], x: axes.Spec, scale: axes.ChartAxis, alone: bool
) -> list[axes.Spec]:
    y = scale.of("value")
    place = {"x": x, "y": y}
    names = dict.fromkeys(datum["strategy"] for datum in records)
    widths = axes.grouped(
        "strategy", dict(zip(names, cycle(axes.LINE_WIDTHS[:3]), strict=False)), None
    )
    form: axes.Spec = {"color": axes.DIM, "strokeDash": [2, 3], "strokeWidth": 1.5}
    coloured = {**place, "color": marks.COLOUR}
    ends = [datum for datum in records if datum["said"]]
    named = {"data": {"values": _apart(ends, scale, axes.HIGH if alone else axes.PANEL_HIGH)}}
    text = marks.haloed({"x": x, "y": {**y, "field": "label"}, "text": {"field": "said"}}, dx=9)
    return [
        axes.layer("line", {"x": x, "y": {**y, "field": "ideal"}}, **form),
        axes.layer("line", {**coloured, "strokeWidth": widths}),
        *marks.whiskers(records, "y", coloured, scale),
        marks.dots({**place, "tooltip": [*marks.tooltip(scale.title, records), *_MORE_TOLD]}, 60),
        *({**named, **one} for one in text),
    ]


def _apart(ends: Sequence[axes.Record], scale: axes.ChartAxis, height: int) -> list[axes.Record]:
    low, high = (_on(scale, end) for end in (scale.low, scale.high))
    least = _LINE_HEIGHT / height * (high - low)
    placed: list[axes.Record] = []
    above: dict[int, float] = {}
    for datum in sorted(ends, key=lambda datum: -datum["value"]):
        count = datum["processes"]
        on_axis = low + least / 2  # below it the axis would strike the name through
        at = min(max(_on(scale, datum["value"]), on_axis), above.get(count, high + least) - least)
        above[count] = at
        label = 10**at if scale.log else at
        placed.append({"processes": count, "label": label, "said": datum["said"]})
    return placed


def _on(scale: axes.ChartAxis, value: float) -> float:
    return log10(value) if scale.log else value


_MORE_TOLD: list[axes.Spec] = [
    {"field": "processes", "type": "quantitative"},
    {"field": "efficiency", "type": "quantitative", "format": ".0%"},
]

"""What of a step of several processes is communication, and what of that nothing covers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.points import FigureInterval, Point
from accelbench.analysis.ranks import StepParts, step_parts
from accelbench.core.rows import number
from accelbench.report.charts.axes import ChartAxis, Spec, axis
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import Record, record
from accelbench.report.charts.phrases import emulated, figure, in_common, left_out
from accelbench.report.charts.theme import GROUP_COLOURS, INK, PAPER, REST_COLOUR, WIDE
from accelbench.report.charts.words import DEVICES, EVERYTHING, told, unique

#: Parts in the order in which they are drawn, each with its colour: they are no platforms.
_PARTS = {
    "computation": REST_COLOUR,
    "overlapped communication": GROUP_COLOURS[5],
    "exposed communication": GROUP_COLOURS[1],
}
_MEANT = (
    "The mean of the ranks over steps under a profiler, which makes steps longer. A collective"
    " lasts from its call to its result, waiting for other ranks included; computation is the rest."
)
_MOST_BARS = 16
_LONGEST_NAME = 72
#: Beside the longest bar there has to be room for its words.
_ROOM = 0.2
_BAR = 24


def _drawn(subject: Subject) -> ChartBody | None:
    split = [(point, parts) for point in subject.points if (parts := step_parts(point.rows))]
    known = [(point, parts) for point, parts in split if point.timed]
    if not known:
        return None
    shown = sorted(known, key=lambda entry: _place(entry[0]))[:_MOST_BARS]
    points = [point for point, _ in shown]
    always = ("model", DEVICES, "options")
    names = told(points, EVERYTHING, always, _LONGEST_NAME, devices=subject.devices)
    records = [
        datum
        for (point, parts), name in zip(shown, unique(names.apart), strict=True)
        for datum in _records(point, parts, name)
    ]
    scale = axis("profiled step, ms", [parts.step for _, parts in shown], log=False)
    notes = [
        _MEANT,
        *in_common(names.together),
        *left_out(len(known) - len(shown), "configuration"),
        *emulated(len(split) - len(known)),
    ]
    return ChartBody(_body(records, scale.with_room(_ROOM)), points, notes, records)


def _place(point: Point) -> tuple[object, ...]:
    row = point.row
    sizes = [number(row, name) or 0 for name in ("batch_size", "world_size")]
    what = [str(row.get(name)) for name in ("model", "hardware", "mode")]
    return (*what, *sizes, str(row.get("options")))


def _records(point: Point, parts: StepParts, name: str) -> list[Record]:
    figures = (parts.computation, parts.overlapped, parts.exposed)
    shares = f"{figure(parts.exposed)} ms exposed, {100 * parts.exposed / parts.step:.0f} %"
    begin, records = 0.0, []
    for place, (part, value) in enumerate(zip(_PARTS, figures, strict=True)):
        last = place == len(_PARTS) - 1
        more: Record = {"bar": name, "part": part, "place": begin, "end": begin + value}
        # The times are a profiler's own, and as steady as any: their interval is not the step's.
        datum = record(point, FigureInterval(value), timed=False, **more)
        records.append({**datum, "said": shares if last else ""})
        begin += value
    return records


def _body(records: Sequence[Record], scale: ChartAxis) -> Spec:
    y: Spec = {
        "field": "bar",
        "type": "nominal",
        "title": None,
        "sort": list(dict.fromkeys(datum["bar"] for datum in records)),
        "axis": {"labelLimit": 480, "ticks": False, "domain": False},
    }
    parts: Spec = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": list(_PARTS), "range": list(_PARTS.values())},
        "legend": {"title": None, "symbolType": "square", "columns": 3},
    }
    told_of: list[Spec] = [
        {"field": "bar", "type": "nominal", "title": "configuration"},
        {"field": "part", "type": "nominal"},
        {"field": "value", "type": "quantitative", "title": "ms", "format": ",.4~r"},
    ]
    segments: Spec = {
        "mark": {"type": "bar", "stroke": PAPER, "strokeWidth": 1, "height": {"band": 0.7}},
        "encoding": {
            "x": scale.of("place"),
            "x2": {"field": "end"},
            "y": y,
            "fill": parts,
            "tooltip": told_of,
        },
    }
    words: Spec = {
        "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11.5, "color": INK},
        "encoding": {"x": scale.of("end"), "y": y, "text": {"field": "said"}},
    }
    return {
        "data": {"values": list(records)},
        "width": WIDE,
        "height": {"step": _BAR},
        "layer": [segments, words],
    }


COMMUNICATION = Chart(
    "communication",
    "Communication of a step",
    "what of a step of several processes is communication",
    "steps of several processes",
    _drawn,
)

"""Ratios of one place to another as a distribution: a mark a configuration, slowest first. Pure.

As ordered marks and no histogram: each can be pointed at, its interval is seen, and who loses
stands left of the line at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.comparison import Compared
from accelbench.analysis.speed_ups import (
    FASTER,
    FASTER_ALONE,
    SLOWER,
    SLOWER_ALONE,
    UNSURE,
    SpeedUps,
    verdict,
)
from accelbench.core.nouns import counted, digits
from accelbench.core.rows import text
from accelbench.report.charts.axes import NUMBER, Spec, axis
from accelbench.report.charts.chart import ChartBody, ChartLabel, Picture, pictured
from accelbench.report.charts.marks import Record
from accelbench.report.charts.theme import ALERT, BETTER, DIM, INK, PAPER, REST_COLOUR
from accelbench.report.charts.words import safe

SPEED_UPS = ChartLabel(
    "speed-ups",
    "Speed-ups",
    "how many times as fast one is as the other, in each configuration that both have answered",
    "configurations that both have answered alike",
)
#: So many are named beside their marks; of more than so many intervals hide each other.
_NAMED, _WHISKERS = 36, 400
_COLOURS = {
    SLOWER: ALERT,
    SLOWER_ALONE: ALERT,
    UNSURE: REST_COLOUR,
    FASTER_ALONE: BETTER,
    FASTER: BETTER,
}
_SHAPES = {
    SLOWER: "triangle-left",
    SLOWER_ALONE: "square",
    UNSURE: "circle",
    FASTER_ALONE: "diamond",
    FASTER: "triangle-right",
}
_TITLE = "times as fast"


def speed_ups_picture(made: SpeedUps, base: str, other: str) -> Picture | None:
    """The picture; None where nothing can be told.

    Args:
        made: the ratios.
        base: what the other is compared with.
        other: what stands left of 1 where it is slower.
    """
    known = [line for line in made.lines if line.ratio is not None]
    if not known or made.median is None:
        return None
    records = [_record(number, line) for number, line in enumerate(known)]
    few = len(records) <= _NAMED
    many = f"{counted(len(made.told), 'configuration')} of {counted(made.models, 'model')}"
    reach = any(datum["low"] is not None for datum in records) and len(records) <= _WHISKERS
    lines = _LINES if reach else ""
    notes = [
        f"{safe(other)} against {safe(base)}: right of 1 it is faster.",
        f"Dashed: the median, {digits(made.median)}× of {many}.{lines}",
    ]
    return pictured(SPEED_UPS, ChartBody(_body(records, made.median, few), (), notes, records))


_LINES = " Lines: 95 % intervals."


def _record(number: int, line: Compared) -> Record:
    row, ratio = line.side.row, line.ratio
    assert ratio is not None
    found = verdict(line)
    hollow = row.get("provenance") == "imported"
    return {
        "model": safe(row.get("model"), 48),
        "precision": safe(row.get("precision")),
        "batch": row.get("batch_size"),
        "runtime": safe(row.get("runtime")),
        "times_as_fast": ratio.value,
        "low": ratio.shown[0],
        "high": ratio.shown[1],
        "found": found,
        "kind": text(row, "provenance"),
        "colour": _COLOURS[found],
        "paint": PAPER if hollow else _COLOURS[found],
        "form": _SHAPES[found],
        "place": number,
        "said": f"{number:04} {_name(line)}",
    }


def _name(line: Compared) -> str:
    row = line.side.row
    batch = f" · batch {row['batch_size']}" if row.get("batch_size") else ""
    return f"{safe(row.get('model'), 34)} · {safe(row.get('precision'), 10)}{batch}"


def _body(records: Sequence[Record], middle: float, few: bool) -> Spec:
    values = [datum["times_as_fast"] for datum in records]
    least, most = min(*values, 1.0) / 1.6, max(*values, 1.0) * 1.6
    reach = [
        min(max(end, least), most)
        for datum in records
        for end in (datum["times_as_fast"], datum["low"], datum["high"], 1.0)
        if end
    ]
    scale = axis(_TITLE, reach, log=True)
    x = scale.of("times_as_fast")
    lines: Spec = {"ticks": False, "domain": False, "grid": False}
    y: Spec = {"field": "said", "type": "nominal", "sort": None, "title": None}
    if few:
        y["axis"] = {**lines, "labelLimit": 320, "labelExpr": "slice(datum.value, 5)"}
    else:
        y = {"field": "place", "type": "quantitative", "title": None, "axis": None}
        y["scale"] = {"reverse": True, "domain": [-1, len(records)], "nice": False}
    tips = [
        *({"field": name, "type": "nominal"} for name in _TOLD),
        *(
            {"field": name, "type": "quantitative", "title": label, "format": NUMBER}
            for name, label in (
                ("times_as_fast", _TITLE),
                ("low", "95 % from"),
                ("high", "95 % to"),
            )
        ),
    ]
    marks: Spec = {
        "mark": {"type": "point", "size": 42 if few else 16, "strokeWidth": 1.3, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "stroke": {"field": "colour", "type": "nominal", "scale": None},
            "fill": {"field": "paint", "type": "nominal", "scale": None},
            "shape": {"field": "form", "type": "nominal", "scale": None},
            "tooltip": tips,
        },
    }
    layers = [_rule(1.0, x, INK, [1, 0]), _rule(middle, x, DIM, [5, 3])]
    if len(records) <= _WHISKERS:
        layers.append(_whiskers(x, y))
    return {
        "data": {"values": list(records)},
        "width": 420 if few else 560,
        "height": {"step": 18} if few else 340,
        "layer": [*layers, marks, _legend(records)],
    }


_TOLD = ("model", "precision", "batch", "runtime", "found", "kind")


def _rule(value: float, x: Spec, colour: str, dash: Sequence[int]) -> Spec:
    mark: Spec = {"type": "rule", "color": colour, "strokeWidth": 1.2, "strokeDash": list(dash)}
    return {
        "data": {"values": [{"times_as_fast": value}]},
        "mark": mark,
        "encoding": {"x": x},
    }


def _whiskers(x: Spec, y: Spec) -> Spec:
    return {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.6, "clip": True},
        "encoding": {
            "x": {**x, "field": "low"},
            "x2": {"field": "high"},
            "y": y,
            "stroke": {"field": "colour", "type": "nominal", "scale": None},
        },
    }


def _legend(records: Sequence[Record]) -> Spec:
    there = {datum["found"] for datum in records}
    domain = [found for found in _COLOURS if found in there]
    form: Spec = {
        "field": "found",
        "type": "nominal",
        "legend": {"title": None, "symbolOpacity": 1, "symbolSize": 80, "columns": 3},
    }
    colours = [_COLOURS[found] for found in domain]
    shapes = [_SHAPES[found] for found in domain]
    return {
        "mark": {"type": "point", "filled": True, "opacity": 0},
        "encoding": {
            "color": {**form, "scale": {"domain": domain, "range": colours}},
            "shape": {**form, "scale": {"domain": domain, "range": shapes}},
        },
    }

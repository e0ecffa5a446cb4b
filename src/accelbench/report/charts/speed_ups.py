"""Ratios of one place to another as a distribution: a mark a configuration, slowest first. Pure.

Not a histogram: each mark can be pointed at, and its interval is seen.
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
from accelbench.report.charts.axes import (
    Spec,
    axis,
    grouped,
    layer,
    legend,
    named,
    numbers,
    view,
    words,
)
from accelbench.report.charts.chart import ChartBody, ChartLabel, Picture, pictured
from accelbench.report.charts.marks import COLOUR, FORM, PAINT, Record
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
    """How many times as fast `other` is as `base`; None if nothing can be told."""
    known = [line for line in made.lines if line.ratio is not None]
    if not known or made.median is None:
        return None
    records = [_record(number, line) for number, line in enumerate(known)]
    few = len(records) <= _NAMED
    many = f"{counted(len(made.told), 'configuration')} of {counted(made.models, 'model')}"
    reach = any(datum["low"] is not None for datum in records) and len(records) <= _WHISKERS
    lines = " Lines: 95 % intervals." if reach else ""
    notes = [
        f"{safe(other)} against {safe(base)}: right of 1 it is faster.",
        f"Dashed: the median, {digits(made.median)}× of {many}.{lines}",
    ]
    return pictured(SPEED_UPS, ChartBody(_body(records, made.median, few), (), notes, records))


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
    if few:
        form: Spec = {"grid": False, "labelLimit": 320, "labelExpr": "slice(datum.value, 5)"}
        y = {**named("said", (), **form), "sort": None}
    else:
        y = {"field": "place", "type": "quantitative", "title": None, "axis": None}
        y["scale"] = {"reverse": True, "domain": [-1, len(records)], "nice": False}
    figures = {"times_as_fast": _TITLE, "low": "95 % from", "high": "95 % to"}
    told = words("model", "precision", "batch", "runtime", "found", "kind")
    place = {"x": x, "y": y}
    marks = {**place, "stroke": COLOUR, "fill": PAINT, "shape": FORM}
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "stroke": COLOUR}
    dots: Spec = {"size": 42 if few else 16, "strokeWidth": 1.3, "opacity": 1}
    intervals: Spec = {"strokeWidth": 1.2, "opacity": 0.6, "clip": True}
    layers = [
        _rule(1.0, x, INK, [1, 0]),
        _rule(middle, x, DIM, [5, 3]),
        *(
            [layer("rule", ends, where="isValid(datum.low)", **intervals)]
            if len(records) <= _WHISKERS
            else []
        ),
        layer("point", {**marks, "tooltip": [*told, *numbers(**figures)]}, **dots),
        _legend(records),
    ]
    return view(records, 420 if few else 560, {"step": 18} if few else 340, *layers)


def _rule(value: float, x: Spec, colour: str, dash: Sequence[int]) -> Spec:
    form: Spec = {"color": colour, "strokeWidth": 1.2, "strokeDash": list(dash)}
    return layer("rule", {"x": x}, of=[{"times_as_fast": value}], **form)


def _legend(records: Sequence[Record]) -> Spec:
    there = {datum["found"] for datum in records}
    shown = legend(symbolSize=80, columns=3)
    channels = {
        channel: grouped("found", {n: v for n, v in values.items() if n in there}, shown)
        for channel, values in (("color", _COLOURS), ("shape", _SHAPES))
    }
    return layer("point", channels, filled=True, opacity=0)

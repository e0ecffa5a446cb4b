"""Many configurations in few lines: of each group the quantiles of a figure, and how many. Pure.

Groups have other models in them, so one that stands further left is not the faster one.

Architectures beside each other: every model of each, on each platform. Pure.

Ratios of one place to another as a distribution: a mark a configuration, slowest first. Pure.

Not a histogram: each mark can be pointed at, and its interval is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from accelbench.core.figures import items
from accelbench.core.nouns import counted, digits
from accelbench.core.precision import is_exact
from accelbench.core.rows import Row, text
from accelbench.hardware.common import colour_of
from accelbench.judge.comparison import Compared
from accelbench.judge.points import Point
from accelbench.judge.speed_ups import (
    FASTER,
    FASTER_ALONE,
    SLOWER,
    SLOWER_ALONE,
    UNSURE,
    SpeedUps,
    verdict,
)
from accelbench.present.charts.axes import (
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
from accelbench.present.charts.chart import (
    ChartBody,
    ChartLabel,
    Picture,
    Subject,
    declare_chart,
    label_of,
    pictured,
)
from accelbench.present.charts.marks import (
    COLOUR,
    FORM,
    PAINT,
    Panel,
    Record,
    arranged,
    dots,
    ends,
    hardware_legend,
    kind_legend,
    record,
    tooltip,
)
from accelbench.present.charts.theme import (
    ALERT,
    BETTER,
    DIM,
    GROUP_COLOURS,
    INK,
    MIDDLE_TICK,
    PAPER,
    REST_COLOUR,
    WIDE,
)
from accelbench.present.charts.words import emulated, left_out, safe
from accelbench.present.texts import phrase

#: More groups than this are no picture: those with the most models are drawn.
MOST_GROUPS = 24
_STEP = 22
_LEGEND = phrase("charts.spread-legend")
_HOLLOW = phrase("charts.hollow-legend")


@dataclass(frozen=True)
class SpreadGroup:
    """Configurations that have something in common."""

    name: str  # what they have in common
    hardware: str  # their platform, if that is one
    configurations: int
    models: int
    quantiles: Sequence[float]  # of their figures, at 5, 25, 50, 75 and 95 %
    imported: bool = False  # all of them
    first: str = ""  # the day of the oldest, and `last` of the newest; "" if it is not known
    last: str = ""


def spread_picture(
    label: ChartLabel, title: str, groups: Sequence[SpreadGroup], notes: Sequence[str] = ()
) -> Picture | None:
    """The picture of groups in their order; None if no group has a figure."""
    shown = groups[:MOST_GROUPS]
    if not shown:
        return None
    records = [_record(group) for group in shown]
    count = sum(group.configurations for group in groups)
    days = sorted(day for group in groups for day in (group.first, group.last) if day)
    said = [counted(count, "configuration"), counted(len(groups), "group")]
    said += [f"{days[0]} to {days[-1]}" if days[0] != days[-1] else days[0]] if days else []
    about = [
        " · ".join(said),
        *notes,
        _LEGEND,
        *([_HOLLOW] if any(group.imported for group in shown) else []),
        *left_out(len(groups) - len(shown), "group", advice=phrase("charts.filter-to-see")),
    ]
    return pictured(label, ChartBody(_body(records, title), (), about, records))


def _record(group: SpreadGroup) -> Row:
    low, first, middle, third, high = group.quantiles
    colour = colour_of(group.hardware) if group.hardware else GROUP_COLOURS[0]
    return {
        "group": f"{safe(group.name, 52)} ({group.configurations:,})",
        "configurations": group.configurations,
        "models": group.models,
        "p5": low,
        "p25": first,
        "median": middle,
        "p75": third,
        "p95": high,
        "from": group.first,
        "to": group.last,
        "colour": colour,
        "paint": "transparent" if group.imported else f"{colour}88",
    }


def _body(records: Sequence[Row], title: str) -> Spec:
    ends = [float(str(datum[name])) for datum in records for name in ("p5", "p95")]
    x = axis(title, ends).of("median")
    y = named("group", (datum["group"] for datum in records), labelLimit=360)
    quantiles = {name: f"{name}, {title}" for name in ("p5", "p25", "median", "p75", "p95")}
    tips = [
        *words("group"),
        *numbers(**quantiles),
        *numbers("configurations", "models"),
        *words("from", "to"),
    ]
    place: Spec = {"y": y, "tooltip": tips}
    line = {**place, "x": {**x, "field": "p5"}, "x2": {"field": "p95"}, "color": COLOUR}
    box = {**place, "x": {**x, "field": "p25"}, "x2": {"field": "p75"}}
    layers = [
        layer("rule", line, strokeWidth=1.6),
        layer("bar", {**box, "stroke": COLOUR, "fill": PAINT}, height=11, strokeWidth=1.4),
        layer("tick", {**place, "x": x}, **{**MIDDLE_TICK, "size": 15}),
    ]
    return view(records, WIDE, {"step": _STEP}, *layers)


_ITEM_LATENCY = phrase("charts.axis-item-latency")
#: More models than this share their architecture's line.
_MOST_LINES = 20
#: Precisions that the note names.
_MOST_NAMED = 4


def _best_of_models(points: Sequence[Point]) -> list[Point]:
    best: dict[object, Point] = {}
    for point in points:
        row = point.row
        key = (point.machine, point.kind, *(row.get(n) for n in ("model", "hardware", "mode")))
        if key not in best or _rank(point) < _rank(best[key]):
            best[key] = point
    return list(best.values())


def _rank(point: Point) -> tuple[bool, bool, float]:
    """Rank points: unusable ones, and those quantised with a large or unknown error, come last."""
    assert point.latency is not None
    return not point.usable, not is_exact(point.row), point.latency.value / items(point.row)


def _architecture(point: Point) -> str:
    row = point.row
    return safe(
        row.get("architecture") or row.get("family") or phrase("charts.no-known-architecture")
    )


def _draw_architectures(subject: Subject) -> ChartBody | None:
    timed = [point for point in subject.points if point.timed and point.latency]
    best = _best_of_models(timed)
    if len({_architecture(point) for point in best}) < 2:
        return None
    models = {point.row.get("model") for point in best}
    records = [_model_record(point, len(models) <= _MOST_LINES) for point in best]
    modes = sorted({datum["mode"] for datum in records})
    scale = axis(_ITEM_LATENCY, ends(records))
    panels = []
    for mode in modes:
        several = sorted(
            (datum for datum in records if datum["mode"] == mode),
            key=lambda datum: (datum["architecture"], datum["line"], datum["value"]),
        )
        title = mode if len(modes) > 1 else ""
        panels.append(
            Panel(title, (), several, _model_layers(several, scale.of("value")), {"step": 22})
        )
    notes = [phrase("charts.fastest-of-each")]
    precisions = Counter(
        str(point.row["precision"]) for point in best if point.row.get("precision")
    )
    if len(precisions) > 1:
        listing = ", ".join(f"{safe(name)} {n}" for name, n in precisions.most_common(_MOST_NAMED))
        more = "" if len(precisions) <= _MOST_NAMED else " and others"
        notes.append(phrase("charts.several-precisions", listing=listing, more=more))
    if len(models) > _MOST_LINES:
        notes.append(phrase("charts.architecture-legend"))
    notes += emulated(
        len(
            _best_of_models(
                [point for point in subject.points if not point.timed and point.latency]
            )
        )
    )
    return ChartBody(
        arranged(panels, [*kind_legend(records), *hardware_legend(records)]), best, notes, records
    )


def _model_record(point: Point, alone: bool) -> Record:
    assert point.latency is not None
    n, span = items(point.row), point.latency
    each = span.times(1 / n)
    architecture = _architecture(point)
    line = f"{architecture} · {safe(point.row.get('model'), 26)}" if alone else architecture
    return record(point, each, architecture=architecture, line=line)


def _model_layers(records: Sequence[Record], x: Spec) -> list[Spec]:
    names = list(dict.fromkeys(datum["line"] for datum in records))
    y = named("line", names, grid=True)
    marks = dots({"x": x, "y": y, "tooltip": tooltip(_ITEM_LATENCY, records)}, 70)
    if all(datum["line"] != datum["architecture"] for datum in records):
        return [marks]
    known = {
        name: [
            datum["value"] for datum in records if datum["line"] == name and "quality" not in datum
        ]
        for name in names
    }
    middles = [{"line": name, "middle": median(of)} for name, of in known.items() if of]
    place = {"x": {**x, "field": "middle"}, "y": y}
    return [marks, layer("tick", place, of=middles, **MIDDLE_TICK)]


ARCHITECTURES = declare_chart("architecture", _draw_architectures)


SPEED_UPS = label_of("speed-ups")
#: So many are named beside their marks; of more than so many intervals hide each other.
_MOST_NAMES, _WHISKERS = 36, 400
_VERDICT_COLOURS = {
    SLOWER: ALERT,
    SLOWER_ALONE: ALERT,
    UNSURE: REST_COLOUR,
    FASTER_ALONE: BETTER,
    FASTER: BETTER,
}
_VERDICT_SHAPES = {
    SLOWER: "triangle-left",
    SLOWER_ALONE: "square",
    UNSURE: "circle",
    FASTER_ALONE: "diamond",
    FASTER: "triangle-right",
}
_TIMES_AS_FAST = "times as fast"


def speed_ups_picture(made: SpeedUps, base: str, other: str) -> Picture | None:
    """How many times as fast `other` is as `base`; None if nothing can be told."""
    known = [line for line in made.lines if line.ratio is not None]
    if not known or made.median is None:
        return None
    records = [_ratio_record(number, line) for number, line in enumerate(known)]
    few = len(records) <= _MOST_NAMES
    many = f"{counted(len(made.told), 'configuration')} of {counted(made.models, 'model')}"
    reach = any(datum["low"] is not None for datum in records) and len(records) <= _WHISKERS
    lines = " Lines: 95 % intervals." if reach else ""
    notes = [
        phrase("charts.faster-right-of-one", other=safe(other), base=safe(base)),
        phrase("charts.median-legend", median=digits(made.median), many=many, lines=lines),
    ]
    return pictured(
        SPEED_UPS, ChartBody(_ratio_body(records, made.median, few), (), notes, records)
    )


def _ratio_record(number: int, line: Compared) -> Record:
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
        "colour": _VERDICT_COLOURS[found],
        "paint": PAPER if hollow else _VERDICT_COLOURS[found],
        "form": _VERDICT_SHAPES[found],
        "place": number,
        "said": f"{number:04} {_ratio_name(line)}",
    }


def _ratio_name(line: Compared) -> str:
    row = line.side.row
    batch = f" · batch {row['batch_size']}" if row.get("batch_size") else ""
    return f"{safe(row.get('model'), 34)} · {safe(row.get('precision'), 10)}{batch}"


def _ratio_body(records: Sequence[Record], middle: float, few: bool) -> Spec:
    values = [datum["times_as_fast"] for datum in records]
    least, most = min(*values, 1.0) / 1.6, max(*values, 1.0) * 1.6
    reach = [
        min(max(end, least), most)
        for datum in records
        for end in (datum["times_as_fast"], datum["low"], datum["high"], 1.0)
        if end
    ]
    scale = axis(_TIMES_AS_FAST, reach, log=True)
    x = scale.of("times_as_fast")
    if few:
        form: Spec = {"grid": False, "labelLimit": 320, "labelExpr": "slice(datum.value, 5)"}
        y = {**named("said", (), **form), "sort": None}
    else:
        y = {"field": "place", "type": "quantitative", "title": None, "axis": None}
        y["scale"] = {"reverse": True, "domain": [-1, len(records)], "nice": False}
    figures = {"times_as_fast": _TIMES_AS_FAST, "low": "95 % from", "high": "95 % to"}
    told = words("model", "precision", "batch", "runtime", "found", "kind")
    place = {"x": x, "y": y}
    marks = {**place, "stroke": COLOUR, "fill": PAINT, "shape": FORM}
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "stroke": COLOUR}
    dots: Spec = {"size": 42 if few else 16, "strokeWidth": 1.3, "opacity": 1}
    intervals: Spec = {"strokeWidth": 1.2, "opacity": 0.6, "clip": True}
    layers = [
        _vertical_rule(1.0, x, INK, [1, 0]),
        _vertical_rule(middle, x, DIM, [5, 3]),
        *(
            [layer("rule", ends, where="isValid(datum.low)", **intervals)]
            if len(records) <= _WHISKERS
            else []
        ),
        layer("point", {**marks, "tooltip": [*told, *numbers(**figures)]}, **dots),
        _verdict_legend(records),
    ]
    return view(records, 420 if few else 560, {"step": 18} if few else 340, *layers)


def _vertical_rule(value: float, x: Spec, colour: str, dash: Sequence[int]) -> Spec:
    form: Spec = {"color": colour, "strokeWidth": 1.2, "strokeDash": list(dash)}
    return layer("rule", {"x": x}, of=[{"times_as_fast": value}], **form)


def _verdict_legend(records: Sequence[Record]) -> Spec:
    there = {datum["found"] for datum in records}
    shown = legend(symbolSize=80, columns=3)
    channels = {
        channel: grouped("found", {n: v for n, v in values.items() if n in there}, shown)
        for channel, values in (("color", _VERDICT_COLOURS), ("shape", _VERDICT_SHAPES))
    }
    return layer("point", channels, filled=True, opacity=0)

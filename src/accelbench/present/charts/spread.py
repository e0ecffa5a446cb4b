"""Distributions: of groups, architectures, ratios, samples, and first times. Pure.

Groups have other models in them, so one that stands further left is not the faster one. Ratios are
not a histogram: each mark can be pointed at, and its interval is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from accelbench.core.formatting import format_count, format_digits
from accelbench.core.precision import is_exact
from accelbench.core.result_statistics import item_count
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import Provenance
from accelbench.hardware.common import colour_of
from accelbench.judge import speed_ups
from accelbench.judge.comparison import Compared
from accelbench.judge.points import Point
from accelbench.present.charts import axes, chart, words
from accelbench.present.charts.axes import Record, named
from accelbench.present.charts.marks import (
    COLOUR,
    DASHED,
    FORM,
    PAINT,
    PAINTED,
    UNUSABLE,
    Panel,
    arranged,
    dots,
    ends,
    hardware_legend,
    kind_legend,
    legends,
    record,
    tooltip,
)
from accelbench.present.charts.words import told
from accelbench.present.texts import phrase

#: More groups than this are no picture: those with the most models are drawn.
MOST_GROUPS = 24
_STEP = 22


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
    label: chart.ChartLabel, title: str, groups: Sequence[SpreadGroup], notes: Sequence[str] = ()
) -> chart.Picture | None:
    """The picture of groups in their order; None if no group has a figure."""
    shown = groups[:MOST_GROUPS]
    if not shown:
        return None
    records = [_record(group) for group in shown]
    count = sum(group.configurations for group in groups)
    days = sorted(day for group in groups for day in (group.first, group.last) if day)
    said = [format_count(count, "configuration"), format_count(len(groups), "group")]
    said += [f"{days[0]} to {days[-1]}" if days[0] != days[-1] else days[0]] if days else []
    about = [
        " · ".join(said),
        *notes,
        phrase("charts.spread-legend"),
        *([phrase("charts.hollow-legend")] if any(group.imported for group in shown) else []),
        *words.left_out(len(groups) - len(shown), "group", advice=phrase("charts.filter-to-see")),
    ]
    return chart.pictured(label, chart.ChartBody(_body(records, title), (), about, records))


def _record(group: SpreadGroup) -> Row:
    low, first, middle, third, high = group.quantiles
    colour = colour_of(group.hardware) if group.hardware else axes.GROUP_COLOURS[0]
    return {
        "group": f"{words.safe(group.name, 52)} ({group.configurations:,})",
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


def _body(records: Sequence[Row], title: str) -> axes.Spec:
    ends = [float(str(datum[name])) for datum in records for name in ("p5", "p95")]
    x = axes.axis(title, ends).of("median")
    y = named("group", (datum["group"] for datum in records), labelLimit=360)
    quantiles = {name: f"{name}, {title}" for name in ("p5", "p25", "median", "p75", "p95")}
    tips = [
        *axes.words("group"),
        *axes.numbers(**quantiles),
        *axes.numbers("configurations", "models"),
        *axes.words("from", "to"),
    ]
    place: axes.Spec = {"y": y, "tooltip": tips}
    line = {**place, "x": {**x, "field": "p5"}, "x2": {"field": "p95"}, "color": COLOUR}
    box = {**place, "x": {**x, "field": "p25"}, "x2": {"field": "p75"}}
    layers = [
        axes.layer("rule", line, strokeWidth=1.6),
        axes.layer("bar", {**box, "stroke": COLOUR, "fill": PAINT}, height=11, strokeWidth=1.4),
        axes.layer("tick", {**place, "x": x}, **{**axes.MIDDLE_TICK, "size": 15}),
    ]
    return axes.view(records, axes.WIDE, {"step": _STEP}, *layers)


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
    return not point.usable, not is_exact(point.row), point.latency.value / item_count(point.row)


def _architecture(point: Point) -> str:
    row = point.row
    return words.safe(
        row.get("architecture") or row.get("family") or phrase("charts.no-known-architecture")
    )


def draw_architectures(subject: chart.Subject) -> chart.ChartBody | None:
    """Every model of each architecture, on each platform."""
    timed = [point for point in subject.points if point.timed and point.latency]
    best = _best_of_models(timed)
    if len({_architecture(point) for point in best}) < 2:
        return None
    models = {point.row.get("model") for point in best}
    records = [_model_record(point, len(models) <= _MOST_LINES) for point in best]
    modes = sorted({datum["mode"] for datum in records})
    scale = axes.axis(_ITEM_LATENCY, ends(records))
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
        listing = ", ".join(
            f"{words.safe(name)} {n}" for name, n in precisions.most_common(_MOST_NAMED)
        )
        more = "" if len(precisions) <= _MOST_NAMED else " and others"
        notes.append(phrase("charts.several-precisions", listing=listing, more=more))
    if len(models) > _MOST_LINES:
        notes.append(phrase("charts.architecture-legend"))
    notes += words.emulated(
        len(
            _best_of_models(
                [point for point in subject.points if not point.timed and point.latency]
            )
        )
    )
    return chart.ChartBody(arranged(panels, legends(records)), best, notes, records)


def _model_record(point: Point, alone: bool) -> Record:
    assert point.latency is not None
    n, span = item_count(point.row), point.latency
    each = span.times(1 / n)
    architecture = _architecture(point)
    line = f"{architecture} · {words.safe(point.row.get('model'), 26)}" if alone else architecture
    return record(point, each, architecture=architecture, line=line)


def _model_layers(records: Sequence[Record], x: axes.Spec) -> list[axes.Spec]:
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
    return [marks, axes.layer("tick", place, of=middles, **axes.MIDDLE_TICK)]


SPEED_UPS = chart.label_of("speed-ups")
#: So many are named beside their marks; of more than so many intervals hide each other.
_MOST_NAMES, _WHISKERS = 36, 400
_VERDICT_COLOURS = {
    speed_ups.SLOWER: axes.ALERT,
    speed_ups.SLOWER_ALONE: axes.ALERT,
    speed_ups.UNSURE: axes.REST_COLOUR,
    speed_ups.FASTER_ALONE: axes.BETTER,
    speed_ups.FASTER: axes.BETTER,
}
_VERDICT_SHAPES = {
    speed_ups.SLOWER: "triangle-left",
    speed_ups.SLOWER_ALONE: "square",
    speed_ups.UNSURE: "circle",
    speed_ups.FASTER_ALONE: "diamond",
    speed_ups.FASTER: "triangle-right",
}
_TIMES_AS_FAST = "times as fast"


def speed_ups_picture(made: speed_ups.SpeedUps, base: str, other: str) -> chart.Picture | None:
    """How many times as fast `other` is as `base`; None if nothing can be told."""
    known = [line for line in made.lines if line.ratio is not None]
    if not known or made.median is None:
        return None
    records = [_ratio_record(number, line) for number, line in enumerate(known)]
    few = len(records) <= _MOST_NAMES
    many = (
        f"{format_count(len(made.told), 'configuration')} of {format_count(made.models, 'model')}"
    )
    reach = any(datum["low"] is not None for datum in records) and len(records) <= _WHISKERS
    lines = " Lines: 95 % intervals." if reach else ""
    notes = [
        phrase("charts.faster-right-of-one", other=words.safe(other), base=words.safe(base)),
        phrase("charts.median-legend", median=format_digits(made.median), many=many, lines=lines),
    ]
    return chart.pictured(
        SPEED_UPS, chart.ChartBody(_ratio_body(records, made.median, few), (), notes, records)
    )


def _ratio_record(number: int, line: Compared) -> Record:
    row, ratio = line.side.row, line.ratio
    assert ratio is not None
    found = speed_ups.verdict(line)
    hollow = row.get("provenance") == "imported"
    return {
        "model": words.safe(row.get("model"), 48),
        "precision": words.safe(row.get("precision")),
        "batch": row.get("batch_size"),
        "runtime": words.safe(row.get("runtime")),
        "times_as_fast": ratio.value,
        "low": ratio.shown[0],
        "high": ratio.shown[1],
        "found": found,
        "kind": text(row, "provenance"),
        "colour": _VERDICT_COLOURS[found],
        "paint": axes.PAPER if hollow else _VERDICT_COLOURS[found],
        "form": _VERDICT_SHAPES[found],
        "place": number,
        "said": f"{number:04} {_ratio_name(line)}",
    }


def _ratio_name(line: Compared) -> str:
    row = line.side.row
    batch = f" · batch {row['batch_size']}" if row.get("batch_size") else ""
    return f"{words.safe(row.get('model'), 34)} · {words.safe(row.get('precision'), 10)}{batch}"


def _ratio_body(records: Sequence[Record], middle: float, few: bool) -> axes.Spec:
    values = [datum["times_as_fast"] for datum in records]
    least, most = min(*values, 1.0) / 1.6, max(*values, 1.0) * 1.6
    reach = [
        min(max(end, least), most)
        for datum in records
        for end in (datum["times_as_fast"], datum["low"], datum["high"], 1.0)
        if end
    ]
    scale = axes.axis(_TIMES_AS_FAST, reach, log=True)
    x = scale.of("times_as_fast")
    if few:
        form: axes.Spec = {"grid": False, "labelLimit": 320, "labelExpr": "slice(datum.value, 5)"}
        y = {**named("said", (), **form), "sort": None}
    else:
        y = {"field": "place", "type": "quantitative", "title": None, "axis": None}
        y["scale"] = {"reverse": True, "domain": [-1, len(records)], "nice": False}
    figures = {"times_as_fast": _TIMES_AS_FAST, "low": "95 % from", "high": "95 % to"}
    told = axes.words("model", "precision", "batch", "runtime", "found", "kind")
    place = {"x": x, "y": y}
    marks = {**place, "stroke": COLOUR, "fill": PAINT, "shape": FORM}
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "stroke": COLOUR}
    dots: axes.Spec = {"size": 42 if few else 16, "strokeWidth": 1.3, "opacity": 1}
    intervals: axes.Spec = {"strokeWidth": 1.2, "opacity": 0.6, "clip": True}
    layers = [
        _vertical_rule(1.0, x, axes.INK, [1, 0]),
        _vertical_rule(middle, x, axes.DIM, [5, 3]),
        *(
            [axes.layer("rule", ends, where="isValid(datum.low)", **intervals)]
            if len(records) <= _WHISKERS
            else []
        ),
        axes.layer("point", {**marks, "tooltip": [*told, *axes.numbers(**figures)]}, **dots),
        _verdict_legend(records),
    ]
    return axes.view(records, 420 if few else 560, {"step": 18} if few else 340, *layers)


def _vertical_rule(value: float, x: axes.Spec, colour: str, dash: Sequence[int]) -> axes.Spec:
    form: axes.Spec = {"color": colour, "strokeWidth": 1.2, "strokeDash": list(dash)}
    return axes.layer("rule", {"x": x}, of=[{"times_as_fast": value}], **form)


def _verdict_legend(records: Sequence[Record]) -> axes.Spec:
    there = {datum["found"] for datum in records}
    shown = axes.legend(symbolSize=80, columns=3)
    channels = {
        channel: axes.grouped("found", {n: v for n, v in values.items() if n in there}, shown)
        for channel, values in (("color", _VERDICT_COLOURS), ("shape", _VERDICT_SHAPES))
    }
    return axes.layer("point", channels, filled=True, opacity=0)


_TITLE = phrase("charts.axis-latency")
#: More launches than this are not told apart.
MOST_LAUNCHES = 12
#: More samples of one are drawn thinned.
_MOST_SAMPLES = 600
_THINNED = phrase("charts.samples-thinned", most_samples=_MOST_SAMPLES)
#: Tukey's outer fences, as `outlier_count` has them.
_FENCE = 3.0

Launch = tuple[Point, Row, Sequence[float]]


def _launches(subject: chart.Subject) -> list[Launch]:
    return [
        (point, row, subject.samples[str(row.get("result_id"))])
        for point in subject.points
        for row in point.rows
        if len(subject.samples.get(str(row.get("result_id"))) or ()) > 1
    ]


def _countable(point: Point) -> int:
    if not point.timed or point.kind != Provenance.MEASURED:
        return 0
    counts = [number(row, "sample_count") for row in point.rows]
    return sum(n is None or n > 1 for n in counts)


def draw_samples(subject: chart.Subject) -> chart.ChartBody | None:
    """Every sample of a launch, outliers, and the interval of their median."""
    everything = _launches(subject)
    known = [launch for launch in everything if launch[0].timed]
    if not known:
        return None
    shown = known[:MOST_LAUNCHES]
    records: list[Record] = []
    summary: list[Record] = []
    named, together = _names(shown)
    for launch, name in zip(shown, named, strict=True):
        about, steps = _spread(launch, name)
        summary.append(about)
        records += steps
    more = max(len(known), sum(map(_countable, subject.points))) - len(shown)
    one_cell = len(subject.points) == 1
    advice = (
        "accelbench db export --samples has all"
        if one_cell
        else phrase("charts.name-models-platforms")
    )
    notes = [
        phrase("charts.distribution-legend"),
        *words.in_common(together),
        *([_THINNED] if any(len(launch[2]) > _MOST_SAMPLES for launch in shown) else []),
        *words.left_out(more, "launch", "launches", advice),
        *words.emulated(len({id(point) for point, _, _ in everything if not point.timed})),
    ]
    return chart.ChartBody(_launches_body(records, summary), _parts(shown), notes, summary)


def _parts(shown: Sequence[Launch]) -> list[Point]:
    by_point: dict[int, tuple[str, list[Row]]] = {}
    for point, row, samples in shown:
        _, rows = by_point.setdefault(id(point), (point.machine, []))
        rows.append({**row, "sample_count": len(samples)})
    return [Point(rows, machine) for machine, rows in by_point.values()]


def _spread(launch: Launch, name: str) -> tuple[Record, list[Record]]:
    point, row, samples = launch
    assert point.latency is not None
    low, high = min(samples), max(samples)
    if len(samples) > 3:
        low, _, high = quantiles(samples, n=4)
    fences = (low - _FENCE * (high - low), high + _FENCE * (high - low))
    about = record(Point([row], point.machine), point.latency, launch=name) | {
        "value": median(samples),
        "low": row.get("latency_ci_low_ms"),
        "high": row.get("latency_ci_high_ms"),
        "q1": low,
        "q3": high,
        "samples": len(samples),
        "launches": 1,
    }
    thin = -(-len(samples) // _MOST_SAMPLES)
    steps = [
        # Seven heights, one after the other: steps of one length do not hide each other.
        {"launch": name, "ms": ms, "out": not fences[0] <= ms <= fences[1], "place": place % 7}
        for place, ms in enumerate(samples)
        if place % thin == 0 or not fences[0] <= ms <= fences[1]
    ]
    return about, steps


def _names(shown: Sequence[Launch]) -> tuple[list[str], str]:
    cells = told([point for point, _, _ in shown], words.EVERYTHING, ("model",), longest=68)
    again = len({id(point) for point, _, _ in shown}) < len(shown)
    names = [
        words.safe(f"{cell} · launch {row.get('launch')}" if again else cell, 80)
        for cell, (_, row, _) in zip(cells.apart, shown, strict=True)
    ]
    return words.unique(names), cells.together


def _launches_body(records: Sequence[Record], summary: Sequence[Record]) -> axes.Spec:
    y = named("launch", (datum["launch"] for datum in summary), labelLimit=470)
    x = axes.axis(_TITLE, [datum["ms"] for datum in records], zero=False).of("ms")
    heights = {"field": "place", "type": "ordinal", "scale": {"paddingOuter": 1}}
    steps = {
        "shape": _either("datum.out", "cross", "circle"),
        "stroke": _either("datum.out", axes.ALERT, axes.REST_COLOUR),
        "opacity": _either("datum.out", 1, 0.4),
        "size": _either("datum.out", 46, 20),
        "fill": _either("datum.out", axes.ALERT, "transparent"),
    }
    half = {
        "x": {**x, "field": "q1"},
        "x2": {"field": "q3"},
        "y": y,
        "fill": COLOUR,
        "fillOpacity": _either(UNUSABLE, 0, 0.55),
        "stroke": COLOUR,
        "strokeDash": DASHED,
        "strokeWidth": _either(UNUSABLE, 1.5, 0),
        "tooltip": [
            *axes.words("launch", "quality"),
            *axes.numbers(**_SAID),
            *axes.words("statistic", "date"),
        ],
    }
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    layers = [
        *hardware_legend(summary),
        axes.layer(
            "point", {"x": x, "y": y, "yOffset": heights, **steps}, of=records, strokeWidth=1.2
        ),
        axes.layer("bar", half, height=12),
        axes.layer("rule", ends, where="isValid(datum.low)", strokeWidth=2.5, color=axes.INK),
        axes.layer("tick", {"x": {**x, "field": "value"}, "y": y}, **axes.MIDDLE_TICK),
    ]
    return axes.view(summary, 400, {"step": 32, "for": "position"}, *layers)


def _either(test: str, value: object, otherwise: object) -> axes.Spec:
    return {"condition": {"test": test, "value": value}, "value": otherwise}


#: What is told of a launch.
_SAID = {
    "value": "median, ms",
    "low": "95 % from",
    "high": "95 % to",
    "q1": "middle half from",
    "q3": "to",
    "samples": "samples",
}


#: Column → what people call it and its form. None has a colour: colours are platforms'.
_PHASES = {
    "first_visit_ms": (phrase("charts.first-visit"), "triangle-up"),
    "build_ms": ("build", "square"),
    "load_ms": ("load", "diamond"),
    "compile_ms": ("compile", "triangle-down"),
    "repeat_visit_ms": ("next visit", "triangle-right"),
    "first_inference_ms": ("first step", "cross"),
}
_WARM = ("steady step", "circle")
_MOST_CONFIGURATIONS = 20


def draw_cold_warm(subject: chart.Subject) -> chart.ChartBody | None:
    """What the first time costs: building, loading, compiling, a first step; then steady ones."""
    first = [
        point
        for point in subject.points
        # Of most figures nobody knows how they began: to look into rows is a third of the time.
        if point.latency
        and any(row.get(name) and point.metric(name) for row in point.rows for name in _PHASES)
    ]
    known = [point for point in first if point.timed]
    if not known:
        return None
    # The smallest batch of every model says more of beginnings than every batch of one model.
    shown = sorted(known, key=lambda point: int(number(point.row, "batch_size") or 0))[
        :_MOST_CONFIGURATIONS
    ]
    named = told(shown, words.EVERYTHING, ("model",), longest=72, devices=subject.devices)
    records: list[Record] = []
    for cell, name in zip(shown, words.unique(named.apart), strict=True):
        assert cell.latency is not None
        phases = [(label, cell.metric(column)) for column, (label, _) in _PHASES.items()]
        for label, span in [*phases, (_WARM[0], cell.latency)]:
            if span is not None:
                about = record(cell, span, cell=name, phase=label)
                if label != _WARM[0]:
                    # Only the steady step is of no use where its interval is too wide.
                    about.pop("quality", None)
                    about["paint"] = axes.PAPER
                records.append(about)
    notes = [
        phrase("charts.cold-warm-legend"),
        *words.in_common(named.together),
        *words.left_out(len(known) - len(shown), "configuration"),
        *words.emulated(len(first) - len(known)),
    ]
    return chart.ChartBody(_phases_body(records), shown, notes, records)


def _phases_body(records: Sequence[Record]) -> axes.Spec:
    labels = {datum["phase"] for datum in records}
    phases = [phase for phase in (*_PHASES.values(), _WARM) if phase[0] in labels]
    y = named("cell", (datum["cell"] for datum in records), labelLimit=430, grid=True)
    x = axes.axis("time, ms", [datum["value"] for datum in records]).of("value")
    warm = f"datum.phase === '{_WARM[0]}'"
    shape = axes.grouped("phase", dict(phases), None)
    place = {
        "x": x,
        "y": y,
        "shape": shape,
        "tooltip": [*_PHASE_TOOLTIP, *axes.numbers(value="ms")],
    }
    ends = {"x": {**x, "aggregate": "min"}, "x2": {"field": "value", "aggregate": "max"}, "y": y}
    plain: axes.Spec = {"size": 70, "stroke": axes.INK}
    steps = {**shape, "legend": axes.legend(columns=3)}
    layers = [
        axes.layer("rule", ends, strokeWidth=1, opacity=0.5, color=axes.DIM),
        axes.layer("point", {"shape": steps}, opacity=0, **plain),
        *kind_legend(records, bars=True),
        *hardware_legend(records),
        axes.layer("point", place, where=f"!({warm})", fill=axes.PAPER, opacity=1, **plain),
        axes.layer("point", {**place, **PAINTED}, where=warm, size=95, strokeWidth=1.8, opacity=1),
    ]
    return axes.view(records, 380, {"step": 22}, *layers)


_PHASE_TOOLTIP = axes.words("cell", "phase", "kind", "quality")

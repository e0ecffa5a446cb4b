"""How samples of a launch are spread: every one, outliers, the interval of their median. Pure.

What the first time costs: building, loading, compiling, a first step; then steady ones. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles

from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import Provenance
from accelbench.judge.points import Point
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
from accelbench.present.charts.chart import ChartBody, Subject, declare_chart
from accelbench.present.charts.marks import (
    COLOUR,
    DASHED,
    PAINTED,
    UNUSABLE,
    Record,
    hardware_legend,
    kind_legend,
    record,
)
from accelbench.present.charts.theme import ALERT, DIM, INK, MIDDLE_TICK, PAPER, REST_COLOUR
from accelbench.present.charts.words import (
    EVERYTHING,
    emulated,
    in_common,
    left_out,
    safe,
    told,
    unique,
)
from accelbench.present.texts import phrase

_TITLE = phrase("charts.axis-latency")
#: More launches than this are not told apart.
MOST_LAUNCHES = 12
#: More samples of one are drawn thinned.
_MOST_SAMPLES = 600
_LEGEND = phrase("charts.distribution-legend")
_THINNED = phrase("charts.samples-thinned", most_samples=_MOST_SAMPLES)
#: Tukey's outer fences, as `outlier_count` has them.
_FENCE = 3.0

Launch = tuple[Point, Row, Sequence[float]]


def _launches(subject: Subject) -> list[Launch]:
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


def _drawn(subject: Subject) -> ChartBody | None:
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
        _LEGEND,
        *in_common(together),
        *([_THINNED] if any(len(launch[2]) > _MOST_SAMPLES for launch in shown) else []),
        *left_out(more, "launch", "launches", advice),
        *emulated(len({id(point) for point, _, _ in everything if not point.timed})),
    ]
    return ChartBody(_body(records, summary), _parts(shown), notes, summary)


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
    cells = told([point for point, _, _ in shown], EVERYTHING, ("model",), longest=68)
    again = len({id(point) for point, _, _ in shown}) < len(shown)
    names = [
        safe(f"{cell} · launch {row.get('launch')}" if again else cell, 80)
        for cell, (_, row, _) in zip(cells.apart, shown, strict=True)
    ]
    return unique(names), cells.together


def _body(records: Sequence[Record], summary: Sequence[Record]) -> Spec:
    y = named("launch", (datum["launch"] for datum in summary), labelLimit=470)
    x = axis(_TITLE, [datum["ms"] for datum in records], zero=False).of("ms")
    heights = {"field": "place", "type": "ordinal", "scale": {"paddingOuter": 1}}
    steps = {
        "shape": _either("datum.out", "cross", "circle"),
        "stroke": _either("datum.out", ALERT, REST_COLOUR),
        "opacity": _either("datum.out", 1, 0.4),
        "size": _either("datum.out", 46, 20),
        "fill": _either("datum.out", ALERT, "transparent"),
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
        "tooltip": [*words("launch", "quality"), *numbers(**_SAID), *words("statistic", "date")],
    }
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    layers = [
        *hardware_legend(summary),
        layer("point", {"x": x, "y": y, "yOffset": heights, **steps}, of=records, strokeWidth=1.2),
        layer("bar", half, height=12),
        layer("rule", ends, where="isValid(datum.low)", strokeWidth=2.5, color=INK),
        layer("tick", {"x": {**x, "field": "value"}, "y": y}, **MIDDLE_TICK),
    ]
    return view(summary, 400, {"step": 32, "for": "position"}, *layers)


def _either(test: str, value: object, otherwise: object) -> Spec:
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

DISTRIBUTION = declare_chart("latency-distribution", _drawn)


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


def _draw_cold_warm(subject: Subject) -> ChartBody | None:
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
    named = told(shown, EVERYTHING, ("model",), longest=72, devices=subject.devices)
    records: list[Record] = []
    for cell, name in zip(shown, unique(named.apart), strict=True):
        assert cell.latency is not None
        phases = [(label, cell.metric(column)) for column, (label, _) in _PHASES.items()]
        for label, span in [*phases, (_WARM[0], cell.latency)]:
            if span is not None:
                about = record(cell, span, cell=name, phase=label)
                if label != _WARM[0]:
                    # Only the steady step is of no use where its interval is too wide.
                    about.pop("quality", None)
                    about["paint"] = PAPER
                records.append(about)
    notes = [
        phrase("charts.cold-warm-legend"),
        *in_common(named.together),
        *left_out(len(known) - len(shown), "configuration"),
        *emulated(len(first) - len(known)),
    ]
    return ChartBody(_phases_body(records), shown, notes, records)


def _phases_body(records: Sequence[Record]) -> Spec:
    labels = {datum["phase"] for datum in records}
    phases = [phase for phase in (*_PHASES.values(), _WARM) if phase[0] in labels]
    y = named("cell", (datum["cell"] for datum in records), labelLimit=430, grid=True)
    x = axis("time, ms", [datum["value"] for datum in records]).of("value")
    warm = f"datum.phase === '{_WARM[0]}'"
    shape = grouped("phase", dict(phases), None)
    place = {"x": x, "y": y, "shape": shape, "tooltip": [*_PHASE_TOOLTIP, *numbers(value="ms")]}
    ends = {"x": {**x, "aggregate": "min"}, "x2": {"field": "value", "aggregate": "max"}, "y": y}
    plain: Spec = {"size": 70, "stroke": INK}
    steps = {**shape, "legend": legend(columns=3)}
    layers = [
        layer("rule", ends, strokeWidth=1, opacity=0.5, color=DIM),
        layer("point", {"shape": steps}, opacity=0, **plain),
        *kind_legend(records, bars=True),
        *hardware_legend(records),
        layer("point", place, where=f"!({warm})", fill=PAPER, opacity=1, **plain),
        layer("point", {**place, **PAINTED}, where=warm, size=95, strokeWidth=1.8, opacity=1),
    ]
    return view(records, 380, {"step": 22}, *layers)


_PHASE_TOOLTIP = words("cell", "phase", "kind", "quality")

COLD_WARM = declare_chart("cold-warm", _draw_cold_warm)

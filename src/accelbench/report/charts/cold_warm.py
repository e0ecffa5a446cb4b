"""What the first time costs: building, loading, compiling, a first step; then steady ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.rows import number
from accelbench.report.charts.axes import Spec, axis
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import (
    COLOUR,
    DASHED,
    PAINT,
    Record,
    hardware_legend,
    kind_legend,
    record,
)
from accelbench.report.charts.theme import DIM, INK, PAPER
from accelbench.report.charts.words import EVERYTHING, emulated, in_common, left_out, told, unique

#: Column → what people call it and its form. None has a colour: colours are platforms'.
_PHASES = {
    "first_visit_ms": ("first visit of a page", "triangle-up"),
    "build_ms": ("build", "square"),
    "load_ms": ("load", "diamond"),
    "compile_ms": ("compile", "triangle-down"),
    "repeat_visit_ms": ("next visit", "triangle-right"),
    "first_inference_ms": ("first step", "cross"),
}
_WARM = ("steady step", "circle")
_MOST = 20


def _drawn(subject: Subject) -> ChartBody | None:
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
    shown = sorted(known, key=lambda point: int(number(point.row, "batch_size") or 0))[:_MOST]
    named = told(shown, EVERYTHING, ("model",), longest=72, devices=subject.devices)
    records: list[Record] = []
    for cell, name in zip(shown, unique(named.apart), strict=True):
        assert cell.latency is not None
        phases = [(label, cell.metric(column)) for column, (label, _) in _PHASES.items()]
        for label, span in [*phases, (_WARM[0], cell.latency)]:
            if span is not None:
                warm = label == _WARM[0]
                about = record(cell, span, cell=name, phase=label)
                # Only the steady step is of no use where its interval is too wide.
                records.append(about if warm else _without_quality(about) | {"paint": PAPER})
    notes = [
        "In its platform's colour: a step in the steady state.",
        *in_common(named.together),
        *left_out(len(known) - len(shown), "configuration"),
        *emulated(len(first) - len(known)),
    ]
    return ChartBody(_body(records), shown, notes, records)


def _without_quality(about: Record) -> Record:
    return {name: value for name, value in about.items() if name != "quality"}


def _body(records: Sequence[Record]) -> Spec:
    labels = {datum["phase"] for datum in records}
    phases = [phase for phase in (*_PHASES.values(), _WARM) if phase[0] in labels]
    y = {
        "field": "cell",
        "type": "nominal",
        "sort": list(dict.fromkeys(datum["cell"] for datum in records)),
        "title": None,
        "axis": {"labelLimit": 430, "ticks": False, "domain": False, "grid": True},
    }
    x = axis("time, ms", [datum["value"] for datum in records]).of("value")
    warm = f"datum.phase === '{_WARM[0]}'"
    forms = {"domain": [name for name, _ in phases], "range": [form for _, form in phases]}
    legend = {"title": None, "symbolOpacity": 1, "columns": 3}
    link: Spec = {
        "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.5, "color": DIM},
        "encoding": {
            "x": {**x, "aggregate": "min"},
            "x2": {"field": "value", "aggregate": "max"},
            "y": y,
        },
    }
    cold: Spec = {
        "transform": [{"filter": f"!({warm})"}],
        "mark": {"type": "point", "size": 70, "stroke": INK, "fill": PAPER, "opacity": 1},
        "encoding": {"x": x, "y": y, "tooltip": _TOLD},
    }
    steady: Spec = {
        "transform": [{"filter": warm}],
        "mark": {"type": "point", "size": 95, "strokeWidth": 1.8, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "stroke": COLOUR,
            "strokeDash": DASHED,
            "fill": PAINT,
            "tooltip": _TOLD,
        },
    }
    shape = {"field": "phase", "type": "nominal", "scale": forms, "legend": None}
    cold["encoding"]["shape"] = steady["encoding"]["shape"] = shape
    unseen: Spec = {
        "mark": {"type": "point", "size": 70, "stroke": INK, "opacity": 0},
        "encoding": {"shape": {**shape, "legend": legend}},
    }
    return {
        "data": {"values": list(records)},
        "width": 380,
        "height": {"step": 22},
        "layer": [
            *(link, unseen),
            *kind_legend(records, bars=True),
            *hardware_legend(records),
            *(cold, steady),
        ],
    }


_TOLD = [
    *({"field": name, "type": "nominal"} for name in ("cell", "phase", "kind", "quality")),
    {"field": "value", "type": "quantitative", "title": "ms", "format": ",.4~r"},
]

COLD_WARM = Chart(
    "cold-warm",
    "Cold against warm",
    "what the first time costs beside the steady state",
    "times of building, loading or a first step",
    _drawn,
)

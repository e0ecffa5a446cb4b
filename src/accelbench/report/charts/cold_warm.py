"""What the first time costs: building, loading, compiling, a first step; then steady ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.rows import number
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
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import PAINTED, Record, hardware_legend, kind_legend, record
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
                about = record(cell, span, cell=name, phase=label)
                if label != _WARM[0]:
                    # Only the steady step is of no use where its interval is too wide.
                    about.pop("quality", None)
                    about["paint"] = PAPER
                records.append(about)
    notes = [
        "In its platform's colour: a step in the steady state.",
        *in_common(named.together),
        *left_out(len(known) - len(shown), "configuration"),
        *emulated(len(first) - len(known)),
    ]
    return ChartBody(_body(records), shown, notes, records)


def _body(records: Sequence[Record]) -> Spec:
    labels = {datum["phase"] for datum in records}
    phases = [phase for phase in (*_PHASES.values(), _WARM) if phase[0] in labels]
    y = named("cell", (datum["cell"] for datum in records), labelLimit=430, grid=True)
    x = axis("time, ms", [datum["value"] for datum in records]).of("value")
    warm = f"datum.phase === '{_WARM[0]}'"
    shape = grouped("phase", dict(phases), None)
    place = {"x": x, "y": y, "shape": shape, "tooltip": [*_TOLD, *numbers(value="ms")]}
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


_TOLD = words("cell", "phase", "kind", "quality")

COLD_WARM = Chart(
    "cold-warm",
    "Cold against warm",
    "what the first time costs beside the steady state",
    "times of building, loading or a first step",
    _drawn,
)

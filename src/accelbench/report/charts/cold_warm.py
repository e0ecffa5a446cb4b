"""What the first time costs: building, loading, compiling, a first step; then steady ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.report.charts.chart import Chart, Drawn, Spec, Subject
from accelbench.report.charts.look import INK
from accelbench.report.charts.marks import Record, measure
from accelbench.report.charts.words import cells, counted

#: Column → what people call it, its colour and its form: from cold to warm.
_PHASES = {
    "first_visit_ms": ("first visit of a page", "#902424", "triangle-up"),
    "build_ms": ("build", "#9c6000", "square"),
    "load_ms": ("load", "#c048c0", "diamond"),
    "compile_ms": ("compile", "#3c3ca8", "triangle-down"),
    "repeat_visit_ms": ("next visit", "#18546c", "triangle-right"),
    "first_inference_ms": ("first step", "#4878fc", "cross"),
}
_WARM = ("steady step", "#009c78", "circle")
_MOST = 24


def _drawn(subject: Subject) -> Drawn | None:
    known = [
        one
        for one in subject.points
        if one.timed and one.latency and any(one.metric(name) for name in _PHASES)
    ]
    if not known:
        return None
    shown = known[:_MOST]
    records: list[Record] = []
    for one, name in zip(shown, cells([one.row for one in shown]), strict=True):
        assert one.latency is not None
        phases = [(label, one.metric(column)) for column, (label, *_) in _PHASES.items()]
        for label, span in [*phases, (_WARM[0], one.latency)]:
            if span is not None:
                records.append({"cell": name, "phase": label, "ms": span.value, "kind": one.kind})
    notes = []
    if len(known) > len(shown):
        notes.append(f"{counted(len(known) - len(shown), 'more cell')} not drawn: narrow it down.")
    return Drawn(_body(records), shown, notes, records)


def _body(records: Sequence[Record]) -> Spec:
    there = {one["phase"] for one in records}
    phases = [one for one in (*_PHASES.values(), _WARM) if one[0] in there]
    domain = [label for label, _, _ in phases]
    y = {
        "field": "cell",
        "type": "nominal",
        "sort": list(dict.fromkeys(one["cell"] for one in records)),
        "title": None,
        "axis": {"labelLimit": 300, "ticks": False, "domain": False, "grid": True},
    }
    x = measure("ms", "milliseconds", [one["ms"] for one in records])
    legend = {"title": "what it is of"}
    return {
        "data": {"values": list(records)},
        "width": 420,
        "height": {"step": 26},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.4, "color": INK},
                "encoding": {
                    "x": {**x, "aggregate": "min"},
                    "x2": {"field": "ms", "aggregate": "max"},
                    "y": y,
                },
            },
            {
                "mark": {"type": "point", "size": 85, "filled": True, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "phase",
                        "type": "nominal",
                        "scale": {"domain": domain, "range": [colour for _, colour, _ in phases]},
                        "legend": legend,
                    },
                    "shape": {
                        "field": "phase",
                        "type": "nominal",
                        "scale": {"domain": domain, "range": [form for _, _, form in phases]},
                        "legend": legend,
                    },
                    "tooltip": [{"field": n} for n in ("cell", "phase", "ms")],
                },
            },
        ],
    }


COLD_WARM = Chart(
    "cold-warm",
    "Cold against warm",
    "what the first time costs beside the steady state",
    "times of building, loading or a first step",
    _drawn,
)

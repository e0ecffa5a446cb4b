"""How samples of a launch are spread: every one, outliers, the interval of their median. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Any

from accelbench.analysis.points import Point
from accelbench.report.charts.chart import Chart, Drawn, Spec, Subject
from accelbench.report.charts.look import ALERT, INK
from accelbench.report.charts.marks import Record, hardware_colour, measure, panels, record
from accelbench.report.charts.words import cells, counted, safe

_TITLE = "latency of a batch, ms"
#: More launches than this are not told apart, and more samples of one are drawn thinned.
_MOST, _MOST_SAMPLES = 12, 1500
_LEGEND = (
    "Each mark a step; crosses beyond Tukey's outer fences; box: the middle half; rule: the"
    " 95 % interval of the median within its launch."
)
#: Tukey's outer fences, as `outlier_count` has them.
_FENCE = 3.0


def _launches(subject: Subject) -> list[tuple[Point, Any, Sequence[float]]]:
    return [
        (point, row, subject.samples[str(row.get("result_id"))])
        for point in subject.points
        if point.timed
        for row in point.rows
        if len(subject.samples.get(str(row.get("result_id"))) or ()) > 1
    ]


def _drawn(subject: Subject) -> Drawn | None:
    known = _launches(subject)
    if not known:
        return None
    shown = known[:_MOST]
    names = _names([row for _, row, _ in shown])
    records: list[Record] = []
    summary: list[Record] = []
    for (point, row, samples), name in zip(shown, names, strict=True):
        low, _, high = (
            quantiles(samples, n=4) if len(samples) > 3 else (min(samples), 0, max(samples))
        )
        fences = (low - _FENCE * (high - low), high + _FENCE * (high - low))
        assert point.latency is not None
        about = record(point, point.latency, panel="", launch=name, value=median(samples))
        about |= {"low": row.get("latency_ci_low_ms"), "high": row.get("latency_ci_high_ms")}
        summary.append({**about, "q1": low, "q3": high, "samples": len(samples)})
        step = -(-len(samples) // _MOST_SAMPLES)
        records += (
            {"launch": name, "ms": ms, "out": not fences[0] <= ms <= fences[1], "place": place % 7}
            for place, ms in enumerate(samples)
            if place % step == 0 or not fences[0] <= ms <= fences[1]
        )
    notes = [_LEGEND]
    if len(known) > len(shown):
        notes.append(
            f"{counted(len(known) - len(shown), 'more launch', 'more launches')} not drawn."
        )
    points = list(dict.fromkeys(id(point) for point, _, _ in shown))
    drawn = [point for point in subject.points if id(point) in points]
    return Drawn(_body(records, summary, names), drawn, notes, summary)


def _names(rows: Sequence[Any]) -> list[str]:
    """Each launch by its cell and its number."""
    several = len({str(row.get("run_id")) for row in rows}) > 1
    names = []
    for row, cell in zip(rows, cells(rows), strict=True):
        launch = f"launch {int(row.get('launch') or 0) + 1}"
        run = f" of {row.get('run_id')}" if several else ""
        names.append(safe(f"{cell} · {launch}{run}", 72))
    return names


def _body(records: Sequence[Record], summary: Sequence[Record], names: Sequence[str]) -> Spec:
    y = {
        "field": "launch",
        "type": "nominal",
        "sort": list(names),
        "title": None,
        "axis": {"labelLimit": 380, "ticks": False, "domain": False},
    }
    x = measure("ms", _TITLE, [one["ms"] for one in records])
    samples: Spec = {
        "data": {"values": list(records)},
        "mark": {"type": "point", "size": 22, "strokeWidth": 1.2},
        "encoding": {
            "x": x,
            "y": y,
            "yOffset": {"field": "place", "type": "ordinal", "scale": {"paddingOuter": 1.6}},
            "shape": {"condition": {"test": "datum.out", "value": "cross"}, "value": "circle"},
            "stroke": {"condition": {"test": "datum.out", "value": ALERT}, "value": "#8c959f"},
            "opacity": {"condition": {"test": "datum.out", "value": 1}, "value": 0.45},
        },
    }
    box: Spec = {
        "mark": {"type": "bar", "height": 9, "opacity": 0.45},
        "encoding": {
            "x": {**x, "field": "q1"},
            "x2": {"field": "q3"},
            "y": y,
            "fill": hardware_colour(summary),
        },
    }
    interval: Spec = {
        "transform": [{"filter": "isValid(datum.low)"}],
        "mark": {"type": "rule", "strokeWidth": 3.5, "color": INK},
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
    }
    middle: Spec = {
        "mark": {"type": "tick", "thickness": 2.5, "size": 20, "color": INK},
        "encoding": {"x": {**x, "field": "value"}, "y": y},
    }
    whole = panels([samples, box, interval, middle], summary, {"step": 36})
    # There is one panel alone, and its layers have their own data.
    return {
        "data": whole["data"],
        "layer": whole["spec"]["layer"],
        "width": 520,
        "height": {"step": 36, "for": "position"},
    }


DISTRIBUTION = Chart(
    "latency-distribution",
    "Latency distribution",
    "how steps differ from each other, and which are outliers",
    "samples, which only our own results have",
    _drawn,
)

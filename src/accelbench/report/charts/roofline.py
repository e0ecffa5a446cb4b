"""Measured cells under the limits of their device: operations a second against intensity. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.points import Point
from accelbench.report.charts.chart import Chart, Drawn, Roof, Spec, Subject
from accelbench.report.charts.marks import NUMBER, Record, dots, hardware_colour, panels, record
from accelbench.report.charts.words import cells, counted, safe

_X, _Y = "operations a byte, FLOP/B (log)", "operations a second, GFLOP/s (log)"
_MOST = 400


def _drawn(subject: Subject) -> Drawn | None:
    known = [
        one
        for one in subject.points
        if one.timed and one.latency and one.metric("flops") and one.metric("bytes_moved")
    ]
    if not known:
        return None
    shown = known[:_MOST]
    records = [_cell(one) for one in shown]
    for one, name in zip(records, cells([one.row for one in shown]), strict=True):
        one["name"] = name
    there = {one["hardware"] for one in records}
    roofs = [one for one in subject.roofs if one.hardware in there]
    reach = [one["intensity"] for one in records]
    lines = [line for roof in roofs for line in _roof(roof, reach)]
    notes = ["Operations and bytes are counted from the model, not measured."]
    notes += sorted({f"{safe(one.name)}, {one.precision}: {one.source}" for one in roofs})
    if bare := sorted(there - {one.hardware for one in roofs}):
        notes.append(f"The limits of {', '.join(bare)} are not known: there is no roof.")
    if len(known) > _MOST:
        notes.append(f"{counted(len(known) - _MOST, 'more cell')} not drawn.")
    return Drawn(_body(records, lines), shown, notes, records)


def _cell(point: Point) -> Record:
    flops, moved = point.metric("flops"), point.metric("bytes_moved")
    assert flops is not None
    assert moved is not None
    assert point.latency is not None
    rate = flops.value / point.latency.value / 1e6
    more = {"intensity": flops.value / moved.value, "value": rate, "panel": ""}
    return record(point, point.latency) | more | {"low": None, "high": None}


def _roof(roof: Roof, reach: Sequence[float]) -> list[Record]:
    """Memory's slope up to the ridge, then the flat of the units."""
    ridge = roof.operations_per_second / roof.bytes_per_second
    low, high = min(*reach, ridge) / 2, max(*reach, ridge) * 2
    about = {
        "hardware": safe(roof.hardware),
        "roof": safe(f"{roof.name} {roof.precision}", 60),
        "panel": "",
    }
    return [
        {
            **about,
            "intensity": x,
            "limit": min(roof.operations_per_second, x * roof.bytes_per_second) / 1e9,
        }
        for x in (low, ridge, high)
    ]


def _body(records: Sequence[Record], lines: Sequence[Record]) -> Spec:
    log = {"type": "log", "nice": False, "padding": 8}
    x: Spec = {"field": "intensity", "type": "quantitative", "title": _X, "scale": log}
    y: Spec = {"field": "value", "type": "quantitative", "title": _Y, "scale": log}
    x["axis"] = y["axis"] = {"format": NUMBER, "labelOverlap": True}
    roofs: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.limit)"}],
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                "x": x,
                "y": {**y, "field": "limit"},
                "color": hardware_colour([*records, *lines], legend=None),
                "strokeDash": {"field": "roof", "type": "nominal", "legend": {"title": "roof"}},
            },
        }
    ]
    told = [{"field": n} for n in ("name", "intensity", "value")]
    marks = dots(records, {"x": x, "y": y, "tooltip": told}, 60)
    marks["transform"] = [{"filter": "isValid(datum.value)"}]
    return panels([*(roofs if lines else []), marks], [*records, *lines])


ROOFLINE = Chart(
    "roofline",
    "Roofline",
    "how near each cell comes to the limits of its device",
    "models whose operations and bytes are counted",
    _drawn,
)

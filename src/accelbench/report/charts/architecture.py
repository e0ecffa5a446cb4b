"""Architectures beside each other: every model of each, on each platform. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.points import Point
from accelbench.analysis.sides import items
from accelbench.report.charts.chart import Chart, Drawn, Subject
from accelbench.report.charts.marks import Record, dots, measure, panels, record, tooltip
from accelbench.report.charts.words import counted, safe

_TITLE = "latency of an item, ms"


def _best(points: Sequence[Point]) -> list[Point]:
    """Of each model, platform and mode the fastest way and batch, by the time of an item."""
    found: dict[object, Point] = {}
    for one in points:
        row = one.row
        key = (one.machine, one.kind, *(row.get(n) for n in ("model", "hardware", "mode")))
        if key not in found or _item_ms(one) < _item_ms(found[key]):
            found[key] = one
    return list(found.values())


def _item_ms(point: Point) -> float:
    assert point.latency is not None
    return point.latency.value / items(point.row)


def _name(point: Point) -> str:
    row = point.row
    return safe(row.get("architecture") or row.get("family") or "of no known architecture")


def _drawn(subject: Subject) -> Drawn | None:
    timed = [one for one in subject.points if one.timed and one.latency]
    best = _best(timed)
    if len({_name(one) for one in best}) < 2:
        return None
    records: list[Record] = []
    for one in sorted(best, key=lambda p: (_name(p), str(p.row.get("hardware")), _item_ms(p))):
        assert one.latency is not None
        n = items(one.row)
        span = type(one.latency)(
            _item_ms(one),
            one.latency.low and one.latency.low / n,
            one.latency.high and one.latency.high / n,
        )
        panel = str(one.row.get("mode"))
        records.append(record(one, span, panel=panel, architecture=_name(one)))
    y = {
        "field": "architecture",
        "type": "nominal",
        "title": None,
        "sort": list(dict.fromkeys(one["architecture"] for one in records)),
        "axis": {"grid": True, "ticks": False, "domain": False},
    }
    x = measure("value", _TITLE, [one["value"] for one in records])
    body = panels(
        [dots(records, {"x": x, "y": y, "tooltip": tooltip(_TITLE, records)}, 80)],
        records,
        {"step": 30},
        x="independent",
        y="independent",
    )
    notes = ["Of each model and platform its fastest way and batch; a mark is a model."]
    if emulated := len(subject.points) - len(timed):
        notes.append(f"{counted(emulated, 'emulated cell')} not drawn: such times mean nothing.")
    return Drawn(body, best, notes, records)


ARCHITECTURES = Chart(
    "architecture",
    "Architectures",
    "how models of each architecture compare",
    "models of two architectures",
    _drawn,
)

"""Latency against throughput: which ways of running a model no other one beats in both. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.points import Point
from accelbench.report.charts.chart import MOST_PANELS, Chart, Drawn, Spec, Subject
from accelbench.report.charts.look import INK
from accelbench.report.charts.marks import Record, dots, measure, panels, record, tooltip
from accelbench.report.charts.words import counted, safe, way

_LATENCY, _THROUGHPUT = "latency of a batch, ms", "throughput, items/s"
#: Labels of more marks than this stand on each other.
_MOST_LABELS = 6


def front(places: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each (latency, throughput) whether no other is as good in one and better in the other."""
    order = sorted(range(len(places)), key=lambda i: (places[i][0], -places[i][1]))
    best, last = 0.0, -1.0
    found = [False] * len(places)
    for i in order:
        latency, rate = places[i]
        found[i] = rate > best or (rate == best and latency == last)
        if rate > best:
            best, last = rate, latency
    return found


def _drawn(subject: Subject) -> Drawn | None:
    asked: dict[tuple[str, str], list[Point]] = {}
    for one in subject.points:
        if one.timed and one.latency and one.throughput:
            key = (str(one.row.get("model")), str(one.row.get("mode")))
            asked.setdefault(key, []).append(one)
    several = [(key, found) for key, found in asked.items() if len(found) > 2]
    if not several:
        return None
    shown = sorted(several, key=lambda one: -len(one[1]))[:MOST_PANELS]
    records: list[Record] = []
    for (model, mode), found in shown:
        places = [
            (p.latency.value, p.throughput.value) for p in found if p.latency and p.throughput
        ]
        best = front(places)
        labels = sum(best) <= _MOST_LABELS
        for one, (latency, rate), good in zip(found, places, best, strict=True):
            assert one.throughput is not None
            panel = safe(f"{model}, {mode}", 48)
            batch = one.row.get("batch_size") or 1
            name = f"{way(one.row, ('hardware',))} · {batch}" if good else ""
            records.append(
                record(one, one.throughput, panel=panel, ms=latency, value=rate)
                | {"front": good, "name": name if labels else ""}
            )
    notes = ["On the line: what no other beats in both, with its engine, precision and batch."]
    if len(several) > len(shown):
        notes.append(f"{counted(len(several) - len(shown), 'more model')} not drawn.")
    return Drawn(_body(records), [one for _, found in shown for one in found], notes, records)


def _body(records: Sequence[Record]) -> Spec:
    place = {
        "x": measure("ms", _LATENCY, [one["ms"] for one in records]),
        "y": measure("value", _THROUGHPUT, [one["value"] for one in records]),
    }
    best = [{"filter": "datum.front"}]
    line = {
        "transform": best,
        "mark": {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.2},
        "encoding": place,
    }
    marks = dots(records, {**place, "tooltip": tooltip(_THROUGHPUT, records)}, 60)
    marks["encoding"]["opacity"] = {"condition": {"test": "datum.front", "value": 1}, "value": 0.3}
    names = {
        "transform": [{"filter": "datum.name !== ''"}],
        "mark": {
            "type": "text",
            "align": "left",
            "dx": 7,
            "dy": 10,
            "fontSize": 10.5,
            "color": INK,
        },
        "encoding": {**place, "text": {"field": "name"}},
    }
    return panels([line, marks, names], records, x="independent", y="independent")


PARETO = Chart(
    "pareto",
    "Latency against throughput",
    "which ways of running no other one beats",
    "a model run in three ways",
    _drawn,
)

"""What a larger batch does to latency, throughput and memory. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from accelbench.analysis.points import Point, Span
from accelbench.analysis.questions import AXES
from accelbench.report.charts.chart import MOST_PANELS, Chart, Drawn, Subject
from accelbench.report.charts.look import dash_scale
from accelbench.report.charts.marks import (
    Record,
    dots,
    hardware_colour,
    measure,
    panels,
    record,
    tooltip,
    whiskers,
)
from accelbench.report.charts.words import apart, counted, safe, way

#: More lines in one panel are a tangle.
_MOST_LINES = 8

Figure = Callable[[Point], Span | None]


def _drawn(subject: Subject, figure: Figure, title: str, *, times: bool) -> Drawn | None:
    known = [one for one in subject.points if one.row.get("batch_size") and figure(one)]
    timed = [one for one in known if one.timed or not times]
    lines = _lines(timed)
    by_model: dict[tuple[str, str], list[list[Point]]] = {}
    for line in lines:
        row = line[0].row
        by_model.setdefault((str(row.get("model")), str(row.get("mode"))), []).append(line)
    if not by_model:
        return None
    shown = sorted(by_model.items(), key=lambda one: -sum(map(len, one[1])))[:MOST_PANELS]
    modes = len({mode for _, mode in by_model}) > 1
    records: list[Record] = []
    drawn: list[Point] = []
    left = 0
    for (model, mode), several in shown:
        panel = safe(f"{model}, {mode}" if modes else model)
        kept = sorted(several, key=lambda line: -len(line))[:_MOST_LINES]
        left += len(several) - len(kept)
        for line, name in zip(kept, _names(kept), strict=True):
            drawn += line
            records += (
                record(one, span, panel=panel, line=name) for one in line if (span := figure(one))
            )
    return Drawn(
        _body(records, title),
        drawn,
        _notes(len(by_model) - len(shown), left, len(known) - len(timed)),
        records,
    )


def _lines(points: Sequence[Point]) -> list[list[Point]]:
    """What differs in its batch alone; a single batch shows nothing of what a larger one does."""
    found: dict[object, list[Point]] = {}
    for one in points:
        key = (one.machine, one.kind, AXES["batch"].question(one.row))
        found.setdefault(key, []).append(one)
    ordered = (sorted(line, key=lambda one: int(one.row["batch_size"])) for line in found.values())
    return [line for line in ordered if len({one.row["batch_size"] for one in line}) > 1]


def _names(lines: Sequence[Sequence[Point]]) -> list[str]:
    """Each line's, by how it ran, and by what else tells it apart."""
    rows = [line[0].row for line in lines]
    named = [way(row) for row in rows]
    if len(set(named)) == len(named):
        return named
    left_out = ("model", "mode", "hardware", "runtime", "precision", "batch_size")
    return [
        safe(f"{name} · {more}", 70) if more else name
        for name, more in zip(named, apart(rows, left_out), strict=True)
    ]


def _body(records: Sequence[Record], title: str) -> dict[str, object]:
    batches = sorted({one["batch"] for one in records})
    x = {
        "field": "batch",
        "type": "quantitative",
        "title": "batch size (log)",
        "scale": {"type": "log", "base": 2, "nice": False, "padding": 12},
        "axis": {"values": batches, "format": "d", "labelOverlap": True, "grid": False},
    }
    place = {"x": x, "y": measure("value", title, [one["value"] for one in records])}
    names = list(dict.fromkeys(one["line"] for one in records))
    dash = {
        "field": "line",
        "type": "nominal",
        "sort": names,
        "scale": dash_scale(names),
        "legend": {"title": "how it ran", "symbolType": "stroke", "symbolSize": 700}
        if len(names) > 1
        else None,
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            **place,
            "color": hardware_colour(records, legend=None),
            "strokeDash": dash,
            "detail": [{"field": "line"}, {"field": "kind"}],
        },
    }
    marks = dots(records, {**place, "tooltip": tooltip(title, records)}, 55)
    return panels([lines, *whiskers(records, "y", place), marks], records, y="independent")


def _notes(models: int, lines: int, emulated: int) -> list[str]:
    notes = []
    if models:
        notes.append(f"{counted(models, 'more model')} not drawn: name those to see.")
    if lines:
        notes.append(f"{counted(lines, 'more line')} not drawn: narrow it down.")
    if emulated:
        notes.append(f"{counted(emulated, 'emulated cell')} not drawn: such times mean nothing.")
    return notes


LATENCY_BY_BATCH = Chart(
    "latency-by-batch",
    "Latency against batch size",
    "how long a step takes as its batch grows",
    "a model at two batch sizes",
    lambda subject: _drawn(subject, lambda one: one.latency, "latency of a batch, ms", times=True),
)
THROUGHPUT_BY_BATCH = Chart(
    "throughput-by-batch",
    "Throughput against batch size",
    "how many items a second a larger batch brings",
    "a model at two batch sizes",
    lambda subject: _drawn(subject, lambda one: one.throughput, "throughput, items/s", times=True),
)
MEMORY_BY_BATCH = Chart(
    "memory-by-batch",
    "Memory against batch size",
    "how much memory a larger batch takes",
    "a model at two batch sizes, with its memory",
    lambda subject: _drawn(subject, lambda one: one.memory, "peak memory, MB (2^20)", times=False),
)

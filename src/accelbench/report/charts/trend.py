"""A question's figures over time, with the points at which they changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from accelbench.analysis.history import Series
from accelbench.analysis.points import Point
from accelbench.core.nouns import counted
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import Axis, Spec, axis
from accelbench.report.charts.chart import Chart, Drawn, Subject
from accelbench.report.charts.look import ALERT, INK, paint
from accelbench.report.charts.marks import COLOUR, PAINT, Record, hardware_legend, kind_legend
from accelbench.report.charts.panels import MOST_PANELS, Panel, arranged
from accelbench.report.charts.phrases import emulated, left_out, safe
from accelbench.report.charts.words import COMMON, EVERYTHING, told

#: Above the points, for the size of a step.
_ROOM = 0.15
_TOLD = tuple(name for name in EVERYTHING if name != "model")


def _drawn(subject: Subject) -> Drawn | None:
    several = [one for one in subject.series if len(one.points) > 1]
    known = [one for one in several if not one.row.get("emulated")]
    if not known:
        return None
    shown = known[:MOST_PANELS]
    names = [safe(one.row.get("model"), 36) for one in shown]
    abouts = told([Point([one.row], "") for one in shown], _TOLD, COMMON, 64).apart
    moments = sorted(_utc(point.moment) for one in shown for point in one.points)
    panels = [_panel(*one, moments) for one in zip(shown, names, abouts, strict=True)]
    notes = _about(shown)
    if any(one.course and (one.course.steps or one.course.spikes) for one in shown):
        notes.append("Dashed: a step, with its size. Crosses: single points that came back.")
    notes += left_out(len(known) - len(shown), "panel", advice="name the models to see")
    notes += emulated(len(several) - len(known))
    records = [one for panel in panels for one in panel.records]
    legends = [*kind_legend(records, bars=True), *hardware_legend(records)]
    return Drawn(arranged(panels, legends), (), notes, records)


def _about(shown: Sequence[Series]) -> list[str]:
    launches = sum(point.launches for one in shown for point in one.points)
    runs = {point.run_id for one in shown for point in one.points}
    moments = sorted(point.moment[:10] for one in shown for point in one.points)
    made = f"{counted(len(runs), 'run')}, {counted(launches, 'launch', 'launches')}"
    first, last = moments[0], moments[-1]
    return [f"{made} · {first if first == last else f'{first} to {last}'}"]


def _utc(moment: str) -> str:
    """As a page and a picture made elsewhere read it alike; what says no zone is in UTC."""
    try:
        known = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    if known.tzinfo is None:
        known = known.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _panel(one: Series, name: str, about: str, moments: Sequence[str]) -> Panel:
    """One series: its points, the levels between its steps, and what happened."""
    records = _points(one)
    metric = one.metric
    values = [point.value for point in one.points]
    reach = max(values) - min(values)
    unit = metric.header.removeprefix(metric.name).strip() or metric.header
    scale = axis(f"{metric.name}, {unit}", [*values, max(values) + _ROOM * reach], zero=False)
    return Panel(name, [about], records, _layers(one, scale, moments))


def _points(one: Series) -> list[Record]:
    spikes = {spike.at for spike in one.course.spikes} if one.course else set()
    kind = str(one.row.get("provenance") or "measured")
    return [
        {
            "model": safe(one.row.get("model")),
            "hardware": safe(one.row.get("hardware")),
            "moment": _utc(point.moment),
            "value": point.value,
            "run": safe(point.run_id),
            "commit": safe(point.commit[:10]),
            "launches": point.launches,
            "alone": place in spikes,
            "kind": kind,
            "colour": colour_of(str(one.row.get("hardware"))),
            "paint": paint(str(one.row.get("hardware")), kind),
        }
        for place, point in enumerate(one.points)
    ]


def _levels(one: Series) -> list[Record]:
    steps = one.course.steps if one.course else ()
    found: list[Record] = []
    for begin, end in pairwise([0, *(step.at for step in steps), len(one.points)]):
        part = one.points[begin:end]
        middle = median(point.value for point in part)
        found += ({"moment": _utc(point.moment), "level": middle, "piece": begin} for point in part)
    return found


def _layers(one: Series, scale: Axis, moments: Sequence[str]) -> list[Spec]:
    x: Spec = {
        "field": "moment",
        "type": "temporal",
        "title": "time of the run, UTC",
        # A run has one moment, however long it took; runs are as far apart as they were in time.
        "scale": {"type": "utc", "domain": [moments[0], moments[-1]], "padding": 8},
        "axis": {"labelOverlap": True, "tickCount": 4, "grid": False},
    }
    y = scale.of("value")
    return [
        *_steps(one, x),
        {
            "data": {"values": _levels(one)},
            "mark": {"type": "line", "strokeWidth": 1.6, "color": INK, "opacity": 0.75},
            "encoding": {
                "x": x,
                "y": {**y, "field": "level"},
                "detail": {"field": "piece", "type": "nominal"},
            },
        },
        {
            "mark": {"type": "point", "size": 42, "strokeWidth": 1.6, "opacity": 0.9},
            "encoding": {
                "x": x,
                "y": y,
                "shape": {
                    "condition": {"test": "datum.alone", "value": "cross"},
                    "value": "circle",
                },
                "stroke": COLOUR,
                "fill": PAINT,
                "tooltip": [
                    {"field": "moment", "type": "temporal", "format": "%Y-%m-%d %H:%M"},
                    {"field": "value", "title": scale.title, "format": ",.4~r"},
                    *({"field": name} for name in ("run", "commit", "launches", "kind")),
                ],
            },
        },
    ]


def _steps(one: Series, x: Spec) -> list[Spec]:
    if one.course is None or not one.course.steps:
        return []
    records = [
        {
            "moment": _utc(one.points[step.at].moment),
            "said": f"{step.share:+.0%}",
            "commit": safe(one.points[step.at].commit[:10]),
        }
        for step in one.course.steps
    ]
    data = {"values": records}
    rule: Spec = {"type": "rule", "strokeDash": [4, 3], "color": ALERT, "strokeWidth": 1.3}
    text: Spec = {"type": "text", "align": "left", "dx": 4, "fontSize": 11.5, "color": ALERT}
    said: Spec = {"x": x, "y": {"value": 8}, "text": {"field": "said"}}
    told_of = [{"field": "said", "title": "changed by"}, {"field": "commit", "title": "since"}]
    return [
        {"data": data, "mark": rule, "encoding": {"x": x, "tooltip": told_of}},
        {"data": data, "mark": text, "encoding": said},
    ]


TREND = Chart(
    "trend",
    "Over time",
    "how figures changed from run to run, and where",
    "a question that two runs answered",
    _drawn,
)

"""A question's figures over time, with the points at which they changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from accelbench.analysis.history import Series
from accelbench.report.charts.chart import MOST_PANELS, Chart, Drawn, Spec, Subject
from accelbench.report.charts.look import ALERT, INK
from accelbench.report.charts.marks import Record, hardware_colour, measure, panels
from accelbench.report.charts.words import cells, counted, safe

#: A run has one moment, however long it took; runs are as far apart as they were in time.
_X = {"field": "moment", "type": "temporal", "title": None, "axis": {"labelOverlap": True}}


def _drawn(subject: Subject) -> Drawn | None:
    known = [one for one in subject.series if len(one.points) > 1 and not one.row.get("emulated")]
    if not known:
        return None
    shown = known[:MOST_PANELS]
    records, levels, changes = _records(shown)
    notes = []
    if changes:
        notes.append("Rules: steps, with their size; crosses: single points that came back.")
    if len(known) > len(shown):
        notes.append(f"{counted(len(known) - len(shown), 'more series', 'more series')} not drawn.")
    return Drawn(_body(records, levels, changes, shown), (), [*_about(shown), *notes], records)


def _about(shown: Sequence[Series]) -> list[str]:
    launches = sum(point.launches for one in shown for point in one.points)
    runs = {point.run_id for one in shown for point in one.points}
    moments = sorted(point.moment[:10] for one in shown for point in one.points)
    made = f"{counted(len(runs), 'run')}, {counted(launches, 'launch', 'launches')}"
    return [f"{made} · {moments[0]} to {moments[-1]}"]


def _records(shown: Sequence[Series]) -> tuple[list[Record], list[Record], list[Record]]:
    """Points, the levels between steps, and what happened."""
    records: list[Record] = []
    levels: list[Record] = []
    changes: list[Record] = []
    for one, panel in zip(shown, cells([one.row for one in shown]), strict=True):
        course = one.course
        spikes = {spike.at for spike in course.spikes} if course else set()
        about = {"panel": panel, "hardware": safe(one.row.get("hardware"))}
        for place, point in enumerate(one.points):
            records.append(
                {
                    **about,
                    "moment": point.moment,
                    "value": point.value,
                    "run": point.run_id,
                    "commit": point.commit[:10],
                    "launches": point.launches,
                    "alone": place in spikes,
                    "kind": str(one.row.get("provenance") or "measured"),
                }
            )
        steps = list(course.steps) if course else []
        cuts = [0, *(step.at for step in steps), len(one.points)]
        for begin, end in pairwise(cuts):
            part = one.points[begin:end]
            middle = median(point.value for point in part)
            levels += (
                {**about, "moment": point.moment, "level": middle, "piece": begin} for point in part
            )
        for step in steps:
            since = one.points[step.at]
            worse = (step.share > 0) == one.metric.lower_is_better
            changes.append(
                {
                    **about,
                    "moment": since.moment,
                    "said": f"{step.share:+.0%}",
                    "worse": worse,
                    "commit": since.commit[:10],
                }
            )
    return records, levels, changes


def _body(
    records: Sequence[Record],
    levels: Sequence[Record],
    changes: Sequence[Record],
    shown: Sequence[Series],
) -> Spec:
    metric = shown[0].metric
    title = f"{metric.name}, {metric.header}"
    y = measure("value", title, [one["value"] for one in records])
    tested = {"condition": {"test": "datum.alone", "value": "cross"}, "value": "circle"}
    layers: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.said)"}],
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": ALERT, "strokeWidth": 1.3},
            "encoding": {"x": _X},
        },
        {
            "transform": [{"filter": "isValid(datum.said)"}],
            "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11.5, "color": ALERT},
            "encoding": {"x": _X, "y": {"value": 8}, "text": {"field": "said"}},
        },
        {
            "transform": [{"filter": "isValid(datum.level)"}],
            "mark": {"type": "line", "strokeWidth": 1.6, "color": INK, "opacity": 0.75},
            "encoding": {"x": _X, "y": {**y, "field": "level"}, "detail": {"field": "piece"}},
        },
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "size": 42, "strokeWidth": 1.6, "opacity": 0.9},
            "encoding": {
                "x": _X,
                "y": y,
                "shape": tested,
                "stroke": hardware_colour(records),
                "tooltip": [
                    {"field": "moment", "type": "temporal", "format": "%Y-%m-%d %H:%M"},
                    {"field": "value", "type": "quantitative", "title": title, "format": ".4~g"},
                    *({"field": name} for name in ("run", "commit", "launches")),
                ],
            },
        },
    ]
    return panels(layers, [*records, *levels, *changes], y="independent", x="independent")


TREND = Chart(
    "trend",
    "Over time",
    "how figures changed from run to run, and where",
    "a question that four runs answered",
    _drawn,
)

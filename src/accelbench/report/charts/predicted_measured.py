"""Predicted against measured: a mark a case, on the diagonal where a prediction was right. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.nouns import counted, digits
from accelbench.report.charts.axes import NUMBER, ChartAxis, Spec, axis
from accelbench.report.charts.chart import ChartBody, ChartLabel, Picture, pictured
from accelbench.report.charts.marks import Record
from accelbench.report.charts.theme import (
    DIM,
    GROUP_COLOURS,
    GROUP_SHAPES,
    INK,
    PANEL_TITLE,
    REST_COLOUR,
)
from accelbench.report.charts.words import safe

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases, Score

PREDICTED_MEASURED = ChartLabel(
    "predicted-measured",
    "Predicted against measured",
    "how far predictions were from what was measured",
    "measured cases of several models",
)
_UNITS = {"latency": "latency of a step, ms", "memory": "peak memory, MB (2^20)"}
#: Marks of a panel: more are a stain, and megabytes.
_MOST_MARKS = 2000
#: Of more marks intervals would hide each other.
_MOST_INTERVALS = 150
_SIDE = 300
_OTHERS = "others"
_LINES_NOTE = "On the diagonal a prediction was right; dashed: 25 % more and 25 % less."
_INTERVALS_NOTE = "Thin lines: 90 % intervals."


def evaluation_picture(every: Sequence[EvaluatedCases], about: str = "") -> Picture | None:
    """A panel a target, with its scores above it; None where nothing was predicted.

    Args:
        every: the cases of each target.
        about: what the predictions were learned from.
    """
    shown = [cases for cases in every if len(cases.rows)]
    if not shown:
        return None
    drawn = predicted_against_measured(shown, about)
    return pictured(PREDICTED_MEASURED, drawn)


def predicted_against_measured(shown: Sequence[EvaluatedCases], about: str = "") -> ChartBody:
    """The body of such a picture."""
    names = _group_names(shown)
    several = len(set(names.values())) > 1
    panels: list[Spec] = []
    everything: list[Record] = []
    for cases in shown:
        records = _records(cases, names)
        everything += records
        panels.append(_panel(cases, records, names, legend=several))
    more = [
        f"{_MOST_MARKS:,} of {len(cases.rows):,} are drawn; figures are of all."
        for cases in shown
        if len(cases.rows) > _MOST_MARKS
    ][:1]
    spans = any(len(cases.rows) <= _MOST_INTERVALS for cases in shown)
    notes = [
        about,
        _LINES_NOTE,
        " ".join([*([_INTERVALS_NOTE] if spans else []), *more]),
    ]
    body: Spec = {"concat": panels, "columns": 2, "spacing": 30}
    return ChartBody(body, notes=list(filter(None, notes)), records=everything)


def score_sentence(score: Score) -> str:
    """Scores in words: 52 cases · median error 13.5 % · 88 % inside their 90 % interval."""
    count = counted(int(score["n"] or 0), "case")
    if score["mdape"] is None:
        return count
    return (
        f"{count} · median error {digits(float(score['mdape']))} %"
        f" · {float(score['within25'] or 0):.0f} % inside 25 %"
        f" · {float(score['coverage90'] or 0):.0f} % inside their 90 % interval"
    )


def _group_names(shown: Sequence[EvaluatedCases]) -> dict[str, str]:
    """The largest groups by their names, all others by one."""
    counts = Counter(cases.groups[row] for cases in shown for row in cases.rows)
    largest = sorted(counts, key=lambda name: (-counts[name], name))
    return {
        name: safe(name) if place < len(GROUP_COLOURS) else _OTHERS
        for place, name in enumerate(largest)
    }


def _records(cases: EvaluatedCases, names: Mapping[str, str]) -> list[Record]:
    return [
        {
            "target": cases.target,
            "model": safe(entry.model),
            "group": names[entry.group],
            "measured": entry.measured,
            "predicted": entry.predicted,
            "low": entry.low,
            "high": entry.high,
            "off_by_percent": round(100 * (entry.predicted / entry.measured - 1), 1),
        }
        for entry in cases.drawn(_MOST_MARKS)
    ]


def _panel(
    cases: EvaluatedCases, records: Sequence[Record], names: Mapping[str, str], *, legend: bool
) -> Spec:
    figures = [datum[name] for datum in records for name in ("measured", "predicted")]
    scale = axis(_UNITS.get(cases.target, cases.target), figures, log=True)
    first, *rest = score_sentence(cases.score()).split(" · ")
    # A line has room for so much above a panel.
    lines = [f"{first} · {rest[0]} · {rest[1]}", *rest[2:]] if rest else [first]
    title = {**PANEL_TITLE, "text": cases.target.capitalize(), "subtitle": lines}
    intervals = [_intervals(scale)] if len(cases.rows) <= _MOST_INTERVALS else []
    return {
        "title": title,
        "data": {"values": list(records)},
        "width": _SIDE,
        "height": _SIDE,
        "layer": [*_right(scale), *intervals, _marks(records, scale, names, legend=legend)],
    }


def _place(scale: ChartAxis) -> Spec:
    x, y = scale.of("measured"), scale.of("predicted")
    return {
        "x": {**x, "title": f"measured {x['title']}"},
        "y": {**y, "title": f"predicted {y['title']}"},
    }


def _right(scale: ChartAxis) -> list[Spec]:
    """The diagonal, and the lines a quarter above and below it."""
    place = _place(scale)
    ends = (scale.low, scale.high)
    return [
        {
            "data": {"values": [{"measured": end, "predicted": end * factor} for end in ends]},
            "mark": {"type": "line", "clip": True, "strokeWidth": wide, "strokeDash": dashes,
                     "color": colour},
            "encoding": place,
        }
        for factor, wide, dashes, colour in (
            (1.0, 1.4, [1, 0], INK), (1.25, 1.1, [5, 4], DIM), (0.75, 1.1, [5, 4], DIM)
        )
    ]  # fmt: skip


def _intervals(scale: ChartAxis) -> Spec:
    place = _place(scale)
    return {
        "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.4, "color": DIM, "clip": True},
        "encoding": {
            "x": place["x"],
            "y": {**place["y"], "field": "low"},
            "y2": {"field": "high"},
        },
    }


def _marks(
    records: Sequence[Record], scale: ChartAxis, names: Mapping[str, str], *, legend: bool
) -> Spec:
    domain = list(dict.fromkeys(names.values()))
    colours = [*GROUP_COLOURS[: len(domain)], REST_COLOUR][: len(domain)]
    shapes = [*GROUP_SHAPES, GROUP_SHAPES[0]][: len(domain)]
    shown = {"title": None, "symbolOpacity": 1, "symbolSize": 90} if legend else None
    group: Spec = {"field": "group", "type": "nominal", "sort": domain, "legend": shown}
    many = len(records) > _MOST_INTERVALS
    told: list[Spec] = [
        *({"field": name, "type": "nominal"} for name in ("model", "group")),
        *(
            {"field": name, "type": "quantitative", "format": NUMBER}
            for name in ("measured", "predicted", "low", "high", "off_by_percent")
        ),
    ]
    return {
        "mark": {"type": "point", "filled": True, "clip": True, "size": 22 if many else 60,
                 "opacity": 0.45 if many else 0.85},
        "encoding": {
            **_place(scale),
            "color": {**group, "scale": {"domain": domain, "range": colours}},
            "shape": {**group, "scale": {"domain": domain, "range": shapes}},
            "tooltip": told,
        },
    }  # fmt: skip

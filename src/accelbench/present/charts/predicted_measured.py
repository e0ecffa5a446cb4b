"""Predicted against measured: a mark a case, on the diagonal where a prediction was right. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.nouns import counted, digits
from accelbench.present.charts.axes import (
    NUMBER,
    ChartAxis,
    Spec,
    axis,
    grouped,
    layer,
    view,
    words,
)
from accelbench.present.charts.axes import legend as legend_of
from accelbench.present.charts.chart import ChartBody, Picture, label_of, pictured
from accelbench.present.charts.marks import Record
from accelbench.present.charts.theme import (
    DIM,
    GROUP_COLOURS,
    GROUP_SHAPES,
    INK,
    PANEL_TITLE,
    REST_COLOUR,
)
from accelbench.present.charts.words import safe
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.scoring import EvaluatedCases, Score

PREDICTED_MEASURED = label_of("predicted-measured")
_UNITS = {"latency": phrase("charts.axis-step-latency"), "memory": "peak memory, MB (2^20)"}
#: Marks of a panel: more are a stain, and megabytes.
_MOST_MARKS = 2000
#: Of more marks intervals would hide each other.
_MOST_INTERVALS = 150
_SIDE = 300
_OTHERS = "others"
_LINES_NOTE = phrase("charts.diagonal-legend")
_INTERVALS_NOTE = "Thin lines: 90 % intervals."


def evaluation_picture(every: Sequence[EvaluatedCases], about: str = "") -> Picture | None:
    """A panel a target, with its scores above it; None where nothing was predicted."""
    shown = [cases for cases in every if len(cases.rows)]
    if not shown:
        return None
    return pictured(PREDICTED_MEASURED, predicted_against_measured(shown, about))


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
        phrase("charts.marks-thinned", most_marks=_MOST_MARKS, rows=len(cases.rows))
        for cases in shown
        if len(cases.rows) > _MOST_MARKS
    ][:1]
    spans = any(len(cases.rows) <= _MOST_INTERVALS for cases in shown)
    notes = [about, _LINES_NOTE, " ".join([*([_INTERVALS_NOTE] if spans else []), *more])]
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
    place = _place(scale)
    ends = {"x": place["x"], "y": {**place["y"], "field": "low"}, "y2": {"field": "high"}}
    intervals = layer("rule", ends, strokeWidth=1, opacity=0.4, color=DIM, clip=True)
    layers = [
        *_right(scale),
        *([intervals] if len(cases.rows) <= _MOST_INTERVALS else []),
        _marks(records, place, names, legend=legend),
    ]
    return {"title": title, **view(records, _SIDE, _SIDE, *layers)}


def _place(scale: ChartAxis) -> Spec:
    x, y = scale.of("measured"), scale.of("predicted")
    return {
        "x": {**x, "title": f"measured {x['title']}"},
        "y": {**y, "title": f"predicted {y['title']}"},
    }


def _right(scale: ChartAxis) -> list[Spec]:
    place, ends = _place(scale), (scale.low, scale.high)
    return [
        layer(
            "line",
            place,
            of=[{"measured": end, "predicted": end * factor} for end in ends],
            clip=True,
            strokeWidth=wide,
            strokeDash=dashes,
            color=colour,
        )
        for factor, wide, dashes, colour in (
            (1.0, 1.4, [1, 0], INK),
            (1.25, 1.1, [5, 4], DIM),
            (0.75, 1.1, [5, 4], DIM),
        )
    ]


def _marks(
    records: Sequence[Record], place: Spec, names: Mapping[str, str], *, legend: bool
) -> Spec:
    domain = list(dict.fromkeys(names.values()))
    shown = legend_of(symbolSize=90) if legend else None
    values = {
        "color": [*GROUP_COLOURS[: len(domain)], REST_COLOUR],
        "shape": [*GROUP_SHAPES, GROUP_SHAPES[0]],
    }
    groups = {
        channel: {**grouped("group", dict(zip(domain, each, strict=False)), shown), "sort": domain}
        for channel, each in values.items()
    }
    form: Spec = {"type": "quantitative", "format": NUMBER}
    figures = ("measured", "predicted", "low", "high", "off_by_percent")
    tips = [*words("model", "group"), *({"field": name, **form} for name in figures)]
    many = len(records) > _MOST_INTERVALS
    look: Spec = {"size": 22 if many else 60, "opacity": 0.45 if many else 0.85}
    channels = {**place, **groups, "tooltip": tips}
    return layer("point", channels, filled=True, clip=True, **look)

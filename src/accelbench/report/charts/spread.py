"""Many configurations in few lines: of each group the quantiles of a figure, and how many. Pure.

Groups have other models in them, so one that stands further left is not the faster one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.core.nouns import counted
from accelbench.core.rows import Row
from accelbench.hardware.common import colour_of
from accelbench.report.charts.axes import Spec, axis, layer, named, numbers, view, words
from accelbench.report.charts.chart import ChartBody, ChartLabel, Picture, pictured
from accelbench.report.charts.marks import COLOUR, PAINT
from accelbench.report.charts.theme import GROUP_COLOURS, MIDDLE_TICK, WIDE
from accelbench.report.charts.words import left_out, safe

#: More groups than this are no picture: those with the most models are drawn.
MOST_GROUPS = 24
_STEP = 22
_LEGEND = (
    "Line: 5 % to 95 % of the configurations. Box: the middle half. Tick: the median. Each group"
    " has models of its own: this is how figures are spread, and not which group is faster."
)
_HOLLOW = "Hollow: figures that others measured alone."


@dataclass(frozen=True)
class SpreadGroup:
    """Configurations that have something in common."""

    name: str  # what they have in common
    hardware: str  # their platform, if that is one
    configurations: int
    models: int
    quantiles: Sequence[float]  # of their figures, at 5, 25, 50, 75 and 95 %
    imported: bool = False  # all of them
    first: str = ""  # the day of the oldest, and `last` of the newest; "" if it is not known
    last: str = ""


def spread_picture(
    label: ChartLabel, title: str, groups: Sequence[SpreadGroup], notes: Sequence[str] = ()
) -> Picture | None:
    """The picture of groups in their order; None if no group has a figure."""
    shown = groups[:MOST_GROUPS]
    if not shown:
        return None
    records = [_record(group) for group in shown]
    count = sum(group.configurations for group in groups)
    days = sorted(day for group in groups for day in (group.first, group.last) if day)
    said = [counted(count, "configuration"), counted(len(groups), "group")]
    said += [f"{days[0]} to {days[-1]}" if days[0] != days[-1] else days[0]] if days else []
    about = [
        " · ".join(said),
        *notes,
        _LEGEND,
        *([_HOLLOW] if any(group.imported for group in shown) else []),
        *left_out(len(groups) - len(shown), "group", advice="filter to see others"),
    ]
    return pictured(label, ChartBody(_body(records, title), (), about, records))


def _record(group: SpreadGroup) -> Row:
    low, first, middle, third, high = group.quantiles
    colour = colour_of(group.hardware) if group.hardware else GROUP_COLOURS[0]
    return {
        "group": f"{safe(group.name, 52)} ({group.configurations:,})",
        "configurations": group.configurations,
        "models": group.models,
        "p5": low,
        "p25": first,
        "median": middle,
        "p75": third,
        "p95": high,
        "from": group.first,
        "to": group.last,
        "colour": colour,
        "paint": "transparent" if group.imported else f"{colour}88",
    }


def _body(records: Sequence[Row], title: str) -> Spec:
    ends = [float(str(datum[name])) for datum in records for name in ("p5", "p95")]
    x = axis(title, ends).of("median")
    y = named("group", (datum["group"] for datum in records), labelLimit=360)
    quantiles = {name: f"{name}, {title}" for name in ("p5", "p25", "median", "p75", "p95")}
    tips = [
        *words("group"),
        *numbers(**quantiles),
        *numbers("configurations", "models"),
        *words("from", "to"),
    ]
    place: Spec = {"y": y, "tooltip": tips}
    line = {**place, "x": {**x, "field": "p5"}, "x2": {"field": "p95"}, "color": COLOUR}
    box = {**place, "x": {**x, "field": "p25"}, "x2": {"field": "p75"}}
    layers = [
        layer("rule", line, strokeWidth=1.6),
        layer("bar", {**box, "stroke": COLOUR, "fill": PAINT}, height=11, strokeWidth=1.4),
        layer("tick", {**place, "x": x}, **{**MIDDLE_TICK, "size": 15}),
    ]
    return view(records, WIDE, {"step": _STEP}, *layers)

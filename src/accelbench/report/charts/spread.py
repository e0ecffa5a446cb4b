"""Many configurations in few lines: of each group the quantiles of a figure, and how many. Pure.

What a picture of single models cannot show of thousands. Groups have other models in them, so one
that stands further left is not the faster one: what is said is how figures are spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.core.nouns import counted
from accelbench.core.rows import Row
from accelbench.hardware.common import colour_of
from accelbench.report.charts.axes import NUMBER, Spec, axis
from accelbench.report.charts.chart import ChartBody, ChartLabel, Picture, pictured
from accelbench.report.charts.theme import GROUP_COLOURS, INK, WIDE
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
    """Configurations that have something in common.

    Attributes:
        name: what they have in common.
        hardware: their platform, where that is one.
        configurations: how many there are.
        models: of how many models.
        quantiles: their figures at 5, 25, 50, 75 and 95 %.
        imported: whether others measured all of them.
        first: the day of the oldest, and `last` of the newest; "" where nobody says.
    """

    name: str
    hardware: str
    configurations: int
    models: int
    quantiles: Sequence[float]
    imported: bool = False
    first: str = ""
    last: str = ""


def spread_picture(
    label: ChartLabel, title: str, groups: Sequence[SpreadGroup], notes: Sequence[str] = ()
) -> Picture | None:
    """The picture; None where no group has a figure.

    Args:
        label: what it is called.
        title: what the figure is, with its unit and statistic.
        groups: in the order in which they are drawn.
        notes: what else is to be said.
    """
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
    y: Spec = {
        "field": "group",
        "type": "nominal",
        "sort": [str(datum["group"]) for datum in records],
        "title": None,
        "axis": {"ticks": False, "domain": False, "labelLimit": 360},
    }
    colour: Spec = {"field": "colour", "type": "nominal", "scale": None}
    fill: Spec = {"field": "paint", "type": "nominal", "scale": None}
    tooltip = [
        {"field": "group", "type": "nominal"},
        *(
            {"field": name, "type": "quantitative", "title": f"{name}, {title}", "format": NUMBER}
            for name in ("p5", "p25", "median", "p75", "p95")
        ),
        *({"field": name, "type": "quantitative"} for name in ("configurations", "models")),
        *({"field": name, "type": "nominal"} for name in ("from", "to")),
    ]
    line: Spec = {
        "mark": {"type": "rule", "strokeWidth": 1.6},
        "encoding": {
            "x": {**x, "field": "p5"},
            "x2": {"field": "p95"},
            "y": y,
            "color": colour,
            "tooltip": tooltip,
        },
    }
    box: Spec = {
        "mark": {"type": "bar", "height": 11, "strokeWidth": 1.4},
        "encoding": {
            "x": {**x, "field": "p25"},
            "x2": {"field": "p75"},
            "y": y,
            "stroke": colour,
            "fill": fill,
            "tooltip": tooltip,
        },
    }
    tick: Spec = {
        "mark": {"type": "tick", "thickness": 2.5, "size": 15, "color": INK},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
    }
    return {
        "data": {"values": list(records)},
        "width": WIDE,
        "height": {"step": _STEP},
        "layer": [line, box, tick],
    }

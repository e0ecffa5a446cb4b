"""An exploration as shapes in a page: places in per cent, colours as classes, no script. Pure.

Places are per cent of the room that points have, so that it fits a phone without smaller letters.
The colours are classes of a style sheet, one for each colour, so that both papers have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10
from typing import Any

from accelbench.core.rows import Row, number
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import ChartAxis
from accelbench.report.charts.palette import on_dark
from accelbench.report.charts.phrases import figure, safe
from accelbench.report.charts.theme import GROUP_COLOURS, REST_COLOUR
from accelbench.report.dashboard.explore.front_names import names_of_front, numbers_of_front
from accelbench.report.dashboard.explore.points import (
    ACROSS,
    UP,
    ExploredPoints,
    share_along,
    ticks_of,
)
from accelbench.report.dashboard.explore.query import USUAL_COLOUR, ExploreQuery

#: Radius of a mark: of all alike, and from the smallest to the largest figure.
_RADIUS, _SMALLEST, _LARGEST = 3.6, 2.4, 11.0
#: A place with a single configuration is this much of the darkest.
_FAINTEST = 0.16
#: Entries of a legend beyond these are not shown.
_MOST_GROUPS = 16


@dataclass(frozen=True)
class LegendGroup:
    """One entry of the legend."""

    name: str
    count: int
    colour: str  # as a class has it: "24306c"


def groups_of(explored: ExploredPoints, chosen: ExploreQuery) -> list[LegendGroup]:
    """The legend: of a platform its colour, of other fields one each; the rest are alike."""
    named = explored.groups
    if chosen.colour == USUAL_COLOUR:
        return [LegendGroup(name, count, colour_of(name)[1:]) for name, count in named]
    shown = named if len(named) <= len(GROUP_COLOURS) else named[: len(GROUP_COLOURS) - 1]
    groups = [
        LegendGroup(name, count, colour[1:])
        for (name, count), colour in zip(shown, GROUP_COLOURS, strict=False)
    ]
    rest = named[len(shown) :]
    if rest:
        more = f"{len(rest):,} others"
        groups.append(LegendGroup(more, sum(count for _, count in rest), REST_COLOUR[1:]))
    return groups


@dataclass(frozen=True)
class Shade:
    """One entry of the legend of counts: how dark a place with so many configurations is."""

    count: int
    share: float


def drawing(explored: ExploredPoints, chosen: ExploreQuery) -> dict[str, Any]:
    """What the page's template draws."""
    groups = groups_of(explored, chosen)
    colours = {group.name: group.colour for group in groups}
    x, y = explored.x, explored.y
    sizes = [number(row, "size") or 0.0 for row in explored.points if row.get("size")]
    most = max((count for _, _, count in explored.bins), default=1)
    front = [mark(row, explored, colours, ()) for row in explored.front]
    singly = explored.points or [*explored.front, *explored.matches]
    shown = {colours.get(str(row.get("colour_by")), REST_COLOUR[1:]) for row in singly}
    return {
        "ticks_x": [(_x(x, tick), _tick(tick)) for tick in ticks_of(x)],
        "ticks_y": [(_y(y, tick), _tick(tick)) for tick in ticks_of(y)],
        "title_x": f"{x.title} (log)" if x.log else x.title,
        "title_y": f"{y.title} (log)" if y.log else y.title,
        "groups": [group for group in groups if group.colour in shown][:_MOST_GROUPS],
        "marks": [mark(row, explored, colours, sizes) for row in explored.points],
        "bins": [_bin(*place, most) for place in explored.bins],
        "shades": _shades(most) if explored.bins else [],
        "front": front,
        "path": _path(front) if chosen.x.better and chosen.y.better else [],
        "names": names_of_front(explored.front, [(at["x"], at["y"]) for at in front]),
        "numbers": numbers_of_front([(at["x"], at["y"]) for at in front]),
        "matches": [mark(row, explored, colours, ()) for row in explored.matches],
    }


def mark(
    row: Row, explored: ExploredPoints, colours: Mapping[str, str], sizes: Sequence[float]
) -> dict[str, Any]:
    """One configuration as a circle."""
    name = str(row.get("colour_by"))
    return {
        "x": _x(explored.x, float(str(row["x"]))),
        "y": _y(explored.y, float(str(row["y"]))),
        "r": _radius(number(row, "size"), sizes),
        "colour": colours.get(name, REST_COLOUR[1:]),
        "hollow": row.get("kind") == "imported",
        "said": said(row),
    }


def said(row: Row) -> str:
    """What a point is, in a line."""
    words = [row.get("model"), row.get("hardware"), row.get("device_name"), row.get("runtime")]
    words += [row.get("precision"), f"batch {row['batch_size']}" if row.get("batch_size") else ""]
    return " · ".join(safe(word) for word in words if word)


def style_sheet(colours: Iterable[str]) -> str:
    """A class for each colour, on light paper and on dark."""
    known = dict.fromkeys(colours)
    light = "".join(f".c-{colour[1:]}{{--platform:{colour}}}\n" for colour in known)
    dark = "".join(f".c-{colour[1:]}{{--platform:{on_dark(colour)}}}\n" for colour in known)
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _x(scale: ChartAxis, value: float) -> float:
    return round(100 * share_along(scale, value), 2)


def _y(scale: ChartAxis, value: float) -> float:
    return round(100 * (1 - share_along(scale, value)), 2)


def _tick(value: float) -> str:
    return (
        f"{value:,.0f}"
        if value >= 10 and value == int(value)
        else figure(value).rstrip("0").rstrip(".")
        if "." in figure(value)
        else figure(value)
    )


def _radius(size: float | None, sizes: Sequence[float]) -> float:
    if not sizes:
        return _RADIUS
    if not size:
        return _SMALLEST
    low, high = log10(min(sizes)), log10(max(sizes))
    share = (log10(size) - low) / (high - low) if high > low else 0.5
    return round(_SMALLEST + (_LARGEST - _SMALLEST) * share, 1)


def _bin(column: int, row: int, count: int, most: int) -> dict[str, float]:
    wide, high = 100 / ACROSS, 100 / UP
    return {
        "x": round(column * wide, 2),
        "y": round(100 - (row + 1) * high, 2),
        "wide": round(wide + 0.03, 2),
        "high": round(high + 0.05, 2),
        "share": _darkness(count, most),
    }


def _darkness(count: int, most: int) -> float:
    share = log10(count) / log10(most) if most > 1 else 1.0
    return round(_FAINTEST + (1 - _FAINTEST) * share, 2)


def _shades(most: int) -> list[Shade]:
    """One, the tens between, and the most: the darkness goes by the logarithm of the count."""
    tens = [10**power for power in range(1, 9) if 10**power < 0.7 * most]
    return [Shade(count, _darkness(count, most)) for count in sorted({1, *tens, most})]


def _path(front: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, float, float]]:
    """The steps from one to the next: along, then up."""
    steps = []
    for one, other in pairwise(front):
        steps.append((one["x"], one["y"], other["x"], one["y"]))
        steps.append((other["x"], one["y"], other["x"], other["y"]))
    return steps

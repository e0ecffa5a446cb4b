"""An exploration as shapes in a page: places in pixels, colours as classes, no script. Pure.

The colours are classes of a style sheet, one for each colour, so that both papers have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10, sqrt
from typing import Any

from accelbench.core.rows import Row, number
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import ChartAxis
from accelbench.report.charts.palette import on_dark
from accelbench.report.charts.phrases import figure, safe
from accelbench.report.charts.theme import GROUP_COLOURS, REST_COLOUR
from accelbench.report.dashboard.explore.points import (
    ACROSS,
    MOST_NAMED,
    UP,
    ExploredPoints,
    share_along,
    ticks_of,
)
from accelbench.report.dashboard.explore.query import USUAL_COLOUR, ExploreQuery

#: Of the whole drawing, and of the room that points have in it, in pixels.
WIDE, HIGH = 960, 560
LEFT, TOP, RIGHT, BOTTOM = 74, 14, 14, 50
_ROOM_WIDE, _ROOM_HIGH = WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM
#: Radius of a mark: of all alike, and from the smallest to the largest figure.
_RADIUS, _SMALLEST, _LARGEST = 3.6, 2.4, 11.0
#: Names of a front stand this far apart, in pixels, and are so long.
_LINE, _LONGEST = 15.0, 34
#: A place with a single configuration is this much of the darkest.
_FAINTEST = 0.16


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


def drawing(explored: ExploredPoints, chosen: ExploreQuery) -> dict[str, Any]:
    """What the page's template draws."""
    groups = groups_of(explored, chosen)
    colours = {group.name: group.colour for group in groups}
    x, y = explored.x, explored.y
    sizes = [number(row, "size") or 0.0 for row in explored.points if row.get("size")]
    most = max((count for _, _, count in explored.bins), default=1)
    front = [mark(row, explored, colours, ()) for row in explored.front]
    return {
        "wide": WIDE,
        "high": HIGH,
        "left": LEFT,
        "top": TOP,
        "right": WIDE - RIGHT,
        "bottom": HIGH - BOTTOM,
        "ticks_x": [(_x(x, tick), _tick(tick)) for tick in ticks_of(x)],
        "ticks_y": [(_y(y, tick), _tick(tick)) for tick in ticks_of(y)],
        "title_x": f"{x.title} (log)" if x.log else x.title,
        "title_y": f"{y.title} (log)" if y.log else y.title,
        "groups": groups,
        "marks": [mark(row, explored, colours, sizes) for row in explored.points],
        "bins": [_bin(*place, most) for place in explored.bins],
        "most": most,
        "front": front,
        "path": _path(front) if chosen.x.better and chosen.y.better else "",
        "names": _names(explored.front, front),
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
    return round(LEFT + _ROOM_WIDE * share_along(scale, value), 1)


def _y(scale: ChartAxis, value: float) -> float:
    return round(TOP + _ROOM_HIGH * (1 - share_along(scale, value)), 1)


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
    wide, high = _ROOM_WIDE / ACROSS, _ROOM_HIGH / UP
    share = log10(count) / log10(most) if most > 1 else 1.0
    return {
        "x": round(LEFT + column * wide, 1),
        "y": round(TOP + _ROOM_HIGH - (row + 1) * high, 1),
        "wide": round(wide + 0.2, 1),
        "high": round(high + 0.2, 1),
        "share": round(_FAINTEST + (1 - _FAINTEST) * share, 2),
    }


def _path(front: Sequence[Mapping[str, Any]]) -> str:
    """The steps from one to the next."""
    if len(front) < 2:
        return ""
    first, *rest = front
    return f"M{first['x']} {first['y']}" + "".join(f"H{m['x']}V{m['y']}" for m in rest)


def _names(rows: Sequence[Row], marks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Names beside marks of the front, of as many as do not lie on each other."""
    names: list[dict[str, Any]] = []
    step = max(1, sqrt(len(rows) / MOST_NAMED))
    for place in range(0, len(rows), int(step)):
        if len(names) == MOST_NAMED:
            break
        row, at = rows[place], marks[place]
        left = at["x"] > WIDE - 260
        entry = {
            "x": at["x"] + (-8 if left else 8),
            "y": min(max(at["y"] - 7, TOP + 12), HIGH - BOTTOM - 6),
            "left": left,
            "text": safe(row.get("model"), _LONGEST),
        }
        if all(abs(entry["y"] - other["y"]) > _LINE for other in names):
            names.append(entry)
    return names

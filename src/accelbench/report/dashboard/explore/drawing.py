"""An exploration as shapes in a page, without a script. Pure.

Places are per cent of the room of the points, so that it fits a phone. Colours are classes of a
style sheet, so that both papers have theirs. Names of a front stand beside marks if they find
room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10, sqrt
from typing import Any

from accelbench.core.rows import Row, number
from accelbench.hardware.common import colour_of
from accelbench.report.charts.axes import ChartAxis
from accelbench.report.charts.palette import on_dark
from accelbench.report.charts.theme import GROUP_COLOURS, REST_COLOUR
from accelbench.report.charts.words import figure, safe
from accelbench.report.dashboard.explore.points import (
    ACROSS,
    UP,
    USUAL_COLOUR,
    ExploredPoints,
    ExploreQuery,
    share_along,
    ticks_of,
)

#: Beyond a few none is named in the picture: the table below it has all.
MOST_NAMED = 7
#: Room of the points in pixels: with filters beside it on a small screen, and on a phone.
_SCREEN, _PHONE = (640.0, 496.0), (290.0, 320.0)
#: Pixels of a letter of a name, of the line it stands in, and of a mark around its middle.
_LETTER, _LINE, _MARK = 7.0, 15.0, 5.0
#: A name is so long at most; what tells it from others of its model stands behind it.
_LONGEST = 30
#: Lines above and below a mark on which its name may stand, the nearest first: the baseline.
_BESIDE = (-7.0, 17.0, -22.0, 32.0, -37.0, 47.0)
#: What tells points of one model from each other: the column, and how it is said.
_APART = {
    "batch_size": "batch {}",
    **dict.fromkeys(("precision", "runtime", "hardware", "device_name"), "{}"),
}


@dataclass(frozen=True)
class FrontName:
    """A text beside a mark."""

    x: float  # where the mark stands, per cent along, and `y` down
    y: float
    beside: float  # pixels from there along, and `below` down to its baseline
    below: float
    left: bool  # whether it ends beside the mark, and does not begin there
    text: str


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def over(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def names_of_front(rows: Sequence[Row], places: Sequence[tuple[float, float]]) -> list[FrontName]:
    """Names of marks, each on the nearest line that is free."""
    marks = [
        _Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK)
        for x, y in ((along * _SCREEN[0] / 100, down * _SCREEN[1] / 100) for along, down in places)
    ]
    names: list[FrontName] = []
    taken: list[_Box] = []
    step = max(1, int(sqrt(len(rows) / MOST_NAMED)))
    for index in range(0, len(rows), step):
        if len(names) == MOST_NAMED:
            break
        others = [mark for n, mark in enumerate(marks) if n != index]
        text = name_on_front(rows[index], rows)
        made = list(_candidates(places[index], text))
        # On another mark a name can be read, on another name it cannot.
        found = next(
            (
                (name, box)
                for avoided in ([*taken, *others], taken)
                for name, box in made
                if not any(box.over(other) for other in avoided)
            ),
            None,
        )
        if found:
            names.append(found[0])
            taken.append(found[1])
    return names


def numbers_of_front(places: Sequence[tuple[float, float]]) -> list[FrontName]:
    """For a phone, where names find no room: which line of the table a mark is."""
    numbers: list[FrontName] = []
    taken: list[_Box] = []
    for position, place in enumerate(places, 1):
        text = f"{position}"
        x, y = place[0] * _PHONE[0] / 100, place[1] * _PHONE[1] / 100
        box = _Box(x - _LETTER, y - 7 - _LINE, x + _LETTER, y - 7)
        if not any(box.over(other) for other in taken):
            numbers.append(FrontName(*place, 0.0, -7.0, False, text))
            taken.append(box)
    return numbers


def name_on_front(row: Row, rows: Sequence[Row]) -> str:
    """The model, and of several of one model what tells this one from the others."""
    alike = [other for other in rows if other.get("model") == row.get("model")]
    apart = [
        said.format(safe(row[column], 16))
        for column, said in _APART.items()
        if row.get(column) and len({str(other.get(column)) for other in alike}) > 1
    ]
    return ", ".join([safe(row.get("model"), _LONGEST), *apart[:1]])


def _candidates(place: tuple[float, float], text: str) -> Iterator[tuple[FrontName, _Box]]:
    wide, high = _SCREEN
    x, y, long = place[0] * wide / 100, place[1] * high / 100, _LETTER * len(text)
    left = x + 8 + long > wide and x > wide / 2
    first = x - 8 - long if left else x + 8
    for below in _BESIDE:
        baseline = min(max(y + below, 12.0), high - 6.0)
        box = _Box(first, baseline - _LINE + 4, first + long, baseline + 4)
        name = FrontName(*place, -8.0 if left else 8.0, round(baseline - y, 1), left, text)
        yield name, box


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
    most, wide, high = max((n for *_, n in explored.bins), default=1), 100 / ACROSS, 100 / UP
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
        "bins": [
            {
                "x": round(column * wide, 2),
                "y": round(100 - (row + 1) * high, 2),
                "wide": round(wide + 0.03, 2),
                "high": round(high + 0.05, 2),
                "share": _darkness(count, most),
            }
            for column, row, count in explored.bins
        ],
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
    text = f"{value:,.0f}" if value >= 10 and value == int(value) else figure(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _radius(size: float | None, sizes: Sequence[float]) -> float:
    if not sizes:
        return _RADIUS
    if not size:
        return _SMALLEST
    low, high = log10(min(sizes)), log10(max(sizes))
    share = (log10(size) - low) / (high - low) if high > low else 0.5
    return round(_SMALLEST + (_LARGEST - _SMALLEST) * share, 1)


def _darkness(count: int, most: int) -> float:
    share = log10(count) / log10(most) if most > 1 else 1.0
    return round(_FAINTEST + (1 - _FAINTEST) * share, 2)


def _shades(most: int) -> list[Shade]:
    """One, the tens between, and the most: the darkness goes by the logarithm of the count."""
    tens = [10**power for power in range(1, 9) if 10**power < 0.7 * most]
    return [Shade(count, _darkness(count, most)) for count in sorted({1, *tens, most})]


def _path(front: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, float, float]]:
    return [
        step
        for one, other in pairwise(front)
        for step in (
            (one["x"], one["y"], other["x"], one["y"]),
            (other["x"], one["y"], other["x"], other["y"]),
        )
    ]

"""The pages of points by chosen axes and of distributions, drawn without a script.

Places are per cent of the plot, so that it fits a phone. Colours are classes of a style sheet, one
for each theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10, sqrt
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from accelbench.core.formatting import format_value
from accelbench.core.plugins import HARDWARE, find_entry_points
from accelbench.core.rows import Row, number
from accelbench.hardware.common import SPARE_COLOURS, colour_of
from accelbench.present.charts.axes import GROUP_COLOURS, REST_COLOUR, ChartAxis
from accelbench.present.charts.chart import Picture
from accelbench.present.charts.palette import on_dark
from accelbench.present.charts.words import safe
from accelbench.present.dashboard.explore_points import (
    ACROSS,
    FIELDS,
    FIGURES,
    MOST_POINTS,
    MOST_SENT,
    PRESETS,
    RANGES,
    UP,
    USUAL_COLOUR,
    ExploredPoints,
    ExploreQuery,
    explored,
    figure_named,
    figures_there,
    points_of,
    rows_of,
    share_along,
    spread_of,
    ticks_of,
)
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import Snapshot

#: Names in the picture; the table below it has all.
MOST_NAMED = 7
#: The plot in pixels: on a small screen with filters, and on a phone.
_SCREEN, _PHONE = (640.0, 496.0), (290.0, 320.0)
#: Pixels of a letter, of a line and of half a mark.
_LETTER, _LINE, _MARK = 7.0, 15.0, 5.0
#: The longest name of a model.
_LONGEST = 30
#: Baselines of a name above and below its mark, the nearest first.
_BESIDE = (-7.0, 17.0, -22.0, 32.0, -37.0, 47.0)
#: What tells points of a model from each other: the column and its template.
_APART = {
    "batch_size": "batch {}",
    **dict.fromkeys(("precision", "runtime", "hardware", "device_name"), "{}"),
}


@dataclass(frozen=True)
class FrontName:
    """A text next to a mark."""

    x: float  # the place of the mark, per cent along, and `y` down
    y: float
    beside: float  # pixels from there along, and `below` down to the baseline
    below: float
    left: bool  # whether the text ends at the mark
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
    """Return names of marks, each on the nearest free line."""
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
        # A name on a mark can be read, a name on a name cannot.
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
    """Return the numbers of marks in the table, for a phone without room for names."""
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
    """Return the model, and what tells its point from others of the model."""
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


#: Radius of a mark: the usual one, and those of the smallest and the largest figure.
_RADIUS, _SMALLEST, _LARGEST = 3.6, 2.4, 11.0
#: The shade of a place with one configuration.
_FAINTEST = 0.16
#: Entries of a legend.
_MOST_GROUPS = 16


@dataclass(frozen=True)
class LegendGroup:
    """An entry of the legend."""

    name: str
    count: int
    colour: str  # in the name of its class: "24306c"


def groups_of(explored: ExploredPoints, chosen: ExploreQuery) -> list[LegendGroup]:
    """Return the legend: a platform has its colour, other values one each, the rest one."""
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
    """Return what the template of the page draws."""
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
    """Return the circle of a configuration."""
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
    """Return the name of a point in a line."""
    words = [row.get("model"), row.get("hardware"), row.get("device_name"), row.get("runtime")]
    words += [row.get("precision"), f"batch {row['batch_size']}" if row.get("batch_size") else ""]
    return " · ".join(safe(word) for word in words if word)


def style_sheet(colours: Iterable[str]) -> str:
    """Return a class for each colour, in the light and the dark theme."""
    known = dict.fromkeys(colours)
    light = "".join(f".c-{colour[1:]}{{--platform:{colour}}}\n" for colour in known)
    dark = "".join(f".c-{colour[1:]}{{--platform:{on_dark(colour)}}}\n" for colour in known)
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _x(scale: ChartAxis, value: float) -> float:
    return round(100 * share_along(scale, value), 2)


def _y(scale: ChartAxis, value: float) -> float:
    return round(100 * (1 - share_along(scale, value)), 2)


def _tick(value: float) -> str:
    text = f"{value:,.0f}" if value >= 10 and value == int(value) else format_value(value)
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


def _shades(most: int) -> list[tuple[int, float]]:
    """Return the legend of counts: one, the tens between, and the most, each with its darkness."""
    tens = [10**power for power in range(1, 9) if 10**power < 0.7 * most]
    return [(count, _darkness(count, most)) for count in sorted({1, *tens, most})]


def _path(front: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, float, float]]:
    return [
        step
        for one, other in pairwise(front)
        for step in (
            (one["x"], one["y"], other["x"], one["y"]),
            (other["x"], one["y"], other["x"], other["y"]),
        )
    ]


class ExplorePages(SitePages):
    """The pages of points and distributions."""

    def points(self, request: Request) -> Response:
        """Draw points by chosen axes; a script names the point under the pointer."""
        snapshot, query, chosen, there = self._explored(request)
        known = self._points(snapshot, query, chosen)
        presets = [
            (title, chosen.along(x, y).query(query), (x, y) == (chosen.x.name, chosen.y.name))
            for title, x, y in PRESETS
            if there[x] and there[y]
        ]
        return self.site.filtered(
            request,
            "explore.html",
            query,
            snapshot,
            kept=chosen.pairs(),
            chosen=chosen,
            there=there,
            figures=FIGURES,
            fields=FIELDS,
            presets=presets,
            ranges=chosen.ranges or {},
            range_names=RANGES,
            explored=known,
            drawn=drawing(known, chosen) if known else None,
            most_points=MOST_POINTS,
            most_sent=MOST_SENT,
            sent=chosen.query(query),
            whole=chosen.whole().query(query),
        )

    def data(self, request: Request) -> Response:
        """Return the points as columns of JSON for the script."""
        snapshot, query, chosen, _ = self._explored(request)
        known = self._points(snapshot, query, chosen)
        if known is None:
            return JSONResponse({"count": 0})
        few = known.count <= MOST_SENT
        rows = rows_of(snapshot, query, chosen, MOST_SENT) if few else known.matches
        return JSONResponse(_columns(rows, known, chosen))

    def distribution(self, request: Request) -> Response:
        """Show the distribution of a figure in groups of a field."""
        snapshot, query = self._requested(request)
        of, by, made = self._spread(request, snapshot, query)
        return self.site.filtered(
            request,
            "distribution.html",
            query,
            snapshot,
            kept=[("of", of), ("by", by)],
            of=of,
            by=by,
            there=figures_there(snapshot, query),
            figures=FIGURES,
            fields=FIELDS,
            picture=made,
        )

    def distribution_file(self, request: Request) -> Response:
        """Return the distribution as a file: svg, png or html."""
        snapshot, query = self._requested(request)
        of, by, made = self._spread(request, snapshot, query)
        why, key = "No configuration has that figure.", query.query(order=False)
        return self._picture_file(request, snapshot, f"{of}-by-{by}", (key,), made, why)

    def colours(self, _: Request) -> Response:
        """Return the style sheet of the marks' colours."""
        platforms = map(colour_of, find_entry_points(HARDWARE))
        sheet = style_sheet([*platforms, *SPARE_COLOURS, *GROUP_COLOURS, REST_COLOUR])
        return Response(sheet, media_type="text/css")

    def _explored(
        self, request: Request
    ) -> tuple[Snapshot, PageQuery, ExploreQuery, Mapping[str, int]]:
        snapshot, query = self._requested(request)
        key = ("figures there", query.query(order=False))
        there = self._once(snapshot, key, lambda: figures_there(snapshot, query))
        usual = next(((x, y) for _, x, y in PRESETS if there[x] and there[y]), PRESETS[0][1:])
        return snapshot, query, explored(dict(request.query_params), usual), there

    def _points(
        self, snapshot: Snapshot, query: PageQuery, chosen: ExploreQuery
    ) -> ExploredPoints | None:
        key = ("points", chosen.query(query))
        return self._once(snapshot, key, lambda: points_of(snapshot, query, chosen))

    def _spread(
        self, request: Request, snapshot: Snapshot, query: PageQuery
    ) -> tuple[str, str, Picture | None]:
        of = request.query_params.get("of") or "latency"
        by = request.query_params.get("by") or "place"
        figure = figure_named(of)
        key = ("spread", of, by, query.query(order=False))
        made = self._once(snapshot, key, lambda: spread_of(snapshot, query, figure, by))
        return of, by, made


def _columns(rows: Iterable[Row], known: ExploredPoints, chosen: ExploreQuery) -> dict[str, Any]:
    colours = {group.name: group.colour for group in groups_of(known, chosen)}
    marks = [(row, mark(row, known, colours, ())) for row in rows]
    return {
        "count": known.count,
        "x_title": known.x.title,
        "y_title": known.y.title,
        "px": [at["x"] for _, at in marks],
        "py": [at["y"] for _, at in marks],
        "x": [number(row, "x") for row, _ in marks],
        "y": [number(row, "y") for row, _ in marks],
        "colour": [at["colour"] for _, at in marks],
        "hollow": [int(at["hollow"]) for _, at in marks],
        "said": [at["said"] for _, at in marks],
        "kind": [str(row.get("kind")) for row, _ in marks],
        "by": [str(row.get("latency_of") or "") for row, _ in marks],
        "day": [str(row.get("moment") or "")[:10] for row, _ in marks],
        "key": [str(row.get("key")) for row, _ in marks],
    }

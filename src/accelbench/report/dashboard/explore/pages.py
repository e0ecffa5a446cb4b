"""Exploring: points by chosen axes, and how a chosen figure is spread; all of it in the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from accelbench.core.plugins import HARDWARE, registered
from accelbench.core.rows import Row, number
from accelbench.hardware.common import SPARE, colour_of
from accelbench.report.charts.chart import Picture
from accelbench.report.charts.theme import GROUP_COLOURS, REST_COLOUR
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.explore.drawing import drawing, groups_of, mark, style_sheet
from accelbench.report.dashboard.explore.points import (
    FIELDS,
    FIGURES,
    MOST_POINTS,
    MOST_SENT,
    PRESETS,
    RANGES,
    ExploredPoints,
    ExploreQuery,
    explored,
    figure_named,
    figures_there,
    points_of,
    rows_of,
    spread_of,
)
from accelbench.report.dashboard.site import SitePages
from accelbench.report.dashboard.snapshots.snapshot import Snapshot


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
        platforms = map(colour_of, registered(HARDWARE))
        sheet = style_sheet([*platforms, *SPARE, *GROUP_COLOURS, REST_COLOUR])
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

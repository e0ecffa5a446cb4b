"""The pages of charts: which there are something to draw of, each alone, and its file."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from accelbench.report.charts import CHARTS
from accelbench.report.charts.chart import Chart, Sizes
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.explore.points import summaries
from accelbench.report.dashboard.pictures.pictures import MOST_CELLS, chart_of
from accelbench.report.dashboard.site import Site
from accelbench.report.dashboard.snapshots import cells
from accelbench.report.dashboard.snapshots.snapshot import Snapshot

#: Models that a store of thousands leads to from its summaries.
_MOST_LISTED = 16


class ChartPages:
    """Each method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def all(self, request: Request) -> Response:
        """The charts that there is something to draw of; of thousands summaries come first."""
        snapshot = self.site.snapshot()
        query = self.site.asked(request, snapshot)
        page = cells.found(snapshot, replace(query, page=1))
        many = page.count > MOST_CELLS
        offered, bare = ([], []) if many else self._offered(snapshot, query)
        key = ("summaries", snapshot.at, query.query(order=False))
        return self.site.filtered(
            request,
            "charts.html",
            query,
            snapshot,
            found=page,
            charts=offered,
            bare=bare,
            models=cells.largest_models(snapshot, query, _MOST_LISTED) if many else [],
            summaries=self.site.pictures.once(key, lambda: summaries(snapshot, query))
            if many
            else [],
        )

    def alone(self, request: Request) -> Response:
        """One chart, with what is drawn in it as a table."""
        snapshot = self.site.snapshot()
        query = self.site.asked(request, snapshot)
        chart = chart_of(request.path_params["name"])
        made = self.site.pictures.of(snapshot, chart, query)
        return self.site.page(
            request, "chart.html", query, snapshot=snapshot, chart=chart, picture=made
        )

    def _offered(
        self, snapshot: Snapshot, query: PageQuery
    ) -> tuple[list[tuple[Chart, Sizes]], list[Chart]]:
        """Charts with something to draw, each with its size; and those that lack something."""
        pictures = self.site.pictures
        drawn = {chart: pictures.of(snapshot, chart, query) for chart in CHARTS.values()}
        offered = [(chart, made.sizes) for chart, made in drawn.items() if made is not None]
        return offered, [chart for chart, made in drawn.items() if made is None]

"""Pages of charts, and files: charts, cells as CSV, a cell with its samples as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from accelbench.core.rows import Row
from accelbench.core.safe_text import csv_cell
from accelbench.evidence.launches import with_reported_outputs
from accelbench.present.charts import CHARTS
from accelbench.present.charts.axes import DIM
from accelbench.present.charts.chart import Chart, Sizes
from accelbench.present.charts.palette import DARK, DARK_PAPER, LIGHT_PAPER, Look, on_dark
from accelbench.present.dashboard import cells, details
from accelbench.present.dashboard.explore_points import summaries
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.pictures import MOST_CELLS, chart_of
from accelbench.present.dashboard.results_page import cell_named
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.pages.rendering import rendered
from accelbench.store.body_to_row import step_samples

#: Lines that are sent at once, and models that a store of thousands lists.
_LINES, _MOST_LISTED = 2000, 16


class ChartPages(SitePages):
    """Charts and files."""

    def csv(self, request: Request) -> Response:
        """Return all cells that the filters leave."""
        rows = cells.every(*self._requested(request))
        headers = {"content-disposition": 'attachment; filename="cells.csv"'}
        return StreamingResponse(_lines(rows), 200, headers, "text/csv; charset=utf-8")

    def chart(self, request: Request) -> Response:
        """Return a chart as a file; an SVG without data names what is missing."""
        snapshot, query = self._requested(request)
        chart = chart_of(request.path_params["name"])

        def body(form: str, look: Look) -> bytes | None:
            drawn = self.site.pictures.file(snapshot, chart, query, form, look)
            return _nothing(chart, look) if drawn is None and form == "svg" else drawn

        why = f"There is nothing to show: {chart.title} needs {chart.needs}."
        return self._file(request, chart.name, body, why)

    def cell(self, request: Request) -> Response:
        """Return a cell with its launches, their samples and the run."""
        snapshot = self.site.snapshot()
        cell = cell_named(snapshot, request.path_params["key"])
        database = self.site.database
        with database.keep_open():
            rows = with_reported_outputs(details.launches_in(database, cell["results"]))
            samples = step_samples(database, cell["results"])
            run = details.run_of(database, str(cell["run_id"]))
        whole: dict[str, object] = {
            "cell": {
                name: value for name, value in cell.items() if name not in ("series", *cells.BEHIND)
            },
            "launches": [
                {**row, "samples_ms": samples.get(str(row["result_id"]), [])} for row in rows
            ],
            "run": run,
        }
        body = json.dumps(whole, indent=1, default=str)
        headers = {"content-disposition": f'attachment; filename="cell-{cell["key"]}.json"'}
        return Response(body, 200, headers, "application/json")

    def all(self, request: Request) -> Response:
        """Show the charts that have data; thousands of cells have summaries instead."""
        snapshot, query = self._requested(request)
        page = cells.found(snapshot, replace(query, page=1))
        many = page.count > MOST_CELLS
        offered, bare = ([], []) if many else self._offered(snapshot, query)
        key = ("summaries", query.query(order=False))
        return self.site.filtered(
            request,
            "charts.html",
            query,
            snapshot,
            found=page,
            charts=offered,
            bare=bare,
            models=cells.largest_models(snapshot, query, _MOST_LISTED) if many else [],
            summaries=self._once(snapshot, key, lambda: summaries(snapshot, query)) if many else [],
        )

    def alone(self, request: Request) -> Response:
        """Show a chart and its values."""
        snapshot, query = self._requested(request)
        chart = chart_of(request.path_params["name"])
        made = self.site.pictures.of(snapshot, chart, query)
        return self.site.page(
            request, "chart.html", query, snapshot=snapshot, chart=chart, picture=made
        )

    def _offered(
        self, snapshot: Snapshot, query: PageQuery
    ) -> tuple[list[tuple[Chart, Sizes]], list[Chart]]:
        pictures = self.site.pictures
        drawn = {chart: pictures.of(snapshot, chart, query) for chart in CHARTS.values()}
        offered = [(chart, made.sizes) for chart, made in drawn.items() if made is not None]
        return offered, [chart for chart, made in drawn.items() if made is None]


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    names = [name for name in (rows[0] if rows else {"key": None}) if name != "results"]
    yield ",".join(names) + "\r\n"
    for start in range(0, len(rows), _LINES):
        lines = io.StringIO()
        several = rows[start : start + _LINES]
        csv.writer(lines).writerows(
            [csv_cell(value) if isinstance(value := row[name], str) else value for name in names]
            for row in several
        )
        yield lines.getvalue()


def _nothing(chart: Chart, look: Look) -> bytes:
    first, second = f"{chart.title}: nothing to show.", f"It needs {chart.needs}."
    paper, ink = (DARK_PAPER, on_dark(DIM)) if look.theme == DARK else (LIGHT_PAPER, DIM)
    return rendered("nothing.svg", first=first, second=second, paper=paper, ink=ink).encode()

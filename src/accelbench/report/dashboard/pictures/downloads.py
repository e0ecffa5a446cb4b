"""Files: cells as CSV, charts as SVG, PNG or a page, one cell with every sample as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from accelbench.core.errors import UsageError
from accelbench.core.rows import Row
from accelbench.core.visible import csv_cell, in_quotes
from accelbench.evidence.launches import with_reported_outputs
from accelbench.report.charts.chart import Chart
from accelbench.report.charts.palette import DARK, DARK_PAPER, LIGHT, LIGHT_PAPER, Look, on_dark
from accelbench.report.charts.theme import DIM
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.pictures.pictures import chart_of
from accelbench.report.dashboard.results.cell_pages import Pages
from accelbench.report.dashboard.site import NotThereError, Site
from accelbench.report.dashboard.snapshots import cells, details
from accelbench.report.pages.rendering import rendered
from accelbench.store.samples import step_samples

_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}
#: A picture that is opened by itself may colour itself, and nothing else.
_OF_PICTURE = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
#: Lines that are sent at once.
_LINES = 2000


class Downloads:
    """Each method answers one address."""

    def __init__(self, site: Site, pages: Pages) -> None:
        self.site, self._pages = site, pages

    def csv(self, request: Request) -> Response:
        """All cells of what was asked for."""
        snapshot = self.site.snapshot()
        rows = cells.every(snapshot, self.site.asked(request, snapshot))
        headers = {"content-disposition": 'attachment; filename="cells.csv"'}
        return StreamingResponse(_lines(rows), 200, headers, "text/csv; charset=utf-8")

    def chart(self, request: Request) -> Response:
        """A chart: shown where it is an SVG, kept where `download` is asked for."""
        snapshot = self.site.snapshot()
        chart = chart_of(request.path_params["name"])
        form = form_of(request)
        query = self.site.asked(request, snapshot)
        look = look_of(request)
        body = self.site.pictures.file(snapshot, chart, query, form, look)
        if body is None:
            if form != "svg":
                raise NotThereError(f"There is nothing to show: {chart.title} needs {chart.needs}.")
            body = _nothing(chart, look)
        return picture_file(request, chart.name, form, body)

    def cell(self, request: Request) -> Response:
        """A cell with its launches, every sample of them, and the run."""
        snapshot = self.site.snapshot()
        cell = self._pages.named(snapshot, request.path_params["key"])
        database = self.site.database
        with database.asking():
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
            "run": vars(run) if run else None,
        }
        body = json.dumps(whole, indent=1, default=str)
        headers = {"content-disposition": f'attachment; filename="cell-{cell["key"]}.json"'}
        return Response(body, 200, headers, "application/json")


def form_of(request: Request) -> str:
    """The format that an address asks a picture in.

    Raises:
        NotThereError: There is none such.
    """
    form = str(request.path_params["form"])
    if form not in _KINDS:
        raise NotThereError("A chart is an svg, a png or an html.")
    return form


def look_of(request: Request) -> Look:
    """How an address wants a picture shown: on dark paper, in one column.

    Raises:
        UsageError: There is no such theme.
    """
    theme = request.query_params.get("theme") or LIGHT
    if theme not in (LIGHT, DARK):
        raise UsageError(f"There is no theme {in_quotes(safe(theme))}.", "It is light or dark.")
    return Look(theme, narrow="narrow" in request.query_params)


def picture_file(request: Request, name: str, form: str, body: bytes) -> Response:
    """A picture: shown where it can be, kept where `download` is asked for."""
    headers = {"content-security-policy": _OF_PICTURE}
    if form == "html" or "download" in request.query_params:
        headers["content-disposition"] = f'attachment; filename="{name}.{form}"'
    return Response(body, 200, headers, _KINDS[form])


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    names = [name for name in (rows[0] if rows else {"key": None}) if name != "results"]
    yield ",".join(names) + "\r\n"
    for start in range(0, len(rows), _LINES):
        lines = io.StringIO()
        several = rows[start : start + _LINES]
        csv.writer(lines).writerows([_cell(row[name]) for name in names] for row in several)
        yield lines.getvalue()


def _cell(value: object) -> object:
    return csv_cell(value) if isinstance(value, str) else value


def _nothing(chart: Chart, look: Look) -> bytes:
    """A picture that says that there is none: what shows pictures needs one."""
    first, second = f"{chart.title}: nothing to show.", f"It needs {chart.needs}."
    paper, ink = (DARK_PAPER, on_dark(DIM)) if look.theme == DARK else (LIGHT_PAPER, DIM)
    return rendered("nothing.svg", first=first, second=second, paper=paper, ink=ink).encode()

"""The table of results: filtered, ordered, grouped, with what was chosen kept beside it."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.axes import AS_TOLD, columns
from accelbench.report.charts import CHARTS
from accelbench.report.dashboard.asked import MOST_CHOSEN, PAGE
from accelbench.report.dashboard.pictures.pictures import MOST_CELLS
from accelbench.report.dashboard.results import grouping
from accelbench.report.dashboard.results import rows as result_rows
from accelbench.report.dashboard.results.columns import COLUMNS, FIGURES, GROUPS
from accelbench.report.dashboard.results.table_query import GROUP_ORDERS, TableQuery, table_query
from accelbench.report.dashboard.site import Site
from accelbench.report.dashboard.snapshots import cells

#: What is shown beside the table.
_BESIDE = ("hardware-latency", "throughput-by-batch")


class Results:
    """Answers the address of the table."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def page(self, request: Request) -> Response:
        """The rows of what was asked for, or groups of them."""
        snapshot = self.site.snapshot()
        pairs = request.query_params.multi_items()
        query = table_query(pairs, self.site.asked(request, snapshot))
        groups = grouping.grouped(snapshot, query) if query.groups else None
        found = cells.found(snapshot, query, 0 if groups else PAGE)
        last = groups.pages if groups else found.pages
        if query.page > last:
            query = replace(query, page=last)
            groups = grouping.grouped(snapshot, query) if groups else None
            found = found if groups else cells.found(snapshot, query)
        shown = result_rows.shown(found.cells, query.columns, costed=snapshot.costed)
        cells.told_apart(list(found.cells), result_rows.told_by(shown))
        return self.site.filtered(
            request,
            "results.html",
            query,
            snapshot,
            found=found,
            groups=groups,
            shown=shown,
            alike=[]
            if query.columns
            else result_rows.in_common(found.cells, shown, snapshot.machines),
            picked_cells=cells.named(snapshot, query.cells),
            left_out=_left_out(request, query),
            all_columns=[
                column for name, column in COLUMNS.items() if name != "cost" or snapshot.costed
            ],
            group_columns=list(GROUPS.values()),
            figures=[column for column in FIGURES if column.name != "cost" or snapshot.costed],
            group_orders=GROUP_ORDERS,
            charts=[CHARTS[name] for name in _BESIDE if name in CHARTS],
            most=MOST_CELLS,
            most_chosen=MOST_CHOSEN,
            sizes=columns(*AS_TOLD),
        )


def _left_out(request: Request, query: TableQuery) -> int:
    """How many more were chosen than are kept."""
    chosen = {key for key in request.query_params.getlist("cell") if key}
    return len(chosen) - len(query.cells)

"""The page of histories: what changed first, found by any of its names."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.errors import UsageError
from accelbench.core.rows import text
from accelbench.report.dashboard.asked import PageQuery
from accelbench.report.dashboard.site import SitePages
from accelbench.report.dashboard.snapshots import details
from accelbench.report.dashboard.snapshots.details import EVERY_LINE, lines_of
from accelbench.report.history import document

#: Series of one page: each is looked through for steps.
SERIES = 12
_LATENCY = "latency"
_CHANGED, _NEWEST, _NAME = "changed", "newest", "name"
#: Orders by their names in an address → what a link to it says.
ORDERS = {_CHANGED: "what changed", _NEWEST: "newest", _NAME: "name"}


@dataclass(frozen=True)
class HistoryQuery:
    """What an address asks for beside the filters."""

    filters: PageQuery  # these
    metric: str = _LATENCY  # the figure
    order: str = _CHANGED  # one of ORDERS
    search: str = ""  # words that have to be in the names

    @property
    def own(self) -> list[tuple[str, str]]:
        """Names and values of an address that are no filters; what is usual is left out."""
        said = (
            ("metric", self.metric, _LATENCY),
            ("order", self.order, _CHANGED),
            ("search", self.search, ""),
        )
        return [(name, value) for name, value, usual in said if value != usual]

    @property
    def more(self) -> str:
        """What stands behind the filters in an address."""
        return f"&{urlencode(self.own)}" if self.own else ""

    def by(self, **changes: str) -> Self:
        """The first page of the same otherwise."""
        return replace(self, filters=self.filters.turned(1), **changes)

    def query(self) -> str:
        """As an address has it."""
        pairs = [*self.filters.pairs(), *self.own]
        return f"?{urlencode(pairs)}" if pairs else "?"


def history_query(request: Request, filters: PageQuery) -> HistoryQuery:
    """What a request asks for.

    Raises:
        UsageError: There is no such figure, or no such order.
    """
    said = request.query_params
    metric, order = said.get("metric") or _LATENCY, said.get("order") or _CHANGED
    if metric not in details.BY_METRIC:
        raise UsageError("There is no such metric.", f"Known: {', '.join(details.BY_METRIC)}.")
    if order not in ORDERS:
        raise UsageError("There is no such order.", f"Orders: {', '.join(ORDERS)}.")
    return HistoryQuery(filters, metric, order, (said.get("search") or "")[:200])


class HistoryPage(SitePages):
    """The answer of /history."""

    def page(self, request: Request) -> Response:
        """What became of figures over time: steps, spikes, drift."""
        snapshot, filters = self._requested(request)
        view = history_query(request, filters)
        judged = self.site.changes.before_others(snapshot, view.metric, self.site.patience)
        with judged if view.order == _CHANGED else nullcontext() as known:
            order = known.order if known else replace(EVERY_LINE, by_name=view.order == _NAME)
            order = replace(order, words=view.search)
            rows, count = lines_of(snapshot, view.filters, SERIES, order)
            with self.site.database.asking():
                metric = details.BY_METRIC[view.metric]
                made = details.history_of(self.site.database, snapshot, rows, metric, fewest=2)
        places = {str(row["key"]): place for place, row in enumerate(rows)}
        series = sorted(made, key=lambda one: places[text(one.row, "key")])
        return self.site.filtered(
            request,
            "history.html",
            view.filters,
            snapshot,
            view=view,
            kept=view.own,
            orders_of_lines=ORDERS,
            metrics=list(details.BY_METRIC),
            known=known,
            series=[(history.row, document(history)) for history in series],
            keys=[text(history.row, "key") for history in series],
            count=count,
            last=max(1, -(-count // SERIES)),
        )

"""The page of histories: configurations that changed come first."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core.rows import text
from accelbench.present.dashboard import details
from accelbench.present.dashboard.details import EVERY_LINE, lines_of
from accelbench.present.dashboard.page_base import SitePages
from accelbench.present.dashboard.page_query import PageQuery, address_of_pairs, one_of, pages_in
from accelbench.present.terminal.history import document

#: Series of a page.
SERIES = 12
_LATENCY = "latency"
_CHANGED, _NEWEST, _NAME = "changed", "newest", "name"
#: The labels of orders by their names in an address.
ORDERS = {_CHANGED: "what changed", _NEWEST: "newest", _NAME: "name"}


@dataclass(frozen=True)
class HistoryQuery:
    """The filters, the metric, the order and the search of an address."""

    filters: PageQuery
    metric: str = _LATENCY
    order: str = _CHANGED  # one of ORDERS
    search: str = ""  # words of names

    @property
    def own(self) -> list[tuple[str, str]]:
        """The names and values of the address that are not filters, without defaults."""
        said = (
            ("metric", self.metric, _LATENCY),
            ("order", self.order, _CHANGED),
            ("search", self.search, ""),
        )
        return [(name, value) for name, value, usual in said if value != usual]

    @property
    def more(self) -> str:
        """The part of the address behind the filters."""
        return address_of_pairs(self.own).replace("?", "&", 1)

    def by(self, **changes: str) -> Self:
        """Return the query of the first page with other values."""
        return replace(self, filters=self.filters.turned(1), **changes)

    def query(self) -> str:
        """Return the query of the address."""
        return address_of_pairs([*self.filters.pairs(), *self.own], "?")


def history_query(request: Request, filters: PageQuery) -> HistoryQuery:
    """Return the query of an address; unknown metrics and orders are refused."""
    said = request.query_params
    return HistoryQuery(
        filters,
        one_of("metric", said.get("metric") or _LATENCY, details.BY_METRIC),
        one_of("order", said.get("order") or _CHANGED, ORDERS),
        (said.get("search") or "")[:200],
    )


class HistoryPage(SitePages):
    """The page of /history."""

    def page(self, request: Request) -> Response:
        """Show results over time: steps, spikes and drift."""
        snapshot, filters = self._requested(request)
        view = history_query(request, filters)
        judged = self.site.changes.before_others(snapshot, view.metric, self.site.patience)
        with judged if view.order == _CHANGED else nullcontext() as known:
            order = known.order if known else replace(EVERY_LINE, by_name=view.order == _NAME)
            order = replace(order, words=view.search)
            rows, count = lines_of(snapshot, view.filters, SERIES, order)
            with self.site.database.keep_open():
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
            last=pages_in(count, SERIES),
        )

"""What a bundle has instead of the server's: the page of the table, and a menu of its pages."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accelbench.core.rows import Row
from accelbench.report.dashboard.site import PAGES, Site
from accelbench.report.publishing.addresses import TABLE, Address, published

#: Rows that stand in the page itself, as many as the script shows at once.
PAGE = 100
#: Seconds that a page of a bundle waits for what it shows.
_PATIENCE = 600.0


class PublishedPages:
    """Each method answers one address."""

    def __init__(self, rows: Sequence[Row], modules: Sequence[str], left_out: str = "") -> None:
        """
        Args:
            rows: the table's.
            modules: the files that read Parquet.
            left_out: what has no page of its own, in a sentence.
        """
        self._rows, self._modules, self._left_out = rows, modules, left_out

    def routes(self, site: Site) -> list[Route]:
        """The addresses, for the application of a site."""
        site.patience, site.for_others = _PATIENCE, True
        site.menu = tuple(page for page in PAGES if published(Address(page[1])))
        site.without_pages = self._left_out

        def table(request: Request) -> Response:
            return site.page(
                request,
                "published_results.html",
                snapshot=site.snapshot(),
                rows=self._rows[:PAGE],
                count=len(self._rows),
                modules=self._modules,
            )

        return [Route(TABLE, table)]

"""The two pages that a bundle has instead of the server's: the table, and where a question ends."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accelbench.core.rows import Row
from accelbench.report.dashboard.site import Site
from accelbench.report.publishing.addresses import ELSEWHERE, TABLE

#: Rows that stand in the page itself, as many as the script shows at once.
PAGE = 100
#: Seconds that a page of a bundle waits for what it shows.
_PATIENCE = 600.0


class PublishedPages:
    """Each method answers one address."""

    def __init__(self, rows: Sequence[Row], modules: Sequence[str]) -> None:
        """
        Args:
            rows: the table's.
            modules: the files that read Parquet.
        """
        self._rows, self._modules = rows, modules

    def routes(self, site: Site) -> list[Route]:
        """The addresses, for the application of a site."""
        site.patience, site.for_others = _PATIENCE, True

        def table(request: Request) -> Response:
            return site.page(
                request,
                "published_results.html",
                snapshot=site.snapshot(),
                rows=self._rows[:PAGE],
                count=len(self._rows),
                modules=self._modules,
            )

        def elsewhere(request: Request) -> Response:
            return site.page(request, "published_elsewhere.html", snapshot=site.snapshot())

        return [Route(TABLE, table), Route(ELSEWHERE, elsewhere)]

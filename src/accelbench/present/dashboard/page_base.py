"""The parts that all pages share: store, snapshot, kept values and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from accelbench import __version__
from accelbench.core.device_facts import MAX_SHARE_OF_PEAK
from accelbench.core.devices import cards
from accelbench.core.formatting import NO_DATA, NOT_APPLICABLE, UNKNOWN_DEVICE, UNKNOWN_MACHINE
from accelbench.core.result_statistics import statistic_name
from accelbench.core.unusable_reasons import QUALITY_TEXTS, reason_unusable
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.common import colour_of
from accelbench.judge.machine_matrix import LocalPlatforms
from accelbench.present.charts.chart import Chart, Picture
from accelbench.present.charts.palette import DARK, LIGHT, Look
from accelbench.present.dashboard import cells, page_query, words
from accelbench.present.dashboard.common_ground import address_of
from accelbench.present.dashboard.history_changes import ChangesKeeper
from accelbench.present.dashboard.live_runs import Journals
from accelbench.present.dashboard.pictures import KeptValues, Pictures
from accelbench.present.dashboard.snapshot import Snapshot, SnapshotKeeper
from accelbench.present.pages.rendering import environment
from accelbench.store.database import Database

T = TypeVar("T")
HERE = Path(__file__).parent
#: The pages of the menu.
PAGES = (
    ("Overview", "/"),
    ("Results", "/results"),
    ("Models", "/models"),
    ("Devices", "/devices"),
    ("Engines", "/engines"),
    ("Charts", "/charts"),
    ("Explore", "/explore"),
    ("History", "/history"),
    ("Matrix", "/matrix"),
    ("Recommend", "/recommend"),
    ("Predict", "/predict"),
    ("Predictions", "/predictions"),
    ("Runs", "/runs"),
)

#: Pages of the whole store: filters do not go with a link to them.
OF_THE_STORE = ("/", "/recommend", "/predict", "/predictions", "/runs")


class BeingReadError(Exception):
    """The first snapshot is still being taken."""


class NotThereError(Exception):
    """The address names nothing that exists."""


class Site:
    """A store and everything that its pages need."""

    def __init__(self, database: Database, keeper: SnapshotKeeper) -> None:
        # Loaded here: plugins that several threads load at once are incomplete for some of them.
        for name in HARDWARE:
            colour_of(name)
        cards()
        self.database = database
        self.keeper = keeper
        #: Seconds that a page waits for a value that another thread computes; a published page
        #: waits until it is there.
        self.patience = 0.2
        self.for_others = (
            False  # whether the pages are published: without prices that match nothing
        )
        self.menu: Sequence[tuple[str, str]] = PAGES
        self.without_pages = ""  # the pages that a published copy lacks, in a sentence
        self.kept = KeptValues()
        self.journals = Journals(database.journals)
        self.local = LocalPlatforms()
        self.changes = ChangesKeeper(database)
        self.pictures = Pictures(database, self.local, self.changes, self.kept, keeper.prices)
        self._templates = environment(HERE / "templates")
        self._templates.filters.update(words.FILTERS)
        functions = (words.why_not, words.explain_cell, words.ends, words.ratio_ends)
        more = (reason_unusable, address_of, page_query.exactly, cells.latency_note)
        self._templates.globals.update({one.__name__: one for one in (*functions, *more)})
        self._templates.globals.update(
            quality_said=QUALITY_TEXTS,
            of_the_store=OF_THE_STORE,
            version=__version__,
            no_data=NO_DATA,
            not_applicable=NOT_APPLICABLE,
            unknown_device=UNKNOWN_DEVICE,
            unknown_machine=UNKNOWN_MACHINE,
            orders=page_query.ORDERS,
            colour=colour_of,
            most_of_peak=MAX_SHARE_OF_PEAK,
            query=lambda *pairs: f"?{urlencode(pairs)}" if pairs else "",
            number_fields=page_query.NUMBER_FIELDS,
            sure=cells.interval,
            named_figure=statistic_name,
            picked=lambda keys: [("cell", key) for key in keys],
            rest_of=lambda keys, but: [("cell", key) for key in keys if key != but],
        )

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; BeingReadError if the first is still being taken."""
        newest_snapshot = self.keeper.newest()
        if newest_snapshot is None:
            raise BeingReadError
        return newest_snapshot

    def page(
        self,
        request: Request,
        name: str,
        query: page_query.PageQuery | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: object,
    ) -> Response:
        """Return a page of a template."""
        what = query or page_query.PageQuery()
        text = self._templates.get_template(name).render(
            path=request.url.path,
            asked=what,
            # A link to another page takes the filters along, but neither order nor choices.
            filters=what.query(order=False, picked=False),
            store=self.database.name,
            trouble=self.keeper.trouble,
            for_others=self.for_others,
            pages=self.menu,
            without_pages=self.without_pages,
            **context,
        )
        return HTMLResponse(text, status, dict(headers or {}))

    def filtered(
        self,
        request: Request,
        name: str,
        query: page_query.PageQuery,
        snapshot: Snapshot,
        **context: object,
    ) -> Response:
        """Return a page with a form of the filters."""
        return self.page(
            request,
            name,
            query,
            200,
            None,
            snapshot=snapshot,
            choices=cells.choices(snapshot, query),
            most_choices=cells.MOST_CHOICES,
            facets=page_query.FACETS,
            **context,
        )


_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}
#: A picture that is opened alone may only have its own style.
_OF_PICTURE = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class SitePages:
    """Pages of a site and files of their pictures; each public method answers one address."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def _requested(
        self, request: Request, usual: page_query.Order = page_query.BY_MODEL
    ) -> tuple[Snapshot, page_query.PageQuery]:
        snapshot = self.site.snapshot()
        return snapshot, page_query.asked(request.query_params.multi_items(), snapshot.known, usual)

    def _once(self, snapshot: Snapshot, key: tuple[object, ...], make: Callable[[], T]) -> T:
        return self.site.kept.once((snapshot.at, *key), make)

    def _file(
        self, request: Request, name: str, body: Callable[[str, Look], bytes | None], why: str
    ) -> Response:
        form = str(request.path_params["form"])
        if form not in _KINDS:
            raise NotThereError("A chart is an svg, a png or an html.")
        theme = page_query.one_of(
            "theme", request.query_params.get("theme") or LIGHT, (LIGHT, DARK)
        )
        drawn = body(form, Look(theme, narrow="narrow" in request.query_params))
        if drawn is None:
            raise NotThereError(why)
        headers = {"content-security-policy": _OF_PICTURE}
        if form == "html" or "download" in request.query_params:
            headers["content-disposition"] = f'attachment; filename="{name}.{form}"'
        return Response(drawn, 200, headers, _KINDS[form])

    def _picture_file(
        self,
        request: Request,
        snapshot: Snapshot,
        name: str,
        key: tuple[object, ...],
        made: Picture | None,
        why: str,
    ) -> Response:
        def body(form: str, look: Look) -> bytes | None:
            whole = ("file", name, *key, form, look)
            return self._once(snapshot, whole, lambda: self.site.pictures.drawn(made, form, look))

        return self._file(request, name, body, why)

    def _chart_file(
        self, request: Request, snapshot: Snapshot, chart: Chart, query: page_query.PageQuery
    ) -> Response:

        def body(form: str, look: Look) -> bytes | None:
            return self.site.pictures.file(snapshot, chart, query, form, look)

        why = f"There is nothing to show: {chart.title} needs {chart.needs}."
        return self._file(request, chart.name, body if query.cells else lambda *_: None, why)

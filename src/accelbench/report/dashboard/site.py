"""What all pages share: the store, its newest snapshot, what was drawn, and the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from accelbench import __version__
from accelbench.core.device_facts import MOST_OF_PEAK
from accelbench.core.devices import cards
from accelbench.core.figures import name_of
from accelbench.core.nouns import (
    NO_DATA,
    NOT_APPLICABLE,
    UNKNOWN_DEVICE,
    UNKNOWN_MACHINE,
)
from accelbench.core.quality_words import QUALITY_SAID
from accelbench.core.vocabulary import HARDWARE
from accelbench.core.worth import reason_unusable
from accelbench.hardware.common import colour_of
from accelbench.query.matrices import LocalPlatforms
from accelbench.report.dashboard import words
from accelbench.report.dashboard.asked import (
    BY_MODEL,
    FACETS,
    NUMBER_FIELDS,
    ORDERS,
    Order,
    PageQuery,
    asked,
    exactly,
)
from accelbench.report.dashboard.entities.lists import address_of
from accelbench.report.dashboard.history.changes import ChangesKeeper
from accelbench.report.dashboard.pictures.pictures import Pictures
from accelbench.report.dashboard.runs.live import Journals
from accelbench.report.dashboard.snapshots.cells import (
    MOST_CHOICES,
    choices,
    interval,
    latency_note,
)
from accelbench.report.dashboard.snapshots.snapshot import Snapshot, SnapshotKeeper
from accelbench.report.pages.rendering import environment
from accelbench.store.database import Database

HERE = Path(__file__).parent
#: The pages that a header leads to, each with its address.
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

#: Addresses that are of the whole store, whatever is filtered.
OF_THE_STORE = ("/", "/recommend", "/predict", "/predictions", "/runs")


class BeingReadError(Exception):
    """The first snapshot is not there yet."""


class NotThereError(Exception):
    """There is no such thing, in a sentence."""


class Site:
    """One store as pages."""

    def __init__(self, database: Database, keeper: SnapshotKeeper) -> None:
        # Once and here: plugins that several threads load at the same time are half there to some.
        for name in HARDWARE:
            colour_of(name)
        cards()
        self.database = database
        self.keeper = keeper
        #: Seconds that a page waits for what is worked out beside it; one that becomes a file
        #: waits until it is there.
        self.patience = 0.2
        #: Whether its pages go to others, who are told of no price that is of nothing in them.
        self.for_others = False
        #: What its header leads to, and what has no page of its own, in a sentence.
        self.menu: Sequence[tuple[str, str]] = PAGES
        self.without_pages = ""
        self.journals = Journals(database.journals)
        self.local = LocalPlatforms()
        self.changes = ChangesKeeper(database)
        self.pictures = Pictures(database, self.local, self.changes, keeper.prices)
        self._templates = environment(HERE / "templates")
        self._templates.filters.update(words.FILTERS)
        self._templates.globals.update(
            quality_said=QUALITY_SAID,
            of_the_store=OF_THE_STORE,
            version=__version__,
            no_data=NO_DATA,
            not_applicable=NOT_APPLICABLE,
            unknown_device=UNKNOWN_DEVICE,
            unknown_machine=UNKNOWN_MACHINE,
            orders=ORDERS,
            colour=colour_of,
            why_not=words.why_not,
            explain_cell=words.explain_cell,
            reason_unusable=reason_unusable,
            most_of_peak=MOST_OF_PEAK,
            query=_query,
            address_of=address_of,
            exactly=exactly,
            number_fields=NUMBER_FIELDS,
            sure=interval,
            latency_note=latency_note,
            named_figure=name_of,
            ends=words.ends,
            ratio_ends=words.ratio_ends,
            picked=_picked,
            rest_of=_rest_of,
        )

    def snapshot(self) -> Snapshot:
        """The newest one.

        Raises:
            BeingReadError: The first is still being taken.
        """
        newest_snapshot = self.keeper.newest()
        if newest_snapshot is None:
            raise BeingReadError
        return newest_snapshot

    def asked(self, request: Request, snapshot: Snapshot, usual: Order = BY_MODEL) -> PageQuery:
        """What a request's address asks for, in the usual order where it names none."""
        return asked(request.query_params.multi_items(), snapshot.known, usual)

    def page(
        self,
        request: Request,
        name: str,
        query: PageQuery | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: object,
    ) -> Response:
        """A page of a template."""
        what = query or PageQuery()
        text = self._templates.get_template(name).render(
            path=request.url.path,
            asked=what,
            # Between pages go the filters, and neither an order nor what was picked.
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
        self, request: Request, name: str, query: PageQuery, snapshot: Snapshot, **context: object
    ) -> Response:
        """A page with the filters beside it."""
        return self.page(
            request,
            name,
            query,
            200,
            None,
            snapshot=snapshot,
            choices=choices(snapshot, query),
            most_choices=MOST_CHOICES,
            facets=FACETS,
            **context,
        )


def _query(*pairs: tuple[str, object]) -> str:
    return f"?{urlencode(pairs)}" if pairs else ""


def _picked(keys: Sequence[str]) -> list[tuple[str, str]]:
    return [("cell", key) for key in keys]


def _rest_of(keys: Sequence[str], but: str) -> list[tuple[str, str]]:
    return _picked([key for key in keys if key != but])

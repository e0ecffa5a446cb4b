"""The pages of the application, from the first through every link, asked for in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from accelbench.core.errors import SurroundingsError
from accelbench.present.publishing.rewriting import (
    Address,
    address_of,
    links_of,
    of_the_table,
    published,
)
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message


#: Nothing is said of the rest before so many pages were timed.
_FEWEST = 12


#: The family of a page, and by what it is filtered.
_Kind = tuple[str, ...]


def _kind(address: Address) -> _Kind:
    return address.family, *(name for name, _ in address.query)


class CrawlPace:
    """The pages so far by their kind, each with the time that its pictures took.

    A page of a model with a dozen pictures takes ten times as long as one of a device: what is left
    is told kind by kind.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun = now()
        self._page: Address | None = None
        self._page_begun = self._begun
        self._seconds: defaultdict[_Kind, list[float]] = defaultdict(list)
        self._waiting: Counter[_Kind] = Counter()
        self.pages = 0

    def begun(self, address: Address, waiting: Iterable[Address]) -> None:
        """The next address is asked for, and these wait."""
        if address.form:
            return
        now = self._now()
        if self._page is not None:
            self._seconds[_kind(self._page)].append(now - self._page_begun)
        self._page, self._page_begun = address, now
        self._waiting = Counter(_kind(other) for other in waiting if not other.form)
        self._waiting[_kind(address)] += 1
        self.pages += 1

    @property
    def known(self) -> int:
        """Pages that are done and that are still to be made; more may be found."""
        return self.pages - 1 + sum(self._waiting.values())

    @property
    def seconds(self) -> float:
        """Since it was begun."""
        return self._now() - self._begun

    @property
    def seconds_left(self) -> float | None:
        """About how long the pages that are known take yet; None before enough were timed."""
        # The first of a kind has what is worked out once in it: findings, or which lines changed.
        timed = {kind: each[1:] for kind, each in self._seconds.items() if len(each) > 1}
        every = [seconds for several in timed.values() for seconds in several]
        if sum(map(len, self._seconds.values())) < _FEWEST or not every:
            return None
        usual = sum(every) / len(every)
        means = {kind: sum(each) / len(each) for kind, each in timed.items()}
        left = sum(means.get(kind, usual) * n for kind, n in self._waiting.items())
        page = means.get(_kind(self._page), usual) if self._page else 0.0
        return left - min(page, self._now() - self._page_begun)


#: Pages of each kind, `/cell/…` say, that are files of their own; the others are rows of the table.
MOST_PAGES = 100
#: Of a kind with a filter in their address.
MOST_FILTERED = 16
#: How long a page may take that is worked out in the background, and how often it is asked for.
PATIENCE = 600.0
_PAUSE = 0.2
#: Kinds of pages that there are one of for each thing.
OF_ONE = frozenset(("model", "device", "cell", "run"))
_OK = 200


@dataclass(frozen=True)
class PageAnswer:
    """What the application answered."""

    status: int
    kind: str
    body: bytes
    comes_again: bool = False  # something of it is still being worked out

    @property
    def is_page(self) -> bool:
        return self.kind.startswith("text/html")

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


@dataclass(frozen=True)
class WantedPages:
    """Where a crawl begins, and which pages of single things it has."""

    first: Sequence[Address]  # the pages that everything is found from
    then: Sequence[Address]  # pages of single things, which no link adds to
    most: int = MOST_PAGES  # pages of another kind


def crawled(
    app: ASGIApp, wanted: WantedPages, tell: Callable[[CrawlPace], None] = lambda _: None
) -> dict[Address, PageAnswer]:
    """The pages that are wanted and those behind their links, with their pictures, by address."""
    # In a thread of its own: who calls may have a loop already, as a notebook has.
    stopped = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(lambda: asyncio.run(_crawl(app, wanted, tell, stopped)))
        try:
            return working.result()
        finally:
            stopped.set()  # whoever interrupts it waits for one page, and not for all


async def _crawl(
    app: ASGIApp, wanted: WantedPages, tell: Callable[[CrawlPace], None], stopped: threading.Event
) -> dict[Address, PageAnswer]:
    made: dict[Address, PageAnswer] = {}
    counts = Counter[tuple[str, str, bool]]()
    waiting = deque([*wanted.first, *wanted.then])
    known, own = set(waiting), frozenset(wanted.then)
    pace = CrawlPace()
    while waiting and not stopped.is_set():
        address = waiting.popleft()
        pace.begun(address, waiting)
        tell(pace)
        answer = await _finished(app, address)
        if answer.status != _OK:
            continue
        made[address] = answer
        if not answer.is_page:
            continue
        pictures, pages = _behind(answer.text, address)
        # A page is whole only with its pictures: they come first.
        for other in pictures:
            if other not in known:
                known.add(other)
                waiting.appendleft(other)
        for other in pages:
            if other in known or not _may(other, address, own):
                continue
            kind = (other.family, other.form, bool(other.query))
            few = other.query and not (other.of_a_list or other.family in OF_ONE)
            if counts[kind] < (min(wanted.most, MOST_FILTERED) if few else wanted.most):
                counts[kind] += 1
                known.add(other)
                waiting.append(other)
    return made


def _may(other: Address, origin: Address, own: Collection[Address]) -> bool:
    if other.family in OF_ONE and not other.form:
        # The same in another mode, where it has a page at all.
        return [name for name, _ in other.query] == ["mode"] and Address(other.path) in own
    if other.family == "cell":
        return Address(other.path.removesuffix(f".{other.form}")) in own
    # A filtered page leads to ever more of them.
    return not (origin.query and other.query) or other.of_a_list


def _behind(page: str, origin: Address) -> tuple[list[Address], list[Address]]:
    pictures, pages = [], []
    for tag, link in links_of(page):
        address = address_of(link, origin)
        if address is None:
            continue
        if tag != "a":
            pictures.append(address)
        elif published(address) and not of_the_table(address):
            pages.append(address)
    return pictures, pages


async def _finished(app: ASGIApp, address: Address) -> PageAnswer:
    answer = await asked(app, address.target)
    waited = 0.0
    while answer.comes_again:
        if waited > PATIENCE:
            raise SurroundingsError(
                phrase("publish.page-timeout", target=address.target, patience=PATIENCE)
            )
        await asyncio.sleep(_PAUSE)
        waited += _PAUSE
        answer = await asked(app, address.target)
    return answer


async def asked(app: ASGIApp, target: str) -> PageAnswer:
    """What the application answers to a GET of a target."""
    parts = urlsplit(target)
    path = parts.path
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": quote(path, safe="/%").encode("ascii"),
        "root_path": "",
        "query_string": parts.query.encode("ascii"),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    status, kind, body, again = 0, "", bytearray(), False

    said = False

    async def receive() -> Message:
        nonlocal said
        if said:  # who asks again waits for a visitor who goes, and none does
            await asyncio.Event().wait()
        said = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, kind, again
        if message["type"] == "http.response.start":
            status = int(message["status"])
            headers = {bytes(name).lower(): bytes(value) for name, value in message["headers"]}
            again = b"refresh" in headers
            kind = headers.get(b"content-type", b"").decode("latin-1")
        elif message["type"] == "http.response.body":
            body.extend(message.get("body", b""))

    await app(scope, receive, send)
    if not status:
        raise SurroundingsError(phrase("publish.no-answer", target=target))
    # Names are escaped: only a page's own element has such quotes.
    return PageAnswer(status, kind, bytes(body), again or b'http-equiv="refresh"' in body)

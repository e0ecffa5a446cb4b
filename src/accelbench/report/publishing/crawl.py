"""The pages of the application, asked for one after another in this process, as far as a bundle has
them: from the first page through every link, so that whatever pages there are become files.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from accelbench.core.errors import SurroundingsError
from accelbench.report.publishing.addresses import Address, address_of, of_the_table, published
from accelbench.report.publishing.rewriting import links_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

#: Pages of a kind, `/cell/…` say, that are files of their own: a hundred thousand cells are rows.
MOST_PAGES = 300
#: Of a kind with a filter in their address.
MOST_FILTERED = 60
#: How long a page may take that is worked out in the background, and how often it is asked for.
PATIENCE = 600.0
_PAUSE = 0.2
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


@dataclass
class Crawled:
    """What was asked for and came.

    Attributes:
        answers: by address.
        left_out: how many pages of each kind there are beyond those that became files.
    """

    answers: dict[Address, PageAnswer] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def crawled(app: ASGIApp, seeds: list[Address], most: int = MOST_PAGES) -> Crawled:
    """The pages behind these addresses, and behind their links.

    Args:
        app: the application.
        seeds: where to begin; what comes first is sure to become a file.
        most: pages of a kind.
    """
    # In a thread of its own: who calls may have a loop already, as a notebook has.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(_crawl(app, seeds, most))).result()


async def _crawl(app: ASGIApp, seeds: list[Address], most: int) -> Crawled:
    made, counts = Crawled(), Counter[tuple[str, str, bool]]()
    waiting, known = deque(seeds), set(seeds)
    left_out: set[Address] = set()
    while waiting:
        address = waiting.popleft()
        answer = await _finished(app, address)
        if answer.status != _OK:
            continue
        made.answers[address] = answer
        if not answer.is_page:
            continue
        pictures, pages = _behind(answer.text)
        # A page is whole only with its pictures: they come first.
        for other in pictures:
            if other not in known:
                known.add(other)
                waiting.appendleft(other)
        for other in pages:
            if other in known or other in left_out:
                continue
            kind = (other.family, other.form, bool(other.query))
            # A filtered page leads to ever more of them.
            beyond = bool(address.query and other.query)
            if beyond or counts[kind] >= (min(most, MOST_FILTERED) if other.query else most):
                left_out.add(other)
                continue
            counts[kind] += 1
            known.add(other)
            waiting.append(other)
    made.left_out = Counter(
        other.family for other in left_out if not other.query and not other.form
    )
    return made


def _behind(page: str) -> tuple[list[Address], list[Address]]:
    """What a page shows, and where it leads within the bundle."""
    pictures, pages = [], []
    for tag, address in _addresses(page):
        if tag != "a":
            pictures.append(address)
        elif published(address) and not of_the_table(address):
            pages.append(address)
    return pictures, pages


def _addresses(page: str) -> Iterator[tuple[str, Address]]:
    for tag, link in links_of(page):
        address = address_of(link)
        if address is not None:
            yield tag, address


async def _finished(app: ASGIApp, address: Address) -> PageAnswer:
    """The answer when all of it is worked out."""
    answer = await asked(app, address.target)
    waited = 0.0
    while answer.comes_again:
        if waited > PATIENCE:
            raise SurroundingsError(
                f"The page {address.target} was not worked out in {PATIENCE:g} s."
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
        raise SurroundingsError(f"The page {target} gave no answer.")
    # Names are escaped: only a page's own element has such quotes.
    return PageAnswer(status, kind, bytes(body), again or b'http-equiv="refresh"' in body)

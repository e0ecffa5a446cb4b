"""A bundle: made beside its place, whole or not at all, over an earlier bundle and nothing else.

A page of a model takes a second, so of thousands only some have pages: what was measured here
first, then what has most configurations. The table, which the browser reads from Parquet, has all.

DuckDB's own build for browsers (`@duckdb/duckdb-wasm`) was tried first. Since 1.29 it loads its
Parquet reader from extensions.duckdb.org when a page asks for one, which a bundle that must work
anywhere cannot; 1.28, which has it built in, is 18 MB before the first row. This one is 0.2 MB.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accelbench import __version__
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.formatting import format_count
from accelbench.core.rows import Row
from accelbench.core.safe_text import in_quotes, visible
from accelbench.engines.browser.assets import Package, fetch
from accelbench.hardware.common import colour_of
from accelbench.judge.costs import money
from accelbench.present.dashboard import words
from accelbench.present.dashboard.cells import Cell, interval, latency_note, told_apart
from accelbench.present.dashboard.common_ground import COUNTS, DEVICE
from accelbench.present.dashboard.common_ground import address_of as entity_address
from accelbench.present.dashboard.page_base import HERE, PAGES, Site
from accelbench.present.dashboard.page_query import AS_THEY_LIE
from accelbench.present.pages.rendering import environment
from accelbench.present.publishing.private_facts import copied, recorded_until
from accelbench.present.publishing.rewriting import (
    OWN,
    POLICY,
    RESULTS_FILE,
    TABLE,
    Address,
    BundleLinks,
    address_of,
    links_of,
    of_the_table,
    published,
    rewritten,
    silent,
)
from accelbench.present.texts import phrase
from accelbench.store.files import PREFIX, Scratch

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from accelbench.exchange.prices import Prices
    from accelbench.present.dashboard.snapshot import Snapshot
    from accelbench.store.database import Database


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


#: Name → kind. Names and kinds as the browser's table reads them (`static/results.mjs`).
COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("key", "model", "family", "hardware", "colour", "device", "devices", "machine"),
            *("machine_id", "runtime", "precision", "mode", "size", "scenario", "kind", "status"),
            *("reason", "apart", "latency_note", "tail_of", "unit", "quality", "why_unusable"),
            *("verification", "moment", "run_id", "cost", "device_name", "latency_spread"),
            "throughput_spread",
        ),
        "text",
    ),
    **dict.fromkeys(
        (
            *("batch_size", "latency", "tail", "throughput"),
            *("memory", "cost_per_million", "launches", "answered", "left_out", "failed"),
            "samples",
        ),
        "number",
    ),
    "page": "yes or no",
}


def rows_of_table(snapshot: Snapshot) -> list[Row]:
    """Every cell as its row of the table, in the order of the dashboard's own."""
    sql = f"SELECT * EXCLUDE (results, series) FROM cell ORDER BY {AS_THEY_LIE}"  # noqa: S608
    shown = _Shown()
    return [_row(cell, snapshot, shown) for cell in told_apart(snapshot.ask(sql))]


class _Shown(dict[str, str]):
    def __missing__(self, text: str) -> str:
        self[text] = made = visible(text)
        return made


def _row(cell: Cell, snapshot: Snapshot, shown: _Shown) -> dict[str, Any]:
    machine = snapshot.machines.get(str(cell["machine"]))
    cost = cell.get("cost_per_million")
    told = {
        **cell,
        "colour": colour_of(str(cell["hardware"])),
        "device": words.device(cell["device_name"]),
        "devices": words.devices(cell),
        "machine": machine.name if machine else "",
        "machine_id": cell["machine"],
        "latency_note": latency_note(cell),
        "size": words.size(cell),
        "unit": words.unit(cell),
        "moment": words.day(cell["moment"]) if cell["moment"] else None,
        "cost": money(cost) if cost is not None else None,
        **{f"{name}_spread": _spread(cell, name) for name in ("latency", "throughput")},
        "why_unusable": words.why_not(cell) if cell["quality"] == "unusable" else None,
    }
    row: dict[str, Any] = {}
    for name, kind in COLUMNS.items():
        value = told.get(name)
        if kind == "text":
            row[name] = shown[str(value)] if value not in (None, "") else None
        elif kind == "number":
            row[name] = None if value is None else float(value)
    return row


def _spread(cell: Cell, figure: str) -> str:
    known = interval(cell, figure)
    return known.text if known else ""


def write_results(rows: Sequence[Row], pages: Collection[str], path: Path) -> None:
    """The rows as a Parquet file, with which of them have a page of their own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"text": pa.string(), "number": pa.float64(), "yes or no": pa.bool_()}
    arrays = {
        name: pa.array(
            [row["key"] in pages for row in rows]
            if name == "page"
            else [row.get(name) for row in rows],
            types[kind],
        )
        for name, kind in COLUMNS.items()
    }
    # Snappy is what every reader of Parquet has built in, the browser's too.
    pq.write_table(pa.table(arrays), path, compression="snappy")


_MODULES = (
    *("alp", "assemble", "bloom", "column", "constants", "convert", "datapage", "delta"),
    *("encoding", "filter", "geoparquet", "indexes", "metadata", "plain", "plan", "read"),
    *("rowgroup", "scan", "schema", "snappy", "thrift", "utils", "variant", "wkb", "xxhash"),
)

PARQUET_READER = Package(
    "hyparquet",
    "1.33.0",
    "sha512-8EKLe73vRIMEKVEOe5y+kIzFxo6AvbLvd5ukd7P+yv3RvG0+TZM4qO8imbqxU6zds5pV+OeWRTMwy95mhHUheg==",
    {
        **{f"package/src/{name}.js": f"{name}.js" for name in _MODULES},
        "package/LICENSE": "LICENSE.txt",
    },
    "MIT",
    command="accelbench publish",
)


#: Kinds of pages that there are one of for each thing, and what each is called.
NOUNS = {"model": "model", "device": "device", "cell": "configuration", "run": "run"}
_MODELS = (
    "SELECT model AS name, count(*) OVER () AS every FROM cell GROUP BY 1"
    " ORDER BY bool_or(kind = 'measured') DESC, count(*) DESC, lower(model), model LIMIT ?"
)
_DEVICES = (
    f"SELECT {DEVICE} AS name, count(*) OVER () AS every FROM cell GROUP BY 1"  # noqa: S608
    " ORDER BY bool_or(kind = 'measured') DESC, count(*) DESC, lower(name), name LIMIT ?"
)
#: The best of each model before the second of any.
_CELLS = (
    "SELECT key AS name, every FROM (SELECT key, kind, model, count(*) OVER () AS every,"  # noqa: S608
    f" coalesce({COUNTS}, false) AS counts, row_number() OVER (PARTITION BY kind, model"
    f" ORDER BY coalesce({COUNTS}, false) DESC, coalesce(batch_size, 1000000000),"
    " latency NULLS LAST, key) AS nth FROM cell)"
    " ORDER BY kind <> 'measured', NOT counts, nth, lower(model), key LIMIT ?"
)
_RUNS = (
    "SELECT run_id AS name, count(*) OVER () AS every FROM run"
    " ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT ?"
)


@dataclass(frozen=True)
class ChosenPages:
    """What has a page of its own."""

    #: of each kind of NOUNS, in the order in which they are drawn
    addresses: Mapping[str, Sequence[Address]]
    counts: Mapping[str, int]  # how many things of each kind the store has

    @property
    def every(self) -> list[Address]:
        """All of them, kind by kind."""
        return [address for several in self.addresses.values() for address in several]

    def left_out(self, kind: str) -> int:
        """How many things of a kind are rows of the table alone."""
        return self.counts[kind] - len(self.addresses[kind])

    @property
    def sentence(self) -> str:
        """Which are left out, in words; "" where none is."""
        parts = [
            phrase(
                "publish.some-of",
                addresses=len(self.addresses[kind]),
                counts=format_count(self.counts[kind], noun),
            )
            for kind, noun in NOUNS.items()
            if self.left_out(kind)
        ]
        if not parts:
            return ""
        return phrase("publish.pages-of-their-own", parts=", ".join(parts))


def chosen_pages(snapshot: Snapshot, most: int) -> ChosenPages:
    """What has a page of its own, of each kind so many at most."""
    addresses, counts = {}, {}
    for kind, sql in (("model", _MODELS), ("device", _DEVICES), ("cell", _CELLS), ("run", _RUNS)):
        rows = snapshot.ask(sql, [most])
        named = (_link(kind, str(row["name"])) for row in rows)
        addresses[kind] = [address for link in named if (address := address_of(link)) is not None]
        counts[kind] = rows[0]["every"] if rows else 0
    return ChosenPages(addresses, counts)


def _link(kind: str, name: str) -> str:
    return entity_address(kind, name) if kind in ("model", "device") else f"/{kind}/{quote(name)}"


MARKER = "accelbench-bundle.json"
#: What everything else is found from, before any page of one thing leads to the same.
_FIRST = (*filter(published, (Address(path) for _, path in PAGES)), Address("/cells.csv"))
_STATIC = Path(__file__).parent / "static"
#: What reads a store of millions, at most.
_PATIENCE = 600.0


@dataclass(frozen=True)
class Bundle:
    """What was written."""

    folder: Path  # where
    pages: int  # how many pages
    files: int  # how many files, with these
    size: int  # of all, in bytes
    configurations: int  # rows of the table
    left_out: str  # which things have no page of their own, in a sentence; "" where all have one


def check_folder(folder: Path) -> None:
    """Refuse what is no place for a bundle, before anything is worked out.

    Raises:
        UsageError: Something of somebody else's is there.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file.", phrase("publish.use-folder"))
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir())
    }
    if not there and not any(folder.iterdir()):
        return
    advice = phrase("publish.use-empty-folder")
    if MARKER not in there:
        raise UsageError(phrase("publish.not-a-bundle", folder=folder), advice)
    try:
        ours = set(json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / MARKER} cannot be read.", advice) from error
    foreign = sorted(there - ours - {MARKER})
    if foreign:
        raise UsageError(
            phrase(
                "publish.foreign-files",
                folder=folder,
                in_quotes=in_quotes(foreign[0]),
                foreign=len(foreign),
            ),
            advice,
        )


def publish(
    database: Database,
    folder: Path,
    *,
    title: str,
    as_recorded: bool = False,
    prices: Prices | None = None,
    most: int = MOST_PAGES,
    tell: Callable[[CrawlPace], None] = lambda _: None,
) -> Bundle:
    """Write a store's dashboard as static files, with `most` pages of a kind at most.

    Without `as_recorded` host names, commands and paths are left out.

    Raises:
        UsageError: The folder has something else in it.
        SurroundingsError: The reader of Parquet cannot be fetched, or the folder not be written.
    """
    from accelbench.present.dashboard.routes import application
    from accelbench.present.dashboard.snapshot import SnapshotKeeper

    # What a link leads to is replaced: a server that has the folder would else keep the old one.
    folder = folder.expanduser().resolve()
    check_folder(folder)
    reader = fetch(PARQUET_READER)
    scratch = Scratch()
    try:
        copy = copied(database, scratch.folder, title, as_recorded=as_recorded)
        with SnapshotKeeper(copy, prices=prices, at=recorded_until(copy)) as keeper:
            snapshot = keeper.newest(_PATIENCE)
            if snapshot is None:
                raise SurroundingsError(
                    phrase("publish.not-read", name=database.name, patience=_PATIENCE)
                )
            rows = rows_of_table(snapshot)
            modules = sorted(path.name for path in reader.glob("*.js"))
            chosen = chosen_pages(snapshot, most)
            table = partial(published_pages, rows=rows, modules=modules, left_out=chosen.sentence)
            app = application(copy, keeper=keeper, instead=table)
            made = crawled(app, WantedPages(_FIRST, chosen.every, most), tell)
        return _placed(folder, made, rows, reader, snapshot, title, chosen.sentence)
    finally:
        scratch.close()


def _placed(
    folder: Path,
    made: Mapping[Address, PageAnswer],
    rows: Sequence[Row],
    reader: Path,
    snapshot: Snapshot,
    title: str,
    left_out: str,
) -> Bundle:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Scratch(folder.parent)
        try:
            into = staging.folder / "bundle"
            into.mkdir()
            pages = _write_pages(into, made, rows)
            keys = {a.path.rpartition("/")[2] for a in made if a.family == "cell"}
            write_results(rows, keys, into / RESULTS_FILE)
            _write_table(into, reader)
            files = sorted(p.relative_to(into).as_posix() for p in into.rglob("*") if p.is_file())
            about = {
                "accelbench": __version__,
                "title": title,
                "as_of": snapshot.at,
                "left_out": left_out,
                "files": files,
            }
            (into / MARKER).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
            size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file())
            check_folder(folder)  # somebody may have written there meanwhile
            _replaced(folder, into, staging.folder / f"{PREFIX}earlier")
        finally:
            staging.close()
    except OSError as error:
        raise SurroundingsError(
            phrase("publish.not-written", folder=folder, value=error.strerror or error),
            "Name another folder.",
        ) from error
    return Bundle(folder, pages, len(files) + 1, size, len(rows), left_out)


def _replaced(folder: Path, new: Path, earlier: Path) -> None:
    """Replace a folder; an interruption leaves the old or the new one."""
    if folder.exists():
        folder.rename(earlier)
    try:
        new.rename(folder)
    except BaseException:
        if earlier.exists() and not folder.exists():
            earlier.rename(folder)
        raise


def _write_pages(into: Path, made: Mapping[Address, PageAnswer], rows: Sequence[Row]) -> int:
    pages = 0
    template = environment(HERE / "templates").get_template("published_head.html")
    head = template.render(policy=POLICY)
    devices, platforms = ({str(row[name]) for row in rows} for name in ("device_name", "hardware"))
    links = BundleLinks(made.keys(), devices, platforms)
    for address, answer in made.items():
        path = into / address.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not answer.is_page:
            path.write_bytes(silent(answer.text).encode() if address.of_a_look else answer.body)
            continue
        pages += 1
        text = rewritten(answer.text, partial(links.led, address), head, (OWN,))
        path.write_text(text, encoding="utf-8")
    return pages


def _write_table(into: Path, reader: Path) -> None:
    table = into / OWN.strip("/")
    shutil.copytree(_STATIC, table)
    shutil.copytree(reader, table / "parquet")


#: Rows that stand in the page itself, as many as the script shows at once.
PAGE = 100


def published_pages(
    site: Site, rows: Sequence[Row], modules: Sequence[str], left_out: str = ""
) -> list[Route]:
    """The addresses that a bundle has instead of those of the server, for an application."""
    site.patience, site.for_others = _PATIENCE, True
    site.menu = tuple(page for page in PAGES if published(Address(page[1])))
    site.without_pages = left_out

    def table(request: Request) -> Response:
        return site.page(
            request,
            "published_results.html",
            snapshot=site.snapshot(),
            rows=rows[:PAGE],
            count=len(rows),
            modules=modules,
        )

    return [Route(TABLE, table)]

"""A bundle: made beside its place, whole or not at all, over an earlier bundle and nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench import __version__
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.rows import Row
from accelbench.core.visible import in_quotes
from accelbench.report.dashboard.site import HERE, PAGES
from accelbench.report.pages.rendering import environment
from accelbench.report.publishing.addresses import Address, published
from accelbench.report.publishing.chosen_pages import chosen_pages
from accelbench.report.publishing.crawl import MOST_PAGES, PageAnswer, WantedPages, crawled
from accelbench.report.publishing.links import OWN, RESULTS_FILE, BundleLinks
from accelbench.report.publishing.pace import CrawlPace
from accelbench.report.publishing.private_facts import copied, recorded_until
from accelbench.report.publishing.reader import PARQUET_READER
from accelbench.report.publishing.results_file import rows_of_table, write_results
from accelbench.report.publishing.rewriting import POLICY, rewritten, silent
from accelbench.runtimes.browser.assets import fetch
from accelbench.store.scratch import PREFIX, Scratch

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

MARKER = "accelbench-bundle.json"
#: What everything else is found from, before any page of one thing leads to the same.
_FIRST = (*filter(published, (Address(path) for _, path in PAGES)), Address("/cells.csv"))
_STATIC = Path(__file__).parent / "static"
#: What reads a store of millions, at most.
_PATIENCE = 600.0


@dataclass(frozen=True)
class Bundle:
    """What was written.

    Attributes:
        folder: where.
        pages: how many pages.
        files: how many files, with these.
        size: of all, in bytes.
        configurations: rows of the table.
        left_out: which things have no page of their own, in a sentence; "" where all have one.
    """

    folder: Path
    pages: int
    files: int
    size: int
    configurations: int
    left_out: str


def check_folder(folder: Path) -> None:
    """Refuse what is no place for a bundle, before anything is worked out.

    Raises:
        UsageError: Something of somebody else's is there.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file.", "Name a folder, which is made.")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if _holds(path)}
    if not there and not any(folder.iterdir()):
        return
    advice = "Name a folder that is empty or not there, or that has an earlier bundle alone."
    if MARKER not in there:
        raise UsageError(f"{folder} is not empty, and what is in it is no bundle.", advice)
    try:
        ours = set(json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / MARKER} cannot be read.", advice) from error
    foreign = sorted(there - ours - {MARKER})
    if foreign:
        raise UsageError(
            f"{folder} has what no bundle wrote: {in_quotes(foreign[0])}, and {len(foreign)} in"
            " all.",
            advice,
        )


def _holds(path: Path) -> bool:
    """Whether it is more than a folder of others: a file, a link to anything, an empty folder."""
    return path.is_symlink() or not path.is_dir() or not any(path.iterdir())


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
    """Write a store's dashboard as static files.

    Args:
        database: the store, which stays as it is.
        folder: where to.
        title: its name on the pages.
        as_recorded: with host names, commands and paths.
        prices: by which cells are told what they cost.
        most: pages of a kind.
        tell: hears after each page how far it is.

    Raises:
        UsageError: The folder has something else in it.
        SurroundingsError: The reader of Parquet cannot be fetched, or the folder not be written.
    """
    from accelbench.report.dashboard.app import application
    from accelbench.report.dashboard.snapshots.keeper import SnapshotKeeper
    from accelbench.report.publishing.published_pages import PublishedPages

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
                raise SurroundingsError(f"{database.name} could not be read in {_PATIENCE:g} s.")
            rows = rows_of_table(snapshot)
            modules = sorted(path.name for path in reader.glob("*.js"))
            chosen = chosen_pages(snapshot, most)
            own = PublishedPages(rows, modules, chosen.sentence)
            app = application(copy, keeper=keeper, instead=own.routes)
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
            f"{folder} could not be written: {error.strerror or error}.", "Name another folder."
        ) from error
    return Bundle(folder, pages, len(files) + 1, size, len(rows), left_out)


def _replaced(folder: Path, new: Path, earlier: Path) -> None:
    """Put a folder in the place of another; whoever interrupts it has the one or the other."""
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
    """The script of the table, its style, and what reads Parquet."""
    table = into / OWN.strip("/")
    shutil.copytree(_STATIC, table)
    shutil.copytree(reader, table / "parquet")

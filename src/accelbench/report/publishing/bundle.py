"""A bundle: made beside its place, whole or not at all, over an earlier bundle and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench import __version__
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.rows import Row
from accelbench.core.visible import in_quotes
from accelbench.report.dashboard.site import HERE, PAGES
from accelbench.report.pages.rendering import environment
from accelbench.report.publishing.addresses import (
    ELSEWHERE,
    TABLE,
    Address,
    address_of,
    asked_of_the_table,
    of_the_table,
    relative,
)
from accelbench.report.publishing.crawl import MOST_PAGES, Crawled, crawled
from accelbench.report.publishing.private_facts import copied
from accelbench.report.publishing.reader import PARQUET_READER
from accelbench.report.publishing.results_file import rows_of_table, write_results
from accelbench.report.publishing.rewriting import POLICY, rewritten
from accelbench.runtimes.browser.assets import fetch
from accelbench.store.scratch import PREFIX, Scratch

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.report.dashboard.snapshots.snapshot import Snapshot
    from accelbench.store.database import Database

MARKER = "accelbench-bundle.json"
_RESULTS = "results.parquet"
_OWN = "/table/"
_STATIC = Path(__file__).parent / "static"
#: Pages that stand for themselves when a filter of theirs is not in the bundle.
_WHOLE = frozenset(address for _, address in PAGES) | {"/"}
#: What reads a store of millions, at most.
_PATIENCE = 600.0
#: Words between links of which the last are left out.
_LOOSE = re.compile(r"(?: · )+(?=</(?:figcaption|p|span)>)")


@dataclass(frozen=True)
class Bundle:
    """What was written.

    Attributes:
        folder: where.
        pages: how many pages.
        files: how many files, with these.
        size: of all, in bytes.
        configurations: rows of the table.
        left_out: of which kind how many pages are only rows, or not there.
    """

    folder: Path
    pages: int
    files: int
    size: int
    configurations: int
    left_out: Mapping[str, int]


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
) -> Bundle:
    """Write a store's dashboard as static files.

    Args:
        database: the store, which stays as it is.
        folder: where to.
        title: its name on the pages.
        as_recorded: with host names, commands and paths.
        prices: by which cells are told what they cost.
        most: pages of a kind.

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
        with SnapshotKeeper(copy, prices=prices) as keeper:
            snapshot = keeper.newest(_PATIENCE)
            if snapshot is None:
                raise SurroundingsError(f"{database.name} could not be read in {_PATIENCE:g} s.")
            rows = rows_of_table(snapshot)
            modules = sorted(path.name for path in reader.glob("*.js"))
            own = PublishedPages(rows, modules)
            app = application(copy, keeper=keeper, instead=own.routes)
            made = crawled(app, _seeds(rows, most), most)
        return _placed(folder, made, rows, reader, snapshot, title)
    finally:
        scratch.close()


def _seeds(rows: Sequence[Row], most: int) -> list[Address]:
    """Where the pages begin: all cells, where they are few enough."""
    first = [Address(path) for path in ("/", TABLE, ELSEWHERE, "/cells.csv")]
    few = rows if len(rows) <= most else ()
    return [*first, *(Address(f"/cell/{row['key']}") for row in few)]


def _placed(
    folder: Path,
    made: Crawled,
    rows: Sequence[Row],
    reader: Path,
    snapshot: Snapshot,
    title: str,
) -> Bundle:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Scratch(folder.parent)
        try:
            into = staging.folder / "bundle"
            into.mkdir()
            pages = _write_pages(into, made)
            keys = {a.path.rpartition("/")[2] for a in made.answers if a.family == "cell"}
            write_results(rows, keys, into / _RESULTS)
            _write_table(into, reader)
            files = sorted(p.relative_to(into).as_posix() for p in into.rglob("*") if p.is_file())
            about = {
                "accelbench": __version__,
                "title": title,
                "as_of": snapshot.at,
                "files": files,
            }
            (into / MARKER).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
            size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file())
            check_folder(folder)  # somebody may have written there meanwhile
            if folder.exists():
                folder.rename(staging.folder / f"{PREFIX}earlier")
            into.rename(folder)
        finally:
            staging.close()
    except OSError as error:
        raise SurroundingsError(
            f"{folder} could not be written: {error.strerror or error}.", "Name another folder."
        ) from error
    return Bundle(folder, pages, len(files) + 1, size, len(rows), dict(made.left_out))


def _write_pages(into: Path, made: Crawled) -> int:
    pages = 0
    template = environment(HERE / "templates").get_template("published_head.html")
    head = template.render(policy=POLICY)
    for address, answer in made.answers.items():
        path = into / address.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if not answer.is_page:
            path.write_bytes(answer.body)
            continue
        pages += 1
        text = rewritten(answer.text, _relink(address.file, made), head, (_OWN,))
        path.write_text(_LOOSE.sub("", text), encoding="utf-8")
    return pages


def _relink(origin: str, made: Crawled) -> Callable[[str], str | None]:
    """Where the links of a file lead."""

    def target(link: str) -> str | None:
        address = address_of(link)
        if address is None:
            return link
        if address.path.startswith(_OWN) or address.path == f"/{_RESULTS}":
            return relative(origin, address.path[1:])
        if of_the_table(address):
            return relative(origin, Address(TABLE).file) + asked_of_the_table(address)
        if address in made.answers:
            return relative(origin, address.file)
        if address.form or any(name in ("sort", "page") for name, _ in address.query):
            return None
        if address.family == "cell":
            key = address.path.rpartition("/")[2]
            return relative(origin, Address(TABLE).file) + f"?key={key}"
        whole = Address(address.path)
        if whole in made.answers and address.path in _WHOLE:
            return relative(origin, whole.file)  # what was filtered is in it
        return relative(origin, Address(ELSEWHERE).file)

    return target


def _write_table(into: Path, reader: Path) -> None:
    """The script of the table, its style, and what reads Parquet."""
    table = into / _OWN.strip("/")
    shutil.copytree(_STATIC, table)
    shutil.copytree(reader, table / "parquet")

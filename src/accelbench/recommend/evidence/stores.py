"""Open `database_path`: a database, a lake, or a folder of results."""

from __future__ import annotations

import atexit
import logging
import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.errors import AccelbenchError, StoreError
from accelbench.recommend.query import validation
from accelbench.store.database import DEFAULT_NAME, ENVIRONMENT, Database
from accelbench.store.files import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger("hardware_selector")
#: Where runs store result files, in the documents' tree and in ours.
_RAW = ("raw_results", ".")


def opened(location: str | PathLike[str] | None) -> Database | None:
    """Return the store of a path, filled from its journals; None if there is none.

    Without a path it is the default store. A missing path is logged, not refused: the first example
    of a guide names a folder that does not exist yet.
    """
    from accelbench.store.lake import store_at

    if location is None:
        database = store_at()
        if not database.there:
            name = os.environ.get(ENVIRONMENT, DEFAULT_NAME)
            _log.debug("there is no %s: nothing measured is known", name)
            return None
        return _filled(database)
    named = validation.path("database_path", location)
    path = Path(named or "").expanduser()
    if path.is_dir() and not (path / "accelbench-lake.json").exists():
        return _in_folder(path)
    database = store_at(str(location))
    if not database.there:
        _log.warning("There is nothing at %s: rules answer, and nothing measured.", location)
        return None
    return _filled(database)


def destination(location: str | PathLike[str] | None) -> tuple[tuple[str, ...], str]:
    """Return the words of `run` that store results there, and why there are none."""
    if location is None:
        return (), ""
    path = Path(location).expanduser()
    if not path.is_dir() or (path / "accelbench-lake.json").exists():
        return ("--db", str(location)), ""
    files = sorted(path.glob("*.duckdb"))
    if files:
        return ("--db", str(Path(location) / files[0].name)), ""
    raw, result_files = path / _RAW[0], _result_files(path)
    if not result_files or result_files[0].parent == raw:
        return ("--output-dir", str(location)), ""
    if result_files[0].parent == path:
        return ("--output-ci", str(Path(location) / "measured.json")), ""
    return (), f"what run measures cannot be put among the files below {location}: use a database"


def _in_folder(folder: Path) -> Database | None:
    """Return the database of a folder, else one with its result files."""
    files = sorted(folder.glob("*.duckdb"))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise StoreError(f"There are several databases in {folder}: {names}.", "Name one of them.")
    if files:
        return _filled(Database(files[0].resolve()))
    results = _result_files(folder)
    if not results:
        _log.warning("There are no results in %s: rules answer, and nothing measured.", folder)
        return None
    return _read_in(results)


def _result_files(folder: Path) -> list[Path]:
    """Return the result files of a folder, preferably those in its raw_results."""
    for name in _RAW:
        files = sorted((folder / name).glob("*.json"))
        if files:
            return files
    return sorted(folder.rglob("*.json"))


def _read_in(files: Iterable[Path]) -> Database | None:
    """Return a temporary database with the results of files; ignore other files."""
    from accelbench.exchange.imports.ours import json_rows
    from accelbench.exchange.imports.records import MalformedError
    from accelbench.exchange.imports.result_row import Source
    from accelbench.exchange.titles import RUN

    bodies = []
    for file in files:
        try:
            rows = list(json_rows(file, Source("result files")))
        except MalformedError as error:
            _log.debug("%s holds no results: %s", file.name, error.message)
            continue
        bodies += [
            {name: v for name, v in row.items() if name not in (RUN, "samples")} for row in rows
        ]
    if not bodies:
        _log.warning("No result file there can be read: rules answer, and nothing measured.")
        return None
    scratch = temporary_folder()
    atexit.register(scratch.close)
    database = Database(scratch.folder / "results.duckdb")
    database.bring_in("result-files", [], bodies)
    return database


def _filled(database: Database) -> Database | None:
    """Return a store filled from its journals, if it can be written; None if it is missing."""
    try:
        filled = database.fill()
    except AccelbenchError as error:
        _log.debug("what waits in journals is not looked at: %s", error.message)
    else:
        for problem in filled.problems:
            _log.warning("%s", problem)
    if not database.path.exists():
        return None
    return database

"""Asking the database for results to judge: filled from journals, of one machine at a time."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import EXIT_CANNOT_TELL, AccelbenchError, StoreError, UsageError
from accelbench.core.provenance import COMPARABLE_SQL

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.store.database import Database
    from accelbench.store.places import Place

#: What may be compared at all: what nobody measured is not among it.
_COUNTS = f"{COMPARABLE_SQL} AND model IS NOT NULL AND status IS NOT NULL"


#: Results that are held against each other at once.
_MOST = 20_000
#: Models that are named where none is like the one that was asked for.
_NAMED = 6


class NothingMeasuredError(AccelbenchError):
    """There are no results to judge."""

    exit_code = EXIT_CANNOT_TELL


def filled(path: Path | None) -> Database:
    """The database, with what runs left in the journals."""
    from accelbench.store.duck import absent
    from accelbench.store.files import ReadOnlyPlaceError
    from accelbench.store.lake import Lake, store_at

    database = store_at(path)
    if not database.there:
        raise _no_lake(database.place) if isinstance(database, Lake) else absent(database.name)
    try:
        filled = database.fill()
    except ReadOnlyPlaceError as error:
        sys.stderr.write(f"accelbench: {error.message} What waits in journals is not shown.\n")
    else:
        for problem in filled.problems:
            sys.stderr.write(f"accelbench: {problem}\n")
    return database


def _no_lake(place: Place) -> StoreError:
    """The error where a place has no lake, with the databases that lie in it as files."""
    from accelbench.store.places import FolderPlace

    advice = f"Begin one with `accelbench db init --db {place.name}`"
    if not isinstance(place, FolderPlace):
        return StoreError(f"There is no lake at {place.name}.", f"{advice}.")
    files = sorted(str(path) for path in place.folder.glob("*.duckdb"))
    there = f" There is a database in it: --db {' or --db '.join(files[:3])}." if files else ""
    return StoreError(
        f"{place.name} is a folder with no lake in it.{there}",
        f"{advice}, or name a database's file.",
    )


def nothing(said: str, more: str = "") -> NothingMeasuredError:
    """The error, with the command that would bring results."""
    return NothingMeasuredError(
        f"{said}: measure first, for example with"
        f" `accelbench run --set small --hardware all{more}`, or name a database with --db."
    )


def catalogued(name: str) -> str:
    """The name results are stored under; a custom model's name stays as it is."""
    from accelbench.catalog.find import find

    try:
        return find(name).id
    except UsageError:
        return name


def refuse_unknown_models(database: Database, filters: Mapping[str, Sequence[Any]]) -> None:
    """Tell a slip of the fingers from a model that nobody has measured yet.

    Raises:
        UsageError: Neither the catalogue nor any result knows a model by a name.
    """
    from accelbench.catalog.find import find

    strange = []
    for name in filters.get("model", ()):
        try:
            find(name)
        except UsageError:
            strange.append(name)
    if not strange:
        return
    _, rows = database.query(
        f"SELECT DISTINCT model FROM benchmark_results WHERE model IN ({marks(strange)})",  # noqa: S608
        strange,
    )
    unknown = [name for name in strange if (name,) not in rows]
    if unknown:
        _, rows = database.query("SELECT DISTINCT model FROM benchmark_results ORDER BY 1")
        names = [str(name) for (name,) in rows if name is not None]
        raise UsageError(f"No model is called {unknown[0]!r}.", _stored_names(unknown[0], names))


def _stored_names(name: str, stored: Sequence[str]) -> str:
    """What of all that is stored may have been meant."""
    if not stored:
        return "List the models with: accelbench models"
    spelt: dict[str, list[str]] = {}
    for one in stored:
        spelt.setdefault(one.lower(), []).append(one)
    near = difflib.get_close_matches(name.lower(), spelt, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(one for low in near for one in spelt[low])}?"
    more = f" and {len(stored) - _NAMED} more" if len(stored) > _NAMED else ""
    return f"There are results of {', '.join(stored[:_NAMED])}{more}."


def where_of(filters: Mapping[str, Sequence[Any]]) -> tuple[str, list[Any]]:
    """Results that count and have these values in these columns: SQL and its parameters."""
    parts: list[str] = [_COUNTS]
    values: list[Any] = []
    for column, wanted in filters.items():
        parts.append(f"{column} IN ({marks(wanted)})")
        values += wanted
    return " AND ".join(parts), values


def runs_of(
    database: Database, where: str, values: Sequence[Any]
) -> dict[str, tuple[Machine, str]]:
    """Each run that has such results, with its machine and the moment of its newest one."""
    from accelbench.analysis.machines import machine_of

    _, rows = database.query(
        "SELECT r.run_id, b.environment::VARCHAR, r.moment::VARCHAR"  # noqa: S608 — our columns
        " FROM (SELECT coalesce(run_id, '') AS run_id, max(started_at) AS moment"
        f" FROM benchmark_results WHERE {where} GROUP BY 1) r"
        " LEFT JOIN benchmark_runs b USING (run_id)",
        values,
    )
    # Most runs of one machine say the same of it.
    said: dict[str | None, Any] = {None: None}
    found = {}
    for run, environment, moment in rows:
        if environment not in said:
            said[environment] = json.loads(environment)
        found[str(run)] = (machine_of(str(run), said[environment]), str(moment or ""))
    return found


def of_machine(
    runs: Mapping[str, tuple[Machine, str]], asked: str | None
) -> tuple[Machine, list[str], tuple[Machine, ...]]:
    """The machine that is asked for, or that of the newest result; its runs, and the others."""
    from accelbench.analysis.machines import chosen

    newest: dict[Machine, str] = {}
    for one, moment in runs.values():
        newest[one] = max(moment, newest.get(one, ""))
    machine = chosen(newest, asked)
    ours = [run for run, (one, _) in runs.items() if one == machine]
    return machine, ours, tuple(sorted(one for one in newest if one != machine))


def on_one_machine(
    database: Database, filters: Mapping[str, Sequence[Any]], asked: str | None
) -> tuple[str, list[Any], Machine, tuple[Machine, ...]]:
    """Results with these values of one machine: SQL, its parameters, that machine, and the others.

    Raises:
        UsageError: A model is called so nowhere.
        NothingMeasuredError: There are none at all.
    """
    where, values = where_of(filters)
    runs = runs_of(database, where, values)
    # What was found under one name alone needs no second look through all results.
    if not runs or len(filters.get("model", ())) > 1:
        refuse_unknown_models(database, filters)
    if not runs:
        raise nothing(f"{database.name} has no results of what was asked for")
    machine, ours, others = of_machine(runs, asked)
    where += f" AND coalesce(run_id, '') IN ({marks(ours)})"
    return where, [*values, *ours], machine, others


def marks(values: Sequence[Any]) -> str:
    """What stands in SQL for so many parameters."""
    return ", ".join("?" * len(values))


def rows_of(
    database: Database, columns: Sequence[str], where: str, values: Sequence[Any]
) -> list[dict[str, Any]]:
    """Some columns of results, JSON as what it holds.

    Raises:
        UsageError: They are more than anybody wants to see side by side.
    """
    from accelbench.core.columns import BY_NAME

    shown = [
        f'"{name}"::VARCHAR AS "{name}"' if BY_NAME[name].kind in ("json", "time") else f'"{name}"'
        for name in columns
    ]
    names, rows = database.query(
        f"SELECT {', '.join(shown)} FROM benchmark_results WHERE {where} LIMIT {_MOST + 1}",  # noqa: S608 — ours
        values,
    )
    if len(rows) > _MOST:
        raise UsageError(
            f"More than {_MOST:,} results answer to that.", "Name models, platforms or runs."
        )
    parsed = [i for i, name in enumerate(names) if BY_NAME[name].kind == "json"]
    # Thousands of results share a few texts, and nobody changes what they say.
    said: dict[str | None, Any] = {None: None}
    found = []
    for row in rows:
        cells = list(row)
        for i in parsed:
            text = cells[i]
            if text not in said:
                said[text] = json.loads(text)
            cells[i] = said[text]
        found.append(dict(zip(names, cells, strict=True)))
    return found

"""Asking the database for results to judge: filled from journals, of one machine at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import EXIT_CANNOT_TELL, AccelbenchError, UsageError
from accelbench.core.provenance import COMPARABLE_SQL

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.store.database import Database

#: What may be compared at all: what nobody measured is not among it.
_COUNTS = f"{COMPARABLE_SQL} AND model IS NOT NULL AND status IS NOT NULL"


#: Results that are held against each other at once.
_MOST = 20_000


class NothingMeasuredError(AccelbenchError):
    """There are no results to judge."""

    exit_code = EXIT_CANNOT_TELL


def filled(path: Path | None) -> Database:
    """The database, with what runs left in the journals."""
    from accelbench.store.duck import absent
    from accelbench.store.files import ReadOnlyPlaceError
    from accelbench.store.lake import store_at

    database = store_at(path)
    if not database.there:
        raise absent(database.name)
    try:
        filled = database.fill()
    except ReadOnlyPlaceError as error:
        sys.stderr.write(f"accelbench: {error.message} What waits in journals is not shown.\n")
    else:
        for problem in filled.problems:
            sys.stderr.write(f"accelbench: {problem}\n")
    return database


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
        NothingMeasuredError: There are none at all.
    """
    where, values = where_of(filters)
    runs = runs_of(database, where, values)
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

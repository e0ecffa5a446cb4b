"""Results to judge from a database that is filled from journals, of one machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from accelbench.core.errors import StoreError, UsageError
from accelbench.core.rows import ResultRow
from accelbench.evidence.launches import DERIVED, launches_sql
from accelbench.judge.filters import marks, where_of, words_of
from accelbench.judge.older_runs import NOISE, NOT_OF_A_CHECK, RERUN_OF
from accelbench.judge.suggestions import Asked, none_found, nothing, refuse_unknown

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine
    from accelbench.store.database import Database


_log = logging.getLogger("accelbench.judge")


#: Results that are compared with each other at once.
_MOST = 20_000
#: Where results lie is asked by few columns, then they are read whole: what is chosen by a window
#: over a million results took five seconds with all columns of each. A database that is not being
#: written does not move them.
_PLACES = """
SELECT rowid FROM fact_result AS benchmark_results WHERE {where}
ORDER BY benchmark_results.started_at, result_id LIMIT {most}
"""
_LYING = """
SELECT {columns} FROM fact_result AS benchmark_results
WHERE rowid IN (SELECT unnest($places::BIGINT[])) ORDER BY benchmark_results.started_at, result_id
"""
#: The same of the relation `launches`; only failures of the same runs are looked for.
_LAUNCHES_LYING = """
SELECT {columns} FROM ({launches}) AS benchmark_results
WHERE place IN (SELECT unnest($places::BIGINT[])) ORDER BY benchmark_results.started_at, result_id
"""
_LAUNCHES = launches_sql(
    "(SELECT *, rowid AS place FROM fact_result)",
    "SELECT run_id FROM fact_result WHERE rowid IN (SELECT unnest($places::BIGINT[]))",
)


def filled(path: Path | None, notice: Callable[[str], None] = _log.warning) -> Database:
    """The database, with what runs left in the journals."""
    from accelbench.store.files import NotWritableError
    from accelbench.store.opening import open_store

    database = open_store(path)
    if not database.exists:
        raise _absent(database)
    try:
        filled = database.fill()
    except NotWritableError as error:
        notice(f"{error.message} What waits in journals is not shown.")
    else:
        for problem in filled.problems:
            notice(problem)
    return database


def filled_if_any(
    path: Path | None,
    filters: Asked,
    notice: Callable[[str], None] = _log.warning,
) -> Database:
    """As `filled`; where nobody named a database and there is none, nothing is measured yet.

    Raises:
        NothingMeasuredError: there is none, with the command that would bring what is asked for.
    """

    from accelbench.store.opening import open_store

    usual = open_store(None)
    if path is None and not usual.exists:
        raise nothing(f"Nothing is measured, as there is no database at {usual.name}", filters)
    return filled(path, notice)


def _absent(database: Database) -> StoreError:
    from accelbench.store.duck import absent_error
    from accelbench.store.lake import Lake
    from accelbench.store.places import FolderPlace

    if not isinstance(database, Lake):
        return absent_error(database.name)
    place = database.place

    advice = f"Begin one with `accelbench db init --db {place.name}`"
    if not isinstance(place, FolderPlace) or not place.folder.is_dir():
        return StoreError(f"There is no lake at {place.name}.", f"{advice}.")
    return StoreError(no_lake_in(place.folder, "--db"), f"{advice}, or name a database's file.")


def no_lake_in(folder: Path, option: str) -> str:
    """What is said of a folder that an option took for a lake, with the databases in it."""
    files = sorted(f"{option} {path}" for path in folder.glob("*.duckdb"))
    hint = f" There is a database in it: {' or '.join(files[:3])}." if files else ""
    return f"{folder} is a folder with no lake in it.{hint}"


def runs_of(
    database: Database,
    where: str,
    values: Sequence[object],
    named: Sequence[str] | None = None,
) -> dict[str, tuple[Machine, str]]:
    """Each run that has such results, with its machine and the moment of its newest one.

    Args:
        named: of the runs that a check made for itself, only these; all where it is None.
    """
    from accelbench.judge.machines import machines_of

    condition, more = "", list[object]()
    if named is not None:
        condition = f" WHERE {NOT_OF_A_CHECK}"
        more = [NOISE, RERUN_OF]
    if named:
        condition += f" OR run_id IN ({marks(named)})"
        more += named
    _, rows = database.query(
        "SELECT r.run_id, b.environment::VARCHAR, r.moment::VARCHAR"  # noqa: S608 — our columns
        " FROM (SELECT coalesce(run_id, '') AS run_id, max(started_at) AS moment"
        f" FROM benchmark_results WHERE {where} GROUP BY 1) r"
        f" LEFT JOIN benchmark_runs b USING (run_id){condition}",
        [*values, *more],
    )
    machines = machines_of((run, environment) for run, environment, _ in rows)
    return {str(run): (machines[str(run)], str(moment or "")) for run, _, moment in rows}


def of_machine(
    runs: Mapping[str, tuple[Machine, str]], word: str | None
) -> tuple[Machine, list[str], tuple[Machine, ...]]:
    """The machine that is asked for, or that of the newest result; its runs, and the others."""
    from accelbench.judge.machines import chosen

    newest: dict[Machine, str] = {}
    for owner, moment in runs.values():
        newest[owner] = max(moment, newest.get(owner, ""))
    machine = chosen(newest, word)
    ours = [run for run, (owner, _) in runs.items() if owner == machine]
    return machine, ours, tuple(sorted(other for other in newest if other != machine))


def runs_to_judge(
    database: Database,
    filters: Asked,
    where: str,
    values: Sequence[object],
    named: Sequence[str] = (),
) -> dict[str, tuple[Machine, str]]:
    """The runs of such results, but for those that checks made for themselves and nobody named.

    Raises:
        UsageError: A word is known nowhere, or stored in another spelling.
        NothingMeasuredError: There are none at all.
    """
    runs = runs_of(database, where, values, [*named, *words_of(filters, "run_id")])
    if not runs:
        but = ", but what checks measured for themselves"
        raise none_found(database, filters, but if runs_of(database, where, values) else "")
    refuse_unknown(database, filters, has_results=True)
    return runs


def on_one_machine(
    database: Database,
    filters: Asked,
    word: str | None,
    named: Sequence[str] = (),
) -> tuple[str, list[object], Machine, tuple[Machine, ...]]:
    """Results with these values of one machine: SQL, its parameters, that machine, and the others.

    Args:
        named: runs that count although a check made them for itself.
    """
    where, values = where_of(filters)
    runs = runs_to_judge(database, filters, where, values, named)
    machine, ours, others = of_machine(runs, word)
    where += f" AND coalesce(run_id, '') IN ({marks(ours)})"
    return where, [*values, *ours], machine, others


def rows_of(
    database: Database,
    columns: Sequence[str],
    where: str,
    values: Sequence[object],
    most: int | None = None,
    *,
    launches: bool = False,
) -> list[ResultRow]:
    """Some columns of results in the order they were taken, JSON as what it holds.

    Args:
        database: the store.
        columns: the columns.
        where: the results, in SQL.
        values: parameters of `where`.
        most: the largest number of results.
        launches: whether rows are those of the relation `launches`, with its derived columns.

    Raises:
        UsageError: They are more than anybody wants to see side by side.
    """
    from accelbench.core.columns import BY_NAME

    most = _MOST if most is None else most
    texts = {name for name in columns if BY_NAME[name].kind in ("json", "time")}
    read = list(dict.fromkeys((*columns, *DERIVED) if launches else columns))
    shown = [f'"{name}"::VARCHAR AS "{name}"' if name in texts else f'"{name}"' for name in read]
    lying = _LAUNCHES_LYING if launches else _LYING
    with database.keep_open():  # both are of one moment
        _, found = database.query(_PLACES.format(where=where, most=most + 1), values)
        if len(found) > most:
            raise UsageError(
                f"More than {most:,} results answer to that.",
                "Name models, platforms, batch sizes or a machine.",
            )
        places = [place for (place,) in found]
        query = lying.format(columns=", ".join(shown), launches=_LAUNCHES)
        names, rows = database.query(query, {"places": places})
    parsed = [i for i, name in enumerate(names) if name in texts and BY_NAME[name].kind == "json"]
    # Thousands of results share a few texts, and nobody changes what they say.
    cache: dict[object, object] = {None: None}
    records = []
    for row in rows:
        cells = list(row)
        for i in parsed:
            text = cells[i]
            if text not in cache:
                cache[text] = json.loads(str(text))
            cells[i] = cache[text]
        # Of each column what the registry says of it.
        records.append(cast("ResultRow", dict(zip(names, cells, strict=True))))
    return records

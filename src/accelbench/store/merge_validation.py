"""What another store brings is held to what a result can be: a database, or a file of a lake.

Anybody can write a file of a lake, or send a database. A result that cannot be stays out alone, is
said, and remains as a fact `result_refused`; another figure under a known id is an error, as one
of the two is not true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.core.columns import BY_NAME
from accelbench.core.errors import StoreError
from accelbench.core.facts import FACT_VERSION, RESULT_REFUSED
from accelbench.store.conflicts import refuse_others
from accelbench.store.contradictions import Contradiction, find_contradictions
from accelbench.store.derived import limits_of
from accelbench.store.insert import Batch, flush
from accelbench.store.possible import TYPES, rules

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Results that are named; a file that somebody made up may have a million.
_MOST_NAMED = 8
#: What the tables of facts hold beside the columns of results.
_MORE: Mapping[str, tuple[str, ...]] = {
    "rest": ("JSON", "VARCHAR"),
    "body": ("JSON", "VARCHAR"),
    "version": TYPES["int"],
    "line": TYPES["int"],
    "samples": ("BIGINT[]",),
    "steps": ("BIGINT[]",),
    **dict.fromkeys(("kind", "id", "phase", "timing"), ("VARCHAR",)),
}
_REFUSED = "CREATE OR REPLACE TEMP TABLE refused (result_id VARCHAR)"


class UnlikeError(StoreError):
    """A table of another store that is not as ours is."""


@dataclass(frozen=True)
class HeldConnection:
    """Tables or queries in brackets, of what may come in."""

    results: str
    samples: str
    problems: tuple[str, ...] = ()
    refused: tuple[Contradiction, ...] = ()


def hold(con: DuckDBPyConnection, results: str, samples: str, whose: str) -> HeldConnection:
    """Leave out of another store's results those that cannot be.

    Args:
        con: the database that they are to come into, in a transaction.
        results: a table or a query in brackets; empty where there are none.
        samples: the same of their samples.
        whose: what the other store is called.

    Raises:
        ConflictError: one has another figure than the result of that id.
        StoreError: a column is of another type, so that it is no store of ours.
    """
    if samples:
        columns_in(con, samples, ("result_id", "phase", "samples"), whose)
    if not results:
        return HeldConnection(results, samples)
    names = columns_in(con, results, ("result_id",), whose)
    limits = limits_of(con, results) if "device_name" in names else {}
    held = rules([name for name in names if name in BY_NAME], limits)
    refused = find_contradictions(con, results, samples, names, held)
    if refused:
        con.execute(_REFUSED)
        con.executemany("INSERT INTO refused VALUES (?)", [[one.result_id] for one in refused])
        kept = "(SELECT * FROM {} WHERE result_id NOT IN (SELECT result_id FROM refused))"
        results, samples = kept.format(results), kept.format(samples) if samples else ""
        _keep(con, refused)
    refuse_others(con, f"SELECT * FROM {results}", names)  # noqa: S608 — our query
    return HeldConnection(results, samples, tuple(_said(refused, whose)), tuple(refused))


def columns_in(
    con: DuckDBPyConnection, source: str, needed: Sequence[str], whose: str
) -> list[str]:
    """The columns of another store's table; StoreError where one is not as ours is."""
    rows = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 — our query
    types = {str(name): str(kind) for name, kind, *_ in rows}
    for name in needed:
        if name not in types:
            raise _unlike(whose, f"lacks the column {name}")
    for name, kind in types.items():
        allowed = TYPES[BY_NAME[name].kind] if name in BY_NAME else _MORE.get(name, (kind,))
        if kind not in allowed:
            raise _unlike(whose, f"has {kind} in the column {name}, where {allowed[0]} is expected")
    return list(types)


def _keep(con: DuckDBPyConnection, refused: Sequence[Contradiction]) -> None:
    batch = Batch()
    for one in refused:
        refusal = {"why": one.reason, "model": one.model}
        ids = (one.result_id or "", one.run_id or "")
        batch.add_other(RESULT_REFUSED, *ids, 0, FACT_VERSION, refusal)
    flush(con, batch)


def _said(refused: Sequence[Contradiction], whose: str) -> list[str]:
    named = [
        f"Result {one.result_id} of {whose} is not stored: {one.reason}."
        for one in refused[:_MOST_NAMED]
    ]
    more = len(refused) - len(named)
    return [*named, *([f"{more:,} more of {whose} are not stored."] if more else [])]


def _unlike(whose: str, what: str) -> UnlikeError:
    advice = "It was not written by accelbench; it was left as it is."
    return UnlikeError(f"{whose} {what}.", advice)

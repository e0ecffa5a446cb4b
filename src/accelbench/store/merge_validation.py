"""Checks and merges of results from another store: a database, or a file of a lake.

An impossible result is left out, reported, and stored as a fact `result_refused`. Another value
under a known id is an error, because one of the two is wrong. A merge uses the same anti-joins in
one transaction, and only reads the other database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.axes import size_columns
from accelbench.core.columns import BY_NAME, metric_columns
from accelbench.core.errors import StoreError, UsageError
from accelbench.core.facts import FACT_VERSION, RESULT_REFUSED
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Provenance
from accelbench.store.consistency_rules import read_limits
from accelbench.store.contradictions import Contradiction, find_contradictions, mark_implausible
from accelbench.store.duck import connect, explain_open_error, quote_sql, retry_locked, shared_guard
from accelbench.store.insert import Batch, flush, insert_many
from accelbench.store.journal import FilledRows
from accelbench.store.plausible_values import TYPES, rules
from accelbench.store.schema import columns_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Columns that must be equal for one id: identity, measurements and findings. Texts may differ
#: between versions.
COMPARED_COLUMNS = (
    *("status", "case_id", "series_key", "launch", "arm", "model", "hardware", "runtime", "device"),
    *("device_name", "device_fingerprint", "precision", "batch_size", *size_columns(), "mode"),
    *("scenario", "compiled", "threads", "world_size", "seed", "optimizer", "weights"),
    *("verification", "self_check", "steps_verified", "weights_digest", "outputs_digest"),
    *(column.name for column in metric_columns()),
)
#: Relative tolerance, because a file may store single precision.
_TOLERANCE = 1e-6


class ConflictError(UsageError):
    """A result differs from the known one of its id."""

    def __init__(self, result_id: str, column: str, known: Any, claim: Any) -> None:
        super().__init__(
            f"{result_id}, {in_quotes(column)}: it is {claim}, but the stored result of that id has"
            f" {known}.",
            "Nothing was imported.",
        )
        self.result_id, self.column, self.known, self.claim = result_id, column, known, claim


def refuse_difference(result_id: str, known: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    """Raise ConflictError if two rows of one id differ; missing values do not count."""
    for name in COMPARED_COLUMNS:
        figure, other = known.get(name), row.get(name)
        if figure is None or other is None or figure == other:
            continue
        if BY_NAME[name].kind not in ("int", "float") or not isclose(
            figure, other, rel_tol=_TOLERANCE
        ):
            raise ConflictError(result_id, name, figure, other)


def refuse_known_differences(
    con: DuckDBPyConnection, rows: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise ConflictError if rows differ from those in the database."""
    names = ("result_id", *COMPARED_COLUMNS)
    columns = ", ".join(f'"{name}"' for name in names)
    known = con.execute(
        f"SELECT {columns} FROM fact_result"  # noqa: S608 — our columns
        " WHERE result_id IN (SELECT unnest(?))",
        [list(rows)],
    )
    for values in known.fetchall():
        row = dict(zip(names, values, strict=True))
        refuse_difference(row["result_id"], row, rows[row["result_id"]])


def refuse_query_differences(con: DuckDBPyConnection, query: str, columns: Collection[str]) -> int:
    """Raise ConflictError if rows of a query differ from the database's or from each other.

    Returns how many of its results are repetitions.
    """
    names = [name for name in COMPARED_COLUMNS if name in columns]
    # Reading only ids takes no time; rows are joined only for repeated ids.
    ((rows, different, known),) = con.execute(
        "SELECT count(*), count(DISTINCT result_id),"  # noqa: S608 — our query
        " count(*) FILTER (result_id IN (SELECT result_id FROM fact_result))"
        f" FROM ({query})"
    ).fetchall()
    others = ["fact_result"] if known else []
    if different < rows:
        twice = f"SELECT result_id FROM ({query}) GROUP BY result_id HAVING count(*) > 1"  # noqa: S608
        others.append(f"(SELECT * FROM ({query}) WHERE result_id IN ({twice}))")  # noqa: S608
    pairs = ", ".join(f'k."{name}" AS "k_{name}", i."{name}" AS "i_{name}"' for name in names)
    unlike = " OR ".join(_differs_sql(name) for name in names)
    for other in others:
        both = f"SELECT i.result_id, {pairs} FROM ({query}) i JOIN {other} k USING (result_id)"  # noqa: S608
        row = con.execute(f"SELECT * FROM ({both}) WHERE {unlike} LIMIT 1").fetchone()  # noqa: S608
        if row is not None:
            values = list(row[1:])
            refuse_difference(
                str(row[0]),
                dict(zip(names, values[::2], strict=True)),
                dict(zip(names, values[1::2], strict=True)),
            )
    return int(rows - different)


def _differs_sql(name: str) -> str:
    """Return SQL for whether both values are known and differ."""
    if BY_NAME[name].kind not in ("int", "float"):
        return f'"k_{name}" <> "i_{name}"'
    most = f'greatest(abs("k_{name}"), abs("i_{name}"))'
    return f'abs("k_{name}" - "i_{name}") > {_TOLERANCE} * {most}'


#: Most results that are named; an invented file may have a million.
_MOST_NAMED = 8
#: Columns of the tables of facts that are not columns of results.
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


class OtherSchemaError(StoreError):
    """A table of another store does not have this schema."""


@dataclass(frozen=True)
class CheckedTables:
    """Tables or queries in brackets of the accepted rows."""

    results: str
    samples: str
    problems: tuple[str, ...] = ()
    refused: tuple[Contradiction, ...] = ()


def check_tables(con: DuckDBPyConnection, results: str, samples: str, source: str) -> CheckedTables:
    """Leave impossible results of another store out, in the database's transaction.

    `results` and `samples` are tables or queries in brackets, or empty. Raises ConflictError if a
    result differs from the known one of its id, StoreError if a column has another type.
    """
    if samples:
        columns_in(con, samples, ("result_id", "phase", "samples"), source)
    if not results:
        return CheckedTables(results, samples)
    names = columns_in(con, results, ("result_id",), source)
    limits = read_limits(con, results) if "device_name" in names else {}
    held = rules([name for name in names if name in BY_NAME], limits)
    refused = find_contradictions(con, results, samples, names, held)
    if refused:
        con.execute(_REFUSED)
        con.executemany("INSERT INTO refused VALUES (?)", [[one.result_id] for one in refused])
        kept = "(SELECT * FROM {} WHERE result_id NOT IN (SELECT result_id FROM refused))"
        results, samples = kept.format(results), kept.format(samples) if samples else ""
        _store_refusals(con, refused)
    refuse_query_differences(con, f"SELECT * FROM {results}", names)  # noqa: S608 — our query
    return CheckedTables(results, samples, tuple(_refusal_texts(refused, source)), tuple(refused))


def columns_in(
    con: DuckDBPyConnection, source: str, needed: Sequence[str], store_name: str
) -> list[str]:
    """Return the columns of another store's table; raise StoreError if it has another schema."""
    rows = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 — our query
    types = {str(name): str(kind) for name, kind, *_ in rows}
    for name in needed:
        if name not in types:
            raise _other_schema(store_name, f"lacks the column {name}")
    for name, kind in types.items():
        allowed = TYPES[BY_NAME[name].kind] if name in BY_NAME else _MORE.get(name, (kind,))
        if kind not in allowed:
            raise _other_schema(store_name, f"has {kind} in the column {name}, not {allowed[0]}")
    return list(types)


def _store_refusals(con: DuckDBPyConnection, refused: Sequence[Contradiction]) -> None:
    batch = Batch()
    for one in refused:
        refusal = {"why": one.reason, "model": one.model}
        ids = (one.result_id or "", one.run_id or "")
        batch.add_other(RESULT_REFUSED, *ids, 0, FACT_VERSION, refusal)
    flush(con, batch)


def _refusal_texts(refused: Sequence[Contradiction], store_name: str) -> list[str]:
    named = [
        f"Result {one.result_id} of {store_name} is not stored: {one.reason}."
        for one in refused[:_MOST_NAMED]
    ]
    more = len(refused) - len(named)
    return [*named, *([f"{more:,} more of {store_name} are not stored."] if more else [])]


def _other_schema(store_name: str, problem: str) -> OtherSchemaError:
    advice = "It was not written by accelbench; it was left as it is."
    return OtherSchemaError(f"{store_name} {problem}.", advice)


def merge(path: Path, other: Path, retry_seconds: float) -> FilledRows:
    """Insert every fact of `other` that `path` lacks. Both must be databases of accelbench."""
    with connect(path, write=True, retry_seconds=retry_seconds, separate=True) as con:
        retry_locked(lambda: _attach(con, other), other, retry_seconds)
        con.execute("BEGIN")
        with explain_conflicts(path, other):
            for table in ("fact", "fact_result", "fact_samples"):
                columns_in(con, f"other.{table}", columns_of(con, table), str(other))
            held = check_tables(con, "other.fact_result", "other.fact_samples", str(other))
        copies = _count_copies(con, held.results) if held.results else 0
        # Samples first: their anti-join reads the results that are there.
        _bring(con, "fact_samples", held.samples, "result_id", against="fact_result")
        filled = FilledRows(
            results=_bring(con, "fact_result", held.results, "result_id"),
            facts=_bring(con, "fact", "other.fact", "kind, id"),
            problems=held.problems,
            copies=copies,
            refused=len(held.refused),
            refusals=held.refused,
        )
        if filled.results:
            mark_implausible(con)
        con.execute("COMMIT")
    return filled


def _count_copies(con: DuckDBPyConnection, measured: str) -> int:
    """Return how many measured results are stored here only as imported copies."""
    ((count,),) = con.execute(
        f"SELECT count(*) FROM {measured} i JOIN fact_result k USING (result_id)"  # noqa: S608
        f" WHERE i.provenance = {quote_sql(Provenance.MEASURED.value)}"
        f" AND k.provenance = {quote_sql(Provenance.IMPORTED.value)}"
    ).fetchall()
    return int(count)


@contextmanager
def explain_conflicts(path: Path, other: Path) -> Iterator[None]:
    """Explain conflicts of two stores in a sentence that names both."""
    import duckdb

    try:
        yield
    except ConflictError as error:
        raise StoreError(
            f"Result {error.result_id} of {other} has {error.claim} in {error.column}, but"
            f" {path} has {error.known}: one of the two is wrong.",
            "Nothing of it was merged. Remove the wrong one, or merge another copy.",
        ) from error
    except duckdb.CatalogException as error:
        raise StoreError(
            f"{other} lacks a table of ours ({str(error).splitlines()[0]}).",
            "It was not written by accelbench; it was left as it is.",
        ) from error


def _attach(con: DuckDBPyConnection, other: Path) -> None:
    import duckdb

    with shared_guard(other, create=False):
        try:
            con.execute(f"ATTACH {quote_sql(str(other))} AS other (READ_ONLY)")
        except duckdb.Error as error:
            raise explain_open_error(error, other) from error


def _bring(
    con: DuckDBPyConnection, table: str, source: str, keys: str, against: str | None = None
) -> int:
    columns = ", ".join(f'i."{name}"' for name in columns_of(con, table))
    apart = "result_id, phase" if table == "fact_samples" else keys
    return insert_many(con, table, source, keys, against=against, columns=columns, distinct=apart)

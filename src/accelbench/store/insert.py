"""Rows into tables, less those that are there: what every way into a database ends with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME
from accelbench.core.facts import RESULT_REFUSED
from accelbench.core.identity import canonical
from accelbench.core.possible import out_of_range, wrong_with
from accelbench.store.arrow import result_table, table_of
from accelbench.store.contradictions import COLUMNS_READ, Contradiction, find_contradictions
from accelbench.store.fit import Fitted, fit, miscounted, readable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Results held in memory at once; with 1000 samples each about 40 MB of Python integers.
BATCH = 1000


@dataclass(frozen=True)
class FilledRows:
    """What an ingest brought in, and what a person should know about the journals."""

    results: int = 0
    facts: int = 0  # of other kinds
    journals: int = 0  # that had something new
    problems: tuple[str, ...] = ()
    repeated: int = 0  # results that are equal in everything to others of the same source
    refused: int = 0  # results that cannot be, and are not stored
    refusals: tuple[Contradiction, ...] = ()  # those of another store, one by one
    copies: int = 0  # measured results that are here already as imported copies

    def __add__(self, other: FilledRows) -> FilledRows:
        return FilledRows(
            self.results + other.results,
            self.facts + other.facts,
            self.journals + other.journals,
            self.problems + other.problems,
            self.repeated + other.repeated,
            self.refused + other.refused,
            self.refusals + other.refusals,
            self.copies + other.copies,
        )


@dataclass
class Batch:
    """Facts on their way in; the first of two with the same id counts."""

    results: dict[str, tuple[Fitted, int]] = field(default_factory=dict)
    others: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    said: Collection[str] = ()  # results of which it was said before

    def add_result(
        self,
        result_id: str,
        body: Mapping[str, Any],
        version: int,
        check: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        """Take a result, or refuse it: the one door for journals, imports and files alike.

        What is refused is said, and remains in the database as a fact of its own.

        Args:
            result_id: its id.
            body: by our columns.
            version: of its fact.
            check: returns why its row cannot be; a file's results were checked when it was read.
        """
        fitted = fit(body)
        if why := miscounted(body, fitted) or (check(fitted.row) if check else ""):
            self.refuse(result_id, fitted, version, why)
            return
        self.results.setdefault(readable(result_id), (fitted, version))

    def refuse(self, result_id: str, fitted: Fitted, version: int, why: str) -> None:
        """Keep why a result is not stored."""
        run_id = str(fitted.row["run_id"] or "")
        if result_id not in self.said:
            self.refused.append(f"Result {result_id} of run {run_id} is not stored: {why}.")
        refusal = {"why": why, "model": fitted.row["model"]}
        self.add_other(RESULT_REFUSED, result_id, run_id, 0, version, refusal)

    def add_other(
        self, kind: str, fact_id: str, run_id: str, line: int, version: int, body: Any
    ) -> None:
        key = (readable(kind), readable(fact_id))
        row = (*key, run_id, line, version, canonical(readable(body)))
        self.others.setdefault(key, row)

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """Of each result its columns."""
        return {result_id: fitted.row for result_id, (fitted, _) in self.results.items()}

    @property
    def full(self) -> bool:
        return len(self.results) >= BATCH


def check_own(row: Mapping[str, Any]) -> str:
    """Return why a row of this machine's journals cannot be; empty if it can.

    Rows of this program are checked by every rule, others by the ranges of their numbers.
    """
    return wrong_with(row) if _is_own(row) else out_of_range(row)


def _is_own(row: Mapping[str, Any]) -> bool:
    return row["protocol_version"] is not None


def refuse_contradictions(con: DuckDBPyConnection, batch: Batch, *, held: bool) -> None:
    """Refuse the results of a batch whose values do not follow from each other.

    Args:
        con: the database.
        batch: on its way in.
        held: whether to check results of other programs too.
    """
    results = [each for each in batch.results.values() if held or _is_own(each[0].row)]
    if not results:
        return
    rows = result_table([fitted.row for fitted, _ in results], [BY_NAME[n] for n in COLUMNS_READ])
    with _registered(con, rows), _registered(con, _sample_table(results), "incoming_samples"):
        wrong = find_contradictions(con, "incoming", "incoming_samples", COLUMNS_READ)
    for one in wrong:
        result_id = one.result_id or ""
        fitted, version = batch.results.pop(result_id)
        batch.refuse(result_id, fitted, version, one.reason)


def flush(con: DuckDBPyConnection, batch: Batch) -> FilledRows:
    """Insert what is not there yet. Samples first: the anti-join asks for their results."""
    import pyarrow as pa

    results = list(batch.results.values())
    others = list(batch.others.values())
    counts = FilledRows(problems=tuple(batch.refused), refused=len(batch.refused))
    batch.results.clear()
    batch.others.clear()
    batch.refused.clear()
    if results:
        new_rows = result_table([fitted.row for fitted, _ in results])
        rest = [canonical(fitted.rest) if fitted.rest else None for fitted, _ in results]
        versions = [version for _, version in results]
        new_rows = new_rows.append_column("rest", pa.array(rest, pa.string()))
        new_rows = new_rows.append_column("version", pa.array(versions, pa.int32()))
        counts += insert_results(con, _sample_table(results), new_rows)
    if others:
        text = pa.string()
        table = table_of(
            others, kind=text, id=text, run_id=text, line=pa.int64(), version=pa.int32(), body=text
        )
        counts += insert_facts(con, table)
    return counts


def _sample_table(results: Iterable[tuple[Fitted, int]]) -> Any:
    import pyarrow as pa

    def rows() -> Iterator[tuple[Any, ...]]:
        for fitted, _ in results:
            for sample in fitted.samples:
                ids = (fitted.row["result_id"], fitted.row["run_id"])
                yield (*ids, sample.phase, sample.timing, sample.steps, sample.ns)

    text, whole = pa.string(), pa.list_(pa.int64())
    return table_of(
        rows(), result_id=text, run_id=text, phase=text, timing=text, steps=whole, samples=whole
    )


def insert_results(con: DuckDBPyConnection, samples: Any, results: Any) -> FilledRows:
    """Insert results and their samples by column name, less those that are there."""
    with _registered(con, samples):
        anti_insert(con, "fact_samples", "incoming", "result_id", against="fact_result")
    with _registered(con, results):
        return FilledRows(results=anti_insert(con, "fact_result", "incoming", "result_id"))


def insert_facts(con: DuckDBPyConnection, facts: Any) -> FilledRows:
    """Insert facts of other kinds, less those that are there."""
    with _registered(con, facts):
        return FilledRows(facts=anti_insert(con, "fact", "incoming", "kind, id"))


@contextmanager
def _registered(con: DuckDBPyConnection, rows: Any, name: str = "incoming") -> Iterator[None]:
    con.register(name, rows)
    try:
        yield
    finally:
        con.unregister(name)


def anti_insert(
    con: DuckDBPyConnection,
    table: str,
    source: str,
    keys: str,
    *,
    against: str | None = None,
    columns: str = "i.*",
) -> int:
    """Insert the source's rows whose keys are not there yet: one statement for any number."""
    return _insert(con, table, f"{source} i ANTI JOIN {against or table} USING ({keys})", columns)


def _insert(con: DuckDBPyConnection, table: str, source: str, columns: str) -> int:
    ((inserted,),) = con.execute(
        f"INSERT INTO {table} BY NAME SELECT {columns} FROM {source}"  # noqa: S608 — our names
    ).fetchall()
    return int(inserted)


def insert_many(
    con: DuckDBPyConnection,
    table: str,
    source: str,
    keys: str,
    *,
    against: str | None = None,
    columns: str = "i.*",
    apart: str = "",
) -> int:
    """`anti_insert` of what may be millions of rows, mostly new and each there once.

    Ids alone are read in no time. A join of whole rows takes half as long again as to insert them
    (7.1 s for a million results, without it 4.9), and it holds them in memory.

    Args:
        con: the database.
        table: where they go.
        source: a query in brackets, or a table.
        keys: the columns that say whether a row is there.
        against: the table that is asked; else where they go.
        columns: which of a row, `i.` before each.
        apart: the columns that tell rows of the source apart; else the keys.
    """
    identity, target = apart or keys, against or table
    ((rows, different, known),) = con.execute(
        f"SELECT count(*), count(DISTINCT row({identity})),"  # noqa: S608 — our names
        f" count(*) FILTER (({keys}) IN (SELECT {keys} FROM {target})) FROM {source}"
    ).fetchall()
    if different < rows:
        source = f"(SELECT DISTINCT ON ({identity}) * FROM {source})"  # noqa: S608 — our names
    if known:
        return anti_insert(con, table, source, keys, against=against, columns=columns)
    return _insert(con, table, f"{source} i", columns)

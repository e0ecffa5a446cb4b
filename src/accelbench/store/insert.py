"""Insertion of new rows into tables, and copies of results in columnar files.

Rows are passed as Arrow tables, and results as DuckDB's own columns: as dictionaries, half a
million results took 62 s to write.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME, COLUMNS, SQL_TYPES, Column, Kind
from accelbench.core.facts import RESULT_REFUSED
from accelbench.core.identity import canonical_json
from accelbench.core.plausible_values import find_out_of_range, find_problem
from accelbench.store.body_to_row import FittedResult, drop_surrogates, explain_miscount, fit_result
from accelbench.store.contradictions import RULE_COLUMNS, find_contradictions
from accelbench.store.duck import NO_ROOM, explain_duck, file_error_types, quote_sql
from accelbench.store.journal import FilledRows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def import_libraries() -> None:
    """Import the libraries that filling a database needs, which takes half a second."""
    # The first array imports pandas, if it is installed.
    import duckdb  # noqa: F401 - imported for those who need it next
    import pyarrow as pa

    pa.array([None])


def arrow_type(kind: Kind) -> Any:
    """Return the Arrow type of a column; JSON is stored as text."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "time": pa.timestamp("us"),
        "json": pa.string(),
        "list": pa.list_(pa.string()),
        "floats": pa.list_(pa.float64()),
        "map": pa.map_(pa.string(), pa.float64()),
    }
    return types[kind]


def to_arrow_value(kind: Kind, value: Any) -> Any:
    """Return a plain JSON value as Arrow accepts it."""
    if value is None:
        return None
    if kind == "json":
        return canonical_json(value)
    if kind == "time":
        return datetime.fromisoformat(value).replace(tzinfo=None)  # it is in UTC
    if kind == "map":
        return list(value.items())
    return value


def result_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column] = COLUMNS) -> Any:
    """Return fitted rows as an Arrow table with the registry's columns."""
    import pyarrow as pa

    return pa.table(
        {
            c.name: pa.array(
                [to_arrow_value(c.kind, row[c.name]) for row in rows], type=arrow_type(c.kind)
            )
            for c in columns
        }
    )


def arrow_table(rows: Iterable[Sequence[Any]], **types: Any) -> Any:
    """Return tuples as an Arrow table with the named types, in the same order."""
    import pyarrow as pa

    turned = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table(
        {
            name: pa.array(values, type=kind)
            for (name, kind), values in zip(types.items(), turned, strict=True)
        }
    )


#: Results held in memory at once; with 1000 samples each about 40 MB of Python integers.
BATCH = 1000


@dataclass
class Batch:
    """Facts to insert; the first of two with the same id counts."""

    results: dict[str, tuple[FittedResult, int]] = field(default_factory=dict)
    others: dict[tuple[str, str], tuple[Any, ...]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    reported: Collection[str] = ()  # ids of refused results that were reported before

    def add_result(
        self,
        result_id: str,
        body: Mapping[str, Any],
        version: int,
        check: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        """Add a result, or refuse it: for journals, imports and files.

        A refused result is reported, and stays in the database as a fact. `check` returns why its
        row is impossible; results of files were checked when they were read.
        """
        fitted = fit_result(body)
        if why := explain_miscount(body, fitted) or (check(fitted.row) if check else ""):
            self.refuse(result_id, fitted, version, why)
            return
        self.results.setdefault(drop_surrogates(result_id), (fitted, version))

    def refuse(self, result_id: str, fitted: FittedResult, version: int, why: str) -> None:
        """Store the reason why a result is not stored."""
        run_id = str(fitted.row["run_id"] or "")
        if result_id not in self.reported:
            self.refused.append(f"Result {result_id} of run {run_id} is not stored: {why}.")
        refusal = {"why": why, "model": fitted.row["model"]}
        self.add_other(RESULT_REFUSED, result_id, run_id, 0, version, refusal)

    def add_other(
        self, kind: str, fact_id: str, run_id: str, line: int, version: int, body: Any
    ) -> None:
        key = (drop_surrogates(kind), drop_surrogates(fact_id))
        row = (*key, run_id, line, version, canonical_json(drop_surrogates(body)))
        self.others.setdefault(key, row)

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {result_id: fitted.row for result_id, (fitted, _) in self.results.items()}

    @property
    def is_full(self) -> bool:
        return len(self.results) >= BATCH


def check_own(row: Mapping[str, Any]) -> str:
    """Return why a row of this machine's journals is impossible; empty if it is possible."""
    # Rows of this program are checked by every rule, others by the ranges of their numbers.
    return find_problem(row) if _is_own(row) else find_out_of_range(row)


def _is_own(row: Mapping[str, Any]) -> bool:
    return row["protocol_version"] is not None


def refuse_contradictions(con: DuckDBPyConnection, batch: Batch, *, is_foreign: bool) -> None:
    """Refuse contradictory results of a batch; `is_foreign` includes other programs'."""
    results = [each for each in batch.results.values() if is_foreign or _is_own(each[0].row)]
    if not results:
        return
    rows = result_table([fitted.row for fitted, _ in results], [BY_NAME[n] for n in RULE_COLUMNS])
    with _register_rows(con, rows), _register_rows(con, _sample_table(results), "incoming_samples"):
        wrong = find_contradictions(con, "incoming", "incoming_samples", RULE_COLUMNS)
    for one in wrong:
        result_id = one.result_id or ""
        fitted, version = batch.results.pop(result_id)
        batch.refuse(result_id, fitted, version, one.reason)


def flush(con: DuckDBPyConnection, batch: Batch) -> FilledRows:
    """Insert the new rows of a batch. Samples come first: their anti-join reads their results."""
    import pyarrow as pa

    results = list(batch.results.values())
    others = list(batch.others.values())
    counts = FilledRows(problems=tuple(batch.refused), refused=len(batch.refused))
    batch.results.clear()
    batch.others.clear()
    batch.refused.clear()
    if results:
        new_rows = result_table([fitted.row for fitted, _ in results])
        rest = [canonical_json(fitted.rest) if fitted.rest else None for fitted, _ in results]
        versions = [version for _, version in results]
        new_rows = new_rows.append_column("rest", pa.array(rest, pa.string()))
        new_rows = new_rows.append_column("version", pa.array(versions, pa.int32()))
        counts += insert_results(con, _sample_table(results), new_rows)
    if others:
        text = pa.string()
        table = arrow_table(
            others, kind=text, id=text, run_id=text, line=pa.int64(), version=pa.int32(), body=text
        )
        counts += insert_facts(con, table)
    return counts


def _sample_table(results: Iterable[tuple[FittedResult, int]]) -> Any:
    import pyarrow as pa

    def rows() -> Iterator[tuple[Any, ...]]:
        for fitted, _ in results:
            for sample in fitted.samples:
                ids = (fitted.row["result_id"], fitted.row["run_id"])
                yield (*ids, sample.phase, sample.timing, sample.steps, sample.ns)

    text, whole = pa.string(), pa.list_(pa.int64())
    return arrow_table(
        rows(), result_id=text, run_id=text, phase=text, timing=text, steps=whole, samples=whole
    )


def insert_results(con: DuckDBPyConnection, samples: Any, results: Any) -> FilledRows:
    """Insert new results and their samples by column name."""
    with _register_rows(con, samples):
        anti_insert(con, "fact_samples", "incoming", "result_id", against="fact_result")
    with _register_rows(con, results):
        return FilledRows(results=anti_insert(con, "fact_result", "incoming", "result_id"))


def insert_facts(con: DuckDBPyConnection, facts: Any) -> FilledRows:
    """Insert new facts of other kinds."""
    with _register_rows(con, facts):
        return FilledRows(facts=anti_insert(con, "fact", "incoming", "kind, id"))


@contextmanager
def _register_rows(con: DuckDBPyConnection, rows: Any, name: str = "incoming") -> Iterator[None]:
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
    """Insert the source's rows whose keys are new, in one statement."""
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
    distinct: str = "",
) -> int:
    """Insert up to millions of rows, mostly new and unique, as `anti_insert` does.

    `keys` decide whether a row is in `against`, by default the table. `distinct` are further keys
    that distinguish rows of the source.
    """
    # Reading only ids takes no time. A join of whole rows takes half as long as inserting them (7.1
    # s for a million results with it, 4.9 s without), and keeps them in memory.
    identity, target = distinct or keys, against or table
    ((rows, different, known),) = con.execute(
        f"SELECT count(*), count(DISTINCT row({identity})),"  # noqa: S608 — our names
        f" count(*) FILTER (({keys}) IN (SELECT {keys} FROM {target})) FROM {source}"
    ).fetchall()
    if different < rows:
        source = f"(SELECT DISTINCT ON ({identity}) * FROM {source})"  # noqa: S608 — our names
    if known:
        return anti_insert(con, table, source, keys, against=against, columns=columns)
    return _insert(con, table, f"{source} i", columns)


#: Rows of a batch of an Arrow file, the size of DuckDB's row groups.
_BATCH = 122_880
#: Ten million results take 207 MB and 10.2 s; the default level 3 takes 215 MB and 11.4 s.
_COMPRESSED = "COMPRESSION zstd, COMPRESSION_LEVEL 1"
#: Phases with their nanoseconds, and their method of timing if it is known.
_SAMPLES = """
    SELECT result_id AS of_result, map(list(phase), list(samples)) AS samples,
        to_json(map(list(phase) FILTER (taken), list(CASE
            WHEN timing IS NULL THEN json_object('steps', steps)
            WHEN steps IS NULL THEN json_object('timing', timing)
            ELSE json_object('steps', steps, 'timing', timing) END
        ) FILTER (taken))) AS sampling
    FROM (
        SELECT *, timing IS NOT NULL OR steps IS NOT NULL AS taken
        FROM raw_benchmark_data ORDER BY result_id, phase
    )
    GROUP BY result_id
"""
_NO_SAMPLES = "MAP([]::VARCHAR[], []::BIGINT[][])"


def copy_parquet(con: DuckDBPyConnection, query: str, path: Path) -> int:
    """Write the rows of a query into a Parquet file; return their number."""
    with _explain_write_errors(path):
        ((count,),) = con.execute(
            f"COPY ({query}) TO {quote_sql(str(path))} (FORMAT parquet, {_COMPRESSED})"
        ).fetchall()
    return int(count)


def copy_arrow(con: DuckDBPyConnection, query: str, path: Path) -> int:
    """Write the rows of a query into an Arrow file, which is also Feather; return their number."""
    import pyarrow as pa

    count = 0
    with _explain_write_errors(path):
        batches = con.sql(query).to_arrow_reader(_BATCH)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(str(path), batches.schema, options=options) as file:
            for batch in batches:
                file.write_batch(batch)
                count += batch.num_rows
    return count


def results_query(
    con: DuckDBPyConnection,
    where: str = "",
    params: Sequence[object] = (),
    *,
    samples: bool = False,
    runs: tuple[str, Mapping[str, str]] | None,
) -> str:
    """Return SQL for every column of the registry, with JSON as text, in the order of insertion.

    With samples it also has `samples`, a map of phase to nanoseconds, and `sampling`. `runs` is a
    further column with its values by run.
    """
    import pyarrow as pa

    chosen = [_column(col.name, SQL_TYPES[col.kind]) for col in COLUMNS]
    joins = ""
    if samples:
        chosen += [f"coalesce(s.samples, {_NO_SAMPLES}) AS samples"]
        chosen += ["coalesce(s.sampling, '{}')::VARCHAR AS sampling"]
        joins += f" LEFT JOIN ({_SAMPLES}) s ON s.of_result = r.result_id"
    if runs:
        name, texts = runs
        con.register("told", arrow_table(texts.items(), of_run=pa.string(), said=pa.string()))
        chosen.append(f'told.said AS "{name}"')
        joins += " LEFT JOIN told ON told.of_run = r.run_id"
    if where:  # COPY takes no parameters
        query = f"SELECT result_id FROM benchmark_results WHERE {where}"  # noqa: S608 — our columns
        ids = con.execute(query, list(params)).fetchall()
        con.register("chosen", arrow_table(ids, result_id=pa.string()))
        joins += " SEMI JOIN chosen ON chosen.result_id = r.result_id"
    return f"SELECT {', '.join(chosen)} FROM benchmark_results r{joins}"  # noqa: S608 — our names


def _column(name: str, kind: str) -> str:
    return f'r."{name}"::{kind.replace("JSON", "VARCHAR")} AS "{name}"'


@contextmanager
def _explain_write_errors(path: Path) -> Iterator[None]:
    """Explain errors of the new file as errors of that file, not of the database."""
    try:
        yield
    except file_error_types() as error:
        if any(sign in str(error) for sign in NO_ROOM):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise explain_duck(error, path) from error

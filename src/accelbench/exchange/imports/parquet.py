"""Queries for Parquet files: millions of results never become rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.columns import BY_NAME
from accelbench.core.identity import canonical_json
from accelbench.core.plausible_values import describe_misfit
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.imports.ours import REQUIRED_COLUMNS
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.imports.result_row import Source
from accelbench.store.consistency_rules import read_limits
from accelbench.store.contradictions import parse_value
from accelbench.store.duck import quote_path, quote_sql
from accelbench.store.plausible_values import TYPES, rules

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PATTERN = "*.parquet"


def export_sql(file: Path, source: Source, run_id: str = "") -> str:
    """Return a query for an export of accelbench; measured results become imported."""
    with open_parquet(file) as con:
        types = read_types(con, file)
        for name in REQUIRED_COLUMNS:
            if name not in types:
                raise MalformedError(file, None, name, "the column is missing")
        known = [name for name in BY_NAME if name in types]
        for name in known:
            wanted = TYPES[BY_NAME[name].kind]
            if types[name] not in wanted:
                why = f"its type is {types[name]}, and {wanted[0]} is expected"
                raise MalformedError(file, None, name, why)
        for name in REQUIRED_COLUMNS:
            check_condition(con, file, name, f'"{name}" IS NOT NULL', "it is missing")
        _check_rules(con, file, known)
    measured, imported = quote_sql(Provenance.MEASURED.value), quote_sql(Provenance.IMPORTED.value)
    patch = quote_sql(canonical_json({"source": source.to_dict()}))
    columns = {name: f'"{name}"' for name in known}
    if run_id:
        theirs = "run_id" if "run_id" in types else "NULL"
        columns["run_id"] = f"coalesce({theirs}, {quote_sql(run_id)})"
    columns["provenance"] = f"CASE provenance WHEN {measured} THEN {imported} ELSE provenance END"
    given = "coalesce(conditions, '{}')" if "conditions" in types else "'{}'"
    columns["conditions"] = (
        f"CASE provenance WHEN {imported} THEN {given} ELSE json_merge_patch({given}, {patch}) END"
    )
    return select_sql(file, columns)


def select_sql(file: Path, columns: Mapping[str, str], names: Sequence[str] = ()) -> str:
    """Return a query for our columns, each by its SQL; spaces of `names` are normalised."""
    chosen = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    lines = rows_sql(file)
    if names:
        spaced = ", ".join(f"{_normalise_spaces_sql(name)} AS {name}" for name in names)
        lines = f"(SELECT * REPLACE ({spaced}) FROM {lines})"  # noqa: S608 — our columns
    return f"SELECT {chosen} FROM {lines}"  # noqa: S608 — our columns, a quoted path


def _normalise_spaces_sql(name: str) -> str:
    return rf"trim(regexp_replace({name}, '[\s\x0b\p{{Z}}]+', ' ', 'g'))"


def rows_sql(file: Path) -> str:
    """Return SQL for the rows of a file, with their numbers."""
    return f"read_parquet({quote_path(file)}, file_row_number = true)"


@contextmanager
def open_parquet(file: Path) -> Iterator[DuckDBPyConnection]:
    """Yield a connection without a database that can read the file, or raise MalformedError."""
    import duckdb

    with duckdb.connect() as con:
        problem = "it is not a Parquet file"
        try:
            con.execute(f"SELECT 1 FROM {rows_sql(file)} LIMIT 0")  # noqa: S608 — a quoted path
            problem = "its content cannot be read"
            yield con
        except duckdb.Error as error:
            message = str(error).splitlines()[0]
            raise MalformedError(file, None, None, f"{problem} ({message})") from error


def read_types(con: DuckDBPyConnection, file: Path) -> dict[str, str]:
    """Return the columns of a file with DuckDB's types."""
    query = f"DESCRIBE SELECT * FROM {rows_sql(file)}"  # noqa: S608 — a quoted path
    columns = con.execute(query).fetchall()
    return {str(name): str(kind) for name, kind, *_ in columns if name != "file_row_number"}


def _check_rules(con: DuckDBPyConnection, file: Path, names: Sequence[str]) -> None:
    """Refuse values that break our columns' rules; a valid file takes one pass."""
    source = f"(SELECT * FROM {rows_sql(file)})"  # noqa: S608 — a quoted path
    held = rules(names, read_limits(con, source) if "device_name" in names else {})
    whole = " AND ".join(f"({rule.condition})" for rule in held)
    query = f"SELECT count(*) FROM {rows_sql(file)} WHERE NOT ({whole})"  # noqa: S608 — our conditions
    if con.execute(query).fetchall() == [(0,)]:
        return
    for rule in held:
        check_condition(con, file, rule.column, rule.condition, rule.why, rule.other)


def check_condition(
    con: DuckDBPyConnection, file: Path, name: str, condition: str, why: str, other: str = ""
) -> None:
    """Refuse the first row that does not meet a condition."""
    query = f"FROM {rows_sql(file)} WHERE NOT ({condition})"
    ((row,),) = con.execute(f"SELECT min(file_row_number) {query}").fetchall()
    if row is None:
        return
    values = f'"{name}"::VARCHAR, ({other or "NULL"})::VARCHAR'
    found = con.execute(f"SELECT {values} {query} AND file_row_number = {row}").fetchall()
    value, known = (parse_value(name, text) for text in found[0])
    raise MalformedError(file, row + 1, name, describe_misfit(why, value, known))

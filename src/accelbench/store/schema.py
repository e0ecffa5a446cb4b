"""Schema of a database: tables of facts, and views under the documents' names.

Tables only grow. `fact` has everything small as it was reported. Results have typed columns,
generated from the registry. Their samples are in another table, so that no scan of results reads
them. There is no unique index: it takes two thirds of an ingest's time, and the anti-join on ids
prevents duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core.columns import COLUMNS, SQL_TYPES, Column
from accelbench.evidence.launches import launches_sql

APPLICATION = "accelbench"

#: Version of tables and views. Change it with every change of columns, tables or views: a database
#: of another version is refused.
SCHEMA_VERSION = 5

#: The documents' tables, and the calibrations of devices.
TABLES = (
    *("benchmark_runs", "hardware_info", "benchmark_results", "raw_benchmark_data"),
    "device_calibrations",
)
VIEWS = (*TABLES, "launches")


def statements(columns: Sequence[Column] = COLUMNS) -> list[str]:
    """Return the statements that create the tables and views in an empty database."""
    typed = ", ".join(f'"{c.name}" {SQL_TYPES[c.kind]}' for c in columns)
    names = ", ".join(f'"{c.name}"' for c in columns)
    fixed = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split(";")
    return [
        *filter(None, map(str.strip, fixed)),
        f"CREATE TABLE fact_result ({typed}, rest JSON, version INTEGER)",
        f"CREATE VIEW benchmark_results AS SELECT {names} FROM fact_result",  # noqa: S608
        f"CREATE VIEW launches AS {launches_sql()}",
    ]


def create_schema(con: Any, created_at: str) -> None:
    """Create the tables and the views in an empty database."""
    for statement in statements():
        con.execute(statement)
    con.execute(
        "INSERT INTO store_meta VALUES (?, ?, try_cast(? AS TIMESTAMP), ?)",
        [APPLICATION, SCHEMA_VERSION, created_at, __version__],
    )


def columns_of(con: Any, table: str, database: str | None = None) -> list[str]:
    """Return the columns of a table or view, in order; empty if there is no such table."""
    import duckdb

    # By table, because `duckdb_columns()` reads the columns of every view, which takes 30 ms.
    name = f'"{database}".main."{table}"' if database else f'"{table}"'
    try:
        named = con.execute("SELECT name FROM pragma_table_info(?)", [name]).fetchall()
    except duckdb.CatalogException as error:
        if f"with name {table} does not exist" in str(error):
            return []
        raise
    return [column for (column,) in named]

"""All results of a database into a file of columns: none of them passes through Python.

As dictionaries, half a million results took 62 s to write. DuckDB writes them from its own columns.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.columns import COLUMNS
from accelbench.store.arrow import table_of
from accelbench.store.duck import NO_ROOM, explain_duck, file_errors, quoted
from accelbench.store.schema import SQL_TYPES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Rows of a batch of an Arrow file: as many as DuckDB has in a row group.
_BATCH = 122_880
#: Of ten million results 207 MB in 10.2 s; the usual level 3 made 215 MB in 11.4 s.
_COMPRESSED = "COMPRESSION zstd, COMPRESSION_LEVEL 1"
#: Phases and their nanoseconds, and beside them how they were taken, where that is known.
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
    """Write what a query gives into a file of that name; how many rows there were."""
    with _written(path):
        ((count,),) = con.execute(
            f"COPY ({query}) TO {quoted(str(path))} (FORMAT parquet, {_COMPRESSED})"
        ).fetchall()
    return int(count)


def copy_arrow(con: DuckDBPyConnection, query: str, path: Path) -> int:
    """The same as an Arrow file, which Feather is too."""
    import pyarrow as pa

    count = 0
    with _written(path):
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
    """SQL for every column of the registry, with JSON as text, in the order in which rows came.

    Args:
        con: the database; may get a table of what is said of runs, and one of chosen results.
        where: a condition in SQL, with ? for each of the parameters; all results if empty.
        params: its parameters.
        samples: whether there are also samples, a map of phase to nanoseconds, and sampling, what
            is known of how they were taken.
        runs: a further column, and what stands in it by the ids of runs.
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
        con.register("told", table_of(texts.items(), of_run=pa.string(), said=pa.string()))
        chosen.append(f'told.said AS "{name}"')
        joins += " LEFT JOIN told ON told.of_run = r.run_id"
    if where:  # COPY takes no parameters
        query = f"SELECT result_id FROM benchmark_results WHERE {where}"  # noqa: S608 — our columns
        ids = con.execute(query, list(params)).fetchall()
        con.register("chosen", table_of(ids, result_id=pa.string()))
        joins += " SEMI JOIN chosen ON chosen.result_id = r.result_id"
    return f"SELECT {', '.join(chosen)} FROM benchmark_results r{joins}"  # noqa: S608 — our names


def _column(name: str, kind: str) -> str:
    return f'r."{name}"::{kind.replace("JSON", "VARCHAR")} AS "{name}"'


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Trouble is the new file's, not the database's; what the disk says is for who named it."""
    try:
        yield
    except file_errors() as error:
        if any(sign in str(error) for sign in NO_ROOM):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise explain_duck(error, path) from error

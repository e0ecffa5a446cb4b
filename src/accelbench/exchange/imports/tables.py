"""Parquet files as queries for their results and runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.jsonc import JsonError, loads
from accelbench.core.vocabulary import Provenance
from accelbench.exchange.imports import parquet
from accelbench.exchange.imports import tidy as tidy_lines
from accelbench.exchange.imports.ours import SAMPLES, Run, Table, describe_run
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.imports.result_row import Source
from accelbench.exchange.titles import RUN
from accelbench.store.body_to_row import spell_time
from accelbench.store.duck import quote_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The start of each run and one of its results; NULL replaces missing columns.
_RUNS = """
SELECT {run_id} AS run_id, epoch_us(min({started_at})),
    any_value({{'run': {run}, 'provenance': provenance, 'conditions': {conditions}}})
FROM {read} WHERE run_id IS NOT NULL GROUP BY 1 ORDER BY 1
"""
_SOURCES = """
SELECT source, {run} AS run, min({commit}), max({commit}), min({licence}), max({licence})
FROM {read} GROUP BY 1 ORDER BY 1
"""


def read_export(file: Path, source: Source, own: Run) -> Table:
    """Return an export of accelbench with its runs."""
    query = parquet.export_sql(file, source, own.id)
    with parquet.open_parquet(file) as con:
        types = parquet.read_types(con, file)
        runs = _read_runs(con, file, source, set(types)) if "run_id" in types else []
        theirs = _count_sourced(con, file, set(types))
        return Table(query, _count_rows(con, file), runs, theirs, SAMPLES in types)


def read_tidy(file: Path, source: Source, own: Run) -> Table:
    """Return a table of public measurements: each source is a run of its own."""
    query = tidy_lines.table_sql(file, source, own.id)
    with parquet.open_parquet(file) as con:
        figures = tidy_lines.has_value_sql(parquet.read_types(con, file))
        rows, every = _count_rows(con, file, figures), _count_rows(con, file)
        return Table(query, rows, _read_sources(con, file, source, own), empty=every - rows)


def _count_rows(con: DuckDBPyConnection, file: Path, where: str = "true") -> int:
    query = f"SELECT count(*) FROM {parquet.rows_sql(file)} WHERE {where}"  # noqa: S608 — our condition
    ((count,),) = con.execute(query).fetchall()
    return int(count)


def _count_sourced(con: DuckDBPyConnection, file: Path, names: set[str]) -> int:
    if "conditions" not in names:
        return 0
    imported = quote_sql(Provenance.IMPORTED.value)
    has_source = "json_extract(conditions, '$.source') IS NOT NULL"
    return _count_rows(con, file, f"provenance = {imported} AND {has_source}")


def _read_runs(con: DuckDBPyConnection, file: Path, source: Source, names: set[str]) -> list[Run]:
    types = {"run_id": "VARCHAR", "started_at": "TIMESTAMP", RUN: "VARCHAR", "conditions": "JSON"}
    columns = {
        name: f'"{name}"' if name in names else f"NULL::{kind}" for name, kind in types.items()
    }
    groups = con.execute(_RUNS.format(**columns, read=parquet.rows_sql(file))).fetchall()
    runs = []
    for run_id, moment, result in groups:
        row = {
            "provenance": result["provenance"],
            "conditions": _parse_json(file, "conditions", result["conditions"] or "{}"),
            "started_at": None if moment is None else _format_time(moment),
        }
        runs.append(Run(str(run_id), describe_run(_parse_run(file, result["run"]), row, source)))
    return runs


def _read_sources(con: DuckDBPyConnection, file: Path, source: Source, own: Run) -> list[Run]:
    types = parquet.read_types(con, file)
    columns = {
        "commit": "source_commit" if "source_commit" in types else "NULL",
        "licence": "license" if "license" in types else "NULL",
    }
    query = _SOURCES.format(
        **columns, read=parquet.rows_sql(file), run=tidy_lines.run_id_sql(own.id)
    )
    runs = []
    for name, run_id, *bounds in con.execute(query).fetchall():
        commit, licence = _common_text(*bounds[:2]), _common_text(*bounds[2:])
        origin = Source(str(name), source.commit or commit, source.licence or licence)
        environment = {**own.about["environment"], "source": origin.to_dict()}
        about = {**own.about, "label": origin.name, "environment": environment}
        runs.append(Run(str(run_id), about, is_import=True))
    return runs


def _common_text(least: Any, most: Any) -> str:
    return str(least) if least is not None and least == most else ""


def _parse_run(file: Path, text: Any) -> Mapping[str, Any] | None:
    run = None if text is None else _parse_json(file, RUN, text)
    return run if isinstance(run, Mapping) else None


def _parse_json(file: Path, name: str, text: Any) -> Any:
    try:
        return loads(text)
    except (TypeError, JsonError) as error:
        why = getattr(error, "message", "")
        raise MalformedError(
            file, None, name, f"it is not valid JSON: {why}".rstrip(": ")
        ) from error


def _format_time(microseconds: int) -> str:
    return spell_time(_EPOCH + timedelta(microseconds=microseconds))

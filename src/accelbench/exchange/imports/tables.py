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
from accelbench.exchange.imports.ours import SAMPLES, Run, Table, about_ours
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.imports.result_row import Source
from accelbench.exchange.titles import RUN
from accelbench.store.body_to_row import spell_time
from accelbench.store.duck import quote_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Of a run, when it began and one of its results; NULL stands where a file has no such column.
_RUNS = """
SELECT {run_id} AS run_id, epoch_us(min({started_at})),
    any_value({{'run': {run}, 'provenance': provenance, 'conditions': {conditions}}})
FROM {read} WHERE run_id IS NOT NULL GROUP BY 1 ORDER BY 1
"""
_SOURCES = """
SELECT source, {run} AS run, min({commit}), max({commit}), min({licence}), max({licence})
FROM {read} GROUP BY 1 ORDER BY 1
"""


def ours(file: Path, source: Source, own: Run) -> Table:
    """Return an export of ours with its runs."""
    query = parquet.ours(file, source, own.id)
    with parquet.looking_at(file) as con:
        types = parquet.types_of(con, file)
        runs = _runs(con, file, source, set(types)) if "run_id" in types else []
        theirs = _theirs(con, file, set(types))
        return Table(query, _count(con, file), runs, theirs, SAMPLES in types)


def tidy(file: Path, source: Source, own: Run) -> Table:
    """Return a table of public measurements: each source is a run of its own."""
    query = tidy_lines.query(file, source, own.id)
    with parquet.looking_at(file) as con:
        figures = tidy_lines.figures(parquet.types_of(con, file))
        rows, every = _count(con, file, figures), _count(con, file)
        return Table(query, rows, _sources(con, file, source, own), empty=every - rows)


def _count(con: DuckDBPyConnection, file: Path, where: str = "true") -> int:
    query = f"SELECT count(*) FROM {parquet.read(file)} WHERE {where}"  # noqa: S608 — our condition
    ((count,),) = con.execute(query).fetchall()
    return int(count)


def _theirs(con: DuckDBPyConnection, file: Path, names: set[str]) -> int:
    if "conditions" not in names:
        return 0
    imported = quote_sql(Provenance.IMPORTED.value)
    has_source = "json_extract(conditions, '$.source') IS NOT NULL"
    return _count(con, file, f"provenance = {imported} AND {has_source}")


def _runs(con: DuckDBPyConnection, file: Path, source: Source, names: set[str]) -> list[Run]:
    types = {"run_id": "VARCHAR", "started_at": "TIMESTAMP", RUN: "VARCHAR", "conditions": "JSON"}
    columns = {
        name: f'"{name}"' if name in names else f"NULL::{kind}" for name, kind in types.items()
    }
    groups = con.execute(_RUNS.format(**columns, read=parquet.read(file))).fetchall()
    runs = []
    for run_id, moment, result in groups:
        row = {
            "provenance": result["provenance"],
            "conditions": _read(file, "conditions", result["conditions"] or "{}"),
            "started_at": None if moment is None else _spelled(moment),
        }
        runs.append(Run(str(run_id), about_ours(_said(file, result["run"]), row, source)))
    return runs


def _sources(con: DuckDBPyConnection, file: Path, source: Source, own: Run) -> list[Run]:
    types = parquet.types_of(con, file)
    columns = {
        "commit": "source_commit" if "source_commit" in types else "NULL",
        "licence": "license" if "license" in types else "NULL",
    }
    query = _SOURCES.format(**columns, read=parquet.read(file), run=tidy_lines.run_of(own.id))
    runs = []
    for name, run_id, *bounds in con.execute(query).fetchall():
        commit, licence = _alike(*bounds[:2]), _alike(*bounds[2:])
        whose = Source(str(name), source.commit or commit, source.licence or licence)
        environment = {**own.about["environment"], "source": whose.to_dict()}
        about = {**own.about, "label": whose.name, "environment": environment}
        runs.append(Run(str(run_id), about, own=True))
    return runs


def _alike(least: Any, most: Any) -> str:
    return str(least) if least is not None and least == most else ""


def _said(file: Path, text: Any) -> Mapping[str, Any] | None:
    run = None if text is None else _read(file, RUN, text)
    return run if isinstance(run, Mapping) else None


def _read(file: Path, name: str, text: Any) -> Any:
    try:
        return loads(text)
    except (TypeError, JsonError) as error:
        why = getattr(error, "message", "")
        raise MalformedError(file, None, name, f"it is no JSON: {why}".rstrip(": ")) from error


def _spelled(microseconds: int) -> str:
    return spell_time(_EPOCH + timedelta(microseconds=microseconds))

"""Parquet, a query a file: millions of results never become rows in memory.

Read are our own exports, and tables of public measurements in one tidy schema: a line a figure,
with source, model, hardware, framework, precision, sizes, latency per batch, and the rest as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME, Kind
from accelbench.core.identity import IDENTITY_VERSION, canonical
from accelbench.core.words import SINGLE_STREAM, Provenance
from accelbench.exchange.imports.foreign import Source
from accelbench.exchange.imports.ours import NEEDED
from accelbench.exchange.imports.possible import possible_sql
from accelbench.exchange.imports.records import MalformedError
from accelbench.store.duck import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PATTERN = "*.parquet"

#: What DuckDB calls the types that a column of ours may have in a file.
_TYPES: Mapping[Kind, tuple[str, ...]] = {
    "text": ("VARCHAR",),
    "int": ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT"),
    "float": ("DOUBLE", "FLOAT", "BIGINT", "INTEGER"),
    "bool": ("BOOLEAN",),
    "time": ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_MS"),
    "json": ("VARCHAR", "JSON"),
    "list": ("VARCHAR[]",),
    "floats": ("DOUBLE[]", "FLOAT[]"),
    "map": ("MAP(VARCHAR, DOUBLE)",),
}
_TIDY = (
    *("source", "model", "hardware_name", "hardware_kind", "framework", "runtime", "precision"),
    *("batch_size", "mode", "latency_ms", "throughput"),
)
#: What has to be as in a column of ours, beside the numbers.
_TIDY_AS = {
    "mode": "mode",
    "img_size": "image_size",
    "seq_len": "sequence_length",
    "memory_mb": "memory_peak_mb",
}
_NUMBERS = ("latency_ms", "throughput", "batch_size")


def ours(file: Path, source: Source, run_id: str = "") -> str:
    """A query for an export of ours; what somebody measured is imported here.

    Args:
        file: the export.
        source: who brings it.
        run_id: of results that say no run of their own.

    Raises:
        MalformedError: a column is missing or of another type, or a value is not what it has to be.
    """
    with looking_at(file) as con:
        types = types_of(con, file)
        for name in NEEDED:
            if name not in types:
                raise MalformedError(file, None, name, "the column is missing")
        known = [name for name in BY_NAME if name in types]
        for name in known:
            wanted = _TYPES[BY_NAME[name].kind]
            if types[name] not in wanted:
                why = f"it holds {types[name]} where {wanted[0]} is expected"
                raise MalformedError(file, None, name, why)
        for name in NEEDED:
            _hold(con, file, name, f'"{name}" IS NOT NULL', "it is missing")
        _hold_all(con, file, known)
    measured, imported = quoted(Provenance.MEASURED.value), quoted(Provenance.IMPORTED.value)
    said = quoted(canonical({"source": source.told()}))
    columns = {name: f'"{name}"' for name in known}
    if run_id:
        theirs = "run_id" if "run_id" in types else "NULL"
        columns["run_id"] = f"coalesce({theirs}, {quoted(run_id)})"
    columns["provenance"] = f"CASE provenance WHEN {measured} THEN {imported} ELSE provenance END"
    given = "coalesce(conditions, '{}')" if "conditions" in types else "'{}'"
    columns["conditions"] = (
        f"CASE provenance WHEN {imported} THEN {given} ELSE json_merge_patch({given}, {said}) END"
    )
    return _query(file, columns)


def tidy(file: Path, source: Source, run_id: str = "") -> str:
    """A query for a table of public measurements.

    Args:
        file: the table.
        source: who brings it; each line says whose its figure is.
        run_id: what the ids of runs begin with, which are one a source; without it there are none.

    Raises:
        MalformedError: a column is missing, or a figure is not above nothing.
    """
    with looking_at(file) as con:
        types = types_of(con, file)
        for name in _TIDY:
            if name not in types:
                raise MalformedError(file, None, name, "the column is missing")
        for name in ("source", "model", "hardware_name"):
            _hold(con, file, name, f"{name} IS NOT NULL", "it is missing")
        for name in _NUMBERS:
            above = f"{name} IS NULL OR ({name} > 0 AND isfinite({name}::DOUBLE))"
            _hold(con, file, name, above, "it is not above 0")
        for name in (name for name in _TIDY_AS if name in types):
            condition, why = possible_sql(_TIDY_AS[name], name)
            _hold(con, file, name, f"{name} IS NULL OR {condition}", why)
        if "extra" in types:
            _hold(con, file, "extra", "extra IS NULL OR json_valid(extra)", "it is no JSON")
    columns = _tidy_columns(set(types), source)
    return _query(file, {**columns, "run_id": tidy_run(run_id)} if run_id else columns)


def tidy_run(run_id: str) -> str:
    """SQL for the run of a tidy line: one for each source, so that they are machines apart."""
    return f"{quoted(run_id + '-')} || substr(md5(source), 1, 8)"


def _tidy_columns(there: set[str], source: Source) -> dict[str, str]:
    """SQL for our columns over a tidy table's; what is no column's stands in the conditions."""

    def given(name: str, otherwise: str = "NULL") -> str:
        return name if name in there else otherwise

    def extra(name: str) -> str:
        return f"(extra->>{quoted(name)})" if "extra" in there else "NULL::VARCHAR"

    # As we spell them; a query of MultiStream has eight samples, by MLPerf's rules.
    scenario = (
        f"CASE lower({extra('Scenario')}) WHEN 'singlestream' THEN {quoted(SINGLE_STREAM)}"
        " WHEN 'multistream' THEN 'multi_stream'"
        f" ELSE coalesce(lower({extra('Scenario')}), {quoted(SINGLE_STREAM)}) END"
    )
    mode = "coalesce(mode, 'inference')"
    compiled = "coalesce(contains(runtime, 'inductor'), false)"
    options = (
        "coalesce(json_merge_patch('{}', json_object("
        f"'layout', {extra('layout')}, 'powersave', {extra('powersave')},"
        f" 'gpu', {extra('gpu_device')})), '{{}}')"
    )
    # In MLPerf's open division the network may be another than the one it is named after.
    asked = {
        "model": f"CASE {extra('Category')} WHEN 'open' THEN model || '-open' ELSE model END",
        "hardware": (
            "CASE hardware_kind WHEN 'qualcomm-npu' THEN 'qnn' WHEN 'qualcomm-cpu' THEN 'cpu'"
            " WHEN 'mobile-cpu' THEN 'cpu' ELSE hardware_kind END"
        ),
        # Of a hub that runs many engines, the engine; else the framework.
        "runtime": "CASE framework WHEN 'qai-hub' THEN runtime ELSE framework END",
        "precision": "CASE precision WHEN 'amp' THEN 'amp-fp16' ELSE precision END",
        "batch_size": f"CASE {scenario} WHEN 'multi_stream' THEN 8 ELSE batch_size::BIGINT END",
        "image_size": f"{given('img_size')}::BIGINT",
        "sequence_length": f"{given('seq_len')}::BIGINT",
        "mode": mode,
        "scenario": scenario,
        "compiled": compiled,
        "world_size": f"coalesce(try_cast({extra('n_gpus')} AS BIGINT), 1)",
        "options": options,
    }
    packed = ", ".join(f"{name} := {sql}" for name, sql in asked.items())
    case = f"md5(to_json(struct_pack({packed})) || {quoted(f'case{IDENTITY_VERSION}')})"
    device = "md5(concat_ws('|', 'device', hardware_kind, hardware_name))"
    threads = f"try_cast({extra('num_threads')} AS BIGINT)"
    series = f"md5(concat_ws('|', 'series', source, {case}, {device}, {threads}))"
    figures = f"concat_ws('|', {series}, runtime, latency_ms, throughput, {given('extra')})"
    millions = given("params_m")
    told = {
        "engine": "runtime",
        "kin": given("family"),
        "source": (
            f"json_object('name', source, 'commit', {_or(source.commit, given('source_commit'))},"
            f" 'licence', {_or(source.licence, given('license'))})"
        ),
        "said": f"CAST({given('extra')} AS JSON)",
    }
    moment = quoted(source.measured_at) if source.measured_at else extra("date")
    return {
        **asked,
        "result_id": f"substr(md5('result|' || {figures}), 1, 24)",
        "case_id": f"substr({case}, 1, 16)",
        "device_fingerprint": f"substr({device}, 1, 16)",
        "series_key": f"substr({series}, 1, 16)",
        "launch": "0",
        "arm": "''",
        "status": "'ok'",
        "provenance": quoted(Provenance.IMPORTED.value),
        "verification": "'not_done'",
        "self_check": "'not_done'",
        "family": f"CASE WHEN {given('img_size')} IS NOT NULL THEN 'vision' END",
        "device_name": "hardware_name",
        "parameters": f"round({millions} * 1e6)::BIGINT",
        "threads": threads,
        "latency_mean_ms": "latency_ms",
        "throughput": "throughput",
        "throughput_unit": given("throughput_unit"),
        "memory_peak_mb": given("memory_mb"),
        "flops": f"2e9 * {given('gmacs')} * batch_size",
        "conditions": f"json_object({', '.join(f'{quoted(n)}, {sql}' for n, sql in told.items())})",
        "started_at": f"CAST(try_cast({moment} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS TIMESTAMP)",
    }


def _or(said: str, otherwise: str) -> str:
    return quoted(said) if said else otherwise


def _query(file: Path, columns: Mapping[str, str]) -> str:
    chosen = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    return f"SELECT {chosen} FROM {read(file)}"  # noqa: S608 — our columns, a quoted path


def read(file: Path) -> str:
    """SQL for the lines of a file, with their numbers."""
    return f"read_parquet({quoted(str(file))}, file_row_number = true)"


def looking_at(file: Path) -> Any:
    """A connection to no database, in which the file can be read."""
    import duckdb

    con = duckdb.connect()
    try:
        con.execute(f"SELECT 1 FROM {read(file)} LIMIT 0")  # noqa: S608 — a quoted path
    except duckdb.Error as error:
        con.close()
        why = f"it is no Parquet file ({str(error).splitlines()[0]})"
        raise MalformedError(file, None, None, why) from error
    return con


def types_of(con: DuckDBPyConnection, file: Path) -> dict[str, str]:
    """The columns of a file with what DuckDB calls their types."""
    query = f"DESCRIBE SELECT * FROM {read(file)}"  # noqa: S608 — a quoted path
    found = con.execute(query).fetchall()
    return {str(name): str(kind) for name, kind, *_ in found if name != "file_row_number"}


def _hold_all(con: DuckDBPyConnection, file: Path, names: Sequence[str]) -> None:
    """Refuse what our columns cannot hold, in one look at the file where it is whole."""
    rules = []
    for name in names:
        if BY_NAME[name].kind == "json":
            rules.append((name, f'json_valid("{name}")', "it is no JSON"))
        if BY_NAME[name].kind == "float":
            rules.append((name, f'isfinite("{name}"::DOUBLE)', "it is no finite number"))
        condition, why = possible_sql(name)
        if condition:
            rules.append((name, condition, why))
    rules = [(name, f'"{name}" IS NULL OR {condition}', why) for name, condition, why in rules]
    whole = " AND ".join(f"({condition})" for _, condition, _ in rules)
    query = f"SELECT count(*) FROM {read(file)} WHERE NOT ({whole})"  # noqa: S608 — our conditions
    if con.execute(query).fetchall() == [(0,)]:
        return
    for name, condition, why in rules:
        _hold(con, file, name, condition, why)


def _hold(con: DuckDBPyConnection, file: Path, name: str, condition: str, why: str) -> None:
    """Refuse the first row of which something is not so."""
    query = f"SELECT min(file_row_number) FROM {read(file)} WHERE NOT ({condition})"  # noqa: S608
    ((row,),) = con.execute(query).fetchall()
    if row is not None:
        raise MalformedError(file, row + 1, name, why)

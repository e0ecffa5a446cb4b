"""Tables of public measurements in one tidy schema, as Parquet: one query per file.

A line has source, model, hardware, framework, precision, sizes, latency per batch, throughput, and
other values as JSON. A latency is the mean of a batch unless `extra` states another value: a
percentile of MLPerf's, derived from the rate, or the median next to its own mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME
from accelbench.core.identity import IDENTITY_VERSION
from accelbench.core.plausible_values import OTHER_RATE_TOLERANCE
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.exchange.imports.parquet import (
    check_condition,
    open_parquet,
    read_types,
    select_sql,
)
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.imports.result_row import Source
from accelbench.store.consistency_rules import read_limits, row_rules
from accelbench.store.duck import quote_sql
from accelbench.store.plausible_values import column_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_REQUIRED = (
    *("source", "model", "hardware_name", "hardware_kind", "framework", "runtime", "precision"),
    *("batch_size", "mode", "latency_ms", "throughput"),
)
#: Columns with the rules of one of ours, and their factors (millions, for example).
_OUR_COLUMNS = {
    "latency_ms": ("latency_mean_ms", 1.0),
    "throughput": ("throughput", 1.0),
    "batch_size": ("batch_size", 1.0),
    "img_size": ("image_size", 1.0),
    "seq_len": ("sequence_length", 1.0),
    "memory_mb": ("memory_peak_mb", 1.0),
    "params_m": ("parameters", 1e6),
    "gmacs": ("flops", 2e9),
}
_TEXTS = (
    *("source", "source_commit", "license", "model", "family", "hardware_name", "hardware_kind"),
    *("framework", "runtime", "precision", "mode", "throughput_unit", "extra"),
)
_NAMES = ("model", "hardware_name", "framework", "runtime", "precision")
#: Keys of `extra` with the columns that they fill.
_EXTRA = {"n_gpus": "world_size", "num_threads": "threads"}
_NUMBER = re.compile(r"DOUBLE|FLOAT|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(.*\)")
#: MLPerf scenarios whose latency is a percentile of their queries. Other latencies are the mean of
#: a batch, and the result of MLPerf's other scenarios is a rate.
_PERCENTILES = {"singlestream": "latency_p90_ms", "multistream": "latency_p99_ms"}
_RATE_SCENARIOS = ("offline", "server", "interactive")
#: Keys that identify a submission to MLPerf: others ran the same software on the same device.
_SUBMISSION = ("System", "Submitter", "Platform")
#: Columns that do not need `extra`, and those whose limits do not depend on it.
_NO_EXTRA = ("image_size", "sequence_length", "family", "parameters", "flops")
_PLAIN = {
    "device_name": "hardware_name",
    "batch_size": "batch_size",
    "precision": "precision",
    "latency_mean_ms": "latency_ms",
    "throughput": "throughput",
}
#: Relative difference below which a rate was derived from a latency.
_DERIVED_TOLERANCE = 1e-6


def table_sql(file: Path, source: Source, run_id: str = "") -> str:
    """Return a query for a table of public measurements.

    `run_id` is the prefix of the ids of runs, one per source; without it there are none. Raises
    MalformedError if a column is missing, or a value is not positive.
    """
    with open_parquet(file) as con:
        types = read_types(con, file)
        for name in _REQUIRED:
            if name not in types:
                raise MalformedError(file, None, name, "the column is missing")
        for name in ("source", "model", "hardware_name"):
            check_condition(con, file, name, f"{name} IS NOT NULL", "it is missing")
        _check_values(con, file, types)
        if "extra" in types:
            _check_extra(con, file)
        _check_rates(con, file, set(types))
    columns = _columns_sql(set(types), source)
    _refuse_impossible(file, columns, types)
    columns |= {"run_id": run_id_sql(run_id)} if run_id else {}
    return f"{select_sql(file, columns, _name_columns(types))} WHERE {has_value_sql(types)}"


#: A table's names of our columns.
COLUMN_NAMES = {"memory_peak_mb": "memory_mb", "flops": "gmacs"}


def find_lines(file: Path, result_id: str, column: str) -> list[tuple[int, Any]]:
    """Return the lines of a table that belong to a result, with one of our columns each."""
    with open_parquet(file) as con:
        types = read_types(con, file)
        columns = _columns_sql(set(types), Source(""))
        chosen = {name: columns[name] for name in ("result_id", column)}
        lines = select_sql(file, {"line": "file_row_number + 1", **chosen}, _name_columns(types))
        matches: list[tuple[int, Any]] = con.execute(
            f'SELECT line, "{column}" FROM ({lines} WHERE {has_value_sql(types)})'  # noqa: S608 — ours
            f" WHERE result_id = {quote_sql(result_id)} ORDER BY line"
        ).fetchall()
    return matches


def _name_columns(types: Mapping[str, str]) -> list[str]:
    return [name for name in _NAMES if types.get(name) == "VARCHAR"]


def _check_values(con: DuckDBPyConnection, file: Path, types: Mapping[str, str]) -> None:
    """Check each value by itself; a column without values may have any type."""
    for name in (name for name in (*_TEXTS, *_OUR_COLUMNS) if name in types):
        kind = types[name]
        if not (_NUMBER.fullmatch(kind) if name in _OUR_COLUMNS else kind in ("VARCHAR", "JSON")):
            wanted = "a number" if name in _OUR_COLUMNS else "VARCHAR"
            why = f"its type is {kind}, and {wanted} is expected"
            check_condition(con, file, name, f"{name} IS NULL", why)
            continue
        if name == "mode":
            for condition, why in column_sql(name):
                check_condition(con, file, name, f"{name} IS NULL OR {condition}", why)
        if name not in _OUR_COLUMNS:
            continue
        column, scale = _OUR_COLUMNS[name]
        for condition, why in column_sql(column, "n"):
            holds = f"(SELECT {condition} FROM (SELECT {name}::DOUBLE * {scale} AS n))"  # noqa: S608
            check_condition(con, file, name, f"{name} IS NULL OR {holds}", why)
        if BY_NAME[column].kind == "int" and scale == 1:
            whole = f"{name} IS NULL OR {name} = floor({name})"
            check_condition(con, file, name, whole, "it is not a whole number")


def _check_extra(con: DuckDBPyConnection, file: Path) -> None:
    for condition, why in column_sql("conditions", "extra"):
        check_condition(con, file, "extra", f"extra IS NULL OR {condition}", why)
    for key, column in (*_EXTRA.items(), ("date", "started_at")):
        kind = "TIMESTAMPTZ" if key == "date" else "BIGINT"
        given, value = (
            f"(extra->>{quote_sql(key)})",
            f"try_cast(extra->>{quote_sql(key)} AS {kind})",
        )
        misfit = f"{given} IS NULL OR {value} IS NOT NULL"
        check_condition(con, file, "extra", misfit, f"its {key} is not a {kind.lower()}")
        for condition, why in column_sql(column, "n"):
            holds = f"(SELECT {condition} FROM (SELECT {value} AS n))"  # noqa: S608 — our condition
            check_condition(con, file, "extra", f"coalesce({holds}, true)", f"its {key}: {why}")
    given, value = "(extra->>'mean_ms')", "try_cast(extra->>'mean_ms' AS DOUBLE)"
    check_condition(
        con, file, "extra", f"{given} IS NULL OR {value} IS NOT NULL", "its mean_ms is not a number"
    )
    for condition, why in column_sql("latency_mean_ms", "n"):
        holds = f"(SELECT {condition} FROM (SELECT {value} AS n))"  # noqa: S608 — our condition
        check_condition(con, file, "extra", f"coalesce({holds}, true)", f"its mean_ms: {why}")


def _check_rates(con: DuckDBPyConnection, file: Path, names: set[str]) -> None:
    scenario = f"coalesce({_scenario_sql(names)}, '')"
    none = f"latency_ms IS NULL OR {scenario} NOT IN {_RATE_SCENARIOS}"
    check_condition(con, file, "latency_ms", none, "the result of that scenario is not a latency")
    # The rate of parallel queries does not follow from their latency.
    rate = "throughput * latency_ms / 1e3 / batch_size"
    agrees = (
        f"{scenario} <> '' OR {rate} BETWEEN {1 / OTHER_RATE_TOLERANCE} AND {OTHER_RATE_TOLERANCE}"
    )
    why = "it does not match the latency"
    check_condition(con, file, "throughput", f"coalesce({agrees}, true)", why)


def _refuse_impossible(file: Path, columns: Mapping[str, str], types: Mapping[str, str]) -> None:
    """Refuse the first line with more operations or bytes per second than its device has."""
    with open_parquet(file) as con:
        # Nearly always no line is near a limit of its device. This check does not parse `extra`,
        # which takes longer than everything else.
        plain = {name: columns[name] for name in _NO_EXTRA} | _PLAIN
        if not _count_impossible(con, f"({select_sql(file, plain)})", plain):
            return
    lines = select_sql(file, {"line": "file_row_number + 1", **columns}, _name_columns(types))
    lines = f"({lines} WHERE {has_value_sql(types)})"
    with open_parquet(file) as con:
        for rule in row_rules(columns.__contains__, read_limits(con, lines)):
            query = f"SELECT min(line) FROM {lines} WHERE NOT ({rule.condition})"  # noqa: S608
            ((line,),) = con.execute(query).fetchall()
            if line is not None:
                name = next(
                    (n for n, (column, _) in _OUR_COLUMNS.items() if column == rule.column), None
                )
                raise MalformedError(file, line, name or "latency_ms", rule.why)


def _count_impossible(con: DuckDBPyConnection, lines: str, names: Container[str]) -> int:
    rules = row_rules(names.__contains__, read_limits(con, lines))
    whole = " AND ".join(f"({rule.condition})" for rule in rules)
    query = f"SELECT count(*) FROM {lines} WHERE NOT ({whole})"  # noqa: S608 — our columns
    ((count,),) = con.execute(query).fetchall()
    return int(count)


def has_value_sql(names: Container[str]) -> str:
    """Return SQL for whether a line has a measured value; others did not run."""
    derived = f"coalesce(lower({_extra_sql('latency_is_derived', names)}) = 'true', false)"
    return f"(throughput IS NOT NULL OR (latency_ms IS NOT NULL AND NOT {derived}))"


def _extra_sql(key: str, names: Container[str]) -> str:
    return f"(extra->>{quote_sql(key)})" if "extra" in names else "NULL::VARCHAR"


def _scenario_sql(names: set[str]) -> str:
    return "lower(extra->>'Scenario')" if "extra" in names else "NULL::VARCHAR"


def run_id_sql(run_id: str) -> str:
    """Return SQL for the run of a line: one per source, so that they are separate machines."""
    return f"{quote_sql(run_id + '-')} || substr(md5(source), 1, 8)"


def _columns_sql(names: set[str], source: Source) -> dict[str, str]:
    """Return SQL for our columns; other values become conditions."""

    def column(name: str, otherwise: str = "NULL") -> str:
        return name if name in names else otherwise

    def extra(name: str) -> str:
        return _extra_sql(name, names)

    # Our names; a query of MultiStream has eight samples, by MLPerf's rules. A latency derived from
    # a rate is not the time of a single request: the accelerators were busy without a pause.
    mlperf = _scenario_sql(names)
    derived = f"coalesce(lower({extra('latency_is_derived')}) = 'true', false)"
    scenario = (
        f"CASE {mlperf} WHEN 'singlestream' THEN {quote_sql(SINGLE_STREAM)}"
        " WHEN 'multistream' THEN 'multi_stream' ELSE"
        f" coalesce({mlperf}, CASE WHEN {derived} THEN 'offline' ELSE"
        f" {quote_sql(SINGLE_STREAM)} END)"
        " END"
    )
    latency = (
        f"CASE WHEN {derived} THEN 'derived' ELSE CASE {mlperf} "
        + " ".join(f"WHEN {quote_sql(n)} THEN {quote_sql(c)}" for n, c in _PERCENTILES.items())
        + f" ELSE CASE WHEN {extra('mean_ms')} IS NOT NULL THEN 'latency_p50_ms' END END END"
    )
    mean = f"try_cast({extra('mean_ms')} AS DOUBLE)"
    # Every rate is derived from the mean: replace one that was derived from the median.
    of_median = f"abs(throughput * latency_ms / 1e3 / batch_size - 1) < {_DERIVED_TOLERANCE}"
    rate = (
        f"CASE WHEN {latency} = 'latency_p50_ms' AND {of_median}"
        f" THEN 1e3 * batch_size / {mean} ELSE throughput END"
    )
    mode = "coalesce(mode, 'inference')"
    compiled = "coalesce(contains(runtime, 'inductor'), false)"
    options = (
        "coalesce(json_merge_patch('{}', json_object("
        f"'layout', {extra('layout')}, 'powersave', {extra('powersave')},"
        f" 'gpu', {extra('gpu_device')})), '{{}}')"
    )
    question = {
        "model": _model_sql(extra),
        "hardware": (
            "CASE hardware_kind WHEN 'qualcomm-npu' THEN 'qnn' WHEN 'qualcomm-cpu' THEN 'cpu'"
            " WHEN 'mobile-cpu' THEN 'cpu' ELSE hardware_kind END"
        ),
        # The engine for a hub that runs many, else the framework.
        "runtime": "CASE framework WHEN 'qai-hub' THEN runtime ELSE framework END",
        "precision": "CASE precision WHEN 'amp' THEN 'amp-fp16' ELSE precision END",
        "batch_size": (
            f"CASE {mlperf} WHEN 'multistream' THEN 8 WHEN 'singlestream' THEN 1"
            " ELSE batch_size::BIGINT END"
        ),
        "image_size": f"{column('img_size')}::BIGINT",
        "sequence_length": f"{column('seq_len')}::BIGINT",
        "mode": mode,
        "scenario": scenario,
        "compiled": compiled,
        "world_size": (
            f"coalesce(try_cast({extra('n_gpus')} AS BIGINT), {_accelerators_sql(extra)}, 1)"
        ),
        "options": options,
    }
    packed = ", ".join(f"{name} := {sql}" for name, sql in question.items())
    case = f"md5(to_json(struct_pack({packed})) || {quote_sql(f'case{IDENTITY_VERSION}')})"
    # A table names the accelerators of one node, and a rate belongs to all nodes.
    each = "regexp_replace(hardware_name, '^[0-9]+x ', '')"
    name = f"coalesce({_accelerators_sql(extra)} || 'x ' || {each}, hardware_name)"
    device = f"md5(concat_ws('|', 'device', hardware_kind, {name}))"
    threads = f"try_cast({extra('num_threads')} AS BIGINT)"
    series = f"md5(concat_ws('|', 'series', source, {case}, {device}, {threads}))"
    # If the latency is not the mean, its column is part of the id.
    figures = (
        f"concat_ws('|', {series}, runtime, latency_ms, throughput, {column('extra')}, {latency})"
    )
    millions = column("params_m")
    notes = {
        "engine": "runtime",
        "kin": column("family"),
        "source": (
            "json_object('name', source, 'commit',"
            f" {_text_or(source.commit, column('source_commit'))},"
            f" 'licence', {_text_or(source.licence, column('license'))})"
        ),
        "said": f"CAST({column('extra')} AS JSON)",
    }
    submission = ", ".join(f"{quote_sql(name)}, {extra(name)}" for name in _SUBMISSION)
    conditions = ", ".join(f"{quote_sql(name)}, {sql}" for name, sql in notes.items())
    moment = quote_sql(source.measured_at) if source.measured_at else extra("date")
    return {
        **question,
        "result_id": f"substr(md5('result|' || {figures}), 1, 24)",
        "case_id": f"substr({case}, 1, 16)",
        "device_fingerprint": f"substr({device}, 1, 16)",
        "series_key": f"substr({series}, 1, 16)",
        "launch": "1",
        "arm": "''",
        "status": "'ok'",
        "provenance": quote_sql(Provenance.IMPORTED.value),
        "verification": "'not_done'",
        "self_check": "'not_done'",
        "family": f"CASE WHEN {column('img_size')} IS NOT NULL THEN 'vision' END",
        "device_name": name,
        "parameters": f"round({millions} * 1e6)::BIGINT",
        "threads": threads,
        "latency_mean_ms": (
            f"CASE WHEN {latency} IS NULL THEN latency_ms"
            f" WHEN {latency} = 'latency_p50_ms' THEN {mean} END"
        ),
        **{
            column: f"CASE {latency} WHEN {quote_sql(column)} THEN latency_ms END"
            for column in ("latency_p50_ms", *_PERCENTILES.values())
        },
        "throughput": rate,
        "throughput_unit": column("throughput_unit"),
        "memory_peak_mb": column("memory_mb"),
        "flops": f"2e9 * {column('gmacs')} * batch_size",
        "conditions": (
            f"json_merge_patch(json_object({conditions}),"
            f" json_merge_patch('{{}}', json_object({submission})))"
        ),
        "started_at": f"CAST(try_cast({moment} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS TIMESTAMP)",
    }


def _accelerators_sql(extra: Callable[[str], str]) -> str:
    """Return SQL for the accelerators of a system with several nodes, else NULL."""
    nodes, each = (f"try_cast({extra(name)} AS BIGINT)" for name in ("Nodes", "a#"))
    return f"CASE WHEN {nodes} > 1 AND {each} > 0 THEN {nodes} * {each} END"


def _model_sql(extra: Callable[[str], str]) -> str:
    """Return SQL for the model.

    In MLPerf's open division the network may differ from its name: one name had 169 entries on one
    device, 27 to 4,380 samples/s. Accuracy distinguishes networks: entries of one were within a
    seventh of each other.
    """
    accuracy = extra("Accuracy")
    name, value = (
        f"regexp_extract({accuracy}, '([A-Za-z0-9_]+): *([0-9.]+)', {n})" for n in (1, 2)
    )
    network = f"coalesce(nullif({name} || '-' || {value}, '-'), {extra('ID')})"
    return (
        f"CASE {extra('Category')} WHEN 'open'"
        f" THEN model || '-open' || coalesce('/' || {network}, '') ELSE model END"
    )


def _text_or(text: str, otherwise: str) -> str:
    return quote_sql(text) if text else otherwise

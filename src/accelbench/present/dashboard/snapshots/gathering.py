"""The cells of a store, in SQL over the relations of `evidence`.

A cell is the current measurement of a configuration on one machine, with the values of its launches
as tables show them. Each version of an import is a cell of its own, as in every chart. Results that
a check measured for itself and the other arm of interleaved runs are left out, as in every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from accelbench.core.columns import ASKED
from accelbench.core.figures import OF_A_STEP, TAILS_SQL
from accelbench.core.worth import (
    COMPARABLE,
    FAILED,
    LAUNCHED,
    OF_WORTH,
    THIS_ARM_SQL,
    UNUSABLE_REASON,
)
from accelbench.evidence.launches import VERSION_SQL
from accelbench.evidence.measurements import MEASUREMENT_COLUMNS, configurations_sql, quality_sql
from accelbench.judge.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.judge.verdicts import METRICS
from accelbench.measure.launch_verdicts import typical_sql
from accelbench.store.duck import column_list, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


#: Columns that all launches of a cell share.
_SHARED = (
    *("family", "architecture", "task", "model_size", "parameters", "device", "device_fingerprint"),
    *(name for name in ASKED if name != "options"),
)
#: Columns that are read for the launches of a cell, in addition to those of its identity.
_OF_A_CELL = (
    *(
        "result_id",
        "series_key",
        "launch",
        "status",
        "reason",
        "throughput_unit",
        *OF_A_STEP,
        LAUNCHED,
    ),
    *("memory_peak_mb", "batch_size", "sample_count", "warnings", "workarounds", "cost_usd"),
    *("energy_per_item_joules", "verification_error", "ttft_ms", "tpot_ms", "flops", FAILED),
    *("implausible_rate", UNUSABLE_REASON),
)
_IDENTITY = ("series", "machine", "provenance", "emulated", "versions")
_IDENTITY_TEXT = column_list(_IDENTITY, "coalesce({0}::VARCHAR, '')")
#: An unusable launch among usable ones is left out. Times of an emulated device mean nothing.
_LEFT_OUT = "answered AND NOT times_usable AND usable_times"
_COUNTED = f"answered AND NOT ({_LEFT_OUT})"
_TIMED = f"{_COUNTED} AND NOT coalesce(emulated, false)"
#: The statistics of a step that all launches of a cell must have: the median, else the mean.
_STEPS = {"p50": "latency_p50_ms", "mean": "latency_mean_ms"}
#: Beyond so many runs, naming them costs more than reading all.
_FEW_RUNS = 500


def gathered(con: DuckDBPyConnection) -> DuckDBPyRelation:
    """Return every cell of the store.

    Args:
        con: of the store, with a table `ran` of each run's machine.
    """
    needed = (*MEASUREMENT_COLUMNS, "status", "verification", *OF_WORTH)
    current = configurations_sql(_IDENTITY, f"({_launches(needed)})")
    con.execute(
        f"CREATE TEMP TABLE newest AS SELECT {column_list(_IDENTITY, '{0} AS new_{0}')},"  # noqa: S608
        " run_id AS new_run_id, run AS new_run_key, runs, usable_times,"
        f" newer::INTEGER AS set_aside FROM ({current})"
    )
    runs = [run for (run,) in con.execute("SELECT DISTINCT new_run_id FROM newest").fetchall()]
    return con.sql(_cells(runs))


def _launches(columns: Iterable[str], where: str = "") -> str:
    """Return a query for launches with what identifies their cells."""
    read = dict.fromkeys((
        *columns, "run_id", "provenance", "emulated", "started_at", "verification", "quality",
        "answered", "times_usable", "settled", "run_key", "software_id", "owned_version",
        "wrong_outputs", "of_import",
    ))  # fmt: skip
    asked = column_list(ASKED, "coalesce({0}::VARCHAR, '')")
    return f"""SELECT {column_list(read)}, machine, {VERSION_SQL} AS versions,
        coalesce(series_key, concat_ws(chr(31), {asked})) AS series
    FROM launches LEFT JOIN ran USING (run_id)
    WHERE model IS NOT NULL AND status IS NOT NULL AND NOT coalesce(of_check, false)
        AND {THIS_ARM_SQL} {where}"""  # noqa: S608 — our words


def _of_runs(runs: Sequence[str | None]) -> str:
    """Return a condition that reads a small part of a long history."""
    if not 0 < len(runs) <= _FEW_RUNS or None in runs:
        return ""
    return f"AND run_id IN ({', '.join(quoted(str(run)) for run in runs)})"


def _cells(runs: Sequence[str | None]) -> str:
    """Return the query for the cells of some runs.

    It groups by what identifies cells, then adds the shared columns of one launch: forty columns in
    the grouping would cost as much again.
    """
    rate = next(metric.sql for metric in METRICS if metric.name == "throughput")
    tails = ", ".join(f"{sql} AS tail_{tail}" for tail, sql in TAILS_SQL.items())
    same = " AND ".join(
        f"{name} IS NOT DISTINCT FROM new_{name}" for name in (*_IDENTITY, "run_key")
    )
    kinds = ", ".join(repr(kind.value) for kind in COMPARABLE)
    shared = (*_SHARED, *OF_AN_INTERVAL, "case_id")
    return f"""
WITH cell AS (
    SELECT {", ".join(_IDENTITY)}, series_key, run_id, first(runs) AS runs,
        arg_min(result_id, row(started_at, launch, result_id)) AS of_result,
        first(set_aside) AS set_aside, count(*) FILTER ({_LEFT_OUT}) AS left_out,
        {quality_sql()} AS quality,
        list(DISTINCT {UNUSABLE_REASON} ORDER BY {UNUSABLE_REASON})
            FILTER (answered AND NOT times_usable) AS why_unusable,
        coalesce(any_value(throughput_unit) FILTER ({_TIMED} AND throughput > 0),
            any_value(throughput_unit)) AS throughput_unit,
        CASE WHEN bool_or(wrong) THEN 'failed' ELSE any_value(verification) END AS verification,
        CASE WHEN bool_or(wrong) THEN 'wrong_outputs' ELSE any_value(reason) END AS reason,
        CASE WHEN bool_or(wrong) THEN 'failed' WHEN bool_or(status = 'ok') THEN 'ok'
            ELSE arg_max(status, started_at) END AS status,
        bool_or(wrong) AS wrong, greatest(count(*), coalesce(max({LAUNCHED}), 0)) AS launches,
        coalesce(max({FAILED}), 0) AS failed, count(*) FILTER (status = 'ok') AS answered,
        sum(sample_count)::BIGINT AS samples, {_steps()},
        {_in_order("latency_mean_ms")} AS means, {_in_order("rate")} AS rates,
        {typical_sql("rate", _TIMED)} AS throughput,
        {_of_tails(lambda tail: typical_sql(f"tail_{tail}", _TIMED))} AS tail,
        {_of_tails(lambda tail: f"'{tail}'")} AS tail_of,
        {typical_sql("memory_peak_mb", _COUNTED)} AS memory,
        {typical_sql("cost_usd", _TIMED)} AS own_cost,
        {typical_sql("energy_per_item_joules", _TIMED)} AS energy_per_item,
        {typical_sql("ttft_ms", _TIMED)} AS ttft,
        {typical_sql("1e3 / nullif(tpot_ms, 0)", _TIMED)} AS token_rate,
        {typical_sql("flops", _COUNTED)} AS flops,
        max(verification_error) FILTER ({_COUNTED}) AS error,
        any_value(implausible_rate) AS implausible_rate,
        max(len(warnings)) AS warnings, max(len(workarounds)) AS workarounds,
        max(started_at) AS moment, list(result_id) AS results
    FROM (SELECT *, wrong_outputs AND NOT of_import AS wrong, {rate} AS rate, {tails}
        FROM ({_launches(_OF_A_CELL, _of_runs(runs))})) JOIN newest ON {same}
    GROUP BY series_key, {", ".join(_IDENTITY)}, run_id
)
SELECT substr(md5(concat_ws(chr(31), {_IDENTITY_TEXT})), 1, 16) AS key,
    cell.* EXCLUDE (of_result), result.* EXCLUDE (result_id),
    CASE WHEN cell.provenance IN ({kinds}) AND cell.emulated THEN 'emulated'
        ELSE cell.provenance END AS kind
FROM cell JOIN (SELECT result_id, {column_list(shared)}, options::VARCHAR AS options
    FROM fact_result) AS result ON result.result_id = of_result
"""  # noqa: S608 — our words


def _steps() -> str:
    """Return the columns of a step by the statistic that all launches have."""
    having = {
        stat: f"bool_and(coalesce({name}, 0) > 0) FILTER ({_TIMED})"
        for stat, name in _STEPS.items()
    }

    def of_all(value: Callable[[str], str]) -> str:
        cases = (f"WHEN {having[stat]} THEN {value(stat)}" for stat in _STEPS)
        return f"CASE {' '.join(cases)} END"

    columns = {
        "times": of_all(lambda stat: _in_order(_STEPS[stat])),
        "latency_of": of_all(lambda stat: f"'{stat}'"),
        "latency": of_all(lambda stat: typical_sql(_STEPS[stat], _TIMED)),
        "latency_low": of_all(lambda stat: f"min({_STEPS[stat]}) FILTER ({_TIMED})"),
        "latency_high": of_all(lambda stat: f"max({_STEPS[stat]}) FILTER ({_TIMED})"),
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def _in_order(value: str) -> str:
    return f"list({value} ORDER BY started_at) FILTER ({_TIMED} AND {value} > 0)"


def _of_tails(value: Callable[[str], str]) -> str:
    """Return SQL for the lowest percentile that all launches have."""
    all_have = "count(tail_{0}) FILTER ({1}) = nullif(count(*) FILTER ({1}), 0)"
    cases = (f"WHEN {all_have.format(tail, _TIMED)} THEN {value(tail)}" for tail in TAILS_SQL)
    return f"CASE {' '.join(cases)} END"

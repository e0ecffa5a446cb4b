"""Cells out of the store's results, in SQL: which run stands for each, and what its launches say.

The SQL has the rules of `core.figures` and `measure.launches`; tests hold them
against each other on random histories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.judging import METRICS
from accelbench.analysis.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.core.columns import ASKED
from accelbench.core.figures import OF_A_STEP, TAILS_SQL
from accelbench.core.worth import (
    ANSWERED_SQL,
    COMPARABLE,
    FAILED,
    LAUNCHED,
    OF_IMPORT_SQL,
    OF_WORTH,
    QUALITY_OF_SQL,
    REASON_COLUMNS,
    THIS_ARM_SQL,
    USABLE_SQL,
)
from accelbench.evidence.launches import (
    UNUSABLE_REASON_SQL,
    VERSION_SQL,
    WHOLE_RUNS_COLUMNS,
    failing_sql,
    same_configuration_sql,
)
from accelbench.evidence.measurements import (
    MEASUREMENT_COLUMNS,
    configurations_sql,
)
from accelbench.measure.launches import typical_sql
from accelbench.store.duck import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_FIGURES = {metric.name: metric.sql for metric in METRICS}
#: What a cell is told by: alike in all of its launches, so any of them says it.
_SAID = tuple(
    dict.fromkeys(
        (
            *(
                "family",
                "architecture",
                "task",
                "model_size",
                "parameters",
                "device",
                "device_fingerprint",
            ),
            *(name for name in ASKED if name != "options"),
        )
    )
)
#: What only those of its launches say that came so far. What is wrong in one is wrong in all,
#: whatever else became of others. A unit is that of the rates that are shown: a launch that failed
#: may name another, which counted nothing.
_SAID_BY_SOME = {
    "throughput_unit": "coalesce(any_value(throughput_unit) FILTER ({timed} AND throughput > 0),"
    " any_value(throughput_unit))",
    "verification": "CASE WHEN bool_or(wrong) THEN 'failed' ELSE any_value(verification) END",
    "reason": "CASE WHEN bool_or(wrong) THEN 'wrong_outputs' ELSE any_value(reason) END",
}
_QUALITY = f"""{QUALITY_OF_SQL} AS quality,
    list(DISTINCT {UNUSABLE_REASON_SQL} ORDER BY {UNUSABLE_REASON_SQL})
        FILTER ({ANSWERED_SQL} AND NOT {USABLE_SQL}) AS why_unusable
"""
_NEEDED = (
    *("result_id", "run_id", "series_key", "status", "provenance", "emulated", "started_at"),
    *(*_SAID_BY_SOME, *OF_A_STEP, "memory_peak_mb", *REASON_COLUMNS),
    *("batch_size", "sample_count", "warnings", "workarounds", "cost_usd"),
    *("energy_per_item_joules", "verification_error", "ttft_ms", "tpot_ms", "flops"),
)
#: One question on one machine. What has no series — it failed before it had a device, or somebody
#: else measured it — is told apart by all that was asked. An import brings figures of many versions
#: at once: each is a cell of its own, as in every chart. Of a run's two arms one is shown, and
#: nothing of what a check measured for itself, as no command shows it.
_ROWS = f"""
SELECT {{columns}}, fact_result.rowid AS place, machine,
    coalesce(series_key, concat_ws(chr(31), {{asked}})) AS series,
    {{version}} AS versions,
    CASE WHEN {OF_IMPORT_SQL} THEN started_at::DATE END AS brought,
    failing.launched AS {LAUNCHED}, failing.failed AS {FAILED},
    coalesce(failing.wrong, false) AS wrong
FROM fact_result LEFT JOIN ran USING (run_id) LEFT JOIN failing ON {{same_configuration}}
WHERE model IS NOT NULL AND status IS NOT NULL AND NOT coalesce(of_check, false)
    AND {THIS_ARM_SQL} {{of_runs}}
"""  # noqa: S608 — our words
#: The current measurement of each cell.
_CURRENT = """
CREATE TEMP TABLE newest AS
SELECT {identity_new}, run_id AS new_run_id, day AS new_brought, runs, usable_times,
    newer::INTEGER AS set_aside
FROM ({configurations})
"""
#: First by what tells launches apart, then what they have in common from the first of them: to take
#: forty columns along through the grouping costs as much again.
_CELLS = """
WITH cell AS (
    SELECT
        {identity}, series_key, run_id, first(runs) AS runs, min(place) AS place,
        first(set_aside) AS set_aside, count(*) FILTER ({left_out}) AS left_out,
        {said_by_some},
        CASE WHEN bool_or(wrong) THEN 'failed' WHEN bool_or(status = 'ok') THEN 'ok'
            ELSE arg_max(status, started_at) END AS status, bool_or(wrong) AS wrong,
        greatest(count(*), coalesce(max({launched}), 0)) AS launches,
        coalesce(max({failed_launches}), 0) AS failed,
        count(*) FILTER (status = 'ok') AS answered,
        sum(sample_count)::BIGINT AS samples,
        {latency_of} AS latency_of, {of_latency}, {times} AS times, {means} AS means,
        {rates} AS rates,
        {typical_rate} AS throughput,
        {typical_tail} AS tail, {tail_of} AS tail_of,
        {typical_memory} AS memory,
        {typical_cost} AS own_cost,
        {explored},
        max(len(warnings)) AS warnings, max(len(workarounds)) AS workarounds,
        max(started_at) AS moment,
        list(result_id) AS results
    FROM (
        SELECT *, {rate} AS rate, {tails}
        FROM ({rows})
    ) JOIN newest ON {same}
    GROUP BY series_key, {identity}, run_id
)
SELECT
    substr(md5(concat_ws(chr(31), {identity_text})), 1, 16) AS key,
    cell.* EXCLUDE (place), {said}, {of_an_interval}, case_id, options::VARCHAR AS options,
    CASE WHEN cell.provenance IN ({kinds}) AND cell.emulated THEN 'emulated'
        ELSE cell.provenance END AS kind
FROM cell JOIN (SELECT rowid AS place, {there} FROM fact_result) USING (place)
"""
#: Times of a stand-in for a device mean nothing, and are no cell's figures.
_ANSWERED = ANSWERED_SQL
#: An unusable launch among usable ones is left out.
_LEFT_OUT = f"{ANSWERED_SQL} AND NOT {USABLE_SQL} AND usable_times"
_COUNTED = f"{ANSWERED_SQL} AND NOT ({_LEFT_OUT})"
_TIMED = f"{_COUNTED} AND NOT coalesce(emulated, false)"
#: Figures that no table shows, and that points are placed by.
_EXPLORED = ", ".join(
    (
        f"{typical_sql('energy_per_item_joules', _TIMED)} AS energy_per_item",
        f"{typical_sql('ttft_ms', _TIMED)} AS ttft",
        f"{typical_sql('1e3 / nullif(tpot_ms, 0)', _TIMED)} AS token_rate",
        f"{typical_sql('flops', _COUNTED)} AS flops",
        f"max(verification_error) FILTER ({_COUNTED}) AS error",
        "any_value(implausible_rate) AS implausible_rate",
    )
)
#: Beyond so many runs, to name them costs more than to look at all.
_FEW_RUNS = 500
_IDENTITY = ("series", "machine", "provenance", "emulated", "versions")
_IDENTITIES = {
    "identity": ", ".join(_IDENTITY),
    "identity_text": ", ".join(f"coalesce({name}::VARCHAR, '')" for name in _IDENTITY),
}
#: What every question to the store needs of a row.
_LIGHT = ("run_id", "provenance", "emulated", "started_at")


def gathered(con: DuckDBPyConnection) -> DuckDBPyRelation:
    """Every cell of the store.

    Args:
        con: of the store, with a table `ran` of each run's machine.
    """
    con.execute(f"CREATE TEMP TABLE failing AS {failing_sql('fact_result')}")
    _choose_runs(con)
    chosen = con.execute("SELECT DISTINCT new_run_id FROM newest").fetchall()
    runs = [run for (run,) in chosen]
    return con.sql(_cells(runs, _latency(con, runs)))


def _choose_runs(con: DuckDBPyConnection) -> None:
    """Find the current measurement of each cell."""
    needed = (*_LIGHT, "status", "verification", *OF_WORTH, *MEASUREMENT_COLUMNS)
    new = ", ".join(f"{name} AS new_{name}" for name in _IDENTITY)
    chosen = configurations_sql(_IDENTITY, f"({_rows(needed)})")
    con.execute(_CURRENT.format(identity_new=new, configurations=chosen))


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} IS NOT DISTINCT FROM new_{name}" for name in names)


def _of_runs(runs: Sequence[str | None]) -> str:
    """Of a long history a small part, where it is of few runs."""
    if not 0 < len(runs) <= _FEW_RUNS or None in runs:
        return ""
    return f"AND run_id IN ({', '.join(quoted(str(run)) for run in runs)})"


def _latency(con: DuckDBPyConnection, runs: Sequence[str | None]) -> dict[str, str]:
    """The figure of a step that all launches of a cell have, in SQL: the median, else the mean.

    Most stores know a median of all that answered, and need not choose.
    """
    needed = (*_LIGHT, "status", "verification", "latency_p50_ms")
    rows = _rows(needed, _of_runs(runs))
    no_median = (
        f"SELECT 1 FROM ({rows}) WHERE {_ANSWERED} AND coalesce(latency_p50_ms, 0) <= 0 LIMIT 1"  # noqa: S608
    )
    names = {"p50": "latency_p50_ms"}
    if con.execute(no_median).fetchall():
        names["mean"] = "latency_mean_ms"
    having = {
        stat: f"bool_and(coalesce({name}, 0) > 0) FILTER ({_TIMED})" for stat, name in names.items()
    }

    def of_all(figure: Callable[[str, str], str]) -> str:
        """The figure by the name that all have."""
        of_each = (f"WHEN {having[stat]} THEN {figure(names[stat], _TIMED)}" for stat in names)
        return f"CASE {' '.join(of_each)} END"

    cases = " ".join(f"WHEN {condition} THEN '{stat}'" for stat, condition in having.items())
    figures = {"latency": typical_sql, "latency_low": _least, "latency_high": _most}
    of_each = " ".join(f"WHEN {having[stat]} THEN {_in_order(names[stat])}" for stat in names)
    return {
        "times": f"CASE {of_each} END",
        "means": _in_order("latency_mean_ms"),
        "rates": _in_order("rate"),
        "latency_of": f"CASE {cases} END",
        "of_latency": ", ".join(f"{of_all(how)} AS {name}" for name, how in figures.items()),
    }


def _in_order(figure: str) -> str:
    return f"list({figure} ORDER BY started_at) FILTER ({_TIMED} AND {figure} > 0)"


def _least(figure: str, where: str) -> str:
    return f"min({figure}) FILTER ({where})"


def _most(figure: str, where: str) -> str:
    return f"max({figure}) FILTER ({where})"


def _cells(runs: Sequence[str | None], latency: Mapping[str, str]) -> str:
    """The cells, from the rows of those runs: of a long history a small part."""
    return _CELLS.format(
        rows=_rows(_NEEDED, _of_runs(runs)),
        **latency,
        tails=", ".join(f"{sql} AS tail_{tail}" for tail, sql in TAILS_SQL.items()),
        typical_tail=_of_tails(lambda tail: typical_sql(f"tail_{tail}", _TIMED)),
        tail_of=_of_tails(lambda tail: f"'{tail}'"),
        rate=_FIGURES["throughput"],
        timed=_TIMED,
        typical_rate=typical_sql("rate", _TIMED),
        typical_memory=typical_sql("memory_peak_mb", _COUNTED),
        typical_cost=typical_sql("cost_usd", _TIMED),
        explored=_EXPLORED,
        left_out=_LEFT_OUT,
        kinds=", ".join(repr(kind.value) for kind in COMPARABLE),
        launched=LAUNCHED,
        failed_launches=FAILED,
        **_IDENTITIES,
        said_by_some=", ".join(
            [
                _QUALITY,
                *(
                    f'{said.format(timed=_TIMED)} AS "{name}"'
                    for name, said in _SAID_BY_SOME.items()
                ),
            ]
        ),
        said=", ".join(f'"{name}"' for name in _SAID),
        of_an_interval=", ".join(OF_AN_INTERVAL),
        there=", ".join(f'"{name}"' for name in (*_SAID, *OF_AN_INTERVAL, "case_id", "options")),
        same=_same((*_IDENTITY, "run_id", "brought")),
    )


def _of_tails(figure: Callable[[str], str]) -> str:
    """By the lowest percentile that all launches have, in SQL: of two kinds there is no middle."""
    all_have = "count(tail_{0}) FILTER ({1}) = nullif(count(*) FILTER ({1}), 0)"
    cases = (f"WHEN {all_have.format(tail, _TIMED)} THEN {figure(tail)}" for tail in TAILS_SQL)
    return f"CASE {' '.join(cases)} END"


def _rows(columns: Sequence[str], of_runs: str = "") -> str:
    """Results with what tells cells apart, as all launches of their configurations have them."""
    return _ROWS.format(
        columns=", ".join(
            f"{WHOLE_RUNS_COLUMNS[name]} AS {name}" if name in WHOLE_RUNS_COLUMNS else f'"{name}"'
            for name in dict.fromkeys(columns)
        ),
        version=VERSION_SQL,
        same_configuration=same_configuration_sql("failing"),
        asked=", ".join(f"coalesce({n}::VARCHAR, '')" for n in ASKED),
        of_runs=of_runs,
    )

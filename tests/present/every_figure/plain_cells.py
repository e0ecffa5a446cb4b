"""What a dashboard has to show, in plain SQL over a store's tables: none of accelbench's own.

The rules are those of `docs/dashboard.md` and `docs/measuring.md`, written down again: which run
stands for a question, which of its launches count, and that several launches are a geometric mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

#: What tells questions of the store of `lived_store` apart.
QUESTION = (
    *("model", "mode", "hardware", "device_name", "runtime", "precision", "batch_size"),
    *("provenance", "emulated", "place", "version", "had_device"),
)
_SAME = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in QUESTION)
_OF = ", ".join(QUESTION)
_BY = ", ".join(f"b.{name}" for name in QUESTION)

_LAUNCHES = """
CREATE TEMP TABLE launch AS
WITH one AS (
    SELECT r.*, coalesce(b.environment->>'machine', r.run_id) AS place,
        b.environment->'packages' AS packages, starts_with(r.run_id, 'import-') AS theirs,
        r.status = 'ok' AND coalesce(r.verification, '') <> 'failed' AS ran
    FROM benchmark_results AS r JOIN benchmark_runs AS b USING (run_id)
), whole AS (
    SELECT *, count(*) FILTER (NOT ran) OVER config AS failing, count(*) OVER config AS of_config,
        coalesce(bool_or(verification = 'failed' OR reason = 'wrong_outputs') OVER config, false)
            AS wrong
    FROM one WINDOW config AS (PARTITION BY run_id, case_id, coalesce(device_fingerprint, ''))
)
SELECT * EXCLUDE (ran, quality, failing, of_config, wrong),
    NOT theirs AND wrong AS wrong,
    CASE WHEN theirs THEN 0 ELSE failing END AS failing, of_config,
    ran AND NOT (NOT theirs AND wrong) AS ran,
    CASE WHEN NOT theirs AND 2 * failing > of_config AND NOT wrong AND ran THEN 'unusable'
        ELSE quality END AS quality,
    CASE WHEN theirs THEN conditions->>'engine' END AS version,
    CASE WHEN theirs THEN started_at::DATE END AS day,
    theirs OR series_key IS NOT NULL AS had_device
FROM whole
"""
_RUNS = f"""
CREATE TEMP TABLE of_run AS
SELECT {_OF}, run_id, day, any_value(packages::VARCHAR) AS packages,
    max(started_at) AS moment, count(*) FILTER (ran) AS answered,
    2 * count(*) FILTER (ran AND coalesce(quality, '') <> 'unusable') > count(*) FILTER (ran)
        AS usable,
    2 * count(*) FILTER (ran AND coalesce(quality, 'converged') = 'converged')
        > count(*) FILTER (ran) AS settled
FROM launch GROUP BY ALL
"""
#: The newest run, where it came to nothing or says all that a run can; else of the newest software
#: the one that says most.
_STANDS = f"""
CREATE TEMP TABLE stands AS
WITH ranked AS (
    SELECT *, count(*) OVER (PARTITION BY {_OF}) AS runs,
        first_value(packages) OVER newest AS newest_packages,
        first_value(answered) OVER newest AS newest_answered,
        row_number() OVER newest AS nth
    FROM of_run
    WINDOW newest AS (PARTITION BY {_OF} ORDER BY moment DESC, run_id DESC)
), best AS (
    SELECT *, row_number() OVER (PARTITION BY {_OF} ORDER BY
        CASE WHEN newest_answered = 0 THEN nth END,
        CASE WHEN provenance = 'imported' THEN nth END,
        packages IS DISTINCT FROM newest_packages,
        usable DESC, least(answered, 5) DESC, settled DESC, moment DESC, run_id DESC) AS place_of
    FROM ranked
)
SELECT * FROM best WHERE place_of = 1
"""
_COUNTING = f"""
CREATE TEMP TABLE counting AS
SELECT b.*, a.runs,
    ran AND coalesce(quality, '') = 'unusable' AND 2 * count(*) FILTER
        (ran AND coalesce(quality, '') = 'unusable') OVER cell < count(*) FILTER (ran) OVER cell
        AS left_out
FROM launch AS b JOIN stands AS a
    ON {_SAME} AND a.run_id = b.run_id AND a.day IS NOT DISTINCT FROM b.day
WINDOW cell AS (PARTITION BY {_BY})
"""


def _middle(figure: str, where: str) -> str:
    return f"exp(avg(ln({figure})) FILTER ({where} AND {figure} > 0))"


_COUNTS = "ran AND NOT left_out"
_TIMED = f"{_COUNTS} AND NOT coalesce(emulated, false)"
_RATE = "coalesce(throughput, 1e3 * batch_size / nullif(latency_mean_ms, 0))"
_NO_STEP = (
    "coalesce(latency_mean_ms, 0) = 0 AND coalesce(latency_p50_ms, 0) = 0"
    " AND coalesce(throughput, 0) = 0"
)
_TAILS = ("p90", "p95", "p99")
#: Each percentile that is more than rough, of what says nothing else.
_TAIL_COLUMNS = ", ".join(
    f"CASE WHEN {_NO_STEP} AND NOT coalesce(latency_{tail}_rough, false)"
    f" THEN latency_{tail}_ms END AS {tail}_ms"
    for tail in _TAILS
)


def _of_tails(figure: Callable[[str], str]) -> str:
    """By the lowest percentile that all launches have."""
    each = " ".join(
        f"WHEN bool_and({tail}_ms IS NOT NULL) FILTER ({_TIMED}) THEN {figure(tail)}"
        for tail in _TAILS
    )
    return f"CASE {each} END"


_CELLS = f"""
CREATE TEMP TABLE plain AS
WITH cell AS (
    SELECT {_OF}, any_value(run_id) AS run_id, any_value(runs) AS runs,
        any_value(family) AS family, coalesce(any_value(throughput_unit)
            FILTER ({_TIMED} AND throughput > 0), any_value(throughput_unit)) AS unit,
        {_of_tails(lambda tail: f"'{tail}'")} AS tail_of,
        any_value(task) AS task, any_value(parameters) AS parameters,
        CASE WHEN bool_or(wrong) THEN 'failed' WHEN bool_or(ran) THEN 'ok' ELSE
            arg_max(status, started_at) END AS status,
        greatest(count(*), CASE WHEN max(failing) > 0 THEN max(of_config) ELSE 0 END) AS launches,
        max(failing) AS failing,
        count(*) FILTER (status = 'ok') AS answered, count(*) FILTER (left_out) AS left_out,
        2 * count(*) FILTER (ran AND coalesce(quality, '') = 'unusable')
            >= greatest(count(*) FILTER (ran), 1) AS unusable,
        sum(sample_count) AS samples, max(started_at) AS moment,
        coalesce(bool_and(coalesce(latency_mean_ms, 0) > 0) FILTER ({_TIMED}), false) AS by_mean,
        coalesce(bool_and(coalesce(latency_p50_ms, 0) > 0) FILTER ({_TIMED}), false) AS by_median,
        {_middle("latency_mean_ms", _TIMED)} AS mean_ms,
        {_middle("latency_p50_ms", _TIMED)} AS median_ms,
        min(latency_mean_ms) FILTER ({_TIMED}) AS mean_low,
        max(latency_mean_ms) FILTER ({_TIMED}) AS mean_high,
        min(latency_p50_ms) FILTER ({_TIMED}) AS median_low,
        max(latency_p50_ms) FILTER ({_TIMED}) AS median_high,
        count(*) FILTER ({_TIMED}) AS timed,
        avg(ln(latency_p50_ms)) FILTER ({_TIMED}) AS mean_log,
        stddev_samp(ln(latency_p50_ms)) FILTER ({_TIMED}) AS spread_log,
        {_middle(_RATE, _TIMED)} AS throughput,
        {_of_tails(lambda tail: _middle(f"{tail}_ms", _TIMED))} AS tail,
        {_middle("memory_peak_mb", _COUNTS)} AS memory,
        {_middle("cost_usd", _TIMED)} AS own_cost,
        {_middle("energy_per_item_joules", _TIMED)} AS energy,
        {_middle("ttft_ms", _TIMED)} AS ttft,
        {_middle("1e3 / nullif(tpot_ms, 0)", _TIMED)} AS token_rate,
        {_middle("flops", _COUNTS)} AS flops,
        max(verification_error) FILTER ({_COUNTS}) AS error,
        list(result_id) AS results
    FROM (SELECT *, {_TAIL_COLUMNS} FROM counting) GROUP BY {_OF}
)
SELECT *, CASE WHEN emulated THEN 'emulated' ELSE provenance END AS kind,
    CASE WHEN by_median THEN median_ms WHEN by_mean THEN mean_ms END AS latency,
    CASE WHEN by_median THEN 'p50' WHEN by_mean THEN 'mean' END AS latency_of,
    CASE WHEN by_median THEN median_low WHEN by_mean THEN mean_low END AS latency_low,
    CASE WHEN by_median THEN median_high WHEN by_mean THEN mean_high END AS latency_high,
    CASE WHEN provenance IN ('measured', 'imported') AND NOT emulated AND status = 'ok'
        THEN own_cost END AS cost,
    row_number() OVER (ORDER BY {_OF}) AS number
FROM cell
"""
#: What failed before it had a device was overtaken by what answered the same later.
_OVERTAKEN = """
DELETE FROM plain AS a WHERE status <> 'ok' AND NOT had_device AND EXISTS (
    FROM plain AS b WHERE b.status = 'ok' AND b.moment >= a.moment AND b.place = a.place
    AND row(b.model, b.mode, b.hardware, b.runtime, b.precision, b.batch_size)
      = row(a.model, a.mode, a.hardware, a.runtime, a.precision, a.batch_size))
"""

#: What one launch says of itself, by the names of a results file.
Cell = Mapping[str, Any]


class PlainStore:
    """A store's file, asked in SQL."""

    def __init__(self, path: Path) -> None:
        self._con = duckdb.connect(str(path), read_only=True)
        for statement in (_LAUNCHES, _RUNS, _STANDS, _COUNTING, _CELLS, _OVERTAKEN):
            self._con.execute(statement)

    def ask(self, sql: str, *values: object) -> list[dict[str, Any]]:
        done = self._con.execute(sql, list(values) or None)
        names = [about[0] for about in done.description or ()]
        return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

    def cells(self) -> dict[tuple[object, ...], Cell]:
        """Every cell by what tells it apart."""
        return {key_of(row): row for row in self.ask("FROM plain")}


def key_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """What tells a cell apart on every page that has it."""
    return tuple(
        row[name]
        for name in (
            *("model", "mode", "hardware", "device_name", "runtime", "precision"),
            *("batch_size", "kind", "place", "version", "had_device"),
        )
    )

"""The SQL of evidence for choosing, and its rows as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypedDict, cast

from accelbench.analysis.attempts import FEWEST, KNOWN
from accelbench.analysis.judging import METRICS
from accelbench.analysis.matrix import NEAR_BEST
from accelbench.analysis.questions import SHAPES
from accelbench.analysis.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.core.columns import ASKED
from accelbench.core.figures import (
    MEANS,
    OF_A_STEP,
    RATES_FIRST,
    STEP_BY_RATE_OF_SQL,
    STEP_BY_RATE_SQL,
    TAIL_OF_SQL,
    TAIL_SQL,
    Statistic,
    kind_sql,
)
from accelbench.core.possible import belongs
from accelbench.core.rows import Row
from accelbench.core.vocabulary import SINGLE_STREAM, Belongs, Status
from accelbench.core.worth import (
    ANSWERED_SQL,
    COMPARABLE_SQL,
    FAILED,
    LAUNCHED,
    OF_WORTH,
    REASON_COLUMNS,
    UNUSABLE_REASON,
    USABLE_SQL,
)
from accelbench.evidence.launches import RUN_SQL, VERSION_SQL
from accelbench.evidence.measurements import MEASUREMENT_COLUMNS, configurations_sql
from accelbench.query.histories import OF_NO_CHECK_SQL
from accelbench.select.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceCell,
    EvidenceRow,
    Tried,
    engine_sql,
)
from accelbench.select.evidence.failures import Failure
from accelbench.store.fit import spell_time

_FIGURES = {metric.name: metric.sql for metric in METRICS}
#: Columns of which a cell has the middle of its launches.
_MIDDLES = (
    *("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts", "flops"),
    "energy_per_item_joules",
    *("convergence", "parameters", "cpu_wait_share", "unexplained_share", *OF_AN_INTERVAL),
)
_SAID = (
    *ASKED,
    *("device", "family", "throughput_unit", "device_fingerprint", "verification", "provenance"),
    *("series_key", "implausible_rate"),
)
_COLUMNS = tuple(dict.fromkeys((
    *_SAID, *_MIDDLES, "verification_error", "run_id", "series_key", "conditions", "status",
    "reason", "started_at", "weights_digest", "launch", "result_id", "batch_size", "emulated",
    *MEASUREMENT_COLUMNS, *OF_WORTH, *REASON_COLUMNS, *OF_A_STEP,
)))  # fmt: skip
_QUOTED = ", ".join(f'"{name}"' for name in _COLUMNS)
#: A few samples do not predict the next ones, so no platform is rated by them.
_KNOWN_SQL = (
    f"(sample_count IS NULL OR sample_count >= {FEWEST} OR effective_sample_count >= {KNOWN})"
)
#: Milliseconds of a step: the mean, which ratios use, or the median, or by the rate of single items
#: of a known batch. A rate of requests at once or of tokens does not tell how long one takes.
_STEP = f"""coalesce({STEP_BY_RATE_SQL}, CASE
    WHEN coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
        AND {kind_sql("throughput_unit")} = ''
    THEN 1e3 * nullif(batch_size, 0) / nullif(throughput, 0) END)"""
#: The statistic of a row's latency.
_STATISTIC = f"""coalesce({STEP_BY_RATE_OF_SQL}, CASE WHEN {_STEP} > 0
    THEN '{Statistic.RATE}' END, {TAIL_OF_SQL})"""
#: What identifies an attempt, whether or not it succeeded.
_ATTEMPTED = (
    *("model", "mode", "hardware", "device", "device_name", "device_fingerprint", "runtime"),
    *("precision", "compiled", "options", "batch_size", *SHAPES, *CIRCUMSTANCES),
)
_REAL = f"{COMPARABLE_SQL} AND NOT coalesce(emulated, false) AND {OF_NO_CHECK_SQL}"
#: Of an import, which may be of years in one run, and of what names no run, a day is a run. Of
#: those that answered the current one counts (`evidence.measurements`): what has failed since is
#: told by the failures. Of a run of which half of the launches are of no use nothing counts, as the
#: first part of its worth says: what is left would be chosen by how it came out. It is read all the
#: same, as something that was measured and set aside.
_CELLS = """
WITH answered AS (
    SELECT {columns}, {latency} AS latency, {statistic} AS statistic, {rate} AS rate,
        coalesce(series_key, concat_ws(chr(31), {asked})) AS series,
        coalesce(machine, '') AS machine, {failed}, {launched}, {reason},
        coalesce({version}, '') AS versions,
        conditions->'source'->>'name' AS source,
        {run} AS run
    FROM {results} LEFT JOIN {machines} USING (run_id) WHERE {real} AND {answered} AND {where}
), newest AS (
    SELECT series, machine, versions, run, usable_times AS counts
    FROM ({configurations})
)
SELECT {said}, {middles}, max(verification_error) AS verification_error, versions,
    any_value(source) AS source, machine,
    any_value({failed}) AS {failed}, any_value({launched}) AS {launched},
    any_value({reason}) AS {reason},
    max(memory_peak_mb) AS memory_highest_mb, bool_and(counts) AS counts, max(run_id) AS run_id,
    max(started_at) AS moment, {engine} AS engine_version,
    list(latency ORDER BY started_at, launch, result_id) AS latencies,
    list(statistic ORDER BY started_at, launch, result_id) AS statistics,
    list(rate ORDER BY started_at, launch, result_id) AS rates
FROM answered JOIN newest USING (series, machine, versions, run)
WHERE (NOT counts OR {usable}) AND (latency > 0 OR rate > 0)
GROUP BY series, machine, versions
ORDER BY {way}, {asked_order}, latencies, memory_peak_mb, max(run_id), max(started_at), rates,
    series, machine
"""
#: By run the machine that it was made on, as far as launches are told apart by it: a run without
#: one may be of the same machine as the next. Memory is left out, of which the kernel takes another
#: share after each start.
_MACHINES = """
(SELECT run_id, concat_ws(chr(31), coalesce(environment->'source'->>'name',
    environment->>'machine'), environment->>'cpu', environment->>'cpus_logical') AS machine
    FROM benchmark_runs WHERE environment->>'machine' <> '' AND environment->>'cpu' <> '') places
"""
#: The newest of each that did not work: with an answer that was wrong.
_FAILURES = """
SELECT {attempted}, arg_max(status, started_at) AS status, arg_max(reason, started_at) AS reason,
    arg_max(run_id, started_at) AS run_id, max(started_at) AS moment
FROM (SELECT {columns} FROM benchmark_results WHERE {real} AND {where})
WHERE NOT ({answered}) AND status <> 'skipped' AND started_at IS NOT NULL
GROUP BY {attempted} ORDER BY ALL
"""
#: The order of cells: by their ways, then by their questions.
_WAY = (
    *("hardware", "device_name", "runtime", "precision", "compiled", "threads", "options"),
    "versions",
)
_ASKED_ORDER = ("model", "batch_size", *SHAPES, *CIRCUMSTANCES, "mode")
#: A throughput beside the CPU's, over what both answered: the matrix's own rule, in one query. Of a
#: run of which half of the launches are of no use no launch counts: the best of them is chance.
_TRIED = """
WITH useless AS (
    SELECT series_key, run_id, true AS useless FROM {results} WHERE {real} AND {answered}
    GROUP BY series_key, run_id HAVING 2 * count(*) FILTER ({usable}) <= count(*)
), tried AS (
    SELECT coalesce(family, '') AS family, hardware, mode, model, status, reason, run_id, runtime,
        verification, CASE WHEN useless IS NULL AND {known} THEN {rate} END AS rate,
        concat_ws(chr(31), {question}, {counted}) AS question
    FROM {results} LEFT JOIN useless USING (series_key, run_id)
    WHERE {real} AND status <> 'skipped' AND model IS NOT NULL
), whole AS (
    SELECT family, hardware, mode, count(DISTINCT model) AS models,
        count(DISTINCT model) FILTER ({answered}) AS through,
        list(DISTINCT [runtime, reason] ORDER BY [runtime, reason])
            FILTER (status = '{unsupported}') AS refusals
    FROM tried GROUP BY ALL
), fastest AS (
    SELECT family, mode, hardware, question, max(rate) AS rate FROM tried
    WHERE {answered} AND rate > 0 GROUP BY ALL
), beside AS (
    SELECT a.family, a.mode, a.hardware, b.hardware AS other,
        exp(avg(ln(a.rate / b.rate))) AS speed
    FROM fastest a JOIN fastest b USING (family, mode, question)
    WHERE a.hardware <> b.hardware GROUP BY ALL
)
SELECT whole.*, max(speed) FILTER (other = 'cpu') AS speed, coalesce(min(speed), 0) AS least
FROM whole LEFT JOIN beside USING (family, mode, hardware)
GROUP BY ALL ORDER BY family, hardware, mode
"""
_PRECISION = "precision"
_QUESTION = ("model", "precision", "batch_size", *SHAPES, "scenario", "world_size")
#: Devices with a comparable result, by run and platform.
RUN_DEVICES = f"""
SELECT DISTINCT run_id, hardware, device_name FROM benchmark_results
WHERE {_REAL} AND status = 'ok' AND hardware IS NOT NULL ORDER BY hardware, device_name, run_id
"""  # noqa: S608 — our words
PRECISIONS = "SELECT DISTINCT precision FROM benchmark_results WHERE precision IS NOT NULL"
RUNS = "SELECT run_id, environment::VARCHAR FROM benchmark_runs"
#: The kind of a device, if a platform has several: the CPU, a GPU or an NPU.
UNITS = """
SELECT device_fingerprint, lower(details->>'device') FROM hardware_info
WHERE details->>'device' IS NOT NULL
"""
FACTS = f"""
SELECT model, max(family), max(parameters)
FROM benchmark_results WHERE {COMPARABLE_SQL} AND model IS NOT NULL AND status = 'ok'
GROUP BY model ORDER BY model
"""  # noqa: S608 — our words


def cells_sql(where: str) -> str:
    """Return the query for cells, always in the same order."""
    return _CELLS.format(
        columns=_QUOTED,
        latency=f"coalesce({_STEP}, {TAIL_SQL})",
        statistic=_STATISTIC,
        engine=engine_sql("any_value(runtime)", "any_value(conditions)::VARCHAR"),
        version=VERSION_SQL,
        run=RUN_SQL,
        results="launches",
        machines=_MACHINES,
        failed=FAILED,
        launched=LAUNCHED,
        reason=UNUSABLE_REASON,
        configurations=configurations_sql(("series", "machine", "versions"), "answered"),
        rate=_FIGURES["throughput"],
        asked=_text(ASKED),
        real=_REAL,
        answered=ANSWERED_SQL,
        usable=USABLE_SQL,
        where=where,
        said=", ".join(f'any_value("{name}") AS "{name}"' for name in _SAID),
        middles=", ".join(f'{_middle(name)} AS "{name}"' for name in _MIDDLES),
        way=", ".join(f'"{name}"' for name in _WAY),
        asked_order=", ".join(f'"{name}"' for name in _ASKED_ORDER),
    )


def failures_sql(where: str) -> str:
    """Return the query for the newest failed attempts."""
    return _FAILURES.format(
        columns=_QUOTED,
        attempted=", ".join(f'"{name}"' for name in _ATTEMPTED),
        real=_REAL,
        answered=ANSWERED_SQL,
        where=where,
    )


def tried_sql() -> str:
    """Return the query for the outcomes of each family on each platform."""
    return _TRIED.format(
        usable=USABLE_SQL,
        known=f"{USABLE_SQL} AND {_KNOWN_SQL}",
        rate=_FIGURES["throughput"],
        question=_text(_QUESTION),
        counted=kind_sql("throughput_unit"),
        results="launches",
        real=_REAL,
        answered=ANSWERED_SQL,
        unsupported=Status.UNSUPPORTED,
    )


class _CellRow(EvidenceRow, total=False):
    """A row of `cells_sql`, with a list of the launches' values."""

    latencies: Sequence[float | None]
    statistics: Sequence[str | None]
    rates: Sequence[float | None]
    counts: bool


class _TriedRow(TypedDict):
    """A row of `tried_sql`."""

    family: str
    hardware: str
    mode: str | None
    models: int
    through: int
    refusals: Sequence[tuple[str | None, str | None]] | None
    speed: float | None
    least: float


def cell(number: int, values: dict[str, object]) -> EvidenceCell:
    """Return the cell of a row of `cells_sql` and its number there."""
    values["moment"] = _spelt(values["moment"])
    row = cast("_CellRow", values)
    rates = tuple(filter(None, row.pop("rates")))
    latencies, statistic = _of_one_statistic(row.pop("latencies"), row.pop("statistics"))
    counts = row.pop("counts")
    return EvidenceCell(row, latencies, rates, number, statistic, counts)


def _spelt(moment: object) -> str | None:
    return spell_time(moment) if isinstance(moment, datetime) else None


def _of_one_statistic(
    latencies: Sequence[float | None], statistics: Sequence[str | None]
) -> tuple[tuple[float, ...], Statistic]:
    """Return the latencies with the preferred statistic; a rate is a mean as well."""
    known = [
        (ms, Statistic(name)) for ms, name in zip(latencies, statistics, strict=True) if ms and name
    ]
    most = min((statistic for _, statistic in known), key=RATES_FIRST.index, default=Statistic.MEAN)
    alike = MEANS if most in MEANS else {most}
    return tuple(ms for ms, statistic in known if statistic in alike), most


def failure(values: Row) -> Failure:
    """Return the failure of a row of `failures_sql`."""
    return Failure(cast("EvidenceRow", {**values, "moment": _spelt(values["moment"])}))


def tried(values: Row) -> Tried:
    """Return the outcomes of a row of `tried_sql`."""
    row = cast("_TriedRow", values)
    # A refused precision does not affect others, nor a failure at one size other sizes.
    refusals = [
        (runtime, reason)
        for runtime, reason in row["refusals"] or ()
        if reason and reason != _PRECISION and belongs(reason) is Belongs.CELL
    ]
    return Tried(
        family=row["family"],
        hardware=row["hardware"],
        mode=row["mode"] or "",
        models=row["models"],
        through=row["through"],
        refused_by=frozenset(runtime for runtime, _ in refusals),
        speed=row["speed"],
        best=bool(row["least"]) and row["least"] >= NEAR_BEST,
        reason=", ".join(sorted({reason for _, reason in refusals})),
    )


def _middle(name: str) -> str:
    """Return SQL for the middle of launches; of memory it is the geometric mean, as elsewhere."""
    if name != "memory_peak_mb":
        return f'median("{name}")'
    same = f'min("{name}") = max("{name}") OR min("{name}") <= 0'
    return f'CASE WHEN {same} THEN median("{name}") ELSE exp(avg(ln("{name}"))) END'


def _text(names: Iterable[str]) -> str:
    return ", ".join(f"coalesce({name}::VARCHAR, '')" for name in names)

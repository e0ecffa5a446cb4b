"""The SQL of evidence for choosing, over the relations of `evidence`, and its rows as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.plausible_values import reason_subject
from accelbench.core.result_statistics import (
    MEANS,
    RATES_FIRST,
    STEP_BY_RATE_NAME_SQL,
    STEP_BY_RATE_SQL,
    STEP_COLUMNS,
    TAIL_NAME_SQL,
    TAIL_SQL,
    Statistic,
    unit_kind_sql,
)
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import FAILED, LAUNCHED, UNUSABLE_REASON
from accelbench.core.vocabulary import SINGLE_STREAM, Belongs, Status
from accelbench.evidence.launches import COMPARABLE_SQL, LAUNCH_COLUMNS, QUALITY_COLUMNS
from accelbench.evidence.measurements import MEASUREMENT_COLUMNS, configurations_sql
from accelbench.judge.attempts import FEWEST, KNOWN
from accelbench.judge.matrix import NEAR_BEST
from accelbench.judge.older_runs import OF_NO_CHECK_SQL
from accelbench.judge.questions import SHAPES
from accelbench.judge.ratios import COLUMNS as OF_AN_INTERVAL
from accelbench.judge.verdicts import METRICS
from accelbench.recommend.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceCell,
    EvidenceRow,
    Failure,
    Tried,
    engine_sql,
)
from accelbench.store.body_to_row import spell_time
from accelbench.store.duck import column_list


def _text(names: Iterable[str]) -> str:
    texts = column_list(names, "coalesce({0}::VARCHAR, '')")
    return f"concat_ws(chr(31), {texts})"


def _middle(name: str) -> str:
    """Return SQL for the middle of launches; of memory it is the geometric mean, as elsewhere."""
    if name != "memory_peak_mb":
        return f'median("{name}") AS "{name}"'
    same = f"min({name}) = max({name}) OR min({name}) <= 0"
    return f"CASE WHEN {same} THEN median({name}) ELSE exp(avg(ln({name}))) END AS {name}"


_RATE = {metric.name: metric.sql for metric in METRICS}["throughput"]
#: Columns of which a cell has the middle of its launches.
_MIDDLES = (
    *("memory_peak_mb", "ttft_ms", "tpot_ms", "tokens_per_second", "power_watts", "flops"),
    *("energy_per_item_joules", "convergence", "parameters", "cpu_wait_share"),
    *("unexplained_share", *OF_AN_INTERVAL),
)
#: Columns that all launches of a cell share.
_SHARED = (
    *(
        *CONFIGURATION_COLUMNS,
        "device",
        "family",
        "throughput_unit",
        "device_fingerprint",
        "verification",
    ),
    *("provenance", "series_key", "implausible_rate"),
)
_READ = dict.fromkeys((
    *_SHARED, *_MIDDLES, "verification_error", "launch", "result_id", "status", FAILED, LAUNCHED,
    UNUSABLE_REASON, *MEASUREMENT_COLUMNS, *QUALITY_COLUMNS, *STEP_COLUMNS, *LAUNCH_COLUMNS,
))  # fmt: skip
#: Milliseconds of a step: the mean, which ratios use, or the median, or by the rate of single items
#: of a known batch. A rate of requests at once or of tokens does not tell how long one takes.
_STEP = f"""coalesce({STEP_BY_RATE_SQL}, CASE
    WHEN coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
        AND {unit_kind_sql("throughput_unit")} = ''
    THEN 1e3 * nullif(batch_size, 0) / nullif(throughput, 0) END)"""
#: The statistic of a row's latency.
_STATISTIC = f"""coalesce({STEP_BY_RATE_NAME_SQL}, CASE WHEN {_STEP} > 0
    THEN '{Statistic.RATE}' END, {TAIL_NAME_SQL})"""
#: What identifies an attempt, whether or not it succeeded.
_ATTEMPTED = (
    *("model", "mode", "hardware", "device", "device_name", "device_fingerprint", "runtime"),
    *("precision", "compiled", "options", "batch_size", *SHAPES, *CIRCUMSTANCES),
)
_REAL = f"NOT coalesce(emulated, false) AND {OF_NO_CHECK_SQL}"
#: By run the machine as far as it distinguishes launches: a run without one may be of the same
#: machine as the next. Memory is left out: after each start the kernel takes another share of it.
_MACHINES = """
(SELECT run_id, concat_ws(chr(31), coalesce(environment->'source'->>'name',
    environment->>'machine'), environment->>'cpu', environment->>'cpus_logical') AS machine
    FROM benchmark_runs WHERE environment->>'machine' <> '' AND environment->>'cpu' <> '') places
"""
#: The order of cells: by their ways, then by their questions.
_ORDER = (
    *("hardware", "device_name", "runtime", "precision", "compiled", "threads", "options"),
    *("versions", "model", "batch_size", *SHAPES, *CIRCUMSTANCES, "mode"),
)
_PRECISION = "precision"
_QUESTION = ("model", "precision", "batch_size", *SHAPES, "scenario", "world_size")
#: Devices with a comparable result, by run and platform.
RUN_DEVICES = f"""
SELECT DISTINCT run_id, hardware, device_name FROM benchmark_results
WHERE {COMPARABLE_SQL} AND {_REAL} AND status = 'ok' AND hardware IS NOT NULL
ORDER BY hardware, device_name, run_id
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
    """Return the query for cells, the current measurements, always in the same order.

    A measurement with unusable times is a cell with all of its launches: a part of them would be
    selected by its outcome.
    """
    current = configurations_sql(("series", "machine", "versions"), "answered")
    each = "list({0} ORDER BY started_at, launch, result_id) AS {0}_list"
    return f"""
WITH answered AS (
    SELECT {column_list(_READ)}, coalesce({_STEP}, {TAIL_SQL}) AS latency,
        {_STATISTIC} AS statistic, {_RATE} AS rate,
        coalesce(series_key, {_text(CONFIGURATION_COLUMNS)}) AS series,
        coalesce(machine, '') AS machine, coalesce(import_version, '') AS versions,
        conditions->'source'->>'name' AS source
    FROM launches LEFT JOIN {_MACHINES} USING (run_id)
    WHERE comparable AND answered AND {_REAL} AND {where}
), newest AS (SELECT series, machine, versions, run AS run_key, usable_times AS counts
    FROM ({current}))
SELECT {column_list(_SHARED, 'any_value("{0}") AS "{0}"')}, {", ".join(map(_middle, _MIDDLES))},
    max(verification_error) AS verification_error, versions, machine,
    {column_list(("source", FAILED, LAUNCHED, UNUSABLE_REASON), "any_value({0}) AS {0}")},
    max(memory_peak_mb) AS memory_highest_mb, bool_and(counts) AS counts, max(run_id) AS run_id,
    max(started_at) AS moment,
    {engine_sql("any_value(runtime)", "any_value(conditions)::VARCHAR")} AS engine_version,
    {column_list(("latency", "statistic", "rate"), each)}
FROM answered JOIN newest USING (series, machine, versions, run_key)
WHERE (NOT counts OR times_usable) AND (latency > 0 OR rate > 0)
GROUP BY series, machine, versions
ORDER BY {column_list(_ORDER)}, latency_list, memory_peak_mb, max(run_id), max(started_at),
    rate_list, series, machine"""  # noqa: S608 — our words


def failures_sql(where: str) -> str:
    """Return the query for the newest failed attempts; wrong outputs are failures."""
    attempted = column_list(_ATTEMPTED)
    return f"""
SELECT {attempted},
    {column_list(("status", "reason", "run_id"), "arg_max({0}, started_at) AS {0}")},
    max(started_at) AS moment
FROM launches
WHERE comparable AND NOT answered AND status <> '{Status.SKIPPED}' AND started_at IS NOT NULL
    AND {_REAL} AND {where}
GROUP BY {attempted} ORDER BY ALL"""  # noqa: S608 — our words


def tried_sql() -> str:
    """Return the query for the outcomes of each family on each platform.

    The throughput is compared with the CPU's over what both have results of, as in the matrix. A
    run with mostly unusable launches has none, because its best launch is chance; nor has a launch
    with too few samples to predict the next ones.
    """
    known = f"sample_count IS NULL OR sample_count >= {FEWEST} OR effective_sample_count >= {KNOWN}"
    return f"""
WITH unusable AS (
    SELECT series_key, run_id, true AS is_unusable FROM launches
    WHERE comparable AND answered AND {_REAL}
    GROUP BY series_key, run_id HAVING 2 * count(*) FILTER (times_usable) <= count(*)
), tried AS (
    SELECT coalesce(family, '') AS family, hardware, mode, model, status, reason, runtime, answered,
        CASE WHEN is_unusable IS NULL AND times_usable AND ({known}) THEN {_RATE} END AS rate,
        concat_ws(chr(31), {_text(_QUESTION)}, {unit_kind_sql("throughput_unit")}) AS question
    FROM launches LEFT JOIN unusable USING (series_key, run_id)
    WHERE comparable AND {_REAL} AND status <> '{Status.SKIPPED}' AND model IS NOT NULL
), whole AS (
    SELECT family, hardware, mode, count(DISTINCT model) AS models,
        count(DISTINCT model) FILTER (answered) AS through,
        list(DISTINCT [runtime, reason] ORDER BY [runtime, reason])
            FILTER (status = '{Status.UNSUPPORTED}') AS refusals
    FROM tried GROUP BY ALL
), fastest AS (
    SELECT family, mode, hardware, question, max(rate) AS rate FROM tried
    WHERE answered AND rate > 0 GROUP BY ALL
), beside AS (
    SELECT a.family, a.mode, a.hardware, b.hardware AS other,
        exp(avg(ln(a.rate / b.rate))) AS speed
    FROM fastest a JOIN fastest b USING (family, mode, question)
    WHERE a.hardware <> b.hardware GROUP BY ALL
)
SELECT whole.*, max(speed) FILTER (other = 'cpu') AS speed, coalesce(min(speed), 0) AS least
FROM whole LEFT JOIN beside USING (family, mode, hardware)
GROUP BY ALL ORDER BY family, hardware, mode"""  # noqa: S608 — our words


def cell(number: int, values: dict[str, Any]) -> EvidenceCell:
    """Return the cell of a row of `cells_sql` and its number there."""
    values["moment"] = _spelt(values["moment"])
    rates = tuple(filter(None, values.pop("rate_list")))
    latencies = _of_one_statistic(values.pop("latency_list"), values.pop("statistic_list"))
    counts = values.pop("counts")
    return EvidenceCell(
        cast("EvidenceRow", values), latencies[0], rates, number, latencies[1], counts
    )


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


def tried(row: Mapping[str, Any]) -> Tried:
    """Return the outcomes of a row of `tried_sql`."""
    # A refused precision does not affect others, nor a failure at one size other sizes.
    refusals = [
        (runtime, reason)
        for runtime, reason in row["refusals"] or ()
        if reason and reason != _PRECISION and reason_subject(reason) is Belongs.CELL
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

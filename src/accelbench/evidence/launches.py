"""The relation `launches`: every result as all launches of its configuration have it.

A *configuration* is what a run launches several times: a case on a device. Outputs that are wrong
in one of its launches are wrong in all of the run. If more than half of the launches failed, the
others were selected by their outcome: they are unusable. Rows of an imported table may be launches
of one configuration or not, so each counts separately.

An unusable launch is shown, and takes no part in comparisons, predictions or recommendations.
`unusable_reason` is the first reason that applies. A store has this relation as a view, and
`launches_of` computes it for rows that come from result files or from memory.

`LAUNCH_COLUMNS` are the columns that the relation adds for each launch by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME, CONFIGURATION_COLUMNS, SQL_TYPES, STEP_MS
from accelbench.core.identity import canonical_json, to_plain
from accelbench.core.rows import Row, record
from accelbench.core.unusable_reasons import (
    COMPARABLE,
    FAILED,
    IMPORT,
    LAUNCHED,
    MAX_UNACCOUNTED,
    MAX_WAITING,
    MOSTLY_FAILED,
    REASON_COLUMNS,
    REPORTED_VERIFICATION,
    THIS_ARM,
    UNUSABLE_REASON,
    UNUSABLE_WIDTH,
    UnusableReason,
)
from accelbench.core.vocabulary import Provenance, Quality, Status

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

THIS_ARM_SQL = f"coalesce(arm, '') IN ('', '{THIS_ARM}')"
COMPARABLE_SQL = (
    f"provenance IN ({', '.join(repr(source.value) for source in COMPARABLE)}) AND {THIS_ARM_SQL}"
)
#: Whether a row of benchmark_results is from an imported table.
OF_IMPORT_SQL = f"starts_with(coalesce(run_id, ''), '{IMPORT}')"
#: Whether the times of a row may decide anything; true if no quality is known.
USABLE_SQL = f"coalesce(quality, '') <> '{Quality.UNUSABLE.value}'"
#: Half-width at which sampling ends, as a share of the value, and the fewest independent samples
#: that support it. An interval of five samples extends from the fastest to the slowest, and five
#: similar samples show little about the sixth.
_NARROW, _KNOWN = 0.01, 20.0
_FAIRLY_NARROW = 0.05


def wide_sql(slack: float = 0.0) -> str:
    """Return SQL for whether the interval of a row is too wide; never NULL.

    `slack` is the share by which the limit may be exceeded: a file may be in single precision.
    """
    limit = UNUSABLE_WIDTH * (1.0 + slack)
    return (
        "coalesce((latency_ci_high_ms - latency_ci_low_ms) / 2.0"
        f" > {limit} * coalesce(latency_p50_ms, latency_mean_ms), false)"
    )


def _within_sql(share: float) -> str:
    """Return SQL for whether enough independent samples carry an interval of ± this share."""
    step = ", ".join(f"nullif({name}, 0)" for name in STEP_MS)
    return (
        "(coalesce(latency_ci_high_ms - latency_ci_low_ms"
        f" <= {2.0 * share} * coalesce({step}), false)"
        f" AND coalesce(effective_sample_count, 0) >= {_KNOWN})"
    )


#: Whether a result converged. With a fixed number of samples the interval decides, if at least
#: twenty independent samples support it.
SETTLED_SQL = f"""CASE WHEN quality = '{Quality.FIXED.value}' THEN {_within_sql(_NARROW)}
    ELSE coalesce(quality, '{Quality.CONVERGED.value}') = '{Quality.CONVERGED.value}' END"""
#: Whether a launch may show a change together with few others. Its interval is within ±5 %, which
#: is less than the difference of launches. An interval that spans two modes of the samples is
#: wider.
DECISIVE_SQL = f"""({SETTLED_SQL} OR quality IN ('{Quality.FIXED.value}',
    '{Quality.NOISE_LIMITED.value}', '{Quality.TIME_LIMITED.value}')
    AND {_within_sql(_FAIRLY_NARROW)})"""
#: Columns from which it follows whether a row is usable and settled.
QUALITY_COLUMNS = (
    *("quality", "latency_ci_low_ms", "latency_ci_high_ms", "effective_sample_count"),
    *STEP_MS,
)
#: Whether a launch succeeded without wrong outputs. Our runs store wrong outputs as failed;
#: imported files may have the status ok for them.
ANSWERED_SQL = "(status = 'ok' AND coalesce(verification, '') <> 'failed')"
_WRONG = "wrong_outputs"
#: Whether the outputs of a row are known to be wrong.
WRONG_SQL = f"(coalesce(verification, '') = 'failed' OR coalesce(reason, '') = '{_WRONG}')"

_CONFIGURATION = ("run_id", "case_id", "device_fingerprint", "arm")
#: Identity of a result without a case. A failed launch has no number of threads.
_CASE_COLUMNS = tuple(name for name in CONFIGURATION_COLUMNS if name != "threads")
#: The software among the conditions of a result.
SOFTWARE = ("packages", "python", "kernel")
#: Conditions that describe a result, its position in a run or the machine's limits. They do not
#: distinguish two versions of an imported table.
_NO_VERSION = (
    *("source", "said", "kin", "job_id", "ID", "cases_before_in_worker"),
    *("rules", "variables", "allocator", "commit", "effective_cpus", "effective_memory"),
)
#: The run of a row. For imports and for results without a run it is a day.
RUN_SQL = (
    f"CASE WHEN coalesce(run_id, '') = '' OR {OF_IMPORT_SQL}"
    " THEN concat_ws(chr(31), coalesce(run_id, ''), coalesce(started_at::DATE::VARCHAR, ''))"
    " ELSE run_id END"
)
_PARTS = ", ".join(f"'$.{name}'" for name in SOFTWARE)
#: The software of a result as a hash; NULL if its conditions name none.
SOFTWARE_SQL = (
    "md5(nullif(array_to_string([coalesce(nullif(part::VARCHAR, 'null'), '')"
    f" for part in json_extract(conditions, [{_PARTS}])], chr(31)), '{chr(31) * 2}'))"
)
#: The version of a user's file or code; empty for models that a config builds.
OWNED_SQL = "CASE WHEN weights IN ('file', 'code') THEN coalesce(weights_digest, '') ELSE '' END"
#: Distinguishes the versions of one import, as JSON; NULL for our own results, whose newest
#: software is current. Results of an import's versions are shown side by side.
VERSION_SQL = (
    f"CASE WHEN {OF_IMPORT_SQL} THEN json_merge_patch("
    "json_merge_patch('{}', coalesce(conditions, '{}')),"
    f" '{canonical_json(dict.fromkeys(_NO_VERSION))}')::VARCHAR END"
)


def _is_mostly_failed_sql(failed: str, launched: str) -> str:
    """Return SQL for whether most launches failed."""
    return f"2 * {failed} > {launched}"


#: Columns of the relation that are computed for each launch.
LAUNCH_COLUMNS = {
    "answered": ANSWERED_SQL,
    "answered_itself": f"(status = '{Status.OK}'"
    f" AND coalesce({REPORTED_VERIFICATION}, '') <> 'failed')",
    "wrong_outputs": WRONG_SQL,
    "times_usable": USABLE_SQL,
    MOSTLY_FAILED: f"coalesce({_is_mostly_failed_sql(FAILED, LAUNCHED)}, false)",
    "settled": SETTLED_SQL,
    "decisive": f"coalesce({DECISIVE_SQL}, false)",
    "comparable": f"coalesce({COMPARABLE_SQL}, false)",
    "this_arm": THIS_ARM_SQL,
    "of_import": OF_IMPORT_SQL,
    "run_key": RUN_SQL,
    "software_id": SOFTWARE_SQL,
    "owned_version": OWNED_SQL,
    "import_version": f"md5({VERSION_SQL})",
}
#: Columns that the relation is computed from.
_READ = tuple(
    dict.fromkeys(
        (
            *(*_CONFIGURATION, *REASON_COLUMNS, *QUALITY_COLUMNS),
            *("status", "reason", "verification", "emulated", "provenance"),
            *("started_at", "weights", "weights_digest"),
        )
    )
)
#: Columns of the relation in addition to those of the results.
DERIVED = (FAILED, LAUNCHED, REPORTED_VERIFICATION, UNUSABLE_REASON, "usable", *LAUNCH_COLUMNS)

#: Conditions in the order of the reasons.
_CONDITIONS = {
    UnusableReason.SKIPPED: f"status = '{Status.SKIPPED}'",
    UnusableReason.WRONG_OUTPUTS: WRONG_SQL,
    UnusableReason.FAILED: f"status <> '{Status.OK}'",
    UnusableReason.EMULATED: "emulated",
    UnusableReason.SIMULATED: f"provenance = '{Provenance.SIMULATED}'",
    UnusableReason.PREDICTED: f"provenance = '{Provenance.PREDICTED}'",
    UnusableReason.IMPLAUSIBLE: "implausible_rate IS NOT NULL",
}
#: Conditions of a launch with the quality `unusable`; without any of them it is too noisy.
_CONDITIONS_OF_TIMES = {
    UnusableReason.MOST_LAUNCHES_FAILED: _is_mostly_failed_sql(FAILED, LAUNCHED),
    UnusableReason.WAITED: f"cpu_wait_share > {MAX_WAITING}",
    UnusableReason.UNACCOUNTED: f"unexplained_share > {MAX_UNACCOUNTED} AND NOT {wide_sql()}",
}


def _whens(conditions: Mapping[UnusableReason, str]) -> str:
    return " ".join(f"WHEN {sql} THEN '{reason}'" for reason, sql in conditions.items())


#: The reason why a launch is unusable; NULL if it is usable.
UNUSABLE_REASON_SQL = f"""CASE {_whens(_CONDITIONS)}
    WHEN quality = '{Quality.UNUSABLE}' THEN CASE
        {_whens(_CONDITIONS_OF_TIMES)} ELSE '{UnusableReason.TOO_NOISY}' END END"""


def launches_sql(table: str = "benchmark_results", runs: str = "") -> str:
    """Return the query of the relation.

    `table` has the results. `runs` is a query for the needed runs, which avoids the search for
    failures in others.
    """
    each = ", ".join(f"{sql} AS {name}" for name, sql in LAUNCH_COLUMNS.items())
    return f"""SELECT *, {UNUSABLE_REASON} IS NULL AS usable, {each} FROM (
        SELECT *, {UNUSABLE_REASON_SQL} AS {UNUSABLE_REASON} FROM (
            SELECT result.* REPLACE ({replacement_columns()}), failing.failed AS {FAILED},
                failing.launched AS {LAUNCHED}, result.verification AS {REPORTED_VERIFICATION}
            FROM {table} AS result LEFT JOIN ({failing_sql(table, runs)}) AS failing
            ON {same_configuration_sql("failing")}))"""  # noqa: S608 — our words


def failing_sql(table: str = "benchmark_results", runs: str = "") -> str:
    """Return a query for the configurations with failed launches.

    Its columns are the configuration, its number of launches, how many of them failed, and whether
    the outputs of one were wrong. `table` has the results. `runs` is a query for the needed runs;
    empty for all.
    """
    failed = (
        f"NOT {ANSWERED_SQL} AND status <> '{Status.SKIPPED}'"
        f" AND coalesce(run_id, '') <> '' AND NOT {OF_IMPORT_SQL}"
    )
    needed = f" AND run_id IN ({runs})" if runs else ""
    key = ", ".join(f"{_part(name)} AS of_{name}" for name in _CONFIGURATION)
    return f"""
        SELECT {key}, count(*) AS launched, count(*) FILTER ({failed}) AS failed,
            coalesce(bool_or({WRONG_SQL}) FILTER ({failed}), false) AS wrong
        FROM {table} WHERE status <> '{Status.SKIPPED}' AND run_id IN (
            SELECT run_id FROM {table} WHERE {failed}{needed})
        GROUP BY ALL HAVING count(*) FILTER ({failed}) > 0"""  # noqa: S608 — our words


#: Columns of a result that depend on the other launches of its configuration, `failing`.
WHOLE_RUNS_COLUMNS = {
    "verification": (
        f"CASE WHEN failing.wrong AND {ANSWERED_SQL} THEN 'failed' ELSE verification END"
    ),
    "quality": (
        f"CASE WHEN {_is_mostly_failed_sql('failing.failed', 'failing.launched')}"
        f" AND NOT failing.wrong AND {ANSWERED_SQL} THEN '{Quality.UNUSABLE}' ELSE quality END"
    ),
}


def replacement_columns() -> str:
    """Return the columns that depend on other launches, for a SELECT or a REPLACE."""
    return ", ".join(f"{sql} AS {name}" for name, sql in WHOLE_RUNS_COLUMNS.items())


def same_configuration_sql(failing: str) -> str:
    """Return the condition that a result belongs to a configuration of the query `failing`."""
    return " AND ".join(f"{_part(name)} = {failing}.of_{name}" for name in _CONFIGURATION)


def _part(name: str) -> str:
    if name == "run_id":
        return name
    if name == "case_id":
        texts = ", ".join(f"coalesce({column}::VARCHAR, '')" for column in _CASE_COLUMNS)
        return f"coalesce({name}, concat_ws(chr(31), {texts}))"
    return f"coalesce({name}, '')"


def launches_of(rows: Iterable[Row]) -> list[Row]:
    """Return results with the columns of the relation; rows that have them stay unchanged.

    `rows` must include failed launches, because the rules depend on them.
    """
    every = list(rows)
    new = [place for place, row in enumerate(every) if not is_derived(row)]
    if not new:
        return every
    for place, columns in zip(new, _derive_columns([every[place] for place in new]), strict=True):
        every[place] = {**every[place], **columns}
    return every


def is_derived(row: Row) -> bool:
    """Return whether a row has the derived columns of the relation."""
    return "run_key" in row


def group_by_run(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the launches of each run."""
    rows_by_run: dict[object, list[Row]] = {}
    for row in rows:
        rows_by_run.setdefault(row["run_key"], []).append(row)
    return list(rows_by_run.values())


def newest_run(rows: Iterable[Row]) -> list[Row]:
    """Return the launches of the newest run."""
    return max(group_by_run(rows), key=latest_start)


def latest_start(run: Iterable[Row]) -> str:
    """Return the latest start of some launches."""
    return max(str(row.get("started_at") or "") for row in run)


def with_reported_outputs(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of `launches_of`, each with the verification of its own launch."""
    return [
        {
            **row,
            "verification": row[REPORTED_VERIFICATION],
            "answered": row["answered_itself"],
        }
        for row in launches_of(rows)
    ]


def _derive_columns(rows: Sequence[Row]) -> Iterable[dict[str, object]]:
    """Compute the columns of the relation in memory."""
    # Thousands of results share a few objects of conditions.
    numbered: dict[int, tuple[int, Mapping[str, object]]] = {}
    inputs = []
    for place, row in enumerate(rows):
        values = {name: value for name in _READ if (value := _value(row.get(name))) is not None}
        if row.get("case_id") is None:
            values |= {name: _value(row.get(name)) for name in _CASE_COLUMNS}
        conditions = record(row, "conditions")
        if conditions:
            known = numbered.setdefault(id(conditions), (len(numbered) + 1, conditions))
            values["said"] = known[0]
        inputs.append(values | {"place": place})
    texts = [canonical_json(conditions) for _, conditions in numbered.values()]
    changed = (*WHOLE_RUNS_COLUMNS, *DERIVED)
    found = query_in_memory(_in_memory_sql(), {"launches": inputs, "texts": texts})
    own = len(WHOLE_RUNS_COLUMNS)
    for row, values_ in zip(rows, found, strict=True):
        both = zip(changed[:own], values_[:own], strict=True)
        replaced = {name: value for name, value in both if value != row.get(name)}
        yield replaced | dict(zip(DERIVED, values_[own:], strict=True))


def _value(value: object) -> object:
    """Return a value for JSON that DuckDB reads, without infinity."""
    return None if type(value) is float and not math.isfinite(value) else value


@cache
def _in_memory_sql() -> str:
    types = {"place": "BIGINT", "said": "BIGINT"}
    types |= {name: SQL_TYPES[BY_NAME[name].kind] for name in (*_READ, *_CASE_COLUMNS)}
    types |= {"started_at": "VARCHAR"}
    whole = json.dumps({"launches": [types], "texts": ["VARCHAR"]})
    return (
        "WITH given AS MATERIALIZED (SELECT * EXCLUDE (said, texts)"  # noqa: S608 — our words
        " REPLACE (try_cast(started_at AS TIMESTAMP) AS started_at),"
        " texts[said]::JSON AS conditions FROM (SELECT unnest(launch), texts FROM ("
        "SELECT unnest(whole.launches) AS launch, whole.texts AS texts"
        f" FROM (SELECT from_json(?::JSON, '{whole}') AS whole))))"
        f" SELECT {', '.join((*WHOLE_RUNS_COLUMNS, *DERIVED))}"
        f" FROM ({launches_sql('given')}) ORDER BY place"
    )


def query_in_memory(sql: str, given: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """Return the rows of a query whose parameter is a JSON document."""
    with _memory().cursor() as con:
        found: list[tuple[Any, ...]]
        found = con.execute(sql, [json.dumps(given, default=to_plain)]).fetchall()
        return found


@cache
def _memory() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})

"""The relation `launches`: every result as all launches of its configuration have it.

A *configuration* is what a run launches several times: a case on a device. Outputs that are wrong
in one of its launches are wrong in all of the run. If more than half of the launches failed, the
others were selected by their outcome: they are unusable. Rows of an imported table may be launches
of one configuration or not, so each counts separately.

An unusable launch is shown, and takes no part in comparisons, predictions or recommendations.
`unusable_reason` is the first reason that applies. A store has this relation as a view, and
`launches_of` computes it for rows that come from result files or from memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from accelbench.core.columns import ASKED, BY_NAME, SQL_TYPES
from accelbench.core.identity import plain
from accelbench.core.rows import Row
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.core.worth import (
    ANSWERED_SQL,
    FAILED,
    LAUNCHED,
    MOST_UNACCOUNTED,
    MOST_WAITING,
    OF_IMPORT_SQL,
    REASON_COLUMNS,
    REPORTED_VERIFICATION,
    UNUSABLE_REASON,
    WRONG_SQL,
    UnusableReason,
    answered,
    usable,
    wide_sql,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONFIGURATION = ("run_id", "case_id", "device_fingerprint", "arm")
#: The question of a result without a case. A launch that failed does not know its threads.
_ASKED = tuple(name for name in ASKED if name != "threads")
#: Columns that the relation is computed from.
_READ = tuple(
    dict.fromkeys(
        (
            *(*_CONFIGURATION, *_ASKED, *REASON_COLUMNS),
            *("status", "reason", "verification", "emulated", "provenance"),
        )
    )
)
#: Columns of the relation in addition to those of the results.
DERIVED = (FAILED, LAUNCHED, REPORTED_VERIFICATION, UNUSABLE_REASON)

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
    UnusableReason.MOST_LAUNCHES_FAILED: f"2 * {FAILED} > {LAUNCHED}",
    UnusableReason.WAITED: f"cpu_wait_share > {MOST_WAITING}",
    UnusableReason.UNACCOUNTED: f"unexplained_share > {MOST_UNACCOUNTED} AND NOT {wide_sql()}",
}


def _whens(conditions: Mapping[UnusableReason, str]) -> str:
    return " ".join(f"WHEN {sql} THEN '{reason}'" for reason, sql in conditions.items())


#: The reason why a launch is unusable; NULL if it is usable.
UNUSABLE_REASON_SQL = f"""CASE {_whens(_CONDITIONS)}
    WHEN quality = '{Quality.UNUSABLE}' THEN CASE
        {_whens(_CONDITIONS_OF_TIMES)} ELSE '{UnusableReason.TOO_NOISY}' END END"""


def launches_sql(table: str = "benchmark_results", runs: str = "") -> str:
    """Return the query of the relation.

    Args:
        table: of results.
        runs: a query for the runs that are needed, which saves to look for failures in others.
    """
    return f"""SELECT *, {UNUSABLE_REASON} IS NULL AS usable FROM (
        SELECT *, {UNUSABLE_REASON_SQL} AS {UNUSABLE_REASON} FROM (
            SELECT result.* REPLACE ({replaced_columns()}), failing.failed AS {FAILED},
                failing.launched AS {LAUNCHED}, result.verification AS {REPORTED_VERIFICATION}
            FROM {table} AS result LEFT JOIN ({failing_sql(table, runs)}) AS failing
            ON {same_configuration_sql("failing")}))"""  # noqa: S608 — our words


def failing_sql(table: str = "benchmark_results", runs: str = "") -> str:
    """Return a query for the configurations of which a launch failed.

    Its columns are the configuration, how many launches it had, how many of them failed, and
    whether the outputs of one were wrong.

    Args:
        table: of results.
        runs: a query for the runs that are needed; all, if it is empty.
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
        "CASE WHEN 2 * failing.failed > failing.launched AND NOT failing.wrong"
        f" AND {ANSWERED_SQL} THEN '{Quality.UNUSABLE}' ELSE quality END"
    ),
}


def replaced_columns() -> str:
    """Return the columns that depend on other launches, for a SELECT or a REPLACE."""
    return ", ".join(f"{sql} AS {name}" for name, sql in WHOLE_RUNS_COLUMNS.items())


def same_configuration_sql(failing: str) -> str:
    """Return the condition that a result is of a configuration of `failing_sql`.

    Args:
        failing: the name of that query.
    """
    return " AND ".join(f"{_part(name)} = {failing}.of_{name}" for name in _CONFIGURATION)


def _part(name: str) -> str:
    if name == "run_id":
        return name
    if name == "case_id":
        texts = ", ".join(f"coalesce({column}::VARCHAR, '')" for column in _ASKED)
        return f"coalesce({name}, concat_ws(chr(31), {texts}))"
    return f"coalesce({name}, '')"


def launches_of(rows: Iterable[Row]) -> list[Row]:
    """Return results as the relation has them; those that were read from it stay as they are.

    Args:
        rows: of any status: the rule depends on the launches that failed.
    """
    every = list(rows)
    new = [(place, row) for place, row in enumerate(every) if not _is_derived(row)]
    failed = {row.get("run_id") for _, row in new if not answered(row)}
    # Only these can differ: in memory, a row costs 30 µs.
    needed = [(place, row) for place, row in new if row.get("run_id") in failed or not usable(row)]
    if any(answered(row) for _, row in needed):
        for place, changes in _derived(needed):
            if answered(every[place]):
                every[place] = {**every[place], **changes}
    return every


def _is_derived(row: Row) -> bool:
    return UNUSABLE_REASON in row or FAILED in row


def with_reported_outputs(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of `launches_of`, each with the verification of its own launch."""
    return [
        {**row, "verification": row[REPORTED_VERIFICATION]} if REPORTED_VERIFICATION in row else row
        for row in launches_of(rows)
    ]


def derived_values(row: Row) -> dict[str, object]:
    """Return the derived columns of a row of the relation, without those that say nothing."""
    return {
        name: row[name]
        for name in DERIVED
        if row[name] is not None
        and (name != REPORTED_VERIFICATION or row[name] != row["verification"])
    }


def _derived(rows: Iterable[tuple[int, Row]]) -> Iterable[tuple[int, dict[str, object]]]:
    """Compute the relation in memory: the place of each row, and what it has otherwise."""
    text = json.dumps(
        [
            {"place": place, **{name: _plain(row.get(name)) for name in _READ}}
            for place, row in rows
        ],
        default=str,
    )
    types = {"place": "BIGINT"} | {name: SQL_TYPES[BY_NAME[name].kind] for name in _READ}
    changed = ("verification", "quality", *DERIVED)
    with _memory().cursor() as con:
        found = con.execute(
            "WITH given AS MATERIALIZED ("  # noqa: S608 — our words
            "SELECT unnest(row) FROM (SELECT unnest(from_json(?, ?)) AS row))"
            f" SELECT place, {', '.join(changed)} FROM ({launches_sql('given')})",
            [text, json.dumps([types])],
        ).fetchall()
    for place, *values in found:
        row = dict(zip(changed, values, strict=True))
        own = {name: row[name] for name in ("verification", "quality") if row[name] is not None}
        yield place, own | derived_values(row)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else plain(value)


@cache
def _memory() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})

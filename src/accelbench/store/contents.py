"""Contents of a database: counts, names, and the results that are refused or implausible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelbench.core.facts import RESULT_REFUSED
from accelbench.core.worth import UnusableReason
from accelbench.store.fit import spell_time
from accelbench.store.implausible import implausible_results
from accelbench.store.schema import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def contents(con: DuckDBPyConnection) -> dict[str, object]:
    """Return what a database holds, as `db status` reports it in JSON."""

    def scalar(sql: str) -> object:
        return con.execute(sql).fetchall()[0][0]

    by_status = con.execute(
        "SELECT coalesce(status, 'unknown'), count(*) FROM benchmark_results GROUP BY 1 ORDER BY 1"
    ).fetchall()
    by_provenance = con.execute(
        "SELECT coalesce(provenance, 'unknown'), count(*) FROM benchmark_results"
        " GROUP BY 1 ORDER BY 1"
    ).fetchall()
    unusable = con.execute(
        "SELECT unusable_reason, count(*) FROM launches WHERE unusable_reason <> ?"
        " GROUP BY 1 ORDER BY 1",
        [UnusableReason.FAILED.value],  # the status names what happened
    ).fetchall()
    first, last = con.execute(
        "SELECT min(started_at), max(coalesce(finished_at, started_at)) FROM benchmark_results"
    ).fetchall()[0]
    models = con.execute("SELECT DISTINCT model FROM benchmark_results ORDER BY 1").fetchall()
    runs = con.execute("SELECT status, count(*) FROM benchmark_runs GROUP BY 1 ORDER BY 1")
    runs_by_status = dict(runs.fetchall())
    return {
        "tables": {name: scalar(f"SELECT count(*) FROM {name}") for name in TABLES},  # noqa: S608
        "results_by_status": dict(by_status),
        "results_by_provenance": dict(by_provenance),
        "unusable_by_reason": dict(unusable),
        "runs_by_status": runs_by_status,
        "models": [name for (name,) in models if name is not None],
        "hardware": [
            name
            for (name,) in con.execute(
                "SELECT DISTINCT hardware FROM benchmark_results ORDER BY 1"
            ).fetchall()
            if name is not None
        ],
        "first_result_at": spell_time(first) if first else None,
        "last_result_at": spell_time(last) if last else None,
        "refused": _refused(con),
        "implausible": implausible_results(con),
    }


def _refused(con: DuckDBPyConnection) -> list[dict[str, object]]:
    """Return results that were not stored, with the reasons, without those that came in later."""
    cursor = con.execute(
        "SELECT run_id, id, body->>'model', body->>'why' FROM fact WHERE kind = ?"
        " AND id NOT IN (SELECT result_id FROM benchmark_results) ORDER BY ALL",
        [RESULT_REFUSED],
    )
    names = ("run_id", "result_id", "model", "why")
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

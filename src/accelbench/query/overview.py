"""A store at a glance: how much it holds, its last run, and the fastest step of each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import STEP_MS
from accelbench.core.rows import ResultRow
from accelbench.core.vocabulary import Mode, Provenance, Status
from accelbench.core.worth import ANSWERED_SQL, USABLE_SQL

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Models that are shown, those measured last.
MOST_MODELS = 8
_STEP = f"coalesce({', '.join(STEP_MS)})"
_MEASURED = f"provenance = '{Provenance.MEASURED.value}' AND mode = '{Mode.INFERENCE.value}'"
_COUNTS = """
SELECT count(*), count(DISTINCT model), count(DISTINCT run_id) FROM benchmark_results
"""
_LAST = """
SELECT run_id, max(coalesce(finished_at, started_at)) FROM benchmark_results
GROUP BY run_id ORDER BY 2 DESC, 1 DESC LIMIT 1
"""
_OF_RUN = "SELECT status, count(*) FROM benchmark_results WHERE run_id = ? GROUP BY 1 ORDER BY 1"
#: Of each model the configuration whose smallest batch has the fastest step.
_FASTEST = f"""
WITH usable AS (
    SELECT result_id, model, batch_size, {_STEP} AS step, started_at FROM benchmark_results
    WHERE {ANSWERED_SQL} AND {USABLE_SQL} AND {_MEASURED} AND {_STEP} IS NOT NULL
), last AS (
    SELECT model, max(started_at) AS seen FROM usable GROUP BY model ORDER BY seen DESC LIMIT ?
)
SELECT result_id FROM usable JOIN last USING (model)
QUALIFY row_number() OVER (PARTITION BY model ORDER BY batch_size, step, result_id) = 1
ORDER BY seen DESC, model
"""  # noqa: S608


@dataclass(frozen=True)
class LastRun:
    """The run whose results came last."""

    run_id: str
    at: datetime
    by_status: Mapping[Status, int]


@dataclass(frozen=True)
class StoreOverview:
    """What a store holds.

    Attributes:
        name: of the store, as it is opened.
        fastest: a result each of the models measured last, of inference.
    """

    name: str
    results: int
    models: int
    runs: int
    last: LastRun | None
    fastest: tuple[ResultRow, ...]


def overview_of(database: Database) -> StoreOverview:
    """What a store holds at a glance."""
    with database.asking():
        counts: Any = database.query(_COUNTS)[1][0]
        last: Any = database.query(_LAST)[1]
        chosen = [str(name) for (name,) in database.query(_FASTEST, [MOST_MODELS])[1]]
        found = {}
        if chosen:
            marks = ", ".join("?" * len(chosen))
            rows = database.results(f"result_id IN ({marks})", chosen)
            found = {row["result_id"]: row for row in rows}
        of_run: Any = database.query(_OF_RUN, [last[0][0]])[1] if last else []
    return StoreOverview(
        database.name,
        counts[0],
        counts[1],
        counts[2],
        LastRun(str(last[0][0]), last[0][1], {Status(s): n for s, n in of_run}) if last else None,
        tuple(found[name] for name in chosen),
    )

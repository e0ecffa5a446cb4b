"""A store at a glance: its last run, the fastest step for each task, and what is unsteady."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import STEP_MS
from accelbench.core.rows import ResultRow
from accelbench.core.vocabulary import Mode, Provenance, Quality, Status
from accelbench.evidence.launches import ANSWERED_SQL
from accelbench.evidence.measurements import current_sql
from accelbench.judge.filters import marks

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: Models that are shown, those measured last.
MOST_MODELS = 8
#: Figures of which nobody can say what they would be the next time.
UNSTEADY = (Quality.UNSTEADY, Quality.THROTTLED, Quality.UNUSABLE)
#: Unsteady results that are named, those measured last.
MOST_UNSTEADY = 3
_STEP = f"coalesce({', '.join(STEP_MS)})"
_OURS = f"provenance = '{Provenance.MEASURED.value}'"
_MEASURED = f"{_OURS} AND mode = '{Mode.INFERENCE.value}'"
_COUNTS = """
SELECT count(*), count(DISTINCT model), count(DISTINCT run_id) FROM benchmark_results
"""
_LAST = """
SELECT run_id, max(coalesce(finished_at, started_at)) FROM benchmark_results
GROUP BY run_id ORDER BY 2 DESC, 1 DESC LIMIT 1
"""
_OF_RUN = "SELECT status, count(*) FROM benchmark_results WHERE run_id = ? GROUP BY 1 ORDER BY 1"
_USABLE = f"usable AND {_MEASURED} AND {_STEP} > 0"
#: Models by when they were measured last.
_NEWEST = f"""
SELECT model FROM launches WHERE {_USABLE}
GROUP BY model ORDER BY max(started_at) DESC, model LIMIT {MOST_MODELS}
"""  # noqa: S608
#: Of each model the configuration with the fastest step, at the batch size that most devices ran,
#: the smallest of several. The launches that stand for it count: the quickest launch that ever was
#: is chance, or of older code. The launch nearest to the middle of them is shown.
_FASTEST = """
WITH standing AS (
    SELECT result_id, model, task, batch_size, {step} AS step, started_at, {device} AS device,
        avg(ln({step})) OVER (PARTITION BY {configuration}) AS middle
    FROM launches WHERE {usable} AND {of_them} AND {stands}
), ran AS (
    SELECT model, batch_size, count(DISTINCT device) AS devices FROM standing GROUP BY ALL
), fastest AS (
    SELECT standing.*, devices FROM standing JOIN ran ON standing.model = ran.model
        AND standing.batch_size IS NOT DISTINCT FROM ran.batch_size
    QUALIFY row_number() OVER (
        PARTITION BY standing.model ORDER BY standing.batch_size IS NULL, devices DESC,
            standing.batch_size, middle, abs(ln(step) - middle), result_id) = 1
)
SELECT result_id FROM fastest
ORDER BY max(started_at) OVER (PARTITION BY task) DESC, task, middle, model
"""
_CONFIGURATION = ("series_key", "case_id", "device_fingerprint", "model", "runtime", "batch_size")
#: Of each series what was measured last, where that is unsteady.
_UNSTEADY = f"""
WITH newest AS (
    SELECT result_id, quality, started_at FROM benchmark_results
    WHERE {ANSWERED_SQL} AND {_OURS} AND {_STEP} IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY coalesce(series_key, result_id) ORDER BY started_at DESC, result_id
    ) = 1
), counted AS (SELECT *, count(*) OVER () AS of_them FROM newest)
SELECT result_id, of_them, count(*) OVER () FROM counted
WHERE quality IN ({", ".join(f"'{quality.value}'" for quality in UNSTEADY)})
ORDER BY started_at DESC, result_id LIMIT {MOST_UNSTEADY}
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
        fastest: a result each of the models measured last, of inference, by their tasks.
        unsteady: of what was measured last of anything, a few results that nobody may rely on.
        unsteady_count: all such results.
        series_count: all that was measured, each once.
    """

    name: str
    results: int
    models: int
    runs: int
    last: LastRun | None
    fastest: tuple[ResultRow, ...]
    unsteady: tuple[ResultRow, ...] = ()
    unsteady_count: int = 0
    series_count: int = 0


def measured_last(database: Database) -> list[str]:
    """Every model that was measured here, the newest first."""
    query = f"""
    SELECT model FROM benchmark_results WHERE {_OURS} AND model IS NOT NULL
    GROUP BY model ORDER BY max(started_at) DESC, model
    """  # noqa: S608
    return [str(model) for (model,) in database.query(query)[1]]


def overview_of(database: Database) -> StoreOverview:
    """What a store holds at a glance."""
    with database.keep_open():
        counts: Any = database.query(_COUNTS)[1][0]
        last: Any = database.query(_LAST)[1]
        chosen = _fastest(database)
        unsteady: Any = database.query(_UNSTEADY)[1]
        unsteady_ids = [str(name) for name, _, _ in unsteady]
        rows = _rows(database, [*chosen, *unsteady_ids])
        of_run: Any = database.query(_OF_RUN, [last[0][0]])[1] if last else []
    return StoreOverview(
        database.name,
        counts[0],
        counts[1],
        counts[2],
        LastRun(str(last[0][0]), last[0][1], {Status(s): n for s, n in of_run}) if last else None,
        tuple(rows[name] for name in chosen),
        tuple(rows[name] for name in unsteady_ids),
        *((unsteady[0][2], unsteady[0][1]) if unsteady else ()),
    )


def _fastest(database: Database) -> list[str]:
    """Results of the models measured last, one each."""
    models = [model for (model,) in database.query(_NEWEST)[1]]
    if not models:
        return []
    of_them = f"model IN ({', '.join('?' * len(models))})"
    query = _FASTEST.format(
        step=_STEP,
        device="coalesce(nullif(device_name, ''), hardware)",
        configuration=", ".join(_CONFIGURATION),
        usable=_USABLE,
        of_them=of_them,
        stands=current_sql(_CONFIGURATION, f"{_OURS} AND {of_them}"),
    )
    # The rule of what stands asks for the models twice, as it says itself.
    return [str(name) for (name,) in database.query(query, [*models, *models])[1]]


def _rows(database: Database, names: list[str]) -> dict[str, ResultRow]:
    if not names:
        return {}
    return {
        str(row["result_id"]): row
        for row in database.results(f"result_id IN ({marks(names)})", names)
    }

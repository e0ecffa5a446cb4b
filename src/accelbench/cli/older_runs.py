"""What other runs on a machine came to: of the series that are judged, and of those beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.analysis.judging import METRICS
from accelbench.analysis.run_noise import OLDER_RUNS, Histories, Run, alike, of_runs
from accelbench.cli.stored import marks
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.measure.runs import MOST_NEIGHBOURS

if TYPE_CHECKING:
    from accelbench.store.database import Database

_ALIKE = "runtime || chr(31) || coalesce(device_fingerprint, device_name)"
_COUNTS = (
    f"status = 'ok' AND {COMPARABLE_SQL} AND provenance = 'measured' AND started_at IS NOT NULL"
    " AND series_key IS NOT NULL AND run_id IN ({runs})"
)
#: The newest runs of each series, of those asked about and of the nearest with the longest history.
_RUNS = f"""
WITH beside AS (
    SELECT series_key FROM benchmark_results
    WHERE {_COUNTS} AND {_ALIKE} IN ({{alike}}) AND series_key NOT IN ({{own}})
    GROUP BY series_key, {_ALIKE}
    QUALIFY row_number() OVER (
        PARTITION BY {_ALIKE} ORDER BY count(DISTINCT run_id) DESC, series_key
    ) <= {MOST_NEIGHBOURS}
)
SELECT series_key, runtime, coalesce(device_fingerprint, device_name), max(started_at)::VARCHAR,
    {{values}}
FROM benchmark_results
WHERE {_COUNTS} AND (series_key IN ({{own}}) OR series_key IN (SELECT series_key FROM beside))
GROUP BY series_key, run_id, runtime, coalesce(device_fingerprint, device_name)
QUALIFY row_number() OVER (PARTITION BY series_key ORDER BY max(started_at) DESC) <= {OLDER_RUNS}
"""  # noqa: S608 — our columns


def older_runs(
    database: Database, now: Sequence[Mapping[str, Any]], runs: Sequence[str]
) -> Histories:
    """The histories of what is judged.

    Args:
        database: where they are.
        now: what is judged.
        runs: those that count: of this machine, and none that is judged.
    """
    own = sorted({str(row["series_key"]) for row in now if row.get("series_key")})
    if not own or not runs:
        return Histories()
    near = sorted({chr(31).join(alike(row)) for row in now})
    sql = _RUNS.format(
        runs=marks(runs),
        own=marks(own),
        alike=marks(near),
        values=", ".join(f"list({metric.sql})" for metric in METRICS),
    )
    _, rows = database.query(sql, [*runs, *near, *own, *runs, *own])
    found: dict[str, list[Run]] = {}
    about: dict[str, tuple[str, str]] = {}
    for key, runtime, device, moment, *lists in rows:
        values = {
            metric.name: [value for value in of_it or () if value is not None and value > 0]
            for metric, of_it in zip(METRICS, lists, strict=True)
        }
        found.setdefault(str(key), []).append(Run(str(moment), values))
        about[str(key)] = (str(runtime), str(device))
    return of_runs(found, about)

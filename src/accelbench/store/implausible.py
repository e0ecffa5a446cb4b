"""Marking of imported results whose rate exceeds the documented peak of their device.

A marked result has the quality `unusable` and its calculation in `implausible_rate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelbench.core.device_facts import (
    MILLISECONDS,
    MOST_OF_PEAK,
    OPERATIONS,
    PEAK,
    RATE,
    documented_peak,
)
from accelbench.core.vocabulary import Provenance, Quality
from accelbench.store.derived import operations_sql, step_ms_sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: The column with the calculation.
IMPLAUSIBLE = "implausible_rate"
#: Imported results with a time, each with the documented peak of its devices.
_WHO = ("device_name", "hardware", "precision", "world_size")
_IMPORTED = f"provenance = '{Provenance.IMPORTED.value}' AND status = 'ok'"
_KINDS = f"""
SELECT DISTINCT {", ".join(_WHO)} FROM fact_result
WHERE {_IMPORTED} AND implausible_rate IS NULL AND device_name IS NOT NULL
"""  # noqa: S608 — our columns
_MARK = """
UPDATE fact_result SET quality = '{unusable}', implausible_rate = MAP {{
    '{operations}': {work}, '{milliseconds}': {step}, '{rate}': {work} / ({step} / 1e3),
    '{peak}': known.peak
}}
FROM (
    SELECT unnest(?::VARCHAR[]) AS name, unnest(?::VARCHAR[]) AS platform,
        unnest(?::VARCHAR[]) AS kind, unnest(?::BIGINT[]) AS devices, unnest(?::DOUBLE[]) AS peak
) AS known
WHERE {imported} AND implausible_rate IS NULL
    AND device_name = known.name AND hardware IS NOT DISTINCT FROM known.platform
    AND precision IS NOT DISTINCT FROM known.kind
    AND world_size IS NOT DISTINCT FROM known.devices
    AND {work} > {most} * known.peak * ({step} / 1e3)
"""


def mark_implausible(con: DuckDBPyConnection) -> None:
    """Mark the imported results of a database, in its transaction."""
    known = [
        (name, hardware, precision, devices, peak)
        for name, hardware, precision, devices in con.execute(_KINDS).fetchall()
        if (peak := documented_peak(name, hardware or "", precision or "", devices or 1))
    ]
    if not known:
        return
    words = {
        "unusable": Quality.UNUSABLE.value,
        "operations": OPERATIONS,
        "milliseconds": MILLISECONDS,
        "rate": RATE,
        "peak": PEAK,
        "work": operations_sql(lambda _: True),
        "step": step_ms_sql(lambda _: True),
        "imported": _IMPORTED,
        "most": MOST_OF_PEAK,
    }
    con.execute(_MARK.format(**words), list(map(list, zip(*known, strict=True))))


def implausible_results(con: DuckDBPyConnection) -> list[dict[str, object]]:
    """Return every marked result with its calculation, the one furthest above its peak first."""
    names = (
        *("result_id", "model", "device_name", "hardware", "runtime", "precision", "batch_size"),
        IMPLAUSIBLE,
    )
    rows = con.execute(
        f"SELECT {', '.join(names)} FROM benchmark_results WHERE {IMPLAUSIBLE} IS NOT NULL"  # noqa: S608
        f" ORDER BY {IMPLAUSIBLE}['{RATE}'] / {IMPLAUSIBLE}['{PEAK}'] DESC, result_id"
    ).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]

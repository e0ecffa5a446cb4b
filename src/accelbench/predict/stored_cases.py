"""Measured cases of a store: what the predictor of cases learns from.

Of each series the newest run that answered counts, by the median of its usable launches, each by
the median of its steps: means of a few steps are off by what disturbed one of them (13.5 % for
15.4 on unseen models in PyTorch). What was predicted or simulated is never learned from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.catalog.find import find
from accelbench.catalog.inputs import settle
from accelbench.core.axes import AXES
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.figures import STEP_SQL
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import SINGLE_STREAM, Mode
from accelbench.core.worth import ANSWERED_SQL, USABLE_SQL
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase, shapes_from
from accelbench.query.histories import OF_NO_CHECK_SQL

if TYPE_CHECKING:
    from accelbench.store.database import Database

_WAY = (
    "model", "hardware", "device_name", "runtime", "precision", "mode", "compiled", "threads",
    "options", "optimizer", "batch_size", *(axis.column for axis in AXES),
)  # fmt: skip
_SQL = f"""
WITH counted AS (
    SELECT {", ".join(_WAY)}, coalesce(latency_p50_ms, {
    STEP_SQL
}) AS latency_ms, memory_peak_mb, started_at,
        coalesce(run_id, '') AS run
    FROM benchmark_results
    WHERE {ANSWERED_SQL} AND {USABLE_SQL} AND {COMPARABLE_SQL} AND {OF_NO_CHECK_SQL}
        AND NOT coalesce(emulated, false) AND coalesce(world_size, 1) = 1
        AND coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
        AND batch_size > 0 AND model IS NOT NULL
), newest AS (
    SELECT {", ".join(_WAY)}, arg_max(run, started_at) AS run FROM counted GROUP BY ALL
)
SELECT {", ".join(f"counted.{name}" for name in _WAY)},
    median(latency_ms) AS latency_ms, median(memory_peak_mb) AS memory_mb
FROM counted JOIN newest ON {
    " AND ".join(f"counted.{name} IS NOT DISTINCT FROM newest.{name}" for name in _WAY)
} AND counted.run = newest.run
GROUP BY {", ".join(f"counted.{name}" for name in _WAY)} ORDER BY ALL
"""  # noqa: S608 — our columns


@dataclass(frozen=True)
class StoredCases:
    """What a store has to learn from.

    Attributes:
        cases: those whose model the catalogue has.
        without_operators: how many results each other model has.
    """

    cases: tuple[MeasuredCase, ...]
    without_operators: Mapping[str, int]


def stored_cases(database: Database) -> StoredCases:
    """Every measured case of a store, each once."""
    names, rows = database.query(_SQL)
    cases: list[MeasuredCase] = []
    others: dict[str, int] = {}
    for values in rows:
        row: Row = dict(zip(names, values, strict=True))
        case = _case(row)
        if case is None:
            others[text(row, "model")] = others.get(text(row, "model"), 0) + 1
        else:
            cases.append(MeasuredCase(case, number(row, "latency_ms"), number(row, "memory_mb")))
    return StoredCases(tuple(cases), others)


def _case(row: Row) -> PredictedCase | None:
    """The case of a row; None of a model that has no graph here, or not at these sizes."""
    sizes = {axis.column: int(size) for axis in AXES if (size := number(row, axis.column))}
    try:
        spec = find(text(row, "model"))
        shapes = settle(spec, shapes_from(int(number(row, "batch_size") or 1), sizes))
    except (UsageError, UnsupportedError):
        return None
    options = [text(row, "options")] if text(row, "options") not in {"", "{}", "null"} else []
    options += [text(row, "optimizer")] if text(row, "optimizer") else []
    threads = number(row, "threads")
    configuration = CaseConfiguration(
        hardware=text(row, "hardware"),
        device=text(row, "device_name"),
        runtime=text(row, "runtime"),
        precision=text(row, "precision") or "fp32",
        mode=text(row, "mode") or Mode.INFERENCE,
        compiled=bool(row.get("compiled")),
        threads=None if threads is None else int(threads),
        options=" ".join(options),
    )
    return PredictedCase(spec.id, spec.family, shapes, configuration)

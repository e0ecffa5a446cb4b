"""Measured cases of a store: what the predictor of cases learns from.

Of each series the newest run that answered counts, by the median of its usable launches, each by
the median of its steps: means of a few steps are off by what disturbed one of them (13.5 % for
15.4 on unseen models in PyTorch). What was predicted or simulated is never learned from, nor a case
whose launches scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from accelbench.catalog.find import known_as
from accelbench.catalog.inputs import settle
from accelbench.core.axes import AXES, numbered
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.figures import STEP_SQL
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.core.worth import THIS_ARM_SQL
from accelbench.predict.cases import (
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    family_of,
    measured_cases,
    shapes_from,
)
from accelbench.query.histories import OF_NO_CHECK_SQL

if TYPE_CHECKING:
    from accelbench.core.model import ModelSpec
    from accelbench.store.database import Database

_WAY = (
    "model", "hardware", "device_name", "runtime", "precision", "mode", "compiled", "threads",
    "options", "optimizer", "batch_size", *(axis.column for axis in AXES),
)  # fmt: skip
_KEY = (*_WAY, "fingerprint", "provenance")
#: Launches differ by so many times at most: as the ends of an interval of ±25 % do.
_WIDEST_SPREAD = 1.25 / 0.75
#: By how many times launches differ; of five and more the middle half, as one may be an outlier.
_SPREAD_SQL = """
CASE WHEN count(*) < 5 THEN max(latency_ms) / min(latency_ms)
ELSE quantile_cont(latency_ms, 0.75) / quantile_cont(latency_ms, 0.25) END
"""
_SQL = f"""
WITH counted AS (
    SELECT {", ".join(_WAY)}, coalesce(device_fingerprint, '') AS fingerprint, provenance,
        conditions->'source'->>'name' AS source,
        {STEP_SQL} AS latency_ms, memory_peak_mb, ttft_ms, tpot_ms, coalesce(run_id, '') AS run,
        coalesce(started_at, TIMESTAMP '1970-01-01') AS moment
    FROM launches
    WHERE usable AND {THIS_ARM_SQL} AND {OF_NO_CHECK_SQL} AND coalesce(world_size, 1) = 1
        AND coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
        AND batch_size > 0 AND model IS NOT NULL
), newest AS (
    SELECT {", ".join(_KEY)}, arg_max(run, moment) AS run FROM counted GROUP BY ALL
)
SELECT {", ".join(f"counted.{name}" for name in _KEY)}, max(moment) AS moment,
    max(source) AS source, median(latency_ms) AS latency_ms, median(memory_peak_mb) AS memory_mb,
    median(ttft_ms) AS ttft_ms, median(tpot_ms) AS tpot_ms, {_SPREAD_SQL} AS spread
FROM counted JOIN newest ON {
    " AND ".join(f"counted.{name} IS NOT DISTINCT FROM newest.{name}" for name in _KEY)
} AND counted.run = newest.run
GROUP BY {", ".join(f"counted.{name}" for name in _KEY)} ORDER BY ALL
"""  # noqa: S608 — our columns


@dataclass(frozen=True)
class StoredCases:
    """What a store has to learn from.

    Attributes:
        cases: those whose model the catalogue has, each once.
        parts: of requests, their first token and one after it as cases of their own.
        without_operators: how many results each other model has.
        several: names that several devices have, of which a case is one.
        scattered: how many cases are left out because their launches scatter.
    """

    cases: tuple[MeasuredCase, ...]
    without_operators: Mapping[str, int]
    several: tuple[str, ...] = ()
    parts: tuple[MeasuredCase, ...] = ()
    scattered: int = 0

    @property
    def learnable(self) -> tuple[MeasuredCase, ...]:
        """Everything that a predictor is fitted to."""
        return self.cases + self.parts

    @property
    def said(self) -> str:
        """How many cases there are, and who measured them, in words."""
        of_others = sum(entry.provenance == Provenance.IMPORTED for entry in self.cases)
        return measured_cases(len(self.cases), of_others)


def stored_cases(
    database: Database, model_of: Callable[[str], ModelSpec | None] = known_as
) -> StoredCases:
    """Every measured case of a store, each once.

    One case may be stored in several ways: its default sizes said and not said, its model by other
    names, on several devices of one name, by others. What was measured here goes before what was
    imported, and then the newest counts.

    Args:
        database: the store.
        model_of: looks up the model of a name; None if its operators are unknown.
    """
    names, rows = database.query(_SQL)
    # A store has a thousand names and thirty thousand rows of them.
    catalogued, place_of_model = cache(model_of), names.index("model")
    newest: _Ordered = {}
    parts: _Ordered = {}
    others: dict[str, int] = {}
    scattered = 0
    prints: dict[tuple[str, str], set[str]] = {}
    for values in rows:
        model = str(values[place_of_model])
        spec = catalogued(model)
        # Most rows of public tables are of other models: no more of those is looked at.
        row: Row = {} if spec is None else dict(zip(names, values, strict=True))
        case = None if spec is None else _case(row, spec)
        if case is None:
            others[model] = others.get(model, 0) + 1
            continue
        if (number(row, "spread") or 1.0) > _WIDEST_SPREAD:
            scattered += 1
            continue
        place = case.configuration
        device = prints.setdefault((place.hardware, place.device), set())
        device.add(text(row, "fingerprint"))
        order = (text(row, "provenance") == Provenance.MEASURED, str(row["moment"]))
        measured = MeasuredCase(
            case,
            _positive(row, "latency_ms"),
            _positive(row, "memory_mb"),
            text(row, "provenance") or Provenance.MEASURED,
            text(row, "source"),
        )
        _take(newest, order, measured)
        for part in _parts(case, row):
            _take(
                parts, order, replace(part, provenance=measured.provenance, source=measured.source)
            )
    several = tuple(sorted(name for (_, name), known in prints.items() if len(known) > 1))
    return StoredCases(_measured(newest), others, several, _measured(parts), scattered)


#: Cases by what they are, each with the order that it was taken by.
_Ordered = dict[PredictedCase, tuple[tuple[bool, str], MeasuredCase]]


def _take(newest: _Ordered, order: tuple[bool, str], measured: MeasuredCase) -> None:
    """Keep a case where none is known that goes before it."""
    if measured.case not in newest or order > newest[measured.case][0]:
        newest[measured.case] = (order, measured)


def _measured(newest: _Ordered) -> tuple[MeasuredCase, ...]:
    return tuple(measured for _, measured in newest.values())


def _parts(case: PredictedCase, row: Row) -> list[MeasuredCase]:
    """The first token of a request and one after it, where they were timed apart."""
    if not case.shapes.new_tokens or case.configuration.mode != Mode.INFERENCE:
        return []
    parts = ((case.first_token, "ttft_ms"), (case.next_token, "tpot_ms"))
    timed = ((part, _positive(row, name)) for part, name in parts)
    return [MeasuredCase(part, ms, None) for part, ms in timed if ms is not None]


def _positive(row: Row, name: str) -> float | None:
    """A figure; None of what is none, as a damaged store may hold."""
    value = number(row, name)
    return value if value is not None and 0.0 < value < math.inf else None


def _case(row: Row, spec: ModelSpec) -> PredictedCase | None:
    """The case of a row of a model; None at sizes that it cannot have."""
    sizes = {axis.column: int(size) for axis in numbered() if (size := number(row, axis.column))}
    try:
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
    return PredictedCase(spec.id, family_of(spec), shapes, configuration)

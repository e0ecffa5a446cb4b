"""What earlier results took by the clock: beside their steps, and until sampling ended.

A result's time is that from the end of the one before it in its run to its own end, so that what
its group needed first (a template, references, an export) counts to it. What of that is in no step
is build, load, compilation, checks and passes beside the sampled ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.core.figures import STEP_SQL
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.core.worth import ANSWERED_SQL

if TYPE_CHECKING:
    from accelbench.store.database import Database

#: A gap that is longer lies between two sittings of a resumed run, not before a case.
_LONGEST_GAP = 600.0
_LEAST_SECONDS = 0.05
_FEW = 3
_MOST_SHARE = 0.9

_SQL = f"""
WITH timed AS (
    SELECT *, lag(finished_at) OVER (PARTITION BY run_id ORDER BY started_at) AS before
    FROM benchmark_results WHERE provenance = '{Provenance.MEASURED}'
)
SELECT model, runtime, hardware, precision,
    coalesce(TRY_CAST((conditions->>'cases_before_in_worker') AS INTEGER), 0) = 0 AS opens,
    coalesce(verification, 'not_done') <> 'not_done' AS checked,
    coalesce(conditions->'rules'->>'iterations', conditions->'rules'->>'warmup',
        conditions->'rules'->>'seconds') IS NULL AS by_rules,
    epoch(finished_at) - epoch(started_at) AS own_seconds,
    epoch(started_at) - epoch(before) AS gap_seconds,
    first_inference_ms, warmup_ms, sampling_ms, {STEP_SQL} AS step_ms,
    coalesce(build_ms, 0) + coalesce(load_ms, 0) AS opening_ms, compile_ms
FROM timed
WHERE {ANSWERED_SQL} AND finished_at IS NOT NULL AND started_at IS NOT NULL
    AND sampling_ms IS NOT NULL AND coalesce(scenario, '{SINGLE_STREAM}') = '{SINGLE_STREAM}'
"""  # noqa: S608 — our columns


@dataclass(frozen=True)
class EarlierTime:
    """The time of one earlier result.

    Attributes:
        opens: it was the first of its worker.
        checked: its outputs were compared with a reference.
        beside: seconds in no sampled step.
        phases: of them, those of build, load and compilation.
        step: seconds of a step.
        sampled: seconds of warm-up and sampling, where the rules ended them; None where the number
            of steps was asked for.
    """

    model: str
    runtime: str
    hardware: str
    precision: str
    opens: bool
    checked: bool
    beside: float
    phases: float
    step: float
    sampled: float | None


@dataclass(frozen=True)
class TimesBeside:
    """Seconds beside the steps of some results.

    Attributes:
        low: of one or two results their build, load and compilation alone: what was exported then
            lies in the cache now. Of more the least.
        high: the most, of ten and more results the ninth decile.
    """

    low: float
    high: float


class EarlierTimes:
    """The times of a store's results, by what they are of."""

    def __init__(self, times: Sequence[EarlierTime]) -> None:
        self.times = times
        self._by_case: dict[tuple[str, ...], list[EarlierTime]] = {}
        for entry in times:
            key = (entry.model, entry.runtime, entry.hardware)
            self._by_case.setdefault(key, []).append(entry)

    def beside(
        self, where: tuple[str, str, str], precision: str, *, opens: bool, checked: bool
    ) -> TimesBeside | None:
        """What was taken beside steps; None where nothing was measured.

        Args:
            where: model, runtime and platform.
            precision: results in it count before others.
            opens: of the first case of a worker, or of a further one.
            checked: results that were compared with a reference count before others, or after.
        """
        same = [entry for entry in self._by_case.get(where, ()) if entry.opens is opens]
        for matches in (
            [e for e in same if e.precision == precision and e.checked is checked],
            [e for e in same if e.checked is checked],
            same,
        ):
            if matches:
                seconds = sorted(entry.beside for entry in matches)
                few = len(matches) < _FEW
                low = min(entry.phases for entry in matches) if few else seconds[0]
                high = seconds[math.ceil(_MOST_SHARE * len(seconds)) - 1]
                return TimesBeside(min(max(low, _LEAST_SECONDS), high), high)
        return None


def earlier_times(database: Database) -> EarlierTimes:
    """The times of every answered result of a store."""
    names, rows = database.query(_SQL)
    times = (_time(dict(zip(names, values, strict=True))) for values in rows)
    return EarlierTimes([entry for entry in times if entry is not None])


def _time(row: Mapping[str, object]) -> EarlierTime | None:
    entry: Row = dict(row)
    own, step = number(entry, "own_seconds"), number(entry, "step_ms")
    if own is None or not step:
        return None
    gap = number(entry, "gap_seconds") or 0.0
    sampled = ((number(entry, "warmup_ms") or 0.0) + (number(entry, "sampling_ms") or 0.0)) / 1e3
    stepping = sampled + (number(entry, "first_inference_ms") or 0.0) / 1e3
    opening = number(entry, "opening_ms") or 0.0
    whole = own + (gap if 0 < gap < _LONGEST_GAP else 0.0)
    return EarlierTime(
        text(entry, "model"),
        text(entry, "runtime"),
        text(entry, "hardware"),
        text(entry, "precision") or "fp32",
        bool(entry["opens"]),
        bool(entry["checked"]),
        max(whole - stepping, _LEAST_SECONDS),
        ((number(entry, "compile_ms") or 0.0) + (opening if entry["opens"] else 0.0)) / 1e3,
        step / 1e3,
        sampled if entry["by_rules"] else None,
    )

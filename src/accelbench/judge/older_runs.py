"""Older runs of series on a machine: how much runs differ, and how long results took.

All comparisons read these, so that a command, a page and a verdict use the same older runs. A
result's time lasts from the end of the one before it in its run to its own end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accelbench.core.result_statistics import STEP_SQL
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import SINGLE_STREAM, Provenance
from accelbench.evidence.launches import ANSWERED_SQL, COMPARABLE_SQL
from accelbench.judge.comparability import parted
from accelbench.judge.machines import Machine, machines_of
from accelbench.judge.run_noise import OLDER_RUNS, Histories, Run, alike, of_runs
from accelbench.judge.verdicts import METRICS, UNIT_SQL
from accelbench.measure.run_to_run_noise import MOST_NEIGHBOURS

if TYPE_CHECKING:
    from accelbench.store.database import Database


#: Labels of runs that a check makes for itself; the second is followed by a run's id.
NOISE, RERUN_OF = "check --noise", "rerun of "
#: Of a run: that no check made it for itself.
NOT_OF_A_CHECK = "coalesce(NOT (b.label = ? OR starts_with(b.label, ?)), true)"

#: The same of a row of benchmark_results.
_OF_CHECKS = f"label = '{NOISE}' OR starts_with(label, '{RERUN_OF}')"
OF_NO_CHECK_SQL = (
    f"coalesce(run_id, '') NOT IN (SELECT run_id FROM benchmark_runs WHERE {_OF_CHECKS})"  # noqa: S608
)

_ALIKE = "runtime || chr(31) || coalesce(device_fingerprint, device_name)"
_COUNTS = (
    f"status = 'ok' AND {COMPARABLE_SQL} AND provenance = 'measured' AND started_at IS NOT NULL"
    " AND NOT coalesce(emulated, false)"
    " AND series_key IS NOT NULL AND run_id IN (SELECT unnest(?::VARCHAR[]))"
)
_OWN = "series_key IN (SELECT unnest(?::VARCHAR[]))"
#: The newest runs of each series, of those asked about and of the nearest with the longest history.
_RUNS = f"""
WITH beside AS (
    SELECT series_key FROM benchmark_results
    WHERE {_COUNTS} AND {_ALIKE} IN (SELECT unnest(?::VARCHAR[])) AND NOT {_OWN}
    GROUP BY series_key, {_ALIKE}
    QUALIFY row_number() OVER (
        PARTITION BY {_ALIKE} ORDER BY count(DISTINCT run_id) DESC, series_key
    ) <= {MOST_NEIGHBOURS}
)
SELECT series_key, runtime, coalesce(device_fingerprint, device_name), max(started_at)::VARCHAR,
    max(weights_digest), max(workarounds), max({UNIT_SQL}),
    {", ".join(f"list({metric.sql})" for metric in METRICS)}
FROM benchmark_results
WHERE {_COUNTS} AND ({_OWN} OR series_key IN (SELECT series_key FROM beside))
GROUP BY series_key, run_id, runtime, coalesce(device_fingerprint, device_name)
QUALIFY row_number() OVER (PARTITION BY series_key ORDER BY max(started_at) DESC) <= {OLDER_RUNS}
"""  # noqa: S608 — our columns


#: What a run's figures are of, beside its series.
_KIND = ("weights_digest", "workarounds", "throughput_unit")
#: What is asked for each run of a hundred thousand is made once.
_EVERY = frozenset(metric.name for metric in METRICS)


def _kind(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in _KIND)


def _counting(of: Row, judged: Mapping[tuple[str, ...], Row]) -> frozenset[str]:
    """The metrics by which a run is of what is judged: other things say nothing of its noise.

    Args:
        judged: of its series a row of each kind; a neighbour has none, and counts by all.
    """
    if not judged or _kind(of) in judged:
        return _EVERY
    # What was not read of a row is alike.
    rows = [{name: row.get(name, value) for name, value in of.items()} for row in judged.values()]
    return frozenset(m.name for m in METRICS if any(not parted(m, [row], [of]) for row in rows))


def is_of_a_check(label: str) -> bool:
    """Whether a check made a run of this label for itself."""
    return label == NOISE or label.startswith(RERUN_OF)


def histories_on(
    database: Database,
    rows: Sequence[Row],
    machine: Machine,
    but: Collection[str] = (),
) -> Histories:
    """The older runs of what some results are of, and of what ran beside it, on one machine.

    Args:
        rows: the results that are compared with each other, or judged.
        but: runs that do not, as those that are judged: a change would be part of the noise that it
            is compared with.
    """
    own = sorted({str(row["series_key"]) for row in rows if row.get("series_key")})
    # Launches of one run have in common whatever runs differ by.
    if not own or (not but and len({row.get("run_id") for row in rows}) < 2):
        return Histories()
    return _read(
        database, rows, own, [run for run in _runs_on(database, {machine}) if run not in but]
    )


def histories_of(
    database: Database, sides: Sequence[tuple[Machine | None, Sequence[Row]]]
) -> Histories:
    """The same of results of several machines.

    A series is of a device: where two machines have alike ones its runs on both count.
    """
    every = [row for _, rows in sides for row in rows]
    own = sorted({str(row["series_key"]) for row in every if row.get("series_key")})
    if not own or len({row.get("run_id") for row in every}) < 2:
        return Histories()
    machines = {machine for machine, _ in sides if machine is not None}
    return _read(database, every, own, _runs_on(database, machines) if machines else [])


def _runs_on(database: Database, machines: Collection[Machine]) -> list[str]:
    _, rows = database.query(
        "SELECT run_id, environment::VARCHAR FROM benchmark_runs b"  # noqa: S608 — our words
        f" WHERE {NOT_OF_A_CHECK} ORDER BY run_id",
        [NOISE, RERUN_OF],
    )
    return [run for run, machine in machines_of(rows).items() if machine in machines]


def _read(database: Database, rows: Sequence[Row], own: list[str], runs: list[str]) -> Histories:
    if not runs:
        return Histories()
    near = sorted({chr(31).join(alike(row)) for row in rows})
    _, read = database.query(_RUNS, [runs, near, own, runs, own])
    runs_by_series: dict[str, list[Run]] = {}
    about: dict[str, tuple[str, str]] = {}
    judged: dict[str, dict[tuple[str, ...], Row]] = {}
    for row in rows:
        judged.setdefault(str(row.get("series_key")), {})[_kind(row)] = row
    for key, runtime, device, moment, weights, ways, unit, *lists in read:
        of = dict(zip(_KIND, (weights, ways, unit), strict=True)) | {"throughput": 1.0}
        counting = _counting(of, judged.get(str(key), {}))
        values = {
            metric.name: [value for value in of_it if value is not None and value > 0]
            if isinstance(of_it, list)
            else []
            for metric, of_it in zip(METRICS, lists, strict=True)
            if metric.name in counting
        }
        runs_by_series.setdefault(str(key), []).append(Run(str(moment), values))
        about[str(key)] = (str(runtime), str(device))
    return of_runs(runs_by_series, about)


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

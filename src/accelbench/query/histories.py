"""Older runs of series on a machine, read from a store: by how much runs of a thing differ.

Whatever compares two results with each other takes this from here: a command that was asked for one
model, a page of two cells and a verdict of `check` see the same older runs, and so say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.analysis.comparability import parted
from accelbench.analysis.judging import METRICS, UNIT_SQL
from accelbench.analysis.machines import Machine, machines_of
from accelbench.analysis.run_noise import OLDER_RUNS, Histories, Run, alike, of_runs
from accelbench.core.provenance import COMPARABLE_SQL
from accelbench.core.rows import Row
from accelbench.measure.runs import MOST_NEIGHBOURS

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
        of: what the run's figures are of.
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
        database: where they are.
        rows: the results that are compared with each other, or judged.
        machine: of which runs count.
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
    """All runs on some machines, but for those that checks made for themselves."""
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

"""What pictures are of: results of a database or of files, samples, history, matrix, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from accelbench.core.calibration import CalibratedLimits, TimedCollectives
from accelbench.core.columns import BY_NAME
from accelbench.core.device_facts import facts_of
from accelbench.core.devices import disambiguate_devices
from accelbench.core.errors import UsageError
from accelbench.core.rows import Row, number
from accelbench.evidence.launches import THIS_ARM_SQL
from accelbench.evidence.measurements import cell_of, current_sql, newer_sql
from accelbench.judge.accuracies import accuracies_in, accuracy_places
from accelbench.judge.calibrations import stored_collectives, stored_limits
from accelbench.judge.costs import with_costs
from accelbench.judge.filters import catalogued, has_one_of, marks, where_of
from accelbench.judge.machine_matrix import LocalPlatforms, matrix_on
from accelbench.judge.older_runs import histories_on
from accelbench.judge.points import NEWER, Point, points
from accelbench.judge.run_noise import histories
from accelbench.judge.stored_results import of_machine, rows_of, runs_to_judge
from accelbench.present.charts.chart import Roof
from accelbench.present.texts import phrase
from accelbench.store.body_to_row import step_samples, to_step_ms

if TYPE_CHECKING:
    from accelbench.exchange.imports.records import Record
    from accelbench.exchange.prices import Prices
    from accelbench.judge.history import Series
    from accelbench.judge.machines import Machine
    from accelbench.judge.matrix import Matrix
    from accelbench.present.charts.chart import Subject
    from accelbench.store.database import Database


Filters = Mapping[str, Sequence[str | int]]

#: All that a chart may show of a result, and what accuracies are compared with each other by.
CHART_COLUMNS = (
    *(
        name
        for name, column in BY_NAME.items()
        if column.role != "other"
        and name not in ("evidence", "nulls", "environment", "input_shape")
    ),
    "accuracy_per_sample",
)
#: A case on a device, of which one run stands; an import has many moments in one run.
_CELL = ("case_id", "device_fingerprint", "threads", "provenance")


def subject_in(
    database: Database, filters: Filters, machine: str | None, prices: Prices | None = None
) -> Subject:
    """What a database has of one machine: the one that is named, else that of the newest result.

    Raises:
        NothingMeasuredError: There is nothing of what was asked for.
    """
    from accelbench.present.charts.chart import Subject

    where, values = pictured_where(filters)
    with database.keep_open():
        runs = runs_to_judge(database, filters, where, values)
        here, ours, _ = of_machine(runs, machine)
        of_it = f"{where} AND coalesce(run_id, '') IN ({marks(ours)})"
        stands = f"{of_it} AND {current_sql(_CELL, of_it)}"
        given = 2 * [*values, *ours]
        stored = rows_of(database, CHART_COLUMNS, stands, given, launches=True)
        priced = with_costs(stored, prices, dict.fromkeys(ours, here))
        newer = newer_sql(_CELL, of_it)
        of_cells = _with_newer(database, disambiguate_devices(priced), newer, [*values, *ours])
        rows = _with_ranks(database, of_cells)
        chart_points = points(rows, dict.fromkeys(ours, str(here)))
        return Subject(
            chart_points,
            _samples(database, chart_points),
            _series(database, of_it, [*values, *ours]),
            matrix_of(rows, here, LocalPlatforms()),
            roofs_of(database, rows),
            str(here),
            rows,
            prices,
            histories_on(database, rows, here),
            collectives_of(database, str(here), rows),
            accuracies_in(database, of_it, [*values, *ours], str(here)),
        )


def calibrations_alone(database: Database) -> Subject | None:
    """What a database without results has to draw: collectives; None where it has none."""
    from accelbench.judge.calibrations import stored_collectives
    from accelbench.present.charts.chart import Subject

    known = stored_collectives(database)
    return Subject(collectives=known) if known else None


def _with_newer(
    database: Database, rows: Sequence[Row], query: str, values: Sequence[object]
) -> list[Row]:
    newer = {str(cell): launches for cell, launches in database.query(query, values)[1]}
    if not newer:
        return [*rows]
    return [
        {**row, NEWER: newer[cell]} if (cell := cell_of(row, _CELL)) in newer else row
        for row in rows
    ]


def _with_ranks(database: Database, rows: Sequence[Row]) -> list[Row]:
    several = [str(row["result_id"]) for row in rows if (number(row, "world_size") or 1) > 1]
    if not several:
        return [*rows]
    condition = f"result_id IN ({marks(several)})"
    stored = rows_of(database, ("result_id", "evidence"), condition, several)
    evidence = {str(row["result_id"]): row["evidence"] for row in stored}
    return [
        {**row, "evidence": evidence[key]} if (key := str(row["result_id"])) in evidence else row
        for row in rows
    ]


def subject_of(files: Sequence[Path], filters: Filters, prices: Prices | None = None) -> Subject:
    """What result files say, as `run --output-dir` and `db export` write them.

    Raises:
        UsageError: One of them is no such file, or there is nothing of what was asked for.
    """
    from accelbench.exchange.imports.ours import iter_json_results, read_runs
    from accelbench.exchange.imports.records import read_object
    from accelbench.judge.machines import machine_of
    from accelbench.present.charts.chart import Subject

    rows: dict[str, Row] = {}
    samples: dict[str, list[float]] = {}
    machines: dict[str, Machine] = {}
    for file in files:
        whole = read_object(file)
        runs = read_runs(whole)
        for record, body in iter_json_results(whole):
            row = {name: _plain(value) for name, value in body.items()}
            row["model"] = catalogued(str(body.get("model")))
            if not all(has_one_of(row, name, wanted) for name, wanted in filters.items()):
                continue
            key = str(row["result_id"])
            rows[key] = row
            run = str(row.get("run_id"))
            about = runs.get(run, runs.get(""))
            environment = about.get("environment") if isinstance(about, Mapping) else None
            machines[run] = machine_of(run, environment)
            if record.has("samples"):
                samples[key] = _samples_in(record)
    if not rows:
        raise UsageError(phrase("report.files-without-results"))
    ordered = sorted(rows.values(), key=lambda r: (str(r.get("started_at")), r["result_id"]))
    priced = disambiguate_devices(with_costs(ordered, prices, machines))
    names = {run: str(machine) for run, machine in machines.items()}
    here = ", ".join(sorted(set(names.values())))
    known = histories(priced)
    of_one = next(iter(machines.values())) if len(set(machines.values())) == 1 else None
    rated = matrix_of(priced, of_one, LocalPlatforms())
    return Subject(
        points(priced, names), samples, (), rated, (), here, priced, prices, known,
        accuracies=accuracy_places(priced, names),
    )  # fmt: skip


def _samples_in(record: Record) -> list[float]:
    samples = record.child("samples").values.get("step") or ()
    steps = None
    if record.has("sampling") and (sampling := record.child("sampling")).has("step"):
        steps = sampling.child("step").values.get("steps")
    if steps and len(steps) != len(samples):
        record.refuse("sampling", phrase("report.samples-of-steps", steps=len(steps)))
    return to_step_ms(samples, steps)


def _plain(value: object) -> object:
    """Return a file's value as a database has it: without the lines that objects of a file know."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, list) else value


def pictured_where(filters: Filters) -> tuple[str, list[object]]:
    """Results with these values, whoever made them: a picture marks what nobody measured."""
    return where_of(filters, f"model IS NOT NULL AND status IS NOT NULL AND {THIS_ARM_SQL}")


def _samples(database: Database, chart_points: Sequence[Point]) -> dict[str, list[float]]:
    from accelbench.present.charts.spread import MOST_LAUNCHES

    # The smallest batch of every model before every batch of the first one.
    ordered = sorted(
        (point for point in chart_points if point.timed),
        key=lambda point: int(number(point.row, "batch_size") or 0),
    )
    wanted = [str(row["result_id"]) for point in ordered for row in point.rows][:MOST_LAUNCHES]
    return step_samples(database, wanted)


def _series(database: Database, where: str, values: Sequence[object]) -> Sequence[Series]:
    from accelbench.evidence.launches import COMPARABLE_SQL
    from accelbench.judge.verdicts import METRICS
    from accelbench.measure.launch_verdicts import LEAST_EFFECT
    from accelbench.present.series import series_in

    all_series, _ = series_in(
        database, METRICS[0], f"{where} AND {COMPARABLE_SQL}", values, LEAST_EFFECT
    )
    return sorted(all_series, key=lambda series: not series.is_eventful)


#: Peaks without a calibration are another program's, or of a detector that told them.
_PEAKS = """
SELECT hardware, device_name, arg_max(peak_compute_flops, measured_at),
    arg_max(peak_bandwidth_bytes_per_s, measured_at)
FROM hardware_info WHERE peak_compute_flops > 0 AND peak_bandwidth_bytes_per_s > 0
GROUP BY 1, 2
"""


def matrix_of(rows: Iterable[Row], machine: Machine | None, local: LocalPlatforms) -> Matrix | None:
    """Of inference, each platform in the best precision that ran, as `matrix` shows it unasked.

    `machine` is None if the rows are of several; `local` are the platforms of the one that asks.
    """
    inference = [
        row
        for row in rows
        if row.get("mode") == "inference" and row.get("provenance") in ("measured", "imported")
    ]
    return matrix_on(inference, machine, local, best_precision=True) if inference else None


def roofs_of(database: Database, rows: Iterable[Row]) -> list[Roof]:
    """Limits of the devices whose results have counted operations: measured, else documented."""
    devices = {
        (str(row.get("hardware")), str(row["device_name"]), str(row.get("precision")))
        for row in rows
        if row.get("flops") and row.get("device_name")
    }
    if not devices:
        return []
    calibrated = stored_limits(database)
    _, peaks = database.query(_PEAKS)
    pairs = cast("list[tuple[str, str, float, float]]", peaks)
    told = {(str(kind), str(name)): (float(a), float(b)) for kind, name, a, b in pairs}
    return [
        roof
        for kind, name, precision in sorted(devices)
        for roof in _roofs(kind, name, precision, calibrated.get((kind, name)), told)
    ]


def collectives_of(database: Database, machine: str, rows: Iterable[Row]) -> list[TimedCollectives]:
    """What was timed among ranks on a machine, of the platforms that results are of."""
    platforms = {str(row.get("hardware")) for row in rows}
    known = stored_collectives(database, machine)
    return [timed for timed in known if timed.hardware in platforms]


def _roofs(
    kind: str,
    name: str,
    precision: str,
    limits: CalibratedLimits | None,
    told: Mapping[tuple[str, str], Sequence[float]],
) -> list[Roof]:
    if limits is not None and (peak := limits.peak(precision)) is not None:
        source = phrase("report.measured-roof", day=limits.day)
        return [Roof(kind, name, precision, peak, limits.bandwidth, source, limits.day)]
    if (kind, name) in told and precision == "fp32" and limits is None:
        compute, bandwidth = told[kind, name]
        return [Roof(kind, name, precision, compute, bandwidth, "measured here")]
    facts = facts_of(name, kind)
    teraops = facts.teraops.get(precision) if facts is not None and facts.bandwidth else None
    if facts is None or teraops is None:
        return []
    return [Roof(kind, name, precision, teraops * 1e12, facts.bytes_per_second, facts.source)]

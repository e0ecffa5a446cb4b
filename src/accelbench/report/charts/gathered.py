"""What a picture needs beside results, wherever they come from: limits of devices, a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from accelbench.core.calibration import CalibratedLimits, TimedCollectives
from accelbench.core.rows import Row
from accelbench.hardware.rooflines import is_called, rooflines_of
from accelbench.query.calibrations import stored_collectives, stored_limits
from accelbench.query.matrices import LocalPlatforms, matrix_on
from accelbench.report.charts.chart import Roof

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.analysis.matrix import Matrix
    from accelbench.store.database import Database

#: Peaks without a calibration are another program's, or of a detector that told them.
_PEAKS = """
SELECT hardware, device_name, arg_max(peak_compute_flops, measured_at),
    arg_max(peak_bandwidth_bytes_per_s, measured_at)
FROM hardware_info WHERE peak_compute_flops > 0 AND peak_bandwidth_bytes_per_s > 0
GROUP BY 1, 2
"""


def matrix_of(rows: Iterable[Row], machine: Machine | None, local: LocalPlatforms) -> Matrix | None:
    """Of inference, each platform in the best precision that ran, as `matrix` shows it unasked.

    Args:
        rows: results of any kind; those of inference that were measured or imported count.
        machine: whose they are; None where they are of several.
        local: the platforms of the machine that asks.
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
    """What was timed among ranks on a machine, of the platforms that results are of.

    Args:
        database: where calibrations are.
        machine: as pictures call it.
        rows: of it.
    """
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
        source = f"measured on {limits.day} by hardware --calibrate"
        return [Roof(kind, name, precision, peak, limits.bandwidth, source, limits.day)]
    if (kind, name) in told and precision == "fp32" and limits is None:
        compute, bandwidth = told[kind, name]
        return [Roof(kind, name, precision, compute, bandwidth, "measured here")]
    return [
        Roof(kind, name, precision, peak, roofline.bytes_per_second, roofline.source)
        for roofline in rooflines_of(kind)
        if (peak := roofline.operations_per_second(precision)) is not None
        and is_called(roofline, name)
    ]

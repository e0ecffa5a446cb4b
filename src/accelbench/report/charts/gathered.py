"""What a picture needs beside results, wherever they come from: limits of devices, a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from accelbench.core.rows import Row
from accelbench.hardware.rooflines import is_called, rooflines_of
from accelbench.query.matrices import LocalPlatforms, matrix_on
from accelbench.report.charts.chart import Roof

if TYPE_CHECKING:
    from accelbench.analysis.cells import Matrix
    from accelbench.analysis.machines import Machine
    from accelbench.store.database import Database

_PEAKS = """
SELECT hardware, device_name, max(peak_compute_flops), max(peak_bandwidth_bytes_per_s)
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
    _, peaks = database.query(_PEAKS)
    measured = {(str(kind), str(name)): (float(a), float(b)) for kind, name, a, b in peaks}
    return [roof for device in sorted(devices) for roof in _roofs(*device, measured)]


def _roofs(
    kind: str, name: str, precision: str, measured: Mapping[tuple[str, str], Sequence[float]]
) -> list[Roof]:
    if (kind, name) in measured and precision == "fp32":
        compute, bandwidth = measured[kind, name]
        return [Roof(kind, name, precision, compute, bandwidth, "measured here")]
    return [
        Roof(kind, name, precision, peak, roofline.bytes_per_second, roofline.source)
        for roofline in rooflines_of(kind)
        if (peak := roofline.operations_per_second(precision)) is not None
        and is_called(roofline, name)
    ]

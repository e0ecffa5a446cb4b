"""Calibrations of a store: of each device the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.calibration import CalibratedLimits, DeviceCalibration
from accelbench.core.facts import DEVICE_CALIBRATED
from accelbench.core.jsonc import JsonError, loads

if TYPE_CHECKING:
    from accelbench.store.database import Database

_SQL = "SELECT body::VARCHAR FROM fact WHERE kind = ? ORDER BY body->>'measured_at', run_id"


def calibrations(database: Database) -> list[DeviceCalibration]:
    """The newest calibration of each device, the newest last."""
    _, rows = database.query(_SQL, [DEVICE_CALIBRATED])
    newest: dict[str, DeviceCalibration] = {}
    for (body,) in rows:
        try:
            calibration = DeviceCalibration.from_body(loads(str(body)))
        except (JsonError, LookupError, TypeError, ValueError):
            continue  # a newer version's, or no calibration
        newest.pop(calibration.fingerprint, None)
        newest[calibration.fingerprint] = calibration
    return list(newest.values())


def limits_of(
    several: Iterable[DeviceCalibration],
) -> dict[tuple[str, str], CalibratedLimits]:
    """Measured limits by platform and device name; of several devices of a name the newest's."""
    known = (calibration.limits for calibration in several)
    return {(entry.hardware, entry.device_name): entry for entry in known if entry}


def stored_limits(database: Database) -> dict[tuple[str, str], CalibratedLimits]:
    """Measured limits of a store's devices."""
    return limits_of(calibrations(database))


def calibrations_at(path: Path | None, notice: Callable[[str], None]) -> list[DeviceCalibration]:
    """The calibrations of the database that is named, or of the usual one, if there is one.

    Args:
        path: the database; the usual one where none is named.
        notice: hears what could not be read or written.
    """
    from accelbench.query.stored_results import filled
    from accelbench.store.lake import store_at

    if path is None and not store_at(None).there:
        return []
    return calibrations(filled(path, notice))

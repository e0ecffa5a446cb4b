"""Calibrations of a store: of each device the newest."""

from __future__ import annotations

import math
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
    """The newest undisturbed calibration of each device, else its newest; the newest last."""
    _, rows = database.query(_SQL, [DEVICE_CALIBRATED])
    newest: dict[str, DeviceCalibration] = {}
    for (body,) in rows:
        try:
            calibration = DeviceCalibration.from_body(loads(str(body)))
        except (JsonError, LookupError, TypeError, ValueError):
            continue  # a newer version's, or no calibration
        known = newest.get(calibration.fingerprint)
        if known and calibration.warnings and not known.warnings:
            continue  # it was taken beside other work, and the one before it was not
        newest.pop(calibration.fingerprint, None)
        newest[calibration.fingerprint] = calibration
    return list(newest.values())


def limits_of(
    several: Iterable[DeviceCalibration],
) -> dict[tuple[str, str], CalibratedLimits]:
    """Measured limits by platform and device name; of several devices of a name the newest's."""
    # What was measured beside other work goes behind what was not, however new.
    quiet_last = sorted(several, key=lambda calibration: not calibration.warnings)
    known = (calibration.limits for calibration in quiet_last)
    return {
        (entry.hardware, entry.device_name): entry
        for entry in known
        if entry and all(0.0 < v < math.inf for v in (*entry.peaks.values(), entry.bandwidth))
    }


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

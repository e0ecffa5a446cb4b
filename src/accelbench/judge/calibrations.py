"""Calibrations of a store: of each device the newest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.calibration import CalibratedLimits, DeviceCalibration, TimedCollectives
from accelbench.core.facts import DEVICE_CALIBRATED
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.rows import Json, record
from accelbench.judge.machines import machine_of

if TYPE_CHECKING:
    from accelbench.store.database import Database

_SQL = "SELECT body::VARCHAR FROM fact WHERE kind = ? ORDER BY body->>'measured_at', run_id"


@dataclass(frozen=True)
class StoredCalibrations:
    """What a store knows of its devices.

    Attributes:
        devices: the newest calibration of each.
        collectives: the newest of each device and number of ranks, which may be of older ones.
    """

    devices: list[DeviceCalibration] = field(default_factory=list)
    collectives: list[TimedCollectives] = field(default_factory=list)

    def of(self, fingerprint: str) -> DeviceCalibration | None:
        """That of one device."""
        return next((entry for entry in self.devices if entry.fingerprint == fingerprint), None)

    def collectives_of(self, fingerprint: str) -> list[TimedCollectives]:
        """Those of one device, by the number of ranks."""
        return [entry for entry in self.collectives if entry.fingerprint == fingerprint]


def calibrations(database: Database) -> list[DeviceCalibration]:
    """The newest undisturbed calibration of each device, else its newest; the newest last."""
    return _newest(calibration for _, calibration in _every(database))


def stored_collectives(database: Database, machine: str = "") -> list[TimedCollectives]:
    """Collectives of each device and number of ranks: the newest undisturbed, else the newest.

    Args:
        machine: of which, as pictures call it; of all of them where none is named.
    """
    return _collectives(
        calibration
        for place, calibration in _every(database)
        if not machine or str(machine_of("", place)) == machine
    )


def _every(database: Database) -> Iterator[tuple[Json, DeviceCalibration]]:
    _, rows = database.query(_SQL, [DEVICE_CALIBRATED])
    for (text,) in rows:
        try:
            body = loads(str(text))
            calibration = DeviceCalibration.from_body(body)
        except (JsonError, LookupError, TypeError, ValueError):
            continue  # a newer version's, or no calibration
        yield record(body, "environment"), calibration


def _collectives(every: Iterable[DeviceCalibration]) -> list[TimedCollectives]:
    newest: dict[tuple[str, int], TimedCollectives] = {}
    for calibration in every:
        for timed in calibration.collectives:
            key = (timed.fingerprint, timed.ranks)
            if timed.warnings and key in newest and not newest[key].warnings:
                continue
            newest[key] = timed
    return [newest[key] for key in sorted(newest)]


def _newest(every: Iterable[DeviceCalibration]) -> list[DeviceCalibration]:
    newest: dict[str, DeviceCalibration] = {}
    for calibration in every:
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


def calibrations_at(path: Path | None, notice: Callable[[str], None]) -> StoredCalibrations:
    """What the database knows that is named, or the usual one, if there is one."""
    from accelbench.judge.stored_results import filled
    from accelbench.store.opening import open_store

    if path is None and not open_store(None).exists:
        return StoredCalibrations()
    every = [calibration for _, calibration in _every(filled(path, notice))]
    return StoredCalibrations(_newest(every), _collectives(every))

"""Calibration of a node's device within its runner, as a fleet asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import Fact, utc_now
from accelbench.core.identity import digest
from accelbench.core.protocols import Device, Inventory
from accelbench.store.journal import Journal

#: In a task: seconds of all probes together.
PROBES = "probes"
#: In the node's journal: why there is no calibration.
REFUSED = "probes_refused"


def calibrate_here(
    task: Mapping[str, Any],
    folder: Path,
    inventory: Inventory,
    environment: Mapping[str, Any],
    at: Callable[[str], None],
) -> None:
    """Calibrate the device that a task asks for, into a journal of that folder."""
    from accelbench.run.calibrate import calibrating  # NumPy with it, which no other unit needs

    hardware, run_id = str(task["hardware"]), str(task["run_id"])
    try:
        device = next((e for e in inventory[hardware] if isinstance(e, Device)), None)
        if device is None:
            raise SurroundingsError(f"There is no {hardware} here.")
        calibration = calibrating.calibrate(
            device,
            float(task[PROBES]),
            lambda done, of: at(f"probes of {hardware}: {done} of {of}"),
        )
    except SurroundingsError as error:
        with Journal.create(folder, run_id) as journal:
            body = {"run_id": run_id, "hardware": hardware, "why": error.message}
            journal.append(Fact(REFUSED, digest([run_id, hardware, utc_now()]), body))
        return
    calibrating.record(calibration, device, folder, environment, run_id)

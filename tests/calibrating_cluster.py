"""A calculated cluster whose nodes are calibrated in place of measuring cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.facts import node_run_id
from accelbench.core.protocols import Device
from accelbench.fleet.fleet_nodes import (
    ClusterEvent,
    FleetNode,
    UnitEnded,
    UnitFailed,
    UnitHeard,
)
from accelbench.fleet.unit_runner import calibrate_device
from accelbench.store.journal import journal_path, scan
from virtual_cluster import VirtualCluster

CPU = {"cpu": [Device("cpu", "a cpu")]}


class Calibrating(VirtualCluster):
    """Nodes whose units are calibrations that nobody had to measure."""

    def __init__(self, folder: Path, names: Sequence[str], lost: Sequence[int] = ()) -> None:
        super().__init__([FleetNode(n, n, {"machine": n}, CPU) for n in names], lambda *_: 1.0)
        self._folder, self._names, self._lost = folder, names, lost
        self._tasks: dict[tuple[int, int], Mapping[str, Any]] = {}

    def submit(self, submission: Any) -> None:
        self._tasks[submission.unit, submission.attempt] = submission.task
        settings = {"launches": 0}  # nothing of a case
        super().submit(
            type(submission)(
                *(submission.unit, submission.attempt, submission.need),
                {**submission.task, "settings": settings, "plan": [], "about": {}},
                submission.avoided,
            )
        )

    def events(self, timeout: float) -> list[ClusterEvent]:
        found: list[ClusterEvent] = []
        for event in super().events(timeout):
            if isinstance(event, UnitEnded) and event.unit in self._lost:
                found.append(self._lose(self._names[event.unit], "it is gone"))
                found.append(UnitFailed(event.unit, event.attempt, "it is gone", lost=True))
                continue
            if isinstance(event, UnitEnded):
                found.append(self._calibrated(event.unit, event.attempt))
            found.append(event)
        return found

    def _calibrated(self, unit: int, attempt: int) -> UnitHeard:
        task = self._tasks[unit, attempt]
        name = f"{unit}"
        run_id = node_run_id(str(task["fleet"]), name)
        folder = self._folder / f"{unit}-{attempt}"
        told = {**task, "run_id": run_id}
        calibrate_device(told, folder, CPU, {"machine": name}, lambda text: None)
        lines = [line.payload for line in scan(journal_path(folder, run_id), 0, 0).lines]
        return UnitHeard(unit, attempt, name, lines)

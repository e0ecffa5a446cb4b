"""Calibration of every node of a fleet, by units that calibrate instead of measuring cases.

Calibrations are stored like those of `accelbench hardware --calibrate`; no run is begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.calibration import DeviceCalibration
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import DEVICE_CALIBRATED, HARDWARE_MEASURED, Fact, new_run_id
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import in_quotes
from accelbench.engines.pytorch.runtime import PytorchRuntime
from accelbench.fleet.dispatch import DispatchRules, Need, WorkUnit
from accelbench.fleet.fleet_nodes import Cluster, FleetNode
from accelbench.fleet.fleet_record import FactSink, open_journal
from accelbench.fleet.fleet_run import FleetJob, FleetRun, NodeObserver, wait_for_nodes
from accelbench.fleet.unit_runner import PROBES, REFUSED
from accelbench.run import calibrating

#: Platforms that have probes.
PROBED_PLATFORMS = PytorchRuntime.info.hardware
#: Time to import the engine from a cold disk and for probes that take five times as long as
#: planned.
_LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class NodeProbes:
    """Calibration of one platform of a node."""

    node: str  # its name
    device: Device  # as described by the node
    calibration: DeviceCalibration | None = None  # None if it failed
    why: str = ""  # reason of a missing calibration


class ProbeJob(FleetJob):
    """Job of units that calibrate, one for each platform of each node."""

    def build_task(self, unit: WorkUnit, attempt: int) -> dict[str, Any]:
        return {
            "fleet": self.fleet,
            "attempt": attempt,
            "unit": unit.number,
            "device_of_node": not unit.need.whole_node,
            "hardware": unit.need.hardware,
            PROBES: calibrating.SECONDS,
        }

    def build_unmeasured(
        self, unit: WorkUnit, reason: str, message: str
    ) -> Iterable[Mapping[str, Any]]:
        return [{"unit": unit.number, "reason": reason, "message": message}]


class ProbeRecord:
    """Calibrations of nodes, each stored once."""

    def __init__(self, folder: Path, units: Iterable[WorkUnit]) -> None:
        self._folder = folder
        self._units = {unit.number: unit for unit in units}
        self._sinks: dict[str, FactSink] = {}  # by the journal's run
        self.calibrations: dict[int, DeviceCalibration] = {}
        self.refusals: dict[int, str] = {}

    def remaining_unit(self, unit: int) -> WorkUnit:
        return self._units[unit]

    def is_complete(self, unit: int) -> bool:
        return unit in self.calibrations or unit in self.refusals

    def take(self, unit: int, attempt: int, facts: Iterable[Fact]) -> list[Mapping[str, Any]]:
        del attempt
        facts = list(facts)
        if self.is_complete(unit):
            return []
        for fact in facts:
            if fact.kind == REFUSED:
                self.refusals[unit] = str(fact.body["why"])
            elif fact.kind in (DEVICE_CALIBRATED, HARDWARE_MEASURED):
                self._open_sink(str(fact.body["run_id"])).append(fact)
            if fact.kind == DEVICE_CALIBRATED:
                self.calibrations[unit] = DeviceCalibration.from_body(fact.body)
        return []

    def forget(self, unit: int, attempt: int) -> None:
        del unit, attempt

    def store_unmeasured(self, unit: int, bodies: Iterable[Mapping[str, Any]]) -> None:
        self.refusals[unit] = "; ".join(str(body["message"]) for body in bodies)

    def close(self) -> None:
        for sink in self._sinks.values():
            sink.close()

    def _open_sink(self, run_id: str) -> FactSink:
        if run_id not in self._sinks:
            self._sinks[run_id], _ = open_journal(self._folder, run_id)
        return self._sinks[run_id]


def probe_nodes(
    cluster: Cluster,
    hardware: Sequence[str],
    folder: Path,
    observer: NodeObserver,
    rules: DispatchRules | None = None,
) -> list[NodeProbes]:
    """Calibrate every node of a fleet, on these platforms or all that have probes.

    Raises UsageError if a platform has no probes, SurroundingsError if no node has one of them.
    """
    _refuse_without_probes(hardware)
    nodes = wait_for_nodes(cluster, observer.note)
    targets = list(_iter_devices(nodes, hardware or PROBED_PLATFORMS))
    if not targets:
        raise SurroundingsError(
            f"No node has {', '.join(hardware or PROBED_PLATFORMS)}.",
            "accelbench fleet status shows what the nodes have.",
        )
    units = [
        WorkUnit(number, Need(device.hardware, node=node.id), (), limit=_LIMIT_SECONDS)
        for number, (node, device) in enumerate(targets)
    ]
    record = ProbeRecord(folder, units)
    job = ProbeJob(new_run_id(), units, RunSettings())
    run = FleetRun(job, cluster, record, observer, rules)
    try:
        run.add_nodes(nodes)
        run.execute()
    except KeyboardInterrupt:
        run.cancel()
        raise
    finally:
        record.close()
    return [
        NodeProbes(
            node.name, device, record.calibrations.get(number), record.refusals.get(number, "")
        )
        for number, (node, device) in enumerate(targets)
    ]


def _refuse_without_probes(hardware: Sequence[str]) -> None:
    for name in hardware:
        if name not in PROBED_PLATFORMS:
            raise UsageError(
                f"There are no probes for {in_quotes(name)}.",
                f"Probes run in PyTorch, on {', '.join(PROBED_PLATFORMS)}.",
            )


def _iter_devices(
    nodes: Iterable[FleetNode], hardware: Sequence[str]
) -> Iterator[tuple[FleetNode, Device]]:
    for node in nodes:
        for platform, devices in node.devices.items():
            if platform in hardware:
                yield node, devices[0]

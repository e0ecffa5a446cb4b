"""Program on a node, without Ray: it describes the node, or measures units as `run` would.

    python -m accelbench.fleet.unit_runner describe
    python -m accelbench.fleet.unit_runner serve

`serve` reads a line of JSON for each unit, {"task", "folder", "errors"}, all of them paths, and
ends with that input. It writes a line of JSON for each event, {"over": true} at the end of a unit.
Results are in the journal of its folder, synced, before their line. Imports, devices and warm
templates stay between units; settings, journals, references and workers do not.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from accelbench.core import child_launcher
from accelbench.core.case import Case
from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import Fact, utc_now
from accelbench.core.identity import digest
from accelbench.core.jsonc import loads
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.fleet.dispatch import PART_IN_STEPS, join_steps
from accelbench.fleet.fleet_nodes import inventory_to_json
from accelbench.hardware.detect import LazyInventory
from accelbench.hardware.environment import describe_environment
from accelbench.hardware.machine import boot_id, take_snapshot
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.launch_context import RunMeans
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.conduct.run_record import arm_settled, settled
from accelbench.run.plan import expand
from accelbench.run.plan.expand import placed
from accelbench.run.plan.request import OtherArm, Plan
from accelbench.run.plan.run_forecast import Budget
from accelbench.run.process.process_control import own_process_group
from accelbench.run.process.worker_client import Observer
from accelbench.run.process.worker_pool import KeptWorkerPool
from accelbench.store.journal import Journal

#: Key in a task: seconds of all probes together.
PROBES = "probes"
#: Fact in the node's journal: the reason of a missing calibration.
REFUSED = "probes_refused"


def calibrate_device(
    task: Mapping[str, Any],
    folder: Path,
    inventory: Inventory,
    environment: Mapping[str, Any],
    report: Callable[[str], None],
) -> None:
    """Calibrate the device of a task into a journal in that folder."""
    from accelbench.run import calibrating  # it imports NumPy, which no other unit needs

    hardware, run_id = str(task["hardware"]), str(task["run_id"])
    try:
        device = next((e for e in inventory[hardware] if isinstance(e, Device)), None)
        if device is None:
            raise SurroundingsError(f"There is no {hardware} here.")
        calibration = calibrating.calibrate(
            device,
            float(task[PROBES]),
            lambda done, of: report(f"probes of {hardware}: {done} of {of}"),
        )
    except SurroundingsError as error:
        with Journal.create(folder, run_id) as journal:
            body = {"run_id": run_id, "hardware": hardware, "why": error.message}
            journal.append(Fact(REFUSED, digest([run_id, hardware, utc_now()]), body))
        return
    calibrating.record(calibration, device, folder, environment, run_id)


class PipeObserver(Observer):
    """Observer that writes a line of JSON for each event, at most a few a second."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe

    def _write_event(self, **event: Any) -> None:
        self._pipe.write(json.dumps(event) + "\n")
        self._pipe.flush()

    def note(self, text: str) -> None:
        self._write_event(note=text)

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        again = f" · launch {launch}" if launch > 1 else ""
        self.at(f"{case}{again}")

    def case_finished(self, row: Mapping[str, Any]) -> None:
        self._write_event(done=row["result_id"])

    def at(self, text: str) -> None:
        self._write_event(at=text)

    def end_unit(self) -> None:
        self._write_event(over=True)


def describe_node() -> dict[str, Any]:
    """Return a description of this node."""
    found = LazyInventory()
    inventory = {name: found[name] for name in found}
    return {
        "environment": describe_environment(),
        "inventory": inventory_to_json(inventory),
        "memory": take_snapshot().memory_available,
        "boot": boot_id(),
    }


def build_run(
    task: Mapping[str, Any], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> PlannedRun:
    """Return the run of a task, on the devices and the engines of this node."""

    def place_plan(plan: Plan) -> Plan:
        return Plan(tuple(placed(p.case, inventory, runtimes) for p in plan.cases))

    run_id = str(task["run_id"])
    settings, plan = settled(run_id, task)
    other = arm_settled(run_id, task)
    if other is not None:
        own = other.settings.with_values(run_id=run_id)
        other = OtherArm(other.against, place_plan(other.plan), own)
    settings = settings.with_values(run_id=run_id)
    return PlannedRun(place_plan(plan), settings, runtimes, task["about"], None, other)


class UnitOrders:
    """Orders for units from standard input.

    The end of the input ends this process, even during a unit.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._busy = False
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_for_order(self) -> dict[str, str] | None:
        self._busy = False
        line = self._lines.get()
        self._busy = bool(line)
        return dict(json.loads(line)) if line else None

    def _listen(self) -> None:
        for line in self._pipe:
            self._lines.put(line)
        if self._busy or not self._lines.empty():
            child_launcher.end_group()
        self._lines.put(b"")


def serve(orders: UnitOrders, pipe: PipeObserver) -> None:
    """Measure one unit after another, each into a journal of its own folder."""
    inventory, surroundings, pool = LazyInventory(), describe_environment(), KeptWorkerPool()
    runtimes = expand.installed_runtimes()
    try:
        while order := orders.wait_for_order():
            _redirect_output(order["errors"])
            task = loads(Path(order["task"]).read_text(encoding="utf-8"))
            folder = Path(order["folder"])
            if PROBES in task:
                calibrate_device(task, folder, inventory, surroundings, pipe.at)
            elif PART_IN_STEPS in task:
                join_steps(task, pipe.at)
            else:
                spec = build_run(task, inventory, runtimes)
                share = task.get("share")  # of a fleet's budget
                budget = Budget(share["seconds"], share["results"]) if share else None
                means = RunMeans(pool, budget)
                lifecycle.start(spec, folder, pipe, surroundings, means=means)
            pipe.end_unit()
    finally:
        pool.end()


def _redirect_output(path: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(handle, descriptor)
    os.close(handle)


def main(arguments: Sequence[str]) -> None:
    """Run the program."""
    own_process_group()
    match arguments:
        case ["describe"]:
            sys.stdout.write(json.dumps(describe_node()) + "\n")
        case ["serve"]:
            pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
            os.dup2(2, 1)
            # Without a buffer, whose lock the listening thread would hold at Python's end.
            orders = os.fdopen(os.dup(0), "rb", buffering=0)
            serve(UnitOrders(orders), PipeObserver(pipe))
        case _:
            sys.exit("Usage: unit_runner describe | serve")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Run as a program on a node: says what the node is, or measures one unit as `run` would.

    python -m accelbench.run.fleet.unit_runner describe
    python -m accelbench.run.fleet.unit_runner measure TASK FOLDER

It imports no Ray. A line of JSON on standard output says that something has happened; results are
in the journal of FOLDER, synced, before their line is written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.jsonc import loads
from accelbench.core.protocols import Absent, Device, Inventory, Runtime
from accelbench.hardware.detect import Detected
from accelbench.hardware.environment import environment
from accelbench.hardware.machine import snapshot
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import RunSpec
from accelbench.run.conduct.run_record import arm_settled, settled
from accelbench.run.fleet.fleet_nodes import inventory_to_json
from accelbench.run.plan import planning
from accelbench.run.plan.arms import OtherArm
from accelbench.run.plan.expand import placed
from accelbench.run.plan.request import Plan
from accelbench.run.process.observer import Progress
from accelbench.run.process.process_control import own_process_group


class PipeObserver:
    """Says on standard output what happens, a line of JSON each; at most a few a second."""

    def _say(self, **what: Any) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        return None

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        return None

    def note(self, text: str) -> None:
        self._say(note=text)

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        again = f" · launch {launch + 1}" if launch else ""
        self._say(at=f"{case}{again}")

    def progress(self, progress: Progress) -> None:
        return None

    def case_finished(self, row: Mapping[str, Any]) -> None:
        self._say(done=row["result_id"])


def described() -> dict[str, Any]:
    """What this node is."""
    found = Detected()
    inventory = {name: found[name] for name in found}
    return {
        "environment": environment(),
        "inventory": inventory_to_json(inventory),
        "memory": snapshot().memory_available,
    }


def spec_of(
    task: Mapping[str, Any], inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> RunSpec:
    """What a task asks for, on the devices and the runtimes of this node."""

    def here(plan: Plan) -> Plan:
        return Plan(tuple(placed(p.case, inventory, runtimes) for p in plan.cases))

    run_id = str(task["run_id"])
    settings, plan = settled(run_id, task)
    other = arm_settled(run_id, task)
    if other is not None:
        own = replace(other.settings, run_id=run_id)
        other = OtherArm(other.against, here(other.plan), own)
    settings = replace(settings, run_id=run_id)
    return RunSpec(here(plan), settings, runtimes, task["about"], None, other)


def measure(task: Mapping[str, Any], folder: Path) -> None:
    """Measure a unit into a journal of that folder."""
    spec = spec_of(task, Detected(), planning.installed_runtimes())
    lifecycle.start(spec, folder, PipeObserver(), environment())


def main(arguments: Sequence[str]) -> None:
    """The program."""
    own_process_group()
    match arguments:
        case ["describe"]:
            sys.stdout.write(json.dumps(described()) + "\n")
        case ["measure", task, folder]:
            measure(loads(Path(task).read_text(encoding="utf-8")), Path(folder))
        case _:
            sys.exit("describe, or measure TASK FOLDER")


if __name__ == "__main__":
    main(sys.argv[1:])

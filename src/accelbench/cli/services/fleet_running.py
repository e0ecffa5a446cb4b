"""What `accelbench fleet run` does between its options and its output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from accelbench.cli.display.fleet import FleetWatch, node_line
from accelbench.cli.display.terminal import print_line
from accelbench.cli.services.running import OutputPlaces, RunOptions, prepare
from accelbench.core.errors import UsageError
from accelbench.run.execute import RunRequest
from accelbench.run.fleet.fleet_address import FleetAddress
from accelbench.run.fleet.fleet_execute import (
    FleetOptions,
    execute_on,
    nodes_of,
    resume_on,
    units_on,
)
from accelbench.run.fleet.fleet_journal import last_unfinished
from accelbench.run.fleet.fleet_nodes import FleetInventory, differences
from accelbench.run.plan import planning

if TYPE_CHECKING:
    from accelbench.run.conduct.lifecycle import RunResult, RunSpec
    from accelbench.run.fleet.dispatch import DispatchRules
    from accelbench.run.plan.request import Request


def new_run(
    requests: Sequence[Request],
    how: RunOptions,
    where: FleetAddress,
    options: FleetOptions,
    places: OutputPlaces,
    stream: IO[str],
    quiet: bool,
) -> RunResult:
    """Plan for the nodes and run; the results are in the database when this returns."""
    watch = FleetWatch(stream, quiet)
    cluster = where.connected()

    def observe(spec: RunSpec, inventory: FleetInventory, _: Mapping[str, Any]) -> FleetWatch:
        for note in spec.plan.notes:
            watch.note(note)
        for difference in differences(inventory.nodes):
            watch.note(f"nodes differ in {difference}")
        watch.begin(spec.settings.run_id, _results(spec, inventory, options), len(inventory.nodes))
        return watch

    run_request = RunRequest(lambda *here: [prepare(requests, how, *here)], places)
    ((_, ended),) = execute_on(cluster, run_request, observe, options, watch.note)
    return ended


def resume_run(
    fleet: str,
    where: FleetAddress,
    places: OutputPlaces,
    rules: DispatchRules,
    stream: IO[str],
    quiet: bool,
) -> RunResult:
    """Go on with a fleet's run that was cut off."""
    folder = places.journals()
    if fleet == "last":
        fleet = last_unfinished(folder) or ""
        if not fleet:
            raise UsageError(f"No fleet's run in {folder} was cut off.", "Start a new one.")
    watch = FleetWatch(stream, quiet)
    return resume_on(where.connected(), fleet, places, watch, rules, watch.begin)


def show_plan(
    requests: Sequence[Request],
    how: RunOptions,
    where: FleetAddress,
    options: FleetOptions,
    stream: IO[str],
    *,
    as_json: bool,
) -> None:
    """The nodes and the plan; nothing is measured."""
    notes: list[str] = []
    nodes = nodes_of(where.connected(), notes.append)
    inventory = FleetInventory(nodes)
    spec = prepare(requests, how, inventory, planning.installed_runtimes())
    units = units_on(nodes, spec.plan, spec.settings, spec.other, each=options.each)
    able = {unit.number: sum(n.offer.slots(unit.need) > 0 for n in nodes) for unit in units}
    if as_json:
        document = {
            "nodes": [node.name for node in nodes],
            "units": [
                {
                    "cases": [str(planned.case) for planned in unit.cases],
                    "hardware": str(unit.need),
                    "nodes": able[unit.number],
                }
                for unit in units
            ],
            "launches": spec.settings.launches,
            "notes": [*notes, *spec.plan.notes],
            "differences": [str(difference) for difference in differences(nodes)],
        }
        stream.write(json.dumps(document) + "\n")
        return
    for node in nodes:
        print_line(f"Node {node_line(node)}", stream)
    for text in (*notes, *spec.plan.notes, *(f"nodes differ in {d}" for d in differences(nodes))):
        print_line(f"Note: {text}", stream)
    for unit in units:
        for planned in unit.cases:
            why = unit.need.unmet(able[unit.number])
            print_line(f"{unit.number + 1:4d}  {planned.case}{why and f': {why}'}", stream)
    cases = sum(len(unit.cases) for unit in units)
    print_line(f"{cases} cases in {len(units)} units, for {len(nodes)} nodes.", stream)


def _results(spec: RunSpec, inventory: FleetInventory, options: FleetOptions) -> int:
    """How many results a run will have."""
    if not options.each:
        return sum(plan.results(how.launches) for _, plan, how in spec.arms)
    pinned = units_on(inventory.nodes, spec.plan, spec.settings, spec.other, each=True)
    return sum((len(unit.cases) + len(unit.others)) * unit.launches for unit in pinned)

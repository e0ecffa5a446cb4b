"""A fleet's run, from its nodes to rows of a database.

nodes → plan → units → run_started │ units measured, their results in journals │ run_finished

The fleet's run has the whole plan, and the cases that no node measured. Each node's part is a run
of its own, `FLEET.NODE`, with that node's environment: a run's results are of one machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import RESULT, Fact, part_id
from accelbench.core.run_options import RunSettings
from accelbench.fleet.dispatch import DispatchRules
from accelbench.fleet.fleet_nodes import (
    Cluster,
    FleetInventory,
    FleetNode,
    NodeJoined,
    NodeLost,
    shared_machines,
)
from accelbench.fleet.fleet_record import (
    FleetRecord,
    begin,
    begun_of,
    ended_in,
    finish_parts,
    open_journal,
    profiles_of,
    refused_bodies,
    rows_of,
)
from accelbench.fleet.fleet_run import FleetJob, FleetObserver, FleetRun, Pauses
from accelbench.fleet.work_units import CaseKey, WorkUnit, on_each, units_of
from accelbench.hardware.environment import environment
from accelbench.run.conduct.launch_context import LaunchTally
from accelbench.run.conduct.lifecycle import FLEET, PlannedRun, RunResult
from accelbench.run.conduct.run_record import arm_settled, finished_fact, resumed_fact, settled
from accelbench.run.execute import Planner, ResultPlaces, fill, resumable
from accelbench.run.plan import expand
from accelbench.run.plan.request import OtherArm, Plan
from accelbench.run.process.worker_client import Observer
from accelbench.store.journal import Journal

#: How long nodes may take to say what they are.
_SETTLE_SECONDS = 300.0
#: How often what came meanwhile goes into the database or lake.
_FILL_SECONDS = 60.0

Observe = Callable[[PlannedRun, FleetInventory, Mapping[str, Any]], Observer | FleetObserver]


@dataclass(frozen=True)
class FleetOptions:
    """Options of a fleet's run."""

    each: bool = False  # whether every node measures every case that it can
    rules: DispatchRules = field(default_factory=DispatchRules)  # bounds of dispatching


def nodes_of(cluster: Cluster, note: Callable[[str], None]) -> list[FleetNode]:
    """Return the nodes that can measure; note those that cannot, or that share a machine.

    Raises SurroundingsError if no node can.
    """
    nodes: dict[str, FleetNode] = {}
    deadline = cluster.now() + _SETTLE_SECONDS
    while True:
        for event in cluster.events(0.2):
            if isinstance(event, NodeJoined):
                nodes[event.node.id] = event.node
            elif isinstance(event, NodeLost):
                nodes.pop(event.node, None)
        if cluster.settled() or cluster.now() > deadline:
            break
    for node in nodes.values():
        if node.broken:
            note(f"{node.name} measures nothing: {node.broken}")
    usable = [node for node in nodes.values() if not node.broken]
    if not usable:
        raise SurroundingsError(
            "The fleet has no node that can measure.",
            "Let one join with accelbench fleet join; accelbench fleet status shows them.",
        )
    usable.sort(key=lambda node: node.name)
    for shared in shared_machines(usable):
        note(shared)
    return usable


def execute_on(
    cluster: Cluster,
    planner: Planner,
    places: ResultPlaces,
    observe: Observe,
    options: FleetOptions | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[tuple[PlannedRun, RunResult]]:
    """Plan for the nodes of a fleet, measure there and store, as `execute` does on one machine."""
    nodes = nodes_of(cluster, note)
    inventory = FleetInventory(nodes)
    specs = list(planner(inventory, expand.installed_runtimes()))
    if specs:
        places.check()
    options, executed = options or FleetOptions(), []
    for spec in specs:
        surroundings, fleet = environment(), spec.settings.run_id
        observer = _watching(observe(spec, inventory, surroundings))
        units = units_on(nodes, spec.plan, spec.settings, spec.other, each=options.each)
        job = FleetJob(fleet, units, spec.settings, spec.about, spec.other)
        with Journal.create(places.journals(), fleet) as journal:
            begin(journal, spec, nodes, surroundings, each=options.each)
            for body in refused_bodies(spec):
                journal.append(Fact(RESULT, str(body["result_id"]), body))
                observer.measured("", body)
            ended = _go(cluster, nodes, job, journal, places, observer, options.rules)
        executed.append((spec, ended))
    return executed


def resume_on(
    cluster: Cluster,
    fleet: str,
    places: ResultPlaces,
    watch: Observer | FleetObserver,
    rules: DispatchRules | None = None,
    begin_left: Callable[[str, int, int], None] | None = None,
) -> RunResult:
    """Continue a fleet's run that was cut off; cases that have ended are not measured again.

    `begin_left` is called with the run, the number of results left, and the number of nodes.
    """
    folder, observer = places.journals(), _watching(watch)
    with Journal.resume(folder, fleet) as journal:
        facts = journal.facts()
        begun = begun_of(fleet, facts)
        settings, plan = settled(fleet, begun)
        other = arm_settled(fleet, begun)
        nodes = nodes_of(cluster, observer.note)
        each = bool((begun.get(FLEET) or {}).get("each"))
        units = units_on(nodes, plan, settings, other, each=each)
        about = {name: begun.get(name) for name in ("command", "label", "names")}
        job = FleetJob(fleet, units, settings, about, other)
        left = list(_left(job, folder, nodes, each=each))
        observer.note(f"{sum(len(unit.cases) for unit in left)} cases are left.")
        results = settings.launches * sum(len(unit.keys(job.against)) for unit in left)
        if begin_left is not None:
            begin_left(fleet, results, len(nodes))
        journal.append(resumed_fact(fleet, environment()))
        job = replace(job, units=left)
        return _go(cluster, nodes, job, journal, places, observer, rules or DispatchRules())


def units_on(
    nodes: Iterable[FleetNode],
    plan: Plan,
    settings: RunSettings,
    other: OtherArm | None,
    *,
    each: bool,
) -> list[WorkUnit]:
    """Return the units of a plan; with `each`, once for each node that can measure them."""
    units = list(units_of(plan, settings, other))
    return on_each(units, {node.id: frozenset(node.devices) for node in nodes}) if each else units


def _left(
    job: FleetJob, folder: Path, nodes: Iterable[FleetNode], *, each: bool
) -> Iterator[WorkUnit]:
    """Yield what has not ended of units; with `each`, what has not ended on that node."""
    by_part = ended_in(folder, job.fleet)
    names = {node.id: node.name for node in nodes}
    together = sum(by_part.values(), Counter[CaseKey]())
    for unit in job.units:
        own = part_id(job.fleet, names.get(unit.need.node, ""))
        ended = by_part.get(own, Counter()) if each else together
        keys = unit.keys(job.against)
        over = {key for key in keys if ended[key] >= job.settings.launches}
        if len(over) < len(keys):
            yield unit.without(case for case, _ in over)


def _go(
    cluster: Cluster,
    nodes: Sequence[FleetNode],
    job: FleetJob,
    journal: Journal,
    places: ResultPlaces,
    observer: FleetObserver,
    rules: DispatchRules,
) -> RunResult:
    folder = places.journals()

    def store() -> None:
        fill(places, observer.note)

    record = FleetRecord(job.fleet, partial(open_journal, folder), job.units, job.against, journal)
    rules = replace(rules, budget=job.settings.budget)
    run = FleetRun(job, cluster, record, observer, rules, Pauses(_FILL_SECONDS, store))
    interrupted = False
    try:
        run.welcome(nodes)
        run.go()
    except KeyboardInterrupt:
        interrupted = True
        run.cancel()
    status = "interrupted" if interrupted else "finished"
    record.close(status)
    finish_parts(folder, job.fleet, status)
    rows = rows_of(folder, job.fleet)
    tally = LaunchTally.of(rows)
    journal.append(finished_fact(job.fleet, status, counts=tally.counts))
    with resumable(job.fleet, places):
        store()
    profiles = profiles_of(folder, job.fleet) if job.settings.profile else ()
    if profiles and (keep := places.keep_profiles()) is not None:
        for profile in profiles:
            keep(profile, None)  # engines' own records stay on the nodes
    return RunResult(job.fleet, tally, rows, interrupted, profiles)


def _watching(watch: Observer | FleetObserver) -> FleetObserver:
    return watch if isinstance(watch, FleetObserver) else NotedNodes(watch)


@dataclass(frozen=True)
class NotedNodes:
    """An observer of a run on one machine, which gets notes about nodes."""

    observer: Observer

    def note(self, text: str) -> None:
        self.observer.note(text)

    def node_joined(self, node: FleetNode) -> None:
        self.observer.note(f"{node.name} measures.")

    def node_lost(self, node: str, why: str) -> None:
        self.observer.note(f"{node} is lost: {why}.")

    def at(self, node: str, text: str) -> None:
        del node, text

    def measured(self, node: str, row: Mapping[str, Any]) -> None:
        del node
        self.observer.case_finished(row)

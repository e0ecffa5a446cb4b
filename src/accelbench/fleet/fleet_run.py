"""Runs of a fleet, from the nodes to rows of a database.

nodes → plan → units → run_started │ units measured, their results in journals │ run_finished

The fleet's run has the whole plan, and the cases that no node measured. Each node's part is a run
of its own, `FLEET.NODE`, with that node's environment: the results of a run come from one machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from accelbench.core.errors import SurroundingsError
from accelbench.core.facts import RESULT, Fact, node_run_id
from accelbench.core.run_options import RunSettings
from accelbench.core.unusable_reasons import THIS_ARM
from accelbench.core.vocabulary import Outcome, Status
from accelbench.fleet.dispatch import (
    BUDGET,
    NO_NODE,
    PART_IN_STEPS,
    Cancel,
    CaseKey,
    Dispatcher,
    DispatchRules,
    GiveUp,
    Need,
    PassOver,
    Submit,
    WorkUnit,
    repeat_on_nodes,
    split_units,
)
from accelbench.fleet.fleet_nodes import (
    Cluster,
    ClusterEvent,
    FleetInventory,
    FleetNode,
    NodeJoined,
    NodeLost,
    Submission,
    UnitBegan,
    UnitEnded,
    UnitFailed,
    UnitHeard,
    warn_shared_machines,
)
from accelbench.fleet.fleet_record import (
    FleetRecord,
    build_refused,
    build_unmeasured,
    count_results,
    find_start,
    finish_parts,
    open_journal,
    parse_facts,
    read_profiles,
    read_rows,
    record_start,
)
from accelbench.hardware.environment import describe_environment
from accelbench.run.conduct.launch_context import LaunchTally
from accelbench.run.conduct.lifecycle import FLEET, PlannedRun, RunResult
from accelbench.run.conduct.run_record import (
    arm_settled,
    arm_to_json,
    finished_fact,
    planned_to_json,
    resumed_fact,
    settled,
)
from accelbench.run.execute import Planner, ResultPlaces, fill, resumable
from accelbench.run.plan import expand
from accelbench.run.plan.request import OtherArm, Plan
from accelbench.run.process.worker_client import Observer
from accelbench.store.journal import Journal

if TYPE_CHECKING:
    from accelbench.fleet.node_probes import ProbeRecord


#: Longest wait for events before deadlines are checked again.
_TURN_SECONDS = 1.0


class NodeObserver(Protocol):
    """Observer of events of nodes, in order."""

    def note(self, text: str) -> None:
        """Receive a note for the user."""

    def node_joined(self, node: FleetNode) -> None:
        """Receive a node that can measure."""

    def node_lost(self, node: str, why: str) -> None:
        """Receive the name of a node that is gone."""

    def node_active(self, node: str, text: str) -> None:
        """Receive the current activity of a node."""


@runtime_checkable
class FleetObserver(NodeObserver, Protocol):
    """Observer of events of a fleet's run, in order."""

    def result_measured(self, node: str, row: Mapping[str, Any]) -> None:
        """Receive a stored result with the name of its node; "" if no node measured it."""


@dataclass(frozen=True)
class FleetJob:
    """Work of a fleet's run."""

    fleet: str  # its id
    units: Sequence[WorkUnit]  # to measure
    settings: RunSettings  # of the run
    #: facts of its runs: command, label.
    about: Mapping[str, Any] = field(default_factory=dict)
    other: OtherArm | None = None  # the arm to compare with

    @property
    def against(self) -> str:
        return self.other.against.name if self.other else ""

    def build_task(self, unit: WorkUnit, attempt: int) -> dict[str, Any]:
        against = {}
        if self.other is not None:
            against["against"] = arm_to_json(replace(self.other, plan=Plan(unit.others)))
        return {
            "fleet": self.fleet,
            "attempt": attempt,
            "settings": self.settings.to_dict(),
            "device_of_node": not unit.need.whole_node,
            "about": {**self.about, "fleet": self.fleet},
            "unit": unit.number,
            "plan": [planned_to_json(planned) for planned in unit.cases],
            **against,
        }

    def build_parts(self, unit: WorkUnit, attempt: int) -> list[dict[str, Any]]:
        """Return the task of each further node, if several nodes make a step together."""
        nodes, job = unit.need.nodes, self.settings
        return [
            {
                "fleet": self.fleet,
                "attempt": attempt,
                "unit": unit.number,
                PART_IN_STEPS: {
                    "hardware": unit.need.hardware,
                    "processes": unit.processes // nodes,
                    "nodes": nodes,
                    "node": node,
                    "threads": job.threads,
                },
                "patience": unit.limit,
                "timeout": self.settings.timeout,
            }
            for node in range(1, nodes)
        ]

    def build_unmeasured(
        self, unit: WorkUnit, reason: str, message: str
    ) -> Iterable[Mapping[str, Any]]:
        """Return results of cases that no node measured, one for each launch."""
        status = _STATUSES.get(reason, Status.FAILED)
        outcome = Outcome(status, reason, message, _ADVICE.get(reason, _LOST_ADVICE))
        this = THIS_ARM if self.other else ""
        bodies = build_unmeasured(self.fleet, this, self.settings, unit.cases, outcome)
        if self.other is None:
            return bodies
        theirs = self.other.settings
        return chain(
            bodies, build_unmeasured(self.fleet, self.against, theirs, unit.others, outcome)
        )


class FleetRun:
    """Run of a job on a cluster.

    `between` is called every second, for instance to fill a database.
    """

    def __init__(
        self,
        job: FleetJob,
        cluster: Cluster,
        record: FleetRecord | ProbeRecord,
        observer: NodeObserver,
        rules: DispatchRules | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._job = job
        self._cluster = cluster
        self._record = record
        self._observer = observer
        self._measured = (
            observer.result_measured if isinstance(observer, FleetObserver) else lambda *_: None
        )
        self._between = between
        self._needs = {unit.number: unit.need for unit in job.units}
        self._dispatcher = Dispatcher(job.units, rules)
        self._names: dict[str, str] = {}
        self.nodes: dict[str, FleetNode] = {}
        self.used: set[str] = set()  # names of nodes that began with a unit
        self.busy_seconds = 0.0  # of nodes, from the start of a unit to its end
        self._since: dict[tuple[int, int], float] = {}
        self._open: Counter[Need] = Counter()  # results to come
        for unit in job.units:
            self._open[unit.need] += len(unit.keys(job.against)) * unit.launches

    def add_nodes(self, nodes: Iterable[FleetNode]) -> None:
        for node in nodes:
            self._add_node(node)
        self._dispatcher.confirm_nodes()

    def execute(self) -> None:
        while True:
            self._run_actions()
            if self._dispatcher.is_over:
                return
            for event in self._cluster.events(_TURN_SECONDS):
                self._handle_event(event)
            self._between()

    def cancel(self) -> None:
        for unit in self._dispatcher.submitted_units:
            self._cluster.cancel(unit, self._dispatcher.current_attempt(unit))

    # -- events of the cluster

    def _handle_event(self, event: ClusterEvent) -> None:
        now = self._cluster.now()
        match event:
            case NodeJoined(node):
                self._add_node(node)
            case NodeLost(node, why):
                self.nodes.pop(node, None)
                self._observer.node_lost(self._names.get(node, node), why)
                self._dispatcher.node_lost(node, why, now)
            case UnitBegan(unit, attempt, node):
                if self._dispatcher.unit_began(unit, attempt, node, now):
                    self._since[unit, attempt] = now
                    self.used.add(self._names.get(node, node))
            case UnitHeard(unit, attempt):
                self._handle_report(event, now)
            case UnitEnded(unit, attempt):
                self._handle_end(unit, attempt, now)
            case UnitFailed(unit, attempt, why, lost):
                self._add_busy_time(unit, attempt, now)
                self._record.forget(unit, attempt)
                self._dispatcher.unit_failed(unit, attempt, why, now, lost=lost)

    def _add_node(self, node: FleetNode) -> None:
        self.nodes[node.id] = node
        self._names[node.id] = node.name
        self._observer.node_joined(node)
        self._dispatcher.node_joined(node.offer)

    def _handle_report(self, event: UnitHeard, now: float) -> None:
        name = self._names.get(event.node, event.node)
        self._dispatcher.unit_heard(event.unit, event.attempt, now)
        for note in event.notes:
            self._observer.note(f"{name}: {note}")
        for row in self._record.take(event.unit, event.attempt, parse_facts(event.lines)):
            self._measured(name, row)
            self._open[self._needs[event.unit]] -= 1
        if event.at:
            self._observer.node_active(name, event.at)

    def _handle_end(self, unit: int, attempt: int, now: float) -> None:
        self._add_busy_time(unit, attempt, now)
        self._record.forget(unit, attempt)
        if not self._record.is_complete(unit):
            why = "it ended without all of its results"
            self._dispatcher.unit_failed(unit, attempt, why, now)
        elif self._dispatcher.current_attempt(unit) == attempt:
            self._dispatcher.unit_ended(unit, attempt)
        else:
            self._dispatcher.unit_completed(unit)

    def _add_busy_time(self, unit: int, attempt: int, now: float) -> None:
        since = self._since.pop((unit, attempt), None)
        self.busy_seconds += 0.0 if since is None else now - since

    # -- actions

    def _run_actions(self) -> None:
        for action in self._dispatcher.next_actions(self._cluster.now()):
            match action:
                case Submit(unit, attempt, avoided):
                    self._submit(unit, attempt, avoided)
                case Cancel(unit, attempt):
                    self._cluster.cancel(unit, attempt)
                    self._add_busy_time(unit, attempt, self._cluster.now())
                    self._record.forget(unit, attempt)
                case GiveUp(unit, reason, message):
                    self._give_up(unit, reason, message)
                case PassOver(node, message):
                    name = self._names.get(node, node)
                    self._observer.note(f"{name} gets no more units: {message}")

    def _submit(self, unit: int, attempt: int, avoided: frozenset[str]) -> None:
        if self._record.is_complete(unit):  # its last attempt failed after all results had arrived
            self._dispatcher.unit_completed(unit)
            return
        remaining, need = self._record.remaining_unit(unit), self._needs[unit]
        task = self._job.build_task(remaining, attempt)
        left = self._dispatcher.budget_left(self._cluster.now())
        if left is not None:
            task["share"] = {"seconds": left, "results": self._count_sequential()}
        parts = self._job.build_parts(remaining, attempt)
        self._cluster.submit(Submission(unit, attempt, need, task, avoided, parts))

    def _count_sequential(self) -> int:
        """Return how many results are measured one after the other until all are complete."""
        # Kinds are counted in sequence, because units that need a whole node run in sequence.
        kinds = [(count, self._dispatcher.count_slots(need)) for need, count in self._open.items()]
        return max(1, sum(-(-count // max(slots, 1)) for count, slots in kinds if count > 0))

    def _give_up(self, number: int, reason: str, message: str) -> None:
        unit = self._record.remaining_unit(number)
        bodies = list(self._job.build_unmeasured(unit, reason, message))
        self._record.store_unmeasured(number, bodies)
        for body in bodies:
            self._measured("", body)
            self._open[self._needs[number]] -= 1


_STATUSES = {NO_NODE: Status.UNSUPPORTED, BUDGET: Status.SKIPPED}
_ADVICE = {
    BUDGET: "Allow more with --budget, or ask for fewer cases.",
    NO_NODE: "accelbench fleet status shows what its nodes have: add one that has it, and"
    " measure the case again.",
}
_LOST_ADVICE = "Check that node, and measure the case again when it works."


@dataclass
class Throttle:
    """Call that is repeated, but at most once in a number of seconds."""

    seconds: float
    call: Callable[[], None]
    _last: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        if time.monotonic() - self._last >= self.seconds:
            self.call()
            self._last = time.monotonic()


#: Time for nodes to describe themselves.
_SETTLE_SECONDS = 300.0
#: Seconds between transfers of new results to the database or lake.
_FILL_SECONDS = 60.0

Observe = Callable[[PlannedRun, FleetInventory, Mapping[str, Any]], Observer | FleetObserver]


@dataclass(frozen=True)
class FleetOptions:
    """Options of a fleet's run."""

    each: bool = False  # every node measures every case that it can
    rules: DispatchRules = field(default_factory=DispatchRules)  # bounds of dispatching


def wait_for_nodes(cluster: Cluster, note: Callable[[str], None]) -> list[FleetNode]:
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
        if cluster.is_settled() or cluster.now() > deadline:
            break
    for node in nodes.values():
        if node.broken:
            note(f"{node.name} cannot measure: {node.broken}")
    usable = [node for node in nodes.values() if not node.broken]
    if not usable:
        raise SurroundingsError(
            "The fleet has no node that can measure.",
            "Add one with accelbench fleet join; accelbench fleet status shows the nodes.",
        )
    usable.sort(key=lambda node: node.name)
    for shared in warn_shared_machines(usable):
        note(shared)
    return usable


def execute_on_cluster(
    cluster: Cluster,
    planner: Planner,
    places: ResultPlaces,
    observe: Observe,
    options: FleetOptions | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[tuple[PlannedRun, RunResult]]:
    """Plan for the nodes of a fleet, measure and store, as `execute` does on one machine."""
    nodes = wait_for_nodes(cluster, note)
    inventory = FleetInventory(nodes)
    specs = list(planner(inventory, expand.installed_runtimes()))
    if specs:
        places.check()
    options, executed = options or FleetOptions(), []
    for spec in specs:
        surroundings, fleet = describe_environment(), spec.settings.run_id
        observer = _to_fleet_observer(observe(spec, inventory, surroundings))
        units = plan_units(nodes, spec.plan, spec.settings, spec.other, each=options.each)
        job = FleetJob(fleet, units, spec.settings, spec.about, spec.other)
        with Journal.create(places.journals(), fleet) as journal:
            record_start(journal, spec, nodes, surroundings, each=options.each)
            for body in build_refused(spec):
                journal.append(Fact(RESULT, str(body["result_id"]), body))
                observer.result_measured("", body)
            ended = _execute_job(cluster, nodes, job, journal, places, observer, options.rules)
        executed.append((spec, ended))
    return executed


def resume_on_cluster(
    cluster: Cluster,
    fleet: str,
    places: ResultPlaces,
    observer_or_watch: Observer | FleetObserver,
    rules: DispatchRules | None = None,
    begin_left: Callable[[str, int, int], None] | None = None,
) -> RunResult:
    """Continue an interrupted run of a fleet, without measuring complete cases again.

    `begin_left` is called with the run, the number of results left, and the number of nodes.
    """
    folder, observer = places.journals(), _to_fleet_observer(observer_or_watch)
    with Journal.resume(folder, fleet) as journal:
        facts = journal.facts()
        begun = find_start(fleet, facts)
        settings, plan = settled(fleet, begun)
        other = arm_settled(fleet, begun)
        nodes = wait_for_nodes(cluster, observer.note)
        each = bool((begun.get(FLEET) or {}).get("each"))
        units = plan_units(nodes, plan, settings, other, each=each)
        about = {name: begun.get(name) for name in ("command", "label", "names")}
        job = FleetJob(fleet, units, settings, about, other)
        left = list(_remaining_units(job, folder, nodes, each=each))
        observer.note(f"{sum(len(unit.cases) for unit in left)} cases are left.")
        results = settings.launches * sum(len(unit.keys(job.against)) for unit in left)
        if begin_left is not None:
            begin_left(fleet, results, len(nodes))
        journal.append(resumed_fact(fleet, describe_environment()))
        job = replace(job, units=left)
        return _execute_job(
            cluster, nodes, job, journal, places, observer, rules or DispatchRules()
        )


def plan_units(
    nodes: Iterable[FleetNode],
    plan: Plan,
    settings: RunSettings,
    other: OtherArm | None,
    *,
    each: bool,
) -> list[WorkUnit]:
    """Return the units of a plan; with `each`, once for each node that can measure them."""
    units = list(split_units(plan, settings, other))
    return (
        repeat_on_nodes(units, {node.id: frozenset(node.devices) for node in nodes})
        if each
        else units
    )


def _remaining_units(
    job: FleetJob, folder: Path, nodes: Iterable[FleetNode], *, each: bool
) -> Iterator[WorkUnit]:
    """Yield the incomplete units; with `each`, those that are incomplete on their node."""
    by_part = count_results(folder, job.fleet)
    names = {node.id: node.name for node in nodes}
    together = sum(by_part.values(), Counter[CaseKey]())
    for unit in job.units:
        own = node_run_id(job.fleet, names.get(unit.need.node, ""))
        ended = by_part.get(own, Counter()) if each else together
        keys = unit.keys(job.against)
        over = {key for key in keys if ended[key] >= job.settings.launches}
        if len(over) < len(keys):
            yield unit.remove_cases(case for case, _ in over)


def _execute_job(
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
    run = FleetRun(job, cluster, record, observer, rules, Throttle(_FILL_SECONDS, store))
    interrupted = False
    try:
        run.add_nodes(nodes)
        run.execute()
    except KeyboardInterrupt:
        interrupted = True
        run.cancel()
    status = "interrupted" if interrupted else "finished"
    record.close(status)
    finish_parts(folder, job.fleet, status)
    rows = read_rows(folder, job.fleet)
    tally = LaunchTally.of(rows)
    journal.append(finished_fact(job.fleet, status, counts=tally.counts))
    with resumable(job.fleet, places):
        store()
    profiles = read_profiles(folder, job.fleet) if job.settings.profile else ()
    if profiles and (keep := places.keep_profiles()) is not None:
        for profile in profiles:
            keep(profile, None)  # engines' own records stay on the nodes
    return RunResult(job.fleet, tally, rows, interrupted, profiles)


def _to_fleet_observer(watch: Observer | FleetObserver) -> FleetObserver:
    return watch if isinstance(watch, FleetObserver) else NodeNotes(watch)


@dataclass(frozen=True)
class NodeNotes:
    """Fleet observer that passes events of nodes as notes to a run's observer."""

    observer: Observer

    def note(self, text: str) -> None:
        self.observer.note(text)

    def node_joined(self, node: FleetNode) -> None:
        self.observer.note(f"{node.name} measures.")

    def node_lost(self, node: str, why: str) -> None:
        self.observer.note(f"{node} is lost: {why}.")

    def node_active(self, node: str, text: str) -> None:
        del node, text

    def result_measured(self, node: str, row: Mapping[str, Any]) -> None:
        del node
        self.observer.case_finished(row)

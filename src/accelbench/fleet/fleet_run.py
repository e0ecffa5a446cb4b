"""A fleet's run: units out to the cluster, facts back into journals, until every case has ended.

A fleet's run, from its nodes to rows of a database.

nodes → plan → units → run_started │ units measured, their results in journals │ run_finished

The fleet's run has the whole plan, and the cases that no node measured. Each node's part is a run
of its own, `FLEET.NODE`, with that node's environment: a run's results are of one machine.
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
    on_each,
    units_of,
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
    shared_machines,
)
from accelbench.fleet.fleet_record import (
    FleetRecord,
    begin,
    begun_of,
    bodies_not_run,
    ended_in,
    facts_of,
    finish_parts,
    open_journal,
    profiles_of,
    refused_bodies,
    rows_of,
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


#: How long the cluster is waited for before deadlines are looked at again.
_TURN_SECONDS = 1.0


class NodeObserver(Protocol):
    """Hears what happens to nodes, in order."""

    def note(self, text: str) -> None:
        """Something the reader should know."""

    def node_joined(self, node: FleetNode) -> None:
        """Return a node that can be measured on."""

    def node_lost(self, node: str, why: str) -> None:
        """Return a node that is gone, by its name."""

    def at(self, node: str, text: str) -> None:
        """What a node is at."""


@runtime_checkable
class FleetObserver(NodeObserver, Protocol):
    """Hears what happens in a fleet's run, in order."""

    def measured(self, node: str, row: Mapping[str, Any]) -> None:
        """Return a result that is durable, with the name of its node; "" where none measured it."""


@dataclass(frozen=True)
class FleetJob:
    """The work of a fleet's run."""

    fleet: str  # its id
    units: Sequence[WorkUnit]  # what is measured
    settings: RunSettings  # how
    #: what its runs say of themselves: command, label.
    about: Mapping[str, Any] = field(default_factory=dict)
    other: OtherArm | None = None  # the arm that everything is compared with

    @property
    def against(self) -> str:
        return self.other.against.name if self.other else ""

    def task(self, unit: WorkUnit, attempt: int) -> dict[str, Any]:
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

    def parts(self, unit: WorkUnit, attempt: int) -> list[dict[str, Any]]:
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

    def unmeasured(self, unit: WorkUnit, reason: str, message: str) -> Iterable[Mapping[str, Any]]:
        """Return results of cases that no node measured, one a launch."""
        status = _STATUSES.get(reason, Status.FAILED)
        outcome = Outcome(status, reason, message, _ADVICE.get(reason, _LOST_ADVICE))
        this = THIS_ARM if self.other else ""
        bodies = bodies_not_run(self.fleet, this, self.settings, unit.cases, outcome)
        if self.other is None:
            return bodies
        theirs = self.other.settings
        return chain(bodies, bodies_not_run(self.fleet, self.against, theirs, unit.others, outcome))


class FleetRun:
    """The run of a job on a cluster.

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
            observer.measured if isinstance(observer, FleetObserver) else lambda *_: None
        )
        self._between = between
        self._needs = {unit.number: unit.need for unit in job.units}
        self._dispatcher = Dispatcher(job.units, rules)
        self._names: dict[str, str] = {}
        self.nodes: dict[str, FleetNode] = {}
        self.used: set[str] = set()  # names of nodes that began with a unit
        self.busy_seconds = 0.0  # of nodes, from a unit's beginning to its end
        self._since: dict[tuple[int, int], float] = {}
        self._open: Counter[Need] = Counter()  # results to come
        for unit in job.units:
            self._open[unit.need] += len(unit.keys(job.against)) * unit.launches

    def welcome(self, nodes: Iterable[FleetNode]) -> None:
        for node in nodes:
            self._joined(node)
        self._dispatcher.nodes_known()

    def go(self) -> None:
        while True:
            self._act()
            if self._dispatcher.over:
                return
            for event in self._cluster.events(_TURN_SECONDS):
                self._hear(event)
            self._between()

    def cancel(self) -> None:
        for unit in self._dispatcher.flying:
            self._cluster.cancel(unit, self._dispatcher.attempt_of(unit))

    # -- what the cluster says

    def _hear(self, event: ClusterEvent) -> None:
        now = self._cluster.now()
        match event:
            case NodeJoined(node):
                self._joined(node)
            case NodeLost(node, why):
                self.nodes.pop(node, None)
                self._observer.node_lost(self._names.get(node, node), why)
                self._dispatcher.node_lost(node, why, now)
            case UnitBegan(unit, attempt, node):
                if self._dispatcher.began(unit, attempt, node, now):
                    self._since[unit, attempt] = now
                    self.used.add(self._names.get(node, node))
            case UnitHeard(unit, attempt):
                self._heard(event, now)
            case UnitEnded(unit, attempt):
                self._ended(unit, attempt, now)
            case UnitFailed(unit, attempt, why, lost):
                self._passed(unit, attempt, now)
                self._record.forget(unit, attempt)
                self._dispatcher.failed(unit, attempt, why, now, lost=lost)

    def _joined(self, node: FleetNode) -> None:
        self.nodes[node.id] = node
        self._names[node.id] = node.name
        self._observer.node_joined(node)
        self._dispatcher.node_joined(node.offer)

    def _heard(self, event: UnitHeard, now: float) -> None:
        name = self._names.get(event.node, event.node)
        self._dispatcher.heard(event.unit, event.attempt, now)
        for note in event.notes:
            self._observer.note(f"{name}: {note}")
        for row in self._record.take(event.unit, event.attempt, facts_of(event.lines)):
            self._measured(name, row)
            self._open[self._needs[event.unit]] -= 1
        if event.at:
            self._observer.at(name, event.at)

    def _ended(self, unit: int, attempt: int, now: float) -> None:
        self._passed(unit, attempt, now)
        self._record.forget(unit, attempt)
        if not self._record.complete(unit):
            why = "it ended without all of its results"
            self._dispatcher.failed(unit, attempt, why, now)
        elif self._dispatcher.attempt_of(unit) == attempt:
            self._dispatcher.ended(unit, attempt)
        else:
            self._dispatcher.completed(unit)

    def _passed(self, unit: int, attempt: int, now: float) -> None:
        since = self._since.pop((unit, attempt), None)
        self.busy_seconds += 0.0 if since is None else now - since

    # -- what is to be done

    def _act(self) -> None:
        for action in self._dispatcher.due(self._cluster.now()):
            match action:
                case Submit(unit, attempt, avoided):
                    self._submit(unit, attempt, avoided)
                case Cancel(unit, attempt):
                    self._cluster.cancel(unit, attempt)
                    self._passed(unit, attempt, self._cluster.now())
                    self._record.forget(unit, attempt)
                case GiveUp(unit, reason, message):
                    self._give_up(unit, reason, message)
                case PassOver(node, message):
                    name = self._names.get(node, node)
                    self._observer.note(f"{name} gets no more units: {message}")

    def _submit(self, unit: int, attempt: int, avoided: frozenset[str]) -> None:
        if self._record.complete(unit):  # its last attempt failed when all was there
            self._dispatcher.completed(unit)
            return
        left_of_it, need = self._record.left(unit), self._needs[unit]
        task = self._job.task(left_of_it, attempt)
        left = self._dispatcher.budget_left(self._cluster.now())
        if left is not None:
            task["share"] = {"seconds": left, "results": self._in_turn()}
        parts = self._job.parts(left_of_it, attempt)
        self._cluster.submit(Submission(unit, attempt, need, task, avoided, parts))

    def _in_turn(self) -> int:
        """Return how many results are measured one after the other until all are there."""
        # As if a node measured one kind after the other: kinds that need all of it do.
        kinds = [(count, self._dispatcher.slots(need)) for need, count in self._open.items()]
        return max(1, sum(-(-count // max(slots, 1)) for count, slots in kinds if count > 0))

    def _give_up(self, number: int, reason: str, message: str) -> None:
        unit = self._record.left(number)
        bodies = list(self._job.unmeasured(unit, reason, message))
        self._record.unmeasured(number, bodies)
        for body in bodies:
            self._measured("", body)
            self._open[self._needs[number]] -= 1


_STATUSES = {NO_NODE: Status.UNSUPPORTED, BUDGET: Status.SKIPPED}
_ADVICE = {
    BUDGET: "Allow more with --budget, or ask for fewer cases.",
    NO_NODE: "accelbench fleet status shows what its nodes have: let one join that has it, and"
    " measure the case anew.",
}
_LOST_ADVICE = "Look at that node, and measure the case anew once it is well."


@dataclass
class Pauses:
    """A call that is repeated, but not more often than every few seconds."""

    seconds: float
    do: Callable[[], None]
    _last: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        if time.monotonic() - self._last >= self.seconds:
            self.do()
            self._last = time.monotonic()


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
        surroundings, fleet = describe_environment(), spec.settings.run_id
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
        journal.append(resumed_fact(fleet, describe_environment()))
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
        own = node_run_id(job.fleet, names.get(unit.need.node, ""))
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

"""Order, attempts and deadlines of a fleet's units: events in, actions out, without effects.

The cluster decides where a unit runs. Every unit ends once: done, or given up with a reason.

Work units of a plan: the cases that one node measures together.

A unit has cases that one worker measures in turn, with all launches and both arms, or the cases of
one process and of several: compared cases stay on one machine. Other units may go to other
machines. If several nodes make a step together, the first one measures and the others take part
until the end.
"""

from __future__ import annotations

import heapq
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Any

from accelbench.core.plausible_values import reason_subject
from accelbench.core.run_options import RunSettings
from accelbench.core.unusable_reasons import THIS_ARM
from accelbench.core.vocabulary import Belongs
from accelbench.run.plan import run_forecast
from accelbench.run.plan.request import OtherArm, Plan, Planned

#: Platforms of which a unit takes one device, and leaves the others of its node to other units.
PARTED = frozenset({"cuda", "rocm"})
#: What a case may take beside opening and measuring, each of which has the timeout of the run:
#: exporting, verifying against a reference and profiling have it too.
_TIMEOUTS_A_CASE = 4
#: Starting an interpreter and looking at the machine.
_BESIDE_SECONDS = 120.0

#: Of a unit, what a case is told apart by: its case_id, and its arm where there are two.
CaseKey = tuple[str, str]


@dataclass(frozen=True, order=True)
class Need:
    """The requirements of a unit on a node."""

    hardware: str  # the platform
    device: str = ""  # the kind of unit or the ordinal, where one was named
    node: str = ""  # the one node that it is to be measured on; "" where any will do
    together: bool = False  # whether several processes of it make each step, on as many devices
    nodes: int = 1  # that make each step together; on the first of them it is measured

    @property
    def whole_node(self) -> bool:
        """Whether nothing else may run on the node meanwhile."""
        return self.hardware not in PARTED or bool(self.device) or self.together

    def unmet(self, able: int) -> str:
        """Return why it is not met if so many nodes could meet it alone; empty if it is met."""
        if able >= self.nodes:
            return ""
        if self.nodes == 1:
            return f"no node of the fleet has {self}"
        have = "no node has" if not able else "1 has" if able == 1 else f"{able} have"
        return f"{self.nodes} nodes with {self} make each step together, and {have} it"

    def __str__(self) -> str:
        return f"{self.hardware}:{self.device}" if self.device else self.hardware


@dataclass(frozen=True)
class WorkUnit:
    """Cases that one node measures together."""

    number: int  # its place in the plan
    need: Need  # what it needs of a node
    cases: tuple[Planned, ...]  # of this arm, without their devices
    others: tuple[Planned, ...] = ()  # of the arm that this one is compared with
    launches: int = 1  # of each case
    seconds: float = 0.0  # that it will take, very roughly
    limit: float = 0.0  # seconds after which it is taken for hung, by the timeouts of its cases

    def keys(self, against: str = "") -> dict[CaseKey, Planned]:
        """Return the cases of both arms; `against` is the other arm's name."""
        this = THIS_ARM if against else ""
        own = {(planned.case.case_id, this): planned for planned in self.cases}
        return own | {(planned.case.case_id, against): planned for planned in self.others}

    @property
    def processes(self) -> int:
        """The most processes that make a step together."""
        return max((p.case.world_size for p in (*self.cases, *self.others)), default=1)

    def without(self, done: Iterable[str]) -> WorkUnit:
        """Return the unit without the cases of these ids; a unit of two arms stays whole."""
        ended = set(done)
        left = tuple(p for p in self.cases if p.case.case_id not in ended)
        return self if self.others else replace(self, cases=left)


def units_of(
    plan: Plan, settings: RunSettings, other: OtherArm | None = None, first: int = 0
) -> Iterator[WorkUnit]:
    """Yield the units of a plan, in its order, without cases that it refuses."""
    groups = list(_bundles(plan))
    beside: Sequence[Sequence[Planned]] = list(_bundles(other.plan)) if other else []
    number = first
    for own, against in zip_longest(groups, beside, fillvalue=()):
        arms = [(own, settings)] + ([(against, other.settings)] if other else [])
        cases, others = _tried(own), _tried(against)
        if not cases and not others:
            continue
        seconds = sum(_seconds(group, how) for group, how in arms)
        yield _unit(number, cases, others, settings, seconds)
        number += 1


def _bundles(plan: Plan) -> Iterator[list[Planned]]:
    """Yield the groups of a plan; cases of several processes stay with the one that they compare
    with."""
    for _, cases in groupby(plan.cases, _shared_by):
        run = list(cases)
        together = any(planned.case.world_size > 1 for planned in run)
        yield from [run] if together else Plan(tuple(run)).groups()


def _shared_by(planned: Planned) -> tuple[object, ...]:
    case = planned.case
    return case.model.id, case.target, case.precision, case.mode, replace(case.shapes, batch=0)


def _unit(
    number: int,
    cases: tuple[Planned, ...],
    others: tuple[Planned, ...],
    settings: RunSettings,
    seconds: float,
) -> WorkUnit:
    target = (cases or others)[0].case.target
    together = any(planned.case.world_size > 1 for planned in (*cases, *others))
    measurements = (len(cases) + len(others)) * settings.launches
    return WorkUnit(
        number,
        Need(
            target.hardware,
            target.device or "",
            together=together,
            nodes=settings.nodes if together else 1,
        ),
        cases,
        others,
        settings.launches,
        seconds,
        _BESIDE_SECONDS + measurements * _TIMEOUTS_A_CASE * settings.timeout,
    )


def on_each(units: Iterable[WorkUnit], nodes: Mapping[str, frozenset[str]]) -> list[WorkUnit]:
    """Repeat every unit for each node that has its platform, to see the spread between machines."""
    pinned: list[WorkUnit] = []
    for unit in units:
        able = [node for node, platforms in nodes.items() if unit.need.hardware in platforms]
        for node in able or [""]:
            pinned.append(replace(unit, number=len(pinned), need=replace(unit.need, node=node)))
    return pinned


def is_tried(planned: Planned) -> bool:
    """Return whether a node is asked for a case: a refusal may be of the planning machine only."""
    refusal = planned.refusal
    return refusal is None or reason_subject(refusal.reason) is Belongs.MACHINE


def _tried(group: Iterable[Planned]) -> tuple[Planned, ...]:
    return tuple(replace(p, device=None, refusal=None) for p in group if is_tried(p))


def _seconds(group: Sequence[Planned], settings: RunSettings) -> float:
    """Return the geometric mean of the bounds that the operations of a group give."""
    total = run_forecast.START_SECONDS
    for planned in group:
        if planned.device is not None:
            low, high = run_forecast.case_seconds(planned, settings)
            total += settings.launches * (low * high) ** 0.5
    return total + run_forecast.build_seconds(group[0]) * settings.launches if group else 0.0


#: In the task of a further node: its part, but for the place where they meet.
PART_IN_STEPS = "part_in_steps"
_PLACE = "rendezvous"


def meeting_place(host: str) -> str:
    """Return HOST:PORT of this node for the other nodes, with a port that is free now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def meeting_at(task: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a node's task with the place where the nodes meet."""
    if PART_IN_STEPS in task:
        return {**task, PART_IN_STEPS: {**task[PART_IN_STEPS], _PLACE: place}}
    told = {**task, "settings": {**task["settings"], _PLACE: place}}
    if "against" in task:
        other = task["against"]
        told["against"] = {**other, "settings": {**other["settings"], _PLACE: place}}
    return told


def take_part_here(task: Mapping[str, Any], at: Callable[[str], None]) -> None:
    """Take part until nothing was asked for as long as the unit may take."""
    from accelbench.engines.pytorch.distributed.group import MachinePart, groups_taken_part_in

    part = MachinePart(**task[PART_IN_STEPS])
    at(f"takes part at {part.rendezvous}")
    for trouble in groups_taken_part_in(part, float(task["patience"]), float(task["timeout"])):
        if trouble:
            at(f"takes part at {part.rendezvous}; a group ended early: {trouble}")


#: How often hung units are looked for in the time after which they are.
_LOOKS = 20
#: Why a unit was given up; they are reasons of results.
NO_NODE = "no_node"
NODE_LOST = "node_lost"
NODE_HUNG = "node_hung"
NODE_FAILED = "node_failed"
BUDGET = "budget"


@dataclass(frozen=True)
class DispatchRules:
    """Bounds of dispatching, in seconds unless a comment names another unit."""

    attempts: int = 3  # how often a unit is tried
    ahead: float = 1.0  # units that wait in the cluster for every one that can run
    silence: float = 90.0  # after which a running unit that says nothing is taken for hung
    patience: float = 120.0  # to wait for a node where the last that could measure a unit is gone
    start: float = 300.0  # to wait for a unit to begin while none of its kind runs
    blamed: int = 2  # failures of units in a row after which a node is passed over
    budget: float | None = None  # of the whole run, after which nothing is begun; None for no limit
    overtime: float = 15.0  # after it, for what runs to end by itself


@dataclass(frozen=True)
class NodeOffer:
    """What a node can measure: of each platform, how many devices; and by name, if so."""

    node: str
    devices: Mapping[str, int]
    named: frozenset[str] = frozenset()  # "cuda:1", "openvino:gpu"

    def slots(self, need: Need) -> int:
        """How many units of a kind it can measure at once."""
        if need.node not in ("", self.node) or not self.devices.get(need.hardware):
            return 0
        if need.device and str(need) not in self.named:
            return 0
        return 1 if need.whole_node else self.devices[need.hardware]


@dataclass(frozen=True)
class Submit:
    """Hand a unit to the cluster."""

    unit: int
    attempt: int
    avoided: frozenset[str] = frozenset()  # nodes that are passed over


@dataclass(frozen=True)
class Cancel:
    """End an attempt, wherever it is."""

    unit: int
    attempt: int


@dataclass(frozen=True)
class GiveUp:
    """A unit that will not be measured."""

    unit: int
    reason: str
    message: str


@dataclass(frozen=True)
class PassOver:
    """A node that gets no more units, and why."""

    node: str
    message: str


Action = Submit | Cancel | GiveUp | PassOver


@dataclass
class _InFlight:
    """An attempt that the cluster has."""

    attempt: int
    submitted: float
    node: str = ""
    began: float | None = None
    heard: float = 0.0


@dataclass
class _Queue:
    """The units of one need."""

    waiting: list[tuple[float, int]] = field(default_factory=list)  # a heap: the longest first
    flying: set[int] = field(default_factory=set)
    absent_since: float | None = None  # since when no node can measure them


class Dispatcher:
    """Waiting, submitted and ended units of a run. `due` returns what the events before it
    require."""

    def __init__(self, units: Iterable[WorkUnit], rules: DispatchRules | None = None) -> None:
        self._rules = rules or DispatchRules()
        self._units: dict[int, tuple[Need, float, float]] = {}
        self._queues: dict[Need, _Queue] = {}
        self._attempts: dict[int, int] = {}  # their numbers
        self._failures: dict[int, int] = {}  # those that count
        self._flights: dict[int, _InFlight] = {}
        self._offers: dict[str, NodeOffer] = {}
        self._blame: dict[str, int] = {}
        self._passed_over: set[str] = set()
        self._ever: set[Need] = set()  # needs that some node could meet
        self._actions: list[Action] = []
        self._known = False
        self._left = 0
        self._slots_of: dict[Need, int] = {}  # as long as no node comes or goes
        self._looked = float("-inf")  # when hung units were looked for
        self._began: float | None = None  # when anything was first due
        for unit in units:
            self._units[unit.number] = (unit.need, unit.seconds, unit.limit)
            self._wait(unit.number)
            self._left += 1

    @property
    def over(self) -> bool:
        return self._left == 0

    @property
    def running(self) -> dict[int, str]:
        """Units that are being measured, with their nodes."""
        return {u: flight.node for u, flight in self._flights.items() if flight.began is not None}

    def slots(self, need: Need) -> int:
        """Return how many units of a kind all nodes together can measure at once."""
        return self._slots(need)

    def budget_left(self, now: float) -> float | None:
        """Return the seconds that are left of the run's budget; None if there is no limit."""
        if self._rules.budget is None:
            return None
        return self._rules.budget - (now - (now if self._began is None else self._began))

    @property
    def flying(self) -> list[int]:
        return list(self._flights)

    def attempt_of(self, unit: int) -> int:
        """Return the attempt that counts; 0 if the cluster has none."""
        flight = self._flights.get(unit)
        return flight.attempt if flight else 0

    # -- events

    def nodes_known(self) -> None:
        self._known = True

    def node_joined(self, offer: NodeOffer) -> None:
        self._offers[offer.node] = offer
        self._slots_of.clear()

    def node_lost(self, node: str, why: str, now: float) -> None:
        self._offers.pop(node, None)
        self._slots_of.clear()
        for unit, flight in list(self._flights.items()):
            if flight.node == node:
                self._tried(unit, NODE_LOST, why, now)

    def began(self, unit: int, attempt: int, node: str, now: float) -> bool:
        """Note that a node began a unit; return False if that attempt no longer counts."""
        flight = self._flight(unit, attempt)
        if flight is None:
            return False
        if node in self._passed_over:  # it was handed over before that was known
            self._actions.append(Cancel(unit, attempt))
            self._land(unit)
            self._wait(unit)
            return False
        flight.node, flight.began, flight.heard = node, now, now
        return True

    def heard(self, unit: int, attempt: int, now: float) -> None:
        flight = self._flight(unit, attempt)
        if flight is not None:
            flight.heard = now

    def ended(self, unit: int, attempt: int) -> None:
        flight = self._flight(unit, attempt)
        if flight is not None:
            self._blame.pop(flight.node, None)
            self._over(unit)

    def completed(self, unit: int) -> None:
        """Note the same by an attempt that no longer counts, and end the one that does."""
        if unit not in self._units:
            return
        flight = self._flights.get(unit)
        if flight is not None:
            self._actions.append(Cancel(unit, flight.attempt))
        self._over(unit)

    def failed(self, unit: int, attempt: int, why: str, now: float, *, lost: bool = False) -> None:
        """Note that an attempt failed; `lost` if its node went away."""
        flight = self._flight(unit, attempt)
        if flight is None:
            return
        if not lost:
            self._blamed(flight.node, why)
        self._tried(unit, NODE_LOST if lost else NODE_FAILED, why, now)

    # -- what is to be done

    def due(self, now: float) -> list[Action]:
        self._began = now if self._began is None else self._began
        self._end_hung(now)
        self._end_over_budget(now)
        for need, queue in self._queues.items():
            slots = self._slots(need)
            if slots:
                self._ever.add(need)
                queue.absent_since = None
                self._submit(queue, slots, now)
            elif self._known and (queue.waiting or queue.flying):
                self._wait_for_node(need, queue, now)
        actions, self._actions = self._actions, []
        return actions

    def _slots(self, need: Need) -> int:
        if need not in self._slots_of:
            offers = (o for o in self._offers.values() if o.node not in self._passed_over)
            self._slots_of[need] = sum(offer.slots(need) for offer in offers) // need.nodes
        return self._slots_of[need]

    def _submit(self, queue: _Queue, slots: int, now: float) -> None:
        window = slots + max(1, round(slots * self._rules.ahead))
        while queue.waiting and len(queue.flying) < window:
            _, unit = heapq.heappop(queue.waiting)
            if unit not in self._units:
                continue
            self._attempts[unit] = attempt = self._attempts.get(unit, 0) + 1
            self._flights[unit] = _InFlight(attempt, now)
            queue.flying.add(unit)
            self._actions.append(Submit(unit, attempt, frozenset(self._passed_over)))

    def _wait_for_node(self, need: Need, queue: _Queue, now: float) -> None:
        """Give up units that no node can measure: at once if none ever could, else after a
        while."""
        if need in self._ever:
            queue.absent_since = now if queue.absent_since is None else queue.absent_since
            if now - queue.absent_since < self._rules.patience:
                return
            lost, has = ("every node", "has") if need.nodes == 1 else ("a node of those", "have")
            why = f"{lost} that {has} {need} was lost, or is passed over"
        else:
            why = need.unmet(sum(offer.slots(need) for offer in self._offers.values()))
        for unit in [*sorted(queue.flying), *(unit for _, unit in sorted(queue.waiting))]:
            if unit in self._flights:
                self._actions.append(Cancel(unit, self._flights[unit].attempt))
            self._give_up(unit, NO_NODE, why)

    def _end_hung(self, now: float) -> None:
        rules = self._rules
        if now - self._looked < rules.silence / _LOOKS:
            return
        self._looked = now
        busy = {self._units[u][0] for u, f in self._flights.items() if f.began is not None}
        for unit, flight in list(self._flights.items()):
            need, _, limit = self._units[unit]
            if flight.began is None:
                stuck = need not in busy and now - flight.submitted > rules.start
                why = f"it was not begun within {rules.start:.0f} s" if stuck else ""
            elif now - flight.heard > rules.silence:
                why = f"nothing was heard of it for {rules.silence:.0f} s"
            elif now - flight.began > limit:
                why = f"it took longer than {limit:.0f} s, which its timeouts allow"
            else:
                why = ""
            if why:
                self._actions.append(Cancel(unit, flight.attempt))
                self._blamed(flight.node, why)
                self._tried(unit, NODE_HUNG, why, now)

    def _end_over_budget(self, now: float) -> None:
        """Give up units that did not begin within the budget, and later those that did not end."""
        left = self.budget_left(now)
        if left is None or left > 0:
            return
        why = f"the budget of {self._rules.budget:.0f} s was used up"
        late = left <= -self._rules.overtime
        for unit in sorted(self._units):
            flight = self._flights.get(unit)
            if flight is not None and flight.began is not None and not late:
                continue
            if flight is not None:
                self._actions.append(Cancel(unit, flight.attempt))
            self._give_up(unit, BUDGET, why)

    # -- bookkeeping

    def _flight(self, unit: int, attempt: int) -> _InFlight | None:
        flight = self._flights.get(unit)
        return flight if flight is not None and flight.attempt == attempt else None

    def _wait(self, unit: int) -> None:
        need, seconds, _ = self._units[unit]
        heapq.heappush(self._queues.setdefault(need, _Queue()).waiting, (-seconds, unit))

    def _land(self, unit: int) -> None:
        self._flights.pop(unit, None)
        self._queues[self._units[unit][0]].flying.discard(unit)

    def _over(self, unit: int) -> None:
        self._land(unit)
        del self._units[unit]
        self._left -= 1

    def _give_up(self, unit: int, reason: str, why: str) -> None:
        if unit in self._units:
            self._over(unit)
            self._actions.append(GiveUp(unit, reason, why))

    def _tried(self, unit: int, reason: str, why: str, now: float) -> None:
        self._failures[unit] = failures = self._failures.get(unit, 0) + 1
        if failures >= self._rules.attempts:
            times = "once" if failures == 1 else f"{failures} times"
            self._give_up(unit, reason, f"tried {times}; the last time {why}")
            return
        self._land(unit)
        self._wait(unit)

    def _blamed(self, node: str, why: str) -> None:
        if not node:
            return
        self._blame[node] = times = self._blame.get(node, 0) + 1
        if times >= self._rules.blamed and node not in self._passed_over:
            self._passed_over.add(node)
            self._slots_of.clear()
            self._actions.append(PassOver(node, f"{times} units failed there in a row: {why}"))

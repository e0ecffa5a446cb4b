"""Work units of a plan, and their order, attempts and deadlines: events in, actions out.

A unit has the cases that one node measures together: cases that one worker measures in turn, with
all launches and both arms, or the cases of one process and of several. Compared cases stay on one
machine; other units may go to other machines. If several nodes make a step together, the first one
measures and the others take part until the end.

The cluster decides where a unit runs. Every unit ends once: done, or given up with a reason.
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

#: Platforms of which a unit takes one device; other units may use the other devices of the node.
SHARED_PLATFORMS = frozenset({"cuda", "rocm"})
#: Phases of a case that each have the run's timeout: opening and measuring, exporting, verifying
#: against a reference, and profiling.
_TIMEOUTS_PER_CASE = 4
#: Time to start an interpreter and to detect the machine.
_START_SECONDS = 120.0

#: Identifies a case within a unit: its case_id, and its arm if there are two.
CaseKey = tuple[str, str]


@dataclass(frozen=True, order=True)
class Need:
    """Requirements of a unit on a node."""

    hardware: str  # the platform
    device: str = ""  # the kind of unit or the ordinal, if one was named
    node: str = ""  # the only node that may measure it; "" for any
    together: bool = False  # several processes make each step, one on each device
    nodes: int = 1  # number of nodes that make each step together

    @property
    def whole_node(self) -> bool:
        """Whether nothing else may run on the node at the same time."""
        return self.hardware not in SHARED_PLATFORMS or bool(self.device) or self.together

    def explain_shortage(self, able: int) -> str:
        """Return why `able` nodes are too few; empty if they suffice."""
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
    need: Need  # requirements on a node
    cases: tuple[Planned, ...]  # of this arm, without their devices
    others: tuple[Planned, ...] = ()  # of the arm that this one is compared with
    launches: int = 1  # of each case
    seconds: float = 0.0  # rough estimate of its duration
    limit: float = 0.0  # seconds after which it counts as hung, by the timeouts of its cases

    def keys(self, against: str = "") -> dict[CaseKey, Planned]:
        """Return the cases of both arms; `against` is the other arm's name."""
        this = THIS_ARM if against else ""
        own = {(planned.case.case_id, this): planned for planned in self.cases}
        return own | {(planned.case.case_id, against): planned for planned in self.others}

    @property
    def processes(self) -> int:
        """Largest number of processes that make a step together."""
        return max((p.case.world_size for p in (*self.cases, *self.others)), default=1)

    def remove_cases(self, done: Iterable[str]) -> WorkUnit:
        """Return the unit without the cases of these ids; a unit of two arms is not changed."""
        ended = set(done)
        left = tuple(p for p in self.cases if p.case.case_id not in ended)
        return self if self.others else replace(self, cases=left)


def split_units(
    plan: Plan, settings: RunSettings, other: OtherArm | None = None, first: int = 0
) -> Iterator[WorkUnit]:
    """Yield the units of a plan in its order, without cases that it refuses."""
    groups = list(_split_groups(plan))
    other_groups: Sequence[Sequence[Planned]] = list(_split_groups(other.plan)) if other else []
    number = first
    for own, compared in zip_longest(groups, other_groups, fillvalue=()):
        arms = [(own, settings)] + ([(compared, other.settings)] if other else [])
        cases, others = _select_tried(own), _select_tried(compared)
        if not cases and not others:
            continue
        seconds = sum(_estimate_seconds(group, arm_settings) for group, arm_settings in arms)
        yield _build_unit(number, cases, others, settings, seconds)
        number += 1


def _split_groups(plan: Plan) -> Iterator[list[Planned]]:
    """Yield the groups of a plan.

    Cases of several processes stay with the case of one process that they are compared with.
    """
    for _, cases in groupby(plan.cases, _group_key):
        run = list(cases)
        together = any(planned.case.world_size > 1 for planned in run)
        yield from [run] if together else Plan(tuple(run)).groups()


def _group_key(planned: Planned) -> tuple[object, ...]:
    case = planned.case
    return case.model.id, case.target, case.precision, case.mode, replace(case.shapes, batch=0)


def _build_unit(
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
        _START_SECONDS + measurements * _TIMEOUTS_PER_CASE * settings.timeout,
    )


def repeat_on_nodes(
    units: Iterable[WorkUnit], nodes: Mapping[str, frozenset[str]]
) -> list[WorkUnit]:
    """Repeat every unit for each node that has its platform, to see the spread between machines."""
    pinned: list[WorkUnit] = []
    for unit in units:
        able = [node for node, platforms in nodes.items() if unit.need.hardware in platforms]
        for node in able or [""]:
            pinned.append(replace(unit, number=len(pinned), need=replace(unit.need, node=node)))
    return pinned


def can_be_tried(planned: Planned) -> bool:
    """Return whether nodes can try a case: some refusals only concern the planning machine."""
    refusal = planned.refusal
    return refusal is None or reason_subject(refusal.reason) is Belongs.MACHINE


def _select_tried(group: Iterable[Planned]) -> tuple[Planned, ...]:
    return tuple(replace(p, device=None, refusal=None) for p in group if can_be_tried(p))


def _estimate_seconds(group: Sequence[Planned], settings: RunSettings) -> float:
    """Return the geometric mean of the bounds from the operations of a group."""
    total = run_forecast.START_SECONDS
    for planned in group:
        if planned.device is not None:
            low, high = run_forecast.case_seconds(planned, settings)
            total += settings.launches * (low * high) ** 0.5
    return total + run_forecast.build_seconds(group[0]) * settings.launches if group else 0.0


#: Key in the task of a further node: its part, without the rendezvous.
PART_IN_STEPS = "part_in_steps"
_RENDEZVOUS = "rendezvous"


def find_rendezvous(host: str) -> str:
    """Return HOST:PORT of this node for the other nodes, with a port that is free now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def set_rendezvous(task: Mapping[str, Any], address: str) -> dict[str, Any]:
    """Return a node's task with the address where the nodes meet."""
    if PART_IN_STEPS in task:
        return {**task, PART_IN_STEPS: {**task[PART_IN_STEPS], _RENDEZVOUS: address}}
    changed = {**task, "settings": {**task["settings"], _RENDEZVOUS: address}}
    if "against" in task:
        other = task["against"]
        changed["against"] = {**other, "settings": {**other["settings"], _RENDEZVOUS: address}}
    return changed


def join_steps(task: Mapping[str, Any], report: Callable[[str], None]) -> None:
    """Take part in steps until no request came for as long as the unit may take."""
    from accelbench.engines.pytorch.distributed.group import MachinePart, groups_taken_part_in

    part = MachinePart(**task[PART_IN_STEPS])
    report(f"takes part at {part.rendezvous}")
    for trouble in groups_taken_part_in(part, float(task["patience"]), float(task["timeout"])):
        if trouble:
            report(f"takes part at {part.rendezvous}; a group ended early: {trouble}")


#: Checks for hung units within the time after which a unit counts as hung.
_CHECKS = 20
#: Reasons to give up a unit, which its results have.
NO_NODE = "no_node"
NODE_LOST = "node_lost"
NODE_HUNG = "node_hung"
NODE_FAILED = "node_failed"
BUDGET = "budget"


@dataclass(frozen=True)
class DispatchRules:
    """Bounds of dispatching, in seconds unless a comment names another unit."""

    attempts: int = 3  # how often a unit is tried
    ahead: float = 1.0  # waiting units in the cluster for each one that can run
    silence: float = 90.0  # without a report, after which a unit counts as hung
    patience: float = 120.0  # to wait for a node after the last able one is gone
    start: float = 300.0  # to wait until a unit begins while none of its kind runs
    failure_limit: int = 2  # failures in a row after which a node gets no units
    budget: float | None = None  # of the whole run, after which no unit begins; None: no limit
    overtime: float = 15.0  # after the budget, until running units are ended


@dataclass(frozen=True)
class NodeOffer:
    """Number of devices of a node by platform, and the names of single devices."""

    node: str
    devices: Mapping[str, int]
    device_names: frozenset[str] = frozenset()  # "cuda:1", "openvino:gpu"

    def count_slots(self, need: Need) -> int:
        """Return how many units of a kind the node can measure at once."""
        if need.node not in ("", self.node) or not self.devices.get(need.hardware):
            return 0
        if need.device and str(need) not in self.device_names:
            return 0
        return 1 if need.whole_node else self.devices[need.hardware]


@dataclass(frozen=True)
class Submit:
    """Action: give a unit to the cluster."""

    unit: int
    attempt: int
    avoided: frozenset[str] = frozenset()  # nodes that get no units


@dataclass(frozen=True)
class Cancel:
    """Action: end an attempt on any node."""

    unit: int
    attempt: int


@dataclass(frozen=True)
class GiveUp:
    """Action: record that a unit will not be measured."""

    unit: int
    reason: str
    message: str


@dataclass(frozen=True)
class PassOver:
    """Action: record that a node gets no more units."""

    node: str
    message: str


Action = Submit | Cancel | GiveUp | PassOver


@dataclass
class _InFlight:
    """Attempt that was given to the cluster."""

    attempt: int
    submitted: float
    node: str = ""
    began: float | None = None
    heard: float = 0.0


@dataclass
class _Queue:
    """Units of one need."""

    waiting: list[tuple[float, int]] = field(default_factory=list)  # a heap, longest unit first
    submitted: set[int] = field(default_factory=set)
    absent_since: float | None = None  # when the last able node went away


class Dispatcher:
    """Waiting, submitted and ended units of a run.

    Methods for events record what happened; `next_actions` returns the actions that follow.
    """

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
        self._met_needs: set[Need] = set()  # needs that some node could meet
        self._actions: list[Action] = []
        self._known = False
        self._left = 0
        self._slot_counts: dict[Need, int] = {}  # cached until a node comes or goes
        self._checked_at = float("-inf")  # last check for hung units
        self._began: float | None = None  # when the first actions were taken
        for unit in units:
            self._units[unit.number] = (unit.need, unit.seconds, unit.limit)
            self._enqueue(unit.number)
            self._left += 1

    @property
    def is_over(self) -> bool:
        return self._left == 0

    @property
    def running(self) -> dict[int, str]:
        """Units that are being measured, with their nodes."""
        return {u: flight.node for u, flight in self._flights.items() if flight.began is not None}

    def budget_left(self, now: float) -> float | None:
        """Return the seconds that are left of the run's budget; None if there is no limit."""
        if self._rules.budget is None:
            return None
        return self._rules.budget - (now - (now if self._began is None else self._began))

    @property
    def submitted_units(self) -> list[int]:
        return list(self._flights)

    def current_attempt(self, unit: int) -> int:
        """Return the attempt that counts; 0 if the cluster has none."""
        flight = self._flights.get(unit)
        return flight.attempt if flight else 0

    # -- events

    def confirm_nodes(self) -> None:
        self._known = True

    def node_joined(self, offer: NodeOffer) -> None:
        self._offers[offer.node] = offer
        self._slot_counts.clear()

    def node_lost(self, node: str, why: str, now: float) -> None:
        self._offers.pop(node, None)
        self._slot_counts.clear()
        for unit, flight in list(self._flights.items()):
            if flight.node == node:
                self._count_failure(unit, NODE_LOST, why, now)

    def unit_began(self, unit: int, attempt: int, node: str, now: float) -> bool:
        """Record that a node began a unit; return False if that attempt no longer counts."""
        flight = self._find_flight(unit, attempt)
        if flight is None:
            return False
        if node in self._passed_over:  # the unit was submitted before
            self._actions.append(Cancel(unit, attempt))
            self._remove_flight(unit)
            self._enqueue(unit)
            return False
        flight.node, flight.began, flight.heard = node, now, now
        return True

    def unit_heard(self, unit: int, attempt: int, now: float) -> None:
        flight = self._find_flight(unit, attempt)
        if flight is not None:
            flight.heard = now

    def unit_ended(self, unit: int, attempt: int) -> None:
        flight = self._find_flight(unit, attempt)
        if flight is not None:
            self._blame.pop(flight.node, None)
            self._finish(unit)

    def unit_completed(self, unit: int) -> None:
        """Record the end of a unit by an earlier attempt, and end the current one."""
        if unit not in self._units:
            return
        flight = self._flights.get(unit)
        if flight is not None:
            self._actions.append(Cancel(unit, flight.attempt))
        self._finish(unit)

    def unit_failed(
        self, unit: int, attempt: int, why: str, now: float, *, lost: bool = False
    ) -> None:
        """Record that an attempt failed; `lost` if its node went away."""
        flight = self._find_flight(unit, attempt)
        if flight is None:
            return
        if not lost:
            self._blame_node(flight.node, why)
        self._count_failure(unit, NODE_LOST if lost else NODE_FAILED, why, now)

    # -- actions

    def next_actions(self, now: float) -> list[Action]:
        self._began = now if self._began is None else self._began
        self._end_hung(now)
        self._end_over_budget(now)
        for need, queue in self._queues.items():
            slots = self.count_slots(need)
            if slots:
                self._met_needs.add(need)
                queue.absent_since = None
                self._submit(queue, slots, now)
            elif self._known and (queue.waiting or queue.submitted):
                self._wait_for_node(need, queue, now)
        actions, self._actions = self._actions, []
        return actions

    def count_slots(self, need: Need) -> int:
        """Return how many units of a kind all nodes together can measure at once."""
        if need not in self._slot_counts:
            offers = (o for o in self._offers.values() if o.node not in self._passed_over)
            self._slot_counts[need] = sum(offer.count_slots(need) for offer in offers) // need.nodes
        return self._slot_counts[need]

    def _submit(self, queue: _Queue, slots: int, now: float) -> None:
        window = slots + max(1, round(slots * self._rules.ahead))
        while queue.waiting and len(queue.submitted) < window:
            _, unit = heapq.heappop(queue.waiting)
            if unit not in self._units:
                continue
            self._attempts[unit] = attempt = self._attempts.get(unit, 0) + 1
            self._flights[unit] = _InFlight(attempt, now)
            queue.submitted.add(unit)
            self._actions.append(Submit(unit, attempt, frozenset(self._passed_over)))

    def _wait_for_node(self, need: Need, queue: _Queue, now: float) -> None:
        """Give up units that no node can measure.

        They are given up at once if no node ever could, else after a while.
        """
        if need in self._met_needs:
            queue.absent_since = now if queue.absent_since is None else queue.absent_since
            if now - queue.absent_since < self._rules.patience:
                return
            lost, has = ("every node", "has") if need.nodes == 1 else ("a node of those", "have")
            why = f"{lost} that {has} {need} was lost, or failed too often"
        else:
            why = need.explain_shortage(
                sum(offer.count_slots(need) for offer in self._offers.values())
            )
        for unit in [*sorted(queue.submitted), *(unit for _, unit in sorted(queue.waiting))]:
            if unit in self._flights:
                self._actions.append(Cancel(unit, self._flights[unit].attempt))
            self._give_up(unit, NO_NODE, why)

    def _end_hung(self, now: float) -> None:
        rules = self._rules
        if now - self._checked_at < rules.silence / _CHECKS:
            return
        self._checked_at = now
        busy = {self._units[u][0] for u, f in self._flights.items() if f.began is not None}
        for unit, flight in list(self._flights.items()):
            need, _, limit = self._units[unit]
            if flight.began is None:
                stuck = need not in busy and now - flight.submitted > rules.start
                why = f"it did not begin within {rules.start:.0f} s" if stuck else ""
            elif now - flight.heard > rules.silence:
                why = f"it sent no report for {rules.silence:.0f} s"
            elif now - flight.began > limit:
                why = f"it took longer than {limit:.0f} s, the limit by its timeouts"
            else:
                why = ""
            if why:
                self._actions.append(Cancel(unit, flight.attempt))
                self._blame_node(flight.node, why)
                self._count_failure(unit, NODE_HUNG, why, now)

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

    def _find_flight(self, unit: int, attempt: int) -> _InFlight | None:
        flight = self._flights.get(unit)
        return flight if flight is not None and flight.attempt == attempt else None

    def _enqueue(self, unit: int) -> None:
        need, seconds, _ = self._units[unit]
        heapq.heappush(self._queues.setdefault(need, _Queue()).waiting, (-seconds, unit))

    def _remove_flight(self, unit: int) -> None:
        self._flights.pop(unit, None)
        self._queues[self._units[unit][0]].submitted.discard(unit)

    def _finish(self, unit: int) -> None:
        self._remove_flight(unit)
        del self._units[unit]
        self._left -= 1

    def _give_up(self, unit: int, reason: str, why: str) -> None:
        if unit in self._units:
            self._finish(unit)
            self._actions.append(GiveUp(unit, reason, why))

    def _count_failure(self, unit: int, reason: str, why: str, now: float) -> None:
        self._failures[unit] = failures = self._failures.get(unit, 0) + 1
        if failures >= self._rules.attempts:
            times = "once" if failures == 1 else f"{failures} times"
            self._give_up(unit, reason, f"tried {times}; the last time {why}")
            return
        self._remove_flight(unit)
        self._enqueue(unit)

    def _blame_node(self, node: str, why: str) -> None:
        if not node:
            return
        self._blame[node] = times = self._blame.get(node, 0) + 1
        if times >= self._rules.failure_limit and node not in self._passed_over:
            self._passed_over.add(node)
            self._slot_counts.clear()
            self._actions.append(PassOver(node, f"{times} units failed there in a row: {why}"))

"""Work units of a plan: the cases that one node measures together.

A unit has cases that one worker measures in turn, with all launches and both arms, or the cases of
one process and of several: compared cases stay on one machine. Other units may go to other
machines. If several nodes make a step together, the first one measures and the others take part
until the end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any

from accelbench.core.possible import belongs
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Belongs
from accelbench.core.worth import THIS_ARM
from accelbench.run.plan import estimates
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
    return refusal is None or belongs(refusal.reason) is Belongs.MACHINE


def _tried(group: Iterable[Planned]) -> tuple[Planned, ...]:
    return tuple(replace(p, device=None, refusal=None) for p in group if is_tried(p))


def _seconds(group: Sequence[Planned], settings: RunSettings) -> float:
    """Return the geometric mean of the bounds that the operations of a group give."""
    total = estimates.START_SECONDS
    for planned in group:
        if planned.device is not None:
            low, high = estimates.case_seconds(planned, settings)
            total += settings.launches * (low * high) ** 0.5
    return total + estimates.build_seconds(group[0]) * settings.launches if group else 0.0


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

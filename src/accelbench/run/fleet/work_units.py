"""Work units: what one node measures in one go, out of a plan. Pure.

A unit is a group of cases that one worker measures in turn, with all their launches and both arms,
or the groups of one process and of several: what is compared with each other stays on one machine.
Whatever differs between units may be of different machines.

A node's part in steps that several nodes make together, as tasks say it and its runner takes it.

The first node measures, as it does a unit of its own; the others take part in every group of
processes that it starts, until they are ended with the unit.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any

from accelbench.core.possible import belongs
from accelbench.core.run_spec import RunSettings
from accelbench.core.vocabulary import Belongs
from accelbench.core.worth import THIS_ARM
from accelbench.run.plan import estimates
from accelbench.run.plan.against import OtherArm
from accelbench.run.plan.request import Plan, Planned

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
    """What a unit needs of a node.

    Attributes:
        hardware: the platform.
        device: the kind of unit or the ordinal, where one was named.
        node: the one node that it is to be measured on; "" where any will do.
        together: whether several processes of it make each step, on as many devices.
        nodes: that make each step together; on the first of them it is measured.
    """

    hardware: str
    device: str = ""
    node: str = ""
    together: bool = False
    nodes: int = 1

    @property
    def whole_node(self) -> bool:
        """Whether nothing else may run on the node meanwhile."""
        return self.hardware not in PARTED or bool(self.device) or self.together

    def unmet(self, able: int) -> str:
        """Why it is not met where so many nodes could meet it alone; "" where it is."""
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
    """Cases that one node measures in one go.

    Attributes:
        number: its place in the plan.
        need: what it needs of a node.
        cases: of this arm, without their devices.
        others: of the arm that this one is compared with.
        launches: of each case.
        seconds: that it will take, very roughly.
        limit: seconds after which it is taken for hung, by the timeouts of its cases.
    """

    number: int
    need: Need
    cases: tuple[Planned, ...]
    others: tuple[Planned, ...] = ()
    launches: int = 1
    seconds: float = 0.0
    limit: float = 0.0

    def keys(self, against: str = "") -> dict[CaseKey, Planned]:
        """The cases of both arms; `against` is the other arm's name."""
        this = THIS_ARM if against else ""
        own = {(planned.case.case_id, this): planned for planned in self.cases}
        return own | {(planned.case.case_id, against): planned for planned in self.others}

    @property
    def processes(self) -> int:
        """How many make a step together, at most."""
        return max((p.case.world_size for p in (*self.cases, *self.others)), default=1)

    def without(self, done: Iterable[str]) -> WorkUnit:
        """What is left of it, but for cases by their case_id. One of two arms is not parted."""
        ended = set(done)
        left = tuple(p for p in self.cases if p.case.case_id not in ended)
        return self if self.others else replace(self, cases=left)


def units_of(
    plan: Plan, settings: RunSettings, other: OtherArm | None = None, first: int = 0
) -> Iterator[WorkUnit]:
    """The units of a plan, in its order; cases that it refuses are of none.

    Args:
        plan: as it is planned for all nodes together; devices in it stand for their kind.
        settings: how the run goes about it.
        other: the arm that it is compared with.
        first: the number of the first unit.
    """
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
    """The groups of a plan, but that several processes stay with the one that they are held to."""
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
    """Every unit once for each node that has its platform; the spread between machines comes of it.

    Args:
        units: of the plan.
        nodes: the platforms of each node.
    """
    pinned: list[WorkUnit] = []
    for unit in units:
        able = [node for node, platforms in nodes.items() if unit.need.hardware in platforms]
        for node in able or [""]:
            pinned.append(replace(unit, number=len(pinned), need=replace(unit.need, node=node)))
    return pinned


def is_tried(planned: Planned) -> bool:
    """Whether a node is asked for it: what stands in the way of one machine may not of another."""
    refusal = planned.refusal
    return refusal is None or belongs(refusal.reason) is Belongs.MACHINE


def _tried(group: Iterable[Planned]) -> tuple[Planned, ...]:
    """What nodes are asked for, without what the planning machine says of itself."""
    return tuple(replace(p, device=None, refusal=None) for p in group if is_tried(p))


def _seconds(group: Sequence[Planned], settings: RunSettings) -> float:
    """Between the ends of what its operations say."""
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
    """HOST:PORT of this node where the others find it; the port is free now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def meeting_at(task: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A task of any of these nodes, told where they meet."""
    if PART_IN_STEPS in task:
        return {**task, PART_IN_STEPS: {**task[PART_IN_STEPS], _PLACE: place}}
    told = {**task, "settings": {**task["settings"], _PLACE: place}}
    if "against" in task:
        other = task["against"]
        told["against"] = {**other, "settings": {**other["settings"], _PLACE: place}}
    return told


def take_part_here(task: Mapping[str, Any], at: Callable[[str], None]) -> None:
    """Take part until nothing was asked for as long as the unit may take."""
    from accelbench.runtimes.pytorch.distributed.group import (
        MachinePart,
        groups_taken_part_in,
    )

    part = MachinePart(**task[PART_IN_STEPS])
    at(f"takes part at {part.rendezvous}")
    for trouble in groups_taken_part_in(part, float(task["patience"]), float(task["timeout"])):
        if trouble:
            at(f"takes part at {part.rendezvous}; a group ended early: {trouble}")

"""Fleets that are calculated, and what a run on one of them came to."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.facts import RESULT, Fact
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.fleet.dispatch import DispatchRules, WorkUnit, split_units
from accelbench.fleet.fleet_nodes import FleetNode
from accelbench.fleet.fleet_record import FleetRecord
from accelbench.fleet.fleet_run import FleetJob, FleetRun
from accelbench.models.find import find
from accelbench.run.plan.request import Plan, Planned
from virtual_cluster import NodeFault, VirtualCluster

FLEET = "20260101-000000-0123456789"


def node(name: str, **counts: int) -> FleetNode:
    """A node with so many devices of each platform."""
    found = {
        hardware: [Device(hardware, f"a {hardware}", ordinal=n) for n in range(count)]
        for hardware, count in (counts or {"cpu": 1}).items()
    }
    return FleetNode(name, name, {"machine": name}, found)


def units(
    groups: int,
    batches: int = 2,
    hardware: Sequence[str] = ("cpu",),
    launches: int = 1,
    timeout: float = 600.0,
) -> list[WorkUnit]:
    """Units of groups of cases, on platforms in turn."""
    model = find("bert-tiny")
    plan = Plan(
        tuple(
            Planned(
                Case(
                    replace(model, id=f"model-{group}"),
                    Target("scripted", hardware[group % len(hardware)]),
                    "fp32",
                    Shapes(2**batch, sequence=128),
                ),
                Device(hardware[group % len(hardware)], "stands for its kind"),
            )
            for group in range(groups)
            for batch in range(batches)
        )
    )
    return list(split_units(plan, RunSettings(launches=launches, timeout=timeout)))


@dataclass
class Kept:
    """Facts of all runs, in memory."""

    facts: list[Fact] = field(default_factory=list)

    def open(self, run_id: str) -> tuple[Kept, bool]:
        return self, any(fact.body.get("run_id") == run_id for fact in self.facts)

    def append(self, fact: Fact) -> None:
        self.facts.append(fact)

    def close(self) -> None:
        return None

    @property
    def results(self) -> list[Mapping[str, Any]]:
        return [fact.body for fact in self.facts if fact.kind == RESULT]


@dataclass
class Heard:
    """What a run said to whoever watched."""

    notes: list[str] = field(default_factory=list)
    rows: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def node_joined(self, node: FleetNode) -> None:
        return None

    def node_lost(self, node: str, why: str) -> None:
        self.lost.append(node)

    def node_active(self, node: str, text: str) -> None:
        return None

    def result_measured(self, node: str, row: Mapping[str, Any]) -> None:
        self.rows.append((node, row))


@dataclass
class Ended:
    """A run that is over."""

    kept: Kept
    heard: Heard
    cluster: VirtualCluster
    run: FleetRun

    @property
    def by_case(self) -> dict[str, list[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in self.kept.results:
            found[str(row["case_id"])].append(row)
        return found

    @property
    def statuses(self) -> Counter[str]:
        return Counter(str(row["status"]) for row in self.kept.results)


def run_on(
    nodes: Sequence[FleetNode],
    work: Sequence[WorkUnit],
    faults: Sequence[NodeFault] = (),
    seconds: Callable[[Case, str], float] = lambda case, node: 10.0,
    rules: DispatchRules | None = None,
    settings: RunSettings | None = None,
    cluster: type[VirtualCluster] = VirtualCluster,
) -> Ended:
    """Run units on a virtual cluster to their end."""
    made = cluster(nodes, seconds, faults)
    how = settings or RunSettings(launches=work[0].launches)
    job = FleetJob(FLEET, work, how)
    kept, heard = Kept(), Heard()
    record = FleetRecord(FLEET, kept.open, work, "", kept)
    run = FleetRun(job, made, record, heard, rules or DispatchRules())
    here = []
    while not made.is_settled():
        here += [event.node for event in made.events(0.0)]
    run.add_nodes(here)
    run.execute()
    return Ended(kept, heard, made, run)


def random_faults(seed: int, nodes: Sequence[FleetNode], horizon: float) -> list[NodeFault]:
    """Nodes killed, hung, cut off and joining late, but for one that nothing befalls."""
    source = random.Random(seed)
    faults = []
    for each in nodes[1:]:
        how = source.choice(["kill", "hang", "cut", "join", "none"])
        if how != "none":
            moment = source.uniform(0.1, horizon)
            faults.append(NodeFault(moment, each.id, how, source.uniform(5.0, horizon)))
    return faults

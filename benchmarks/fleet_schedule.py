"""Scheduling: a hundred thousand cases on a thousand nodes, calculated on a clock of its own.

The dispatcher, the record and the loop between them are the fleet's own; the nodes are calculated,
and what they send is made up. How long a case takes is drawn at random, and what the dispatcher
expects of it is off by as much again. Kept are the makespan against its lower bound (all seconds
shared out evenly, or the longest unit), the driver's memory and its own time; then the same with
a tenth of the nodes killed, hung or cut off.

    python benchmarks/fleet_schedule.py  [--nodes 1000] [--cases 100000]
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
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
from keeping import keep, verdict

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from virtual_cluster import NodeFault, VirtualCluster

BOUND = 1.1
GIB = 1.0
_BATCHES = 4
_FLEET = "20260101-000000-0123456789"


class Counted:
    """Facts of all runs: how many results of each case there are."""

    def __init__(self) -> None:
        self.results: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self._runs: set[str] = set()

    def open(self, run_id: str) -> tuple[Counted, bool]:
        begun = run_id in self._runs
        self._runs.add(run_id)
        return self, begun

    def append(self, fact: Fact) -> None:
        if fact.kind == RESULT:
            self.results[str(fact.body["case_id"])] += 1
            self.statuses[str(fact.body["status"])] += 1

    def close(self) -> None:
        return None


class Unwatched:
    """Nobody watches."""

    def note(self, text: str) -> None:
        return None

    def node_joined(self, node: FleetNode) -> None:
        return None

    def node_lost(self, node: str, why: str) -> None:
        return None

    def node_active(self, node: str, text: str) -> None:
        return None

    def result_measured(self, node: str, row: Any) -> None:
        return None


def work(cases: int, source: random.Random) -> tuple[list[WorkUnit], dict[str, float]]:
    """Units, what is expected of them, and how long each of their cases takes."""
    model, device = find("bert-tiny"), Device("cpu", "stands for its kind")
    groups = [replace(model, id=f"model-{number}") for number in range(cases // _BATCHES)]
    target = Target("scripted", "cpu")
    plan = Plan(
        tuple(
            Planned(Case(group, target, "fp32", Shapes(2**batch, sequence=128)), device)
            for group in groups
            for batch in range(_BATCHES)
        )
    )
    took = {p.case.case_id: source.lognormvariate(2.1, 0.6) for p in plan.cases}
    units = [
        replace(
            unit,
            seconds=sum(took[p.case.case_id] for p in unit.cases) * source.lognormvariate(0.0, 0.6),
        )
        for unit in split_units(plan, RunSettings())
    ]
    return units, took


def scheduled(
    nodes: int, units: Sequence[WorkUnit], took: dict[str, float], faults: Sequence[NodeFault]
) -> dict[str, Any]:
    """Run it; what became of it."""
    there = [
        FleetNode(f"n{number:04d}", f"n{number:04d}", {}, {"cpu": [Device("cpu", "a CPU")]})
        for number in range(nodes)
    ]
    cluster = VirtualCluster(there, lambda case, _: took[case.case_id], faults)
    counted = Counted()
    record = FleetRecord(_FLEET, counted, units, "")
    job = FleetJob(_FLEET, units, RunSettings())
    run = FleetRun(job, cluster, record, counted, Unwatched(), DispatchRules(silence=120.0))
    before = time.process_time()
    here = []
    while not cluster.is_settled():
        here += [event.node for event in cluster.events(0.0)]
    run.add_nodes(here)
    run.execute()
    bound = max(
        sum(took.values()) / nodes,
        max(sum(took[p.case.case_id] for p in unit.cases) for unit in units),
    )
    return {
        "nodes": nodes,
        "cases": len(took),
        "units": len(units),
        "faults": dict(Counter(fault.how for fault in faults)),
        "makespan_seconds": cluster.now(),
        "lower_bound_seconds": bound,
        "makespan_over_bound": cluster.now() / bound,
        "driver_and_cluster_cpu_seconds": time.process_time() - before,
        "cases_that_ended_once": sum(count == 1 for count in counted.results.values()),
        "results": dict(counted.statuses),
        "results_dropped": record.dropped,
    }


def struck(nodes: int, source: random.Random, horizon: float) -> list[NodeFault]:
    """A tenth of the nodes, struck at some moment."""
    numbers = source.sample(range(nodes), nodes // 10)
    return [
        NodeFault(source.uniform(0, horizon), f"n{number:04d}", how, source.uniform(60, 600))
        for number, how in zip(numbers, _ways(), strict=False)
    ]


def _ways() -> Any:
    while True:
        yield from ("kill", "hang", "cut")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=100_000)
    asked = parser.parse_args()
    source = random.Random(20260101)
    units, took = work(asked.cases, source)
    calm = scheduled(asked.nodes, units, took, ())
    print(calm, flush=True)
    faults = struck(asked.nodes, source, calm["lower_bound_seconds"])
    rough = scheduled(asked.nodes, units, took, faults)
    print(rough, flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ended = all(each["cases_that_ended_once"] == each["cases"] for each in (calm, rough))
    reached = {
        "makespan": verdict("makespan over its lower bound", calm["makespan_over_bound"], BOUND),
        "memory": verdict("memory, GiB", memory, GIB),
        "once": verdict("cases that did not end once", float(not ended), 0.0),
    }
    keep(
        "fleet_schedule", {"calm": calm, "struck": rough, "memory_gib": memory, "reached": reached}
    )


if __name__ == "__main__":
    main()

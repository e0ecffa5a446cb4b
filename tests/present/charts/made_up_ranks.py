"""Results of several processes, made up: columns and evidence as a distributed session has them."""

from __future__ import annotations

from statistics import median
from typing import Any

#: Charts that have nothing to show without results of several processes.
OF_RANKS = ("scaling", "communication", "ranks")


def one_process(threads: int) -> dict[str, Any]:
    """What the one process has that several are compared with."""
    return {"world_size": 1, "threads": threads, "options": {"threads": threads}}


def distributed(
    strategy: str,
    ranks: int,
    efficiency: float,
    *,
    work: tuple[float, ...] = (),
    threads: int = 1,
    device: str = "cpu",
    hosts: tuple[str, ...] = ("lab",),
) -> dict[str, Any]:
    """What several processes have beside one.

    Args:
        strategy: of the case.
        ranks: how many there are.
        efficiency: against one process.
        work: milliseconds of each rank's own work in a step of 100 ms; the last rank's is 20 % more
            than the others' where nothing is said.
        threads: of each.
        device: of each.
        hosts: on which they are, as many on each.
    """
    own = work or (*(60.0,) * (ranks - 1), 72.0)
    exposed = [100.0 - of_rank for of_rank in own]
    of_each = [
        {
            "rank": rank,
            "host": hosts[rank * len(hosts) // ranks],
            "pid": 4000 + rank,
            "device": device,
            "threads": threads,
            "host_memory_peak_mb": 150.0 + rank,
            "device_memory_peak_bytes": None,
            "step_ms": 90.0 + rank / 4,
        }
        for rank in range(ranks)
    ]
    exchanged = [
        {
            "steps": 5,
            "wall_ms": 100.0,
            "communication_ms": waited + 10.0,
            "exposed_ms": waited,
            "computing_ms": 55.0,
            "collectives": 4.0,
        }
        for waited in exposed
    ]
    communication = sum(exposed) / ranks + 10.0
    return {
        "world_size": ranks,
        "threads": threads * ranks,
        "options": {"strategy": strategy},
        "scaling_efficiency": efficiency,
        "communication_ms": communication,
        "communication_share": communication / 100.0,
        "exposed_communication_ms": sum(exposed) / ranks,
        "straggler_ratio": max(own) / median(own),
        "evidence": {
            "devices": [device],
            "details": {
                "distributed": {
                    "strategy": strategy,
                    "backend": "gloo",
                    "micro_batch": 4,
                    "accumulate": 1,
                    "ranks": of_each,
                    "communication": exchanged,
                }
            },
        },
    }

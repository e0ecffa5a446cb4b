"""The machine around each case, read by the conductor before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.clock import cpu_seconds
from accelbench.core.identity import plain
from accelbench.core.worth import MOST_WAITING
from accelbench.hardware.machine import MachineSnapshot, compare, noise_warnings, snapshot


@dataclass(frozen=True)
class SurroundingsBefore:
    """The machine, and this process's own work, when a case began."""

    machine: MachineSnapshot
    own_cpu_seconds: float


class Surroundings:
    """Readings of the machine around a case."""

    def before(self) -> SurroundingsBefore:
        """Read the machine before a case."""
        return SurroundingsBefore(snapshot(), cpu_seconds())

    def after(
        self,
        before: SurroundingsBefore,
        worker_cpu_seconds: float,
        threads: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        other_run: str = "",
    ) -> tuple[Mapping[str, Any], list[str]]:
        """Return the environment to store, and warnings.

        `metrics` show how much the case was disturbed; `other_run` measured meanwhile, if it is not
        empty.
        """
        metrics = metrics or {}
        now = snapshot()
        own = worker_cpu_seconds + cpu_seconds() - before.own_cpu_seconds
        disturbance = compare(before.machine, now, own)
        machine = before.machine
        return {
            "load_before": plain(machine.load),
            "load_after": plain(now.load),
            "governor": str(machine.governor),
            "memory_available": machine.memory_available,
            **plain(disturbance),
        }, [
            *_too_many(threads, machine),
            *noise_warnings(
                disturbance,
                machine,
                slowed(metrics),
                threads,
                waited=(metrics.get("cpu_wait_share") or 0.0) > MOST_WAITING,
                other_run=other_run,
            ),
        ]


def slowed(metrics: Mapping[str, Any]) -> float | None:
    """Return a case's median step as a multiple of its fastest; None if steps were not timed
    singly."""
    # The fastest step is the nearest to an undisturbed one that a busy machine has.
    median, fastest = metrics.get("latency_p50_ms"), metrics.get("latency_min_ms")
    return median / fastest if median and fastest else None


def _too_many(threads: int | None, machine: MachineSnapshot) -> list[str]:
    cpus = machine.limits.effective_cpus(machine.cpus)
    if threads is None or threads <= cpus:
        return []
    few = max(1, int(cpus))
    sentence = f"It was measured with {threads} threads on {cpus:g} CPUs: they took turns."
    return [f"{sentence} Use --threads {few}."]

"""Which machine a run was made on, from the facts that the run recorded of it. Pure.

What a CPU is worth is known only beside the same CPU: a matrix, and every other
comparison across hardware, is of one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.identity import digest
from accelbench.core.protocols import installed_gib

_SHORTEST_ID = 4
_SOURCE = "source "


@dataclass(frozen=True, order=True)
class Machine:
    """One machine. Runs that recorded no machine are each a machine of their own."""

    name: str  # its host name, or the run where that is not known
    cpu: str = ""
    cpus: int = 0
    memory_gib: int = 0

    @property
    def elsewhere(self) -> bool:
        """It is whatever a source's figures were measured on, which nobody here knows."""
        return self.name.startswith(_SOURCE)

    @property
    def id(self) -> str:
        """Tells machines of one name apart."""
        return digest([self.name, self.cpu, self.cpus, self.memory_gib], length=8)

    def answers(self, asked: str) -> bool:
        """Whether it is meant by a name, or by the beginning of its id."""
        by_id = len(asked) >= _SHORTEST_ID and self.id.startswith(asked.lower())
        return by_id or self.name == asked

    def __str__(self) -> str:
        if not self.cpu:
            return self.name
        return f"{self.name} ({self.cpu}, {self.cpus} CPUs, {self.memory_gib} GiB)"


def machine_of(run_id: str, environment: Mapping[str, Any] | None) -> Machine:
    """The machine of a run.

    CPU quota and affinity are left out: one command measures under `taskset`, the next
    does not, and the machine is the same. Thread counts keep such results apart.
    """
    said = environment or {}
    if isinstance(said.get("source"), Mapping):
        return Machine(f"{_SOURCE}{said['source'].get('name')}")
    if not said.get("machine") or not said.get("cpu"):
        return Machine(f"run {run_id}")
    memory = said.get("memory_total")
    return Machine(
        name=str(said["machine"]),
        cpu=str(said["cpu"]),
        cpus=int(said.get("cpus_logical") or 0),
        memory_gib=installed_gib(memory) if memory else 0,
    )


def chosen(newest: Mapping[Machine, str], asked: str | None) -> Machine:
    """The machine asked for by name or by the beginning of its id, else that of the newest result.

    Args:
        newest: each machine with the moment of its newest result; at least one.
        asked: what a person named.

    Raises:
        UsageError: no machine answers to it, or several do.
    """
    if asked is None:
        return max(newest, key=lambda machine: (newest[machine], machine))
    found = [machine for machine in newest if machine.answers(asked)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"There are no results of a machine {asked!r}.", _there_are(newest))
    raise UsageError(f"{asked!r} names {len(found)} machines.", _there_are(found))


def _there_are(machines: Iterable[Machine]) -> str:
    return f"There are: {'; '.join(f'{m.id} {m}' for m in sorted(machines))}."

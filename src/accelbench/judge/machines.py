"""Which machine a run was made on, from the facts that the run recorded of it. Pure.

What a CPU is worth is known only beside the same CPU: a matrix, and every other
comparison across hardware, is of one machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.errors import UsageError
from accelbench.core.identity import digest
from accelbench.core.protocols import installed_gib
from accelbench.core.rows import Json, number
from accelbench.core.safe_text import in_quotes

_SHORTEST_ID = 4
_SOURCE = "source "


@dataclass(frozen=True, order=True)
class Machine:
    """One machine. Runs that recorded no machine are each a machine of their own."""

    name: str  # its host name, the source that it is known by, or the run where neither is known
    cpu: str = ""
    cpus: int = 0
    memory_gib: int = 0

    @property
    def elsewhere(self) -> bool:
        """It is what a source's figures were measured on, by whoever named the source."""
        return self.name.startswith(_SOURCE)

    @property
    def id(self) -> str:
        """Tells machines of one name apart."""
        return digest([self.name, self.cpu, self.cpus, self.memory_gib], length=8)

    @property
    def word(self) -> str:
        """What it is asked for by."""
        return self.name.removeprefix(_SOURCE) if self.elsewhere else self.name

    def answers(self, word: str) -> bool:
        """Whether it is meant by a name, by that of its source, or by the beginning of its id."""
        by_id = len(word) >= _SHORTEST_ID and self.id.startswith(word.lower())
        by_source = self.elsewhere and self.name == f"{_SOURCE}{word}"
        return by_id or by_source or self.name == word

    def __str__(self) -> str:
        if not self.cpu:
            return self.name
        return f"{self.name} ({self.cpu}, {self.cpus} CPUs, {self.memory_gib} GiB)"


def machine_of(run_id: str, environment: Json | None) -> Machine:
    """The machine of a run.

    CPU quota and affinity are left out: one command measures under `taskset`, the next
    does not, and the machine is the same. Thread counts keep such results apart.

    A source that whoever imported the run has named is the name of its machine. What is
    known of the machine still tells it from others under that name.
    """
    env: Json = environment or {}
    source = env.get("source")
    named = f"{_SOURCE}{source.get('name')}" if isinstance(source, Mapping) else ""
    if not env.get("machine") or not env.get("cpu"):
        return Machine(named or f"run {run_id}")
    memory, cpus = number(env, "memory_total"), env.get("cpus_logical")
    return Machine(
        name=named or str(env["machine"]),
        cpu=str(env["cpu"]),
        cpus=int(cpus) if isinstance(cpus, int | float | str) and cpus else 0,
        memory_gib=installed_gib(memory) if memory else 0,
    )


def machines_of(environments: Iterable[Sequence[object]]) -> dict[str, Machine]:
    """The machine of each run, from what the runs recorded as JSON.

    Most runs of one machine say the same of it, and each text is understood once.
    """
    cache: dict[str, Json | None] = {"": None}
    machines = {}
    for run, recorded in environments:
        text = str(recorded or "")
        if text not in cache:
            cache[text] = json.loads(text)
        machines[str(run)] = machine_of(str(run), cache[text])
    return machines


def chosen(newest: Mapping[Machine, str], word: str | None) -> Machine:
    """The machine asked for by name or by the beginning of its id, else that of the newest result.

    Args:
        newest: each machine with the moment of its newest result; at least one.
        word: what a person named.

    Raises:
        UsageError: no machine answers to it, or several do.
    """
    if word is None:
        return max(newest, key=lambda machine: (newest[machine], machine))
    matches = [machine for machine in newest if machine.answers(word)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UsageError(
            f"There are no results of a machine {in_quotes(word)}.", _there_are(newest)
        )
    raise UsageError(f"{in_quotes(word)} names {len(matches)} machines.", _there_are(matches))


def _there_are(machines: Iterable[Machine]) -> str:
    return f"There are: {'; '.join(f'{m.id} {m}' for m in sorted(machines))}."

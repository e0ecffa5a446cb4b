"""Where one step's time goes, by operator, as an engine's own profiler says.

A profile is taken after what is measured, in a session of its own, since profiling costs
time: its figures are never mixed with measured samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Spent:
    """What an engine says of one operator over all profiled steps."""

    name: str  # this very operator: a node's name, or the shapes that it was called with
    kind: str  # what it does: aten::addmm, MatMul, FullyConnected
    ns: float  # its own time, without what it called
    calls: float = 1
    where: str = ""  # the device, or the engine's word for it


@dataclass(frozen=True)
class Operator:
    """One operator in one step."""

    name: str
    kind: str
    calls: float
    total_ms: float
    share: float  # of the step's wall time
    where: str


@dataclass(frozen=True)
class Profile:
    """One step, as the mean of those that were profiled.

    Operators that ran at the same time on several threads or streams may add up to more
    than the wall time; what they leave of it is the host's, the engine's or the profiler's.
    """

    profiler: str  # whose figures these are
    steps: int
    wall_ms: float  # of one step, with the profiler's cost
    walls_ms: tuple[float, ...]  # of each
    operators: tuple[Operator, ...]  # the longest first
    remark: str = ""  # what a reader should know of this profiler's times
    trace: str | None = None  # the engine's own record, a file in the folder that was handed in

    @property
    def explained(self) -> float:
        return sum(operator.share for operator in self.operators)


@runtime_checkable
class Profiling(Protocol):
    """A session that can say where its time goes."""

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        """Return so many steps under the engine's profiler; nothing is measured in this session.

        The inputs were prepared, compiled for, and stepped with before. The engine's own record
        goes to the folder `traces`. Raises CaseError with the reason if the engine has no profile.
        """


def profiled(
    profiler: str, spent: Iterable[Spent], walls_ns: Sequence[int], remark: str = ""
) -> Profile:
    """One step of what an engine counted over as many as there are wall times.

    Operators of the same name, kind and place are one; those that took no time are none.
    """
    steps = len(walls_ns)
    walls_ms = tuple(ns / 1e6 for ns in walls_ns)
    wall_ms = sum(walls_ms) / steps
    counted: dict[tuple[str, str, str], list[float]] = {}
    for entry in spent:
        of = counted.setdefault((entry.name, entry.kind, entry.where), [0.0, 0.0])
        of[0] += entry.calls
        of[1] += entry.ns
    operators = [
        Operator(name, kind, _whole(calls / steps), ns / steps / 1e6, 0.0, where)
        for (name, kind, where), (calls, ns) in counted.items()
        if ns > 0
    ]
    return Profile(profiler, steps, wall_ms, walls_ms, _ranked(operators, wall_ms), remark)


def by_kind(profile: Profile) -> tuple[Operator, ...]:
    """The same time by what operators do: one a kind and place, its name the kind's."""
    operators: dict[tuple[str, str], Operator] = {}
    for entry in profile.operators:
        key = (entry.kind, entry.where)
        so_far = operators.get(key, Operator(entry.kind, entry.kind, 0, 0.0, 0.0, entry.where))
        calls = _whole(so_far.calls + entry.calls)
        operators[key] = replace(so_far, calls=calls, total_ms=so_far.total_ms + entry.total_ms)
    return _ranked(operators.values(), profile.wall_ms)


def _ranked(operators: Iterable[Operator], wall_ms: float) -> tuple[Operator, ...]:
    shared = (
        replace(operator, share=operator.total_ms / wall_ms if wall_ms else 0.0)
        for operator in operators
    )
    return tuple(sorted(shared, key=lambda entry: (-entry.total_ms, entry.kind, entry.name)))


def _whole(calls: float) -> float:
    """3, not 3.0: an operator that is called in every step is called so many times."""
    return int(calls) if float(calls).is_integer() else calls

"""Time of one step by operator, from an engine's own profiler.

A profile comes from a separate session after the measurement. Profiling takes time, so its values
are never mixed with measured samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class OperatorTime:
    """Time that an engine reports for one operator over all profiled steps."""

    name: str  # of this operator: a node's name, or the shapes of its inputs
    kind: str  # of operation: aten::addmm, MatMul, FullyConnected
    ns: float  # its own time, without the operators that it called
    calls: float = 1
    where: str = ""  # the device, as the engine names it


@dataclass(frozen=True)
class Operator:
    """Operator in one step."""

    name: str
    kind: str
    calls: float
    total_ms: float
    share: float  # of the step's wall time
    where: str


@dataclass(frozen=True)
class Profile:
    """One step, as the mean of the profiled steps.

    Operators that ran at the same time on several threads or streams may add up to more than the
    wall time. The remaining time belongs to the host, the engine or the profiler.
    """

    profiler: str
    steps: int
    wall_ms: float  # of one step, with the profiler's cost
    walls_ms: tuple[float, ...]  # of each
    operators: tuple[Operator, ...]  # the longest first
    remark: str = ""  # a note for readers about this profiler's times
    trace: str | None = None  # the engine's own record, a file in the given folder

    @property
    def explained_share(self) -> float:
        return sum(operator.share for operator in self.operators)


@runtime_checkable
class Profiling(Protocol):
    """Session that can profile its steps."""

    def profile(self, inputs: Any, steps: int, traces: Path | None) -> Profile:
        """Return a profile of `steps` steps by the engine's profiler.

        Nothing is measured in this session. The inputs were prepared, compiled for and stepped with
        before. The engine's own record goes to the folder `traces`. Raises CaseError with the
        reason if the engine has no profile.
        """


def build_profile(
    profiler: str, spent: Iterable[OperatorTime], walls_ns: Sequence[int], remark: str = ""
) -> Profile:
    """Return the mean step of an engine's counts over all profiled steps.

    Operators of the same name, kind and device are merged; those without time are left out.
    """
    steps = len(walls_ns)
    walls_ms = tuple(ns / 1e6 for ns in walls_ns)
    wall_ms = sum(walls_ms) / steps
    counted: dict[tuple[str, str, str], list[float]] = {}
    for entry in spent:
        totals = counted.setdefault((entry.name, entry.kind, entry.where), [0.0, 0.0])
        totals[0] += entry.calls
        totals[1] += entry.ns
    operators = [
        Operator(name, kind, _whole(calls / steps), ns / steps / 1e6, 0.0, where)
        for (name, kind, where), (calls, ns) in counted.items()
        if ns > 0
    ]
    return Profile(profiler, steps, wall_ms, walls_ms, _rank_operators(operators, wall_ms), remark)


def group_by_kind(profile: Profile) -> tuple[Operator, ...]:
    """Return the operators of a profile merged by kind and device, longest first."""
    operators: dict[tuple[str, str], Operator] = {}
    for entry in profile.operators:
        key = (entry.kind, entry.where)
        so_far = operators.get(key, Operator(entry.kind, entry.kind, 0, 0.0, 0.0, entry.where))
        calls = _whole(so_far.calls + entry.calls)
        operators[key] = replace(so_far, calls=calls, total_ms=so_far.total_ms + entry.total_ms)
    return _rank_operators(operators.values(), profile.wall_ms)


def _rank_operators(operators: Iterable[Operator], wall_ms: float) -> tuple[Operator, ...]:
    with_shares = (
        replace(operator, share=operator.total_ms / wall_ms if wall_ms else 0.0)
        for operator in operators
    )
    return tuple(sorted(with_shares, key=lambda entry: (-entry.total_ms, entry.kind, entry.name)))


def _whole(calls: float) -> float:
    """Return 3 instead of 3.0 for an operator that every step calls equally often."""
    return int(calls) if float(calls).is_integer() else calls

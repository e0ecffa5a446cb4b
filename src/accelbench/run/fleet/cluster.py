"""What a run asks of a cluster, and what the cluster tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from accelbench.run.fleet.fleet_nodes import FleetNode
from accelbench.run.fleet.work_units import Need


@dataclass(frozen=True)
class Submission:
    """An attempt of a unit, as the cluster gets it.

    Attributes:
        unit: its number.
        attempt: which one, from 1.
        need: what it needs of a node.
        task: what the node is told.
        avoided: nodes that it must not run on.
        parts: what each further node is told, where several make a step together.
    """

    unit: int
    attempt: int
    need: Need
    task: Mapping[str, Any]
    avoided: frozenset[str] = frozenset()
    parts: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class NodeJoined:
    """A node that has said what it is."""

    node: FleetNode


@dataclass(frozen=True)
class NodeLost:
    """A node that is gone."""

    node: str
    why: str


@dataclass(frozen=True)
class UnitBegan:
    """A node has begun with an attempt."""

    unit: int
    attempt: int
    node: str


@dataclass(frozen=True)
class UnitHeard:
    """What a running attempt said: journal lines as its node wrote them, and what it is at."""

    unit: int
    attempt: int
    node: str
    lines: Sequence[bytes] = ()
    at: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class UnitEnded:
    """An attempt has said all it has to say."""

    unit: int
    attempt: int


@dataclass(frozen=True)
class UnitFailed:
    """An attempt that ended before its time."""

    unit: int
    attempt: int
    why: str
    lost: bool = False  # its node went away


ClusterEvent = NodeJoined | NodeLost | UnitBegan | UnitHeard | UnitEnded | UnitFailed


class Cluster(Protocol):
    """Nodes that measure units: it places them and reserves what they need."""

    def settled(self) -> bool:
        """Whether every node that was there at the beginning has said what it is, or is gone."""
        ...

    def submit(self, submission: Submission) -> None:
        """Have a unit measured on a node that has what it needs, as soon as there is room."""
        ...

    def cancel(self, unit: int, attempt: int) -> None:
        """End an attempt; nothing more of it is heard."""
        ...

    def events(self, timeout: float) -> list[ClusterEvent]:
        """What has happened since the last time; waits so long for something to happen."""
        ...

    def now(self) -> float:
        """Seconds of the cluster's clock."""
        ...

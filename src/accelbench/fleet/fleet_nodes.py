"""Nodes of a fleet, how they differ, and the interface of a cluster; nothing here has effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.serial import device_from_json, device_to_json
from accelbench.fleet.dispatch import Need, NodeOffer

#: Of an environment, what figures of two nodes may differ by; packages are held apart, by name.
_COMPARED = (
    *("python", "os_release", "kernel", "libc", "cpu", "effective_cpus", "governor"),
    *("virtualisation", "variables", "allocator"),
)


@dataclass(frozen=True)
class FleetNode:
    """A node as it described itself."""

    id: str  # the cluster's
    name: str  # as people know it
    #: of its machine and installation, as a run records it.
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: of each platform its devices, or why there is none.
    inventory: Inventory = field(default_factory=dict)
    memory: int | None = None  # bytes that were free when it was asked
    broken: str = ""  # why nothing can be measured there; "" where it can
    #: of the kernel that it runs on, what no other has; None where nothing tells.
    boot: str | None = None

    @property
    def version(self) -> str:
        return str((self.environment.get("packages") or {}).get("accelbench", "unknown"))

    @property
    def devices(self) -> dict[str, list[Device]]:
        present = {
            name: [entry for entry in entries if isinstance(entry, Device)]
            for name, entries in self.inventory.items()
        }
        return {name: devices for name, devices in present.items() if devices}

    @property
    def kind(self) -> tuple[str, ...]:
        """The sorted fingerprints of its devices: nodes of one kind should measure alike."""
        return tuple(sorted(d.fingerprint for found in self.devices.values() for d in found))

    @property
    def offer(self) -> NodeOffer:
        named = {
            f"{name}:{word}"
            for name, found in self.devices.items()
            for device in found
            for word in (str(device.ordinal), device.unit, device.name.lower())
            if word
        }
        counts = {name: len(found) for name, found in self.devices.items()}
        return NodeOffer(self.id, {} if self.broken else counts, frozenset(named))


def node_name(node: str, machine: str) -> str:
    """Return a node's name: its machine's and a part of its id, as several may share a machine."""
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in machine)[:32]
    return f"{plain or 'node'}-{node[:6]}"


def node_from_json(node: str, name: str, body: Mapping[str, Any]) -> FleetNode:
    """Return a node from its own description."""
    if body.get("broken"):
        return FleetNode(node, name, broken=str(body["broken"]))
    inventory = {
        platform: [_entry(entry) for entry in entries]
        for platform, entries in body["inventory"].items()
    }
    boot = body.get("boot")
    return FleetNode(node, name, body["environment"], inventory, body.get("memory"), boot=boot)


def inventory_to_json(inventory: Inventory) -> dict[str, Any]:
    """Return an inventory as a node describes it."""
    return {
        platform: [
            {"device": device_to_json(entry)}
            if isinstance(entry, Device)
            else {"absent": {"reason": entry.reason, "remedy": entry.remedy}, "of": platform}
            for entry in entries
        ]
        for platform, entries in inventory.items()
    }


def _entry(body: Mapping[str, Any]) -> Device | Absent:
    if "device" in body:
        return device_from_json(body["device"])
    return Absent(body["of"], **body["absent"])


class FleetInventory(dict[str, list[Device | Absent]]):
    """The devices of all nodes together, and the memory that each node has free.

    A platform has the devices of the first node that has any. Plans are made with them; each node
    replaces them by its own.
    """

    def __init__(self, nodes: Iterable[FleetNode]) -> None:
        super().__init__()
        self.nodes = list(nodes)
        self._memory = [node.memory for node in self.nodes if node.memory is not None]
        for node in self.nodes:
            for platform, entries in node.inventory.items():
                present = any(isinstance(entry, Device) for entry in entries)
                had = any(isinstance(entry, Device) for entry in self.get(platform, ()))
                if platform not in self or (present and not had):
                    self[platform] = list(entries)

    def free(self, device: Device) -> int | None:
        """Return the bytes that every node has free: of the host, what the fullest node has."""
        if device.hardware == "cpu":
            return min(self._memory, default=None)
        return device.memory_bytes


@dataclass(frozen=True)
class Difference:
    """Values that differ between nodes, with the nodes that have each."""

    what: str
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        groups = [f"{value} ({', '.join(nodes)})" for value, nodes in self.values.items()]
        return f"{self.what}: {'; '.join(groups)}"


def differences(nodes: Sequence[FleetNode]) -> list[Difference]:
    """Return what may change results between these nodes, except their devices."""
    usable = [node for node in nodes if not node.broken]
    if len(usable) < 2:
        return []
    packages = sorted({name for node in usable for name in _packages(node)})
    facts = [(what, [_word(n.environment.get(what)) for n in usable]) for what in _COMPARED]
    facts += [
        (name, [_packages(n).get(name, "not installed") for n in usable]) for name in packages
    ]
    found = []
    for what, values in facts:
        if len(set(values)) > 1:
            by_value: dict[str, tuple[str, ...]] = {}
            for node, value in zip(usable, values, strict=True):
                by_value[value] = (*by_value.get(value, ()), node.name)
            found.append(Difference(what.replace("_", " "), by_value))
    return found


def shared_machines(nodes: Iterable[FleetNode]) -> list[str]:
    """Return warnings about nodes that are processes or containers of one machine."""
    by_boot: dict[str, list[str]] = {}
    for node in nodes:
        if node.boot and not node.broken:
            by_boot.setdefault(node.boot, []).append(node.name)
    return [
        f"{', '.join(names)} are nodes of one machine: what they measure at the same time slows"
        " each other, and how they differ says nothing of machines"
        for names in by_boot.values()
        if len(names) > 1
    ]


def _packages(node: FleetNode) -> Mapping[str, str]:
    return node.environment.get("packages") or {}


def _word(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in sorted(value.items())) or "none"
    return "unknown" if value is None else str(value)


@dataclass(frozen=True)
class Submission:
    """An attempt of a unit, as the cluster gets it."""

    unit: int  # its number
    attempt: int  # which one, from 1
    need: Need  # what it needs of a node
    task: Mapping[str, Any]  # what the node is told
    avoided: frozenset[str] = frozenset()  # nodes that it must not run on
    #: what each further node is told, where several make a step together.
    parts: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class NodeJoined:
    """A node that has described itself."""

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
    """What a running attempt reported: journal lines as its node wrote them, and what it does
    now."""

    unit: int
    attempt: int
    node: str
    lines: Sequence[bytes] = ()
    at: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class UnitEnded:
    """An attempt that has reported everything."""

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

    def submit(self, submission: Submission) -> None:
        """Have a unit measured on a node that has what it needs, as soon as there is room."""

    def cancel(self, unit: int, attempt: int) -> None:
        """End an attempt; nothing more of it is heard."""

    def events(self, timeout: float) -> list[ClusterEvent]:
        """What has happened since the last time; waits so long for something to happen."""

    def now(self) -> float:
        """Return seconds of the cluster's clock."""

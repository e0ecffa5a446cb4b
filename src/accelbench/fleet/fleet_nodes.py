"""Nodes of a fleet, their differences, and the interface of a cluster; without effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from accelbench.core.protocols import Absent, Device, Inventory
from accelbench.core.serial import device_from_json, device_to_json
from accelbench.fleet.dispatch import Need, NodeOffer

#: Facts of an environment that may change results; packages are compared by name.
_COMPARED = (
    *("python", "os_release", "kernel", "libc", "cpu", "effective_cpus", "governor"),
    *("virtualisation", "variables", "allocator"),
)


@dataclass(frozen=True)
class FleetNode:
    """Node with its own description."""

    id: str  # of the cluster
    name: str  # for people
    #: of its machine and installation, as recorded by runs.
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: devices of each platform, or why it has none.
    inventory: Inventory = field(default_factory=dict)
    memory: int | None = None  # free bytes when it described itself
    broken: str = ""  # why it cannot measure; "" if it can
    #: unique id of its running kernel; None if it is not known.
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
        """Sorted fingerprints of its devices: nodes of one kind should have similar results."""
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


def format_node_name(node: str, machine: str) -> str:
    """Return a node's name from its machine's and a part of its id: nodes may share a machine."""
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in machine)[:32]
    return f"{plain or 'node'}-{node[:6]}"


def node_from_json(node: str, name: str, body: Mapping[str, Any]) -> FleetNode:
    """Return a node from its own description."""
    if body.get("broken"):
        return FleetNode(node, name, broken=str(body["broken"]))
    inventory = {
        platform: [_parse_entry(entry) for entry in entries]
        for platform, entries in body["inventory"].items()
    }
    boot = body.get("boot")
    return FleetNode(node, name, body["environment"], inventory, body.get("memory"), boot=boot)


def inventory_to_json(inventory: Inventory) -> dict[str, Any]:
    """Return an inventory in the form of a node's description."""
    return {
        platform: [
            {"device": device_to_json(entry)}
            if isinstance(entry, Device)
            else {"absent": {"reason": entry.reason, "remedy": entry.remedy}, "of": platform}
            for entry in entries
        ]
        for platform, entries in inventory.items()
    }


def _parse_entry(body: Mapping[str, Any]) -> Device | Absent:
    if "device" in body:
        return device_from_json(body["device"])
    return Absent(body["of"], **body["absent"])


class FleetInventory(dict[str, list[Device | Absent]]):
    """Devices of all nodes together, and the free memory of each node.

    A platform has the devices of the first node that has any. They are used for planning; each node
    replaces them by its own.
    """

    def __init__(self, nodes: Iterable[FleetNode]) -> None:
        super().__init__()
        self.nodes = list(nodes)
        self._memory = [node.memory for node in self.nodes if node.memory is not None]
        for node in self.nodes:
            for platform, entries in node.inventory.items():
                present = any(isinstance(entry, Device) for entry in entries)
                was_present = any(isinstance(entry, Device) for entry in self.get(platform, ()))
                if platform not in self or (present and not was_present):
                    self[platform] = list(entries)

    def free(self, device: Device) -> int | None:
        """Return the free bytes that every node has: of the host, the least of all nodes."""
        if device.hardware == "cpu":
            return min(self._memory, default=None)
        return device.memory_bytes


@dataclass(frozen=True)
class Difference:
    """Values that differ between nodes, with the nodes that have each."""

    name: str
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        groups = [f"{value} ({', '.join(nodes)})" for value, nodes in self.values.items()]
        return f"{self.name}: {'; '.join(groups)}"


def find_differences(nodes: Sequence[FleetNode]) -> list[Difference]:
    """Return facts that may change results between these nodes, except their devices."""
    usable = [node for node in nodes if not node.broken]
    if len(usable) < 2:
        return []
    packages = sorted({name for node in usable for name in _read_packages(node)})
    facts = [(what, [_format_value(n.environment.get(what)) for n in usable]) for what in _COMPARED]
    facts += [
        (name, [_read_packages(n).get(name, "not installed") for n in usable]) for name in packages
    ]
    found = []
    for what, values in facts:
        if len(set(values)) > 1:
            by_value: dict[str, tuple[str, ...]] = {}
            for node, value in zip(usable, values, strict=True):
                by_value[value] = (*by_value.get(value, ()), node.name)
            found.append(Difference(what.replace("_", " "), by_value))
    return found


def warn_shared_machines(nodes: Iterable[FleetNode]) -> list[str]:
    """Return warnings about nodes that are processes or containers of one machine."""
    by_boot: dict[str, list[str]] = {}
    for node in nodes:
        if node.boot and not node.broken:
            by_boot.setdefault(node.boot, []).append(node.name)
    return [
        f"{', '.join(names)} are nodes of one machine: measuring at the same time slows them"
        " down, and their differences are not differences of machines"
        for names in by_boot.values()
        if len(names) > 1
    ]


def _read_packages(node: FleetNode) -> Mapping[str, str]:
    return node.environment.get("packages") or {}


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in sorted(value.items())) or "none"
    return "unknown" if value is None else str(value)


@dataclass(frozen=True)
class Submission:
    """Attempt of a unit, as given to the cluster."""

    unit: int  # its number
    attempt: int  # from 1
    need: Need  # requirements on a node
    task: Mapping[str, Any]  # for the node
    avoided: frozenset[str] = frozenset()  # nodes that it must not run on
    #: tasks of the further nodes, if several make a step together.
    parts: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class NodeJoined:
    """Event: a node has described itself."""

    node: FleetNode


@dataclass(frozen=True)
class NodeLost:
    """Event: a node is gone."""

    node: str
    why: str


@dataclass(frozen=True)
class UnitBegan:
    """Event: a node has begun an attempt."""

    unit: int
    attempt: int
    node: str


@dataclass(frozen=True)
class UnitHeard:
    """Event: a running attempt reported journal lines and its activity."""

    unit: int
    attempt: int
    node: str
    lines: Sequence[bytes] = ()
    at: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class UnitEnded:
    """Event: an attempt has ended after it reported everything."""

    unit: int
    attempt: int


@dataclass(frozen=True)
class UnitFailed:
    """Event: an attempt ended early."""

    unit: int
    attempt: int
    why: str
    lost: bool = False  # its node went away


ClusterEvent = NodeJoined | NodeLost | UnitBegan | UnitHeard | UnitEnded | UnitFailed


class Cluster(Protocol):
    """Nodes that measure units; the cluster places units and reserves devices."""

    def is_settled(self) -> bool:
        """Return whether every node of the start has described itself or is gone."""

    def submit(self, submission: Submission) -> None:
        """Measure a unit on a node that meets its needs, as soon as one is free."""

    def cancel(self, unit: int, attempt: int) -> None:
        """End an attempt, which sends no more events."""

    def events(self, timeout: float) -> list[ClusterEvent]:
        """Return the events since the last call; wait up to `timeout` seconds for one."""

    def now(self) -> float:
        """Return the time of the cluster's clock in seconds."""

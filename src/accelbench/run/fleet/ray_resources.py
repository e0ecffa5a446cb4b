"""What nodes advertise to Ray, and how it is called."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from accelbench.core.protocols import Device, Inventory
from accelbench.run.fleet.work_units import PARTED

#: A node that was started by `accelbench fleet`: there is one of it, and whoever measures takes it.
NODE = "accelbench_node"
#: What a unit takes of it that leaves the node's other devices to others.
SHARE = 1 / 64


def platform_resource(hardware: str) -> str:
    """What devices of a platform are called among resources."""
    return f"accelbench_{hardware}"


def resources_of(inventory: Inventory) -> dict[str, float]:
    """What a node advertises: itself, and how many devices it has of each platform."""
    counts = {
        platform_resource(name): float(sum(isinstance(entry, Device) for entry in entries))
        for name, entries in inventory.items()
    }
    return {NODE: 1.0, **{name: count for name, count in counts.items() if count}}


def gpus_of(inventory: Mapping[str, Iterable[object]]) -> int:
    """How many devices Ray hands out one by one."""
    found = (entry for name in PARTED for entry in inventory.get(name, ()))
    return sum(isinstance(entry, Device) for entry in found)


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

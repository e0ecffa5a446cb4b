"""A node's part in steps that several nodes make together, as tasks say it and its runner takes it.

The first node measures, as it does a unit of its own; the others take part in every group of
processes that it starts, until they are ended with the unit.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

#: In the task of a further node: its part, but for the place where they meet.
PART_IN_STEPS = "part_in_steps"
_PLACE = "rendezvous"


def meeting_place(host: str) -> str:
    """HOST:PORT of this node where the others find it; the port is free now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def meeting_at(task: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A task of any of these nodes, told where they meet."""
    if PART_IN_STEPS in task:
        return {**task, PART_IN_STEPS: {**task[PART_IN_STEPS], _PLACE: place}}
    told = {**task, "settings": {**task["settings"], _PLACE: place}}
    if "against" in task:
        other = task["against"]
        told["against"] = {**other, "settings": {**other["settings"], _PLACE: place}}
    return told


def take_part_here(task: Mapping[str, Any], at: Callable[[str], None]) -> None:
    """Take part until nothing was asked for as long as the unit may take."""
    from accelbench.runtimes.pytorch.distributed.taking_part import (
        MachinePart,
        groups_taken_part_in,
    )

    part = MachinePart(**task[PART_IN_STEPS])
    at(f"takes part at {part.rendezvous}")
    for trouble in groups_taken_part_in(part, float(task["patience"]), float(task["timeout"])):
        if trouble:
            at(f"takes part at {part.rendezvous}; a group ended early: {trouble}")

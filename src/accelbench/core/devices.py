"""How many devices a result is of: by its column, or by the name of what it ran on. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Several devices under one name, as MLPerf writes them: 8x NVIDIA H200.
_COUNTED = re.compile(r"(\d+)\s*x\s+(.+)", re.IGNORECASE)


def devices_in(name: str) -> tuple[int, str]:
    """How many devices a name is of, and of which: eight of "8x NVIDIA H200"."""
    counted = _COUNTED.fullmatch(name)
    return (int(counted[1]), counted[2]) if counted else (1, name)


def devices_of(row: Mapping[str, Any]) -> int:
    """How many worked on a step; a name may say it where the column does not."""
    return max(devices_in(str(row.get("device_name") or ""))[0], int(row.get("world_size") or 1))


def devices_beside(row: Mapping[str, Any], name: str) -> str:
    """The words for several devices beside a name: "4 devices".

    Args:
        row: the result.
        name: what stands before it; where that says how many there are, nothing is added.

    Returns:
        The words, "" of a single device.
    """
    number = devices_of(row)
    said = re.search(rf"(?<!\w){number}\s*x\s", name, re.IGNORECASE)
    return "" if number == 1 or said else f"{number} devices"

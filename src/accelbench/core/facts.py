"""Facts: events that are appended once and never changed; the store is made of them.

A fact has a kind, an id that identifies copies, and a body of plain JSON values. Bodies of results
have the names of `columns.py`, with the raw samples under "samples" ({phase: [ns, …]}).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

FACT_VERSION = 1

RUN_STARTED = "run_started"
RUN_RESUMED = "run_resumed"
RUN_FINISHED = "run_finished"
#: Further cases of a run: a node measures its part of a fleet's run in several units.
RUN_EXTENDED = "run_extended"
HARDWARE_MEASURED = "hardware_measured"
#: All measured blocks of `hardware --calibrate` for a device.
DEVICE_CALIBRATED = "device_calibrated"
RESULT = "result"
#: Separates the fleet's id from the node's name in the id of a node's run.
PART_SEPARATOR = "."
_NODE_RUN = re.compile(r"^(\d{8}-\d{6}-[0-9a-f]{10}\.).*-([0-9a-z]{6})$", re.DOTALL)
PROFILE = "profile"
#: The id of a result that a database refused, with the reason.
RESULT_REFUSED = "result_refused"


@dataclass(frozen=True)
class Fact:
    """Event of a run."""

    kind: str
    id: str
    body: Mapping[str, Any]
    version: int = FACT_VERSION


def utc_now() -> str:
    """Return the time in ISO 8601 with microseconds and Z, for labels and never for durations."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_run_id() -> str:
    """Return an id that sorts by time and is unique across machines: a stamp and 40 random bits."""
    stamp = datetime.fromtimestamp(time.time(), UTC).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{os.urandom(5).hex()}"


def node_run_id(fleet: str, node: str) -> str:
    """Return the id of a node's run within a fleet's run."""
    return f"{fleet}{PART_SEPARATOR}{node}"


def fleet_run_id(run_id: str) -> str:
    """Return the id of the fleet's run that a run belongs to; the run itself if it has no fleet."""
    return run_id.partition(PART_SEPARATOR)[0]


def anonymous_run_id(run_id: str) -> str:
    """Return the id of a run without the name of a node's machine, for publication."""
    return _NODE_RUN.sub(r"\1\2", run_id)

"""Facts: what happened, appended once and never changed. The store is made of them.

A fact is a kind, an id that makes a second copy of it recognisable, and a body
of plain JSON values. Result bodies use the names of `columns.py`, with the raw
samples under "samples" ({phase: [ns, …]}).
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
#: More cases of a run that began with fewer: one node's part of a fleet's run, unit by unit.
RUN_EXTENDED = "run_extended"
HARDWARE_MEASURED = "hardware_measured"
#: What the probes of `hardware --calibrate` measured of a device, every block of them.
DEVICE_CALIBRATED = "device_calibrated"
RESULT = "result"
#: In the id of a run that is one node's part of a fleet's run, between the fleet's and the node's.
PART = "."
_OF_A_NODE = re.compile(r"^(\d{8}-\d{6}-[0-9a-f]{10}\.).*-([0-9a-z]{6})$", re.DOTALL)
PROFILE = "profile"
#: A result that a database would not take, under its id, and why.
RESULT_REFUSED = "result_refused"


@dataclass(frozen=True)
class Fact:
    """One thing that happened."""

    kind: str
    id: str
    body: Mapping[str, Any]
    version: int = FACT_VERSION


def utc_now() -> str:
    """ISO 8601 with microseconds and Z; wall-clock time, for labels only, never for durations."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_run_id() -> str:
    """Sorts by time and is unique across machines: a millisecond stamp and 40 random bits."""
    stamp = datetime.fromtimestamp(time.time(), UTC).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{os.urandom(5).hex()}"


def part_id(fleet: str, node: str) -> str:
    """The run of what one node measures of a fleet's run."""
    return f"{fleet}{PART}{node}"


def fleet_of(run_id: str) -> str:
    """The fleet's run that a run is a part of, or the run itself where it is of none."""
    return run_id.partition(PART)[0]


def nameless(run_id: str) -> str:
    """The id of a run for others: a node's has the name of its machine in it."""
    return _OF_A_NODE.sub(r"\1\2", run_id)

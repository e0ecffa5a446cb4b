"""A fleet of this machine alone, without Ray: units are measured as on any node, one by one."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accelbench.fleet import ray_worker
from accelbench.fleet.fleet_nodes import (
    ClusterEvent,
    FleetNode,
    NodeJoined,
    Submission,
    UnitBegan,
    UnitEnded,
    UnitFailed,
    UnitHeard,
    format_node_name,
)
from accelbench.fleet.ray_worker import RunnerSlot
from accelbench.hardware.detect import detect

NODE = "0123456789abcdef"


class HereCluster:
    """A cluster whose one node is a runner of this process."""

    def __init__(self) -> None:
        name = format_node_name(NODE, socket.gethostname())
        self._node = FleetNode(NODE, name, {"machine": "here"}, {"cpu": detect("cpu")})
        self._joined = False
        self._waiting: deque[Submission] = deque()
        self._running: tuple[Submission, Iterator[Mapping[str, Any]]] | None = None

    def is_settled(self) -> bool:
        return self._joined

    def now(self) -> float:
        return time.monotonic()

    def submit(self, submission: Submission) -> None:
        self._waiting.append(submission)

    def cancel(self, unit: int, attempt: int) -> None:
        self._waiting = deque(s for s in self._waiting if (s.unit, s.attempt) != (unit, attempt))

    def events(self, timeout: float) -> list[ClusterEvent]:
        del timeout
        if not self._joined:
            self._joined = True
            return [NodeJoined(self._node)]
        if self._running is None:
            if not self._waiting:
                return []
            task = self._waiting.popleft()
            self._running = task, ray_worker.measure(task.task, NODE, 10.0)
        submission, messages = self._running
        of = (submission.unit, submission.attempt)
        try:
            message = next(messages)
        except StopIteration:
            self._running = None
            return [UnitEnded(*of)]
        except RuntimeError as error:
            self._running = None
            return [UnitFailed(*of, str(error))]
        if "began" in message:
            return [UnitBegan(*of, NODE)]
        lines, notes = tuple(message.get("lines", ())), tuple(message.get("notes", ()))
        return [UnitHeard(*of, NODE, lines, str(message.get("at", "")), notes)]


@contextmanager
def here_cluster(state: Path, patch: pytest.MonkeyPatch) -> Iterator[type[HereCluster]]:
    """The cluster of whoever connects, with its state in a folder; its runner ends with it."""
    slot = RunnerSlot()
    patch.setenv("XDG_STATE_HOME", str(state))
    patch.setattr(ray_worker, "_slot", slot)
    # A node's own environment is that of what started it: here, of the tests.
    patch.setattr(ray_worker, "node_environment", lambda _: dict(os.environ))
    try:
        yield HereCluster
    finally:
        slot.close()

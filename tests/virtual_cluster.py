"""A cluster that is calculated: for testing everything around a cluster, on a clock of its own.

It places units as Ray does, first come, first served, and nodes die, hang and are cut off when a
script says so. What it sends looks like what nodes send; nothing in it was measured.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from accelbench.core.case import Case
from accelbench.core.facts import FACT_VERSION, RESULT, RUN_STARTED, node_run_id
from accelbench.core.identity import digest
from accelbench.core.serial import case_from_json
from accelbench.core.unusable_reasons import THIS_ARM
from accelbench.fleet.dispatch import Need
from accelbench.fleet.fleet_nodes import (
    ClusterEvent,
    FleetNode,
    NodeJoined,
    NodeLost,
    Submission,
    UnitBegan,
    UnitEnded,
    UnitFailed,
    UnitHeard,
)
from accelbench.run.conduct.results import launch_numbers

#: How long a cluster takes to see that a node is cut off.
_DETECTION_SECONDS = 30.0


@dataclass(frozen=True)
class NodeFault:
    """Something that befalls a node.

    Attributes:
        at: when, in seconds.
        node: which one.
        how: killed; hung, so that its unit says nothing more; cut off, and back after a while with
            all that it measured meanwhile; or it joins only then.
        seconds: that it is cut off.
    """

    at: float
    node: str
    how: Literal["kill", "hang", "cut", "join"]
    seconds: float = 600.0


@dataclass
class _Attempt:
    """A unit on a node."""

    submission: Submission
    node: str
    over: bool = False


@dataclass
class _Node:
    """A node, and what is free of it."""

    node: FleetNode
    whole: bool = True  # nothing runs there
    free: dict[str, int] = field(default_factory=dict)
    hung: bool = False
    cut_until: float | None = None

    def __post_init__(self) -> None:
        self.offer = self.node.offer
        self.counts = {platform: len(found) for platform, found in self.node.devices.items()}

    def has_room(self, need: Need) -> bool:
        """Whether a unit can begin there now."""
        if not self.offer.count_slots(need):
            return False
        return self.whole if need.whole_node else self.free[need.hardware] > 0


class VirtualCluster:
    """Nodes that take as long for a case as `seconds` says.

    Args:
        nodes: those that are there at the beginning, and those that faults let join.
        seconds: of a case on a node.
        faults: what befalls them.
    """

    def __init__(
        self,
        nodes: Iterable[FleetNode],
        seconds: Callable[[Case, str], float],
        faults: Sequence[NodeFault] = (),
    ) -> None:
        self._seconds = seconds
        self._time = 0.0
        self._number = 0
        self._heap: list[tuple[float, int, Callable[[], ClusterEvent | None]]] = []
        self._nodes = {node.id: _Node(node) for node in nodes}
        self._there: dict[str, _Node] = {}
        self._idle: dict[str, _Node] = {}  # of those, where something is free
        self._waiting: dict[Need, deque[Submission]] = {}
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self.busy_seconds = 0.0  # of cases that were measured to their end
        later = {fault.node for fault in faults if fault.how == "join"}
        for name in self._nodes:
            if name not in later:
                self._at(0.0, lambda name=name: self._join(name))  # type: ignore[misc]
        for fault in faults:
            self._at(fault.at, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    def now(self) -> float:
        return self._time

    def is_settled(self) -> bool:
        return self._time > 0.0 or not self._heap or self._heap[0][0] > 0.0

    def submit(self, submission: Submission) -> None:
        self._waiting.setdefault(submission.need, deque()).append(submission)
        self._place(submission.need)

    def cancel(self, unit: int, attempt: int) -> None:
        held = self._attempts.get((unit, attempt))
        if held is None:
            for queue in self._waiting.values():
                for submission in [s for s in queue if (s.unit, s.attempt) == (unit, attempt)]:
                    queue.remove(submission)
            return
        node = self._there.get(held.node)
        if node is not None and node.cut_until is None:  # who is cut off hears nothing of it
            self._free(held)

    def events(self, timeout: float) -> list[ClusterEvent]:
        end = self._time + timeout
        happened: list[ClusterEvent] = []
        while self._heap and (not happened or self._heap[0][0] <= self._time):
            if self._heap[0][0] > end:
                break
            self._time, _, happen = heapq.heappop(self._heap)
            event = happen()
            if event is not None:
                happened.append(event)
        if not happened:
            self._time = max(self._time, end)
        return happened

    # -- what happens

    def _at(self, moment: float, happen: Callable[[], ClusterEvent | None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (moment, self._number, happen))

    def _join(self, name: str) -> ClusterEvent:
        node = self._nodes[name]
        node.free = dict(node.counts)
        self._there[name] = self._idle[name] = node
        self._at(self._time, self._place_all)
        return NodeJoined(node.node)

    def _strike(self, fault: NodeFault) -> ClusterEvent | None:
        node = self._there.get(fault.node)
        if fault.how == "join":
            return self._join(fault.node)
        if node is None:
            return None
        if fault.how == "hang":
            node.hung = True
        elif fault.how == "kill":
            return self._lose(fault.node, "it was killed")
        else:
            node.cut_until = self._time + fault.seconds
            lost = self._time + min(_DETECTION_SECONDS, fault.seconds)
            self._at(lost, lambda: self._lose(fault.node, "it is cut off"))
        return None

    def _lose(self, name: str, why: str) -> ClusterEvent:
        node = self._there.pop(name)
        self._idle.pop(name, None)
        for held in list(self._attempts.values()):
            if held.node == name and node.cut_until is None:
                held.over = True
                unit, attempt = held.submission.unit, held.submission.attempt
                del self._attempts[unit, attempt]
                failed = UnitFailed(unit, attempt, why, lost=True)
                self._at(self._time, lambda failed=failed: failed)  # type: ignore[misc]
        return NodeLost(name, why)

    # -- placing

    def _place_all(self) -> None:
        for need in list(self._waiting):
            self._place(need)

    def _place(self, need: Need) -> None:
        queue = self._waiting.get(need)
        while queue:
            submission = queue[0]
            name = self._free_node(need, submission.avoided)
            if name is None:
                return
            queue.popleft()
            self._begin(submission, name)

    def _free_node(self, need: Need, avoided: frozenset[str]) -> str | None:
        names = [need.node] if need.node else self._idle
        for name in names:
            node = self._idle.get(name)
            if node is not None and name not in avoided and node.has_room(need):
                return name
        return None

    def _begin(self, submission: Submission, name: str) -> None:
        node, need = self._there[name], submission.need
        node.whole = False
        node.free[need.hardware] -= node.free[need.hardware] if need.whole_node else 1
        if need.whole_node or not any(node.free.values()):
            self._idle.pop(name, None)
        held = _Attempt(submission, name)
        self._attempts[submission.unit, submission.attempt] = held
        began = UnitBegan(submission.unit, submission.attempt, name)
        self._say(held, self._time, began)
        moment = self._time
        for case, lines in _said(submission.task, node.node.name):
            took = self._seconds(case, name)
            moment += took
            heard = UnitHeard(submission.unit, submission.attempt, name, lines, str(took))
            self._say(held, moment, heard)
        self._say(held, moment, UnitEnded(submission.unit, submission.attempt))

    def _say(self, held: _Attempt, moment: float, event: ClusterEvent) -> None:
        """Have an attempt say something at a moment, if it gets there."""

        def happen() -> ClusterEvent | None:
            node = self._nodes[held.node]
            if held.over or node.hung:
                return None
            if node.cut_until is not None and self._time < node.cut_until:
                self._at(node.cut_until, happen)
                return None
            if isinstance(event, UnitHeard):
                self.busy_seconds += float(event.at)
            if isinstance(event, UnitEnded):
                self._free(held)
            return event

        self._at(moment, happen)

    def _free(self, held: _Attempt) -> None:
        held.over = True
        submission = held.submission
        self._attempts.pop((submission.unit, submission.attempt), None)
        node, need = self._there.get(held.node), submission.need
        if node is None or node.hung:
            return
        count = node.counts[need.hardware]
        node.free[need.hardware] = count if need.whole_node else node.free[need.hardware] + 1
        node.whole = node.free == node.counts
        self._idle[held.node] = node
        self._place_all()


def _said(task: Mapping[str, Any], node: str) -> Iterator[tuple[Case, tuple[bytes, ...]]]:
    """Each measurement of a task, with the journal lines that it leaves."""
    run_id = node_run_id(str(task["fleet"]), node)
    started = {"run_id": run_id, "plan": [], "environment": {"machine": node}, **task["about"]}
    first: tuple[bytes, ...] = (_line(RUN_STARTED, run_id, started),)
    against = task.get("against")
    arms = [(THIS_ARM if against else "", task["plan"])]
    arms += [(against["name"], against["plan"])] if against else []
    for launch in launch_numbers(task["settings"]["launches"]):
        for arm, plan in arms:
            for planned in plan:
                case = case_from_json(planned["case"])
                body = {
                    "run_id": run_id, "case_id": case.case_id, "launch": launch, "arm": arm,
                    "status": "ok", "attempt": task["attempt"],
                    "result_id": digest([run_id, case.case_id, launch, arm]),
                }  # fmt: skip
                yield case, (*first, _line(RESULT, str(body["result_id"]), body))
                first = ()


def _line(kind: str, key: str, body: Mapping[str, Any]) -> bytes:
    return json.dumps({"kind": kind, "id": key, "body": body, "version": FACT_VERSION}).encode()

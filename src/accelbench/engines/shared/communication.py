"""How much of a step is communication, and how much of that nothing else covers. Pure.

    collective    |      ======       ====== |
    computing     | ========  ====  ==       |
    exposed       |         ==        ====== |

A collective lasts from its call until its result is there, in which it may wait for a rank that
comes later. Where a rank computes meanwhile, it is covered; what is left is exposed. An operator
computes while it is the innermost one of its thread: one that calls a collective and waits for it
computes no longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

#: A start and an end.
Interval = tuple[float, float]

#: Of a collective's own event: the backend that carries it out.
_COLLECTIVES = ("gloo:", "nccl:", "rccl:", "mpi:", "ucc:", "xla:")
#: Of operators that start collectives, or wait for them.
_WAITING = frozenset({"c10d", "_c10d_functional", "c10d_functional", "FSDP", "accelbench"})


@dataclass(frozen=True)
class Span:
    """One event of a profile."""

    name: str
    thread: int
    start: float
    end: float


@dataclass(frozen=True)
class CommunicationShare:
    """The time of a rank's collectives, in the unit of the spans."""

    collectives: float  # in which at least one was under way
    exposed: float  # of that, in which nothing was computed
    computing: float  # in which an operator computed, with collectives or without
    calls: int

    def of_step(self, steps: int, wall_ms: float, each_ms: float) -> dict[str, Any]:
        """Return what it comes to in one of so many steps, `each_ms` of its units in a ms."""
        return {
            "steps": steps,
            "wall_ms": wall_ms,
            "communication_ms": self.collectives / steps / each_ms,
            "exposed_ms": self.exposed / steps / each_ms,
            "computing_ms": self.computing / steps / each_ms,
            "collectives": self.calls / steps,
        }


def is_collective(name: str) -> bool:
    """Return whether an event is a collective's own."""
    return name.startswith(_COLLECTIVES)


def computes(name: str) -> bool:
    """Return whether an operator computes: a library's does, unless it hands on or waits."""
    namespace, colons, _ = name.partition("::")
    return bool(colons) and namespace not in _WAITING


def shared(spans: Iterable[Span]) -> CommunicationShare:
    """Return what a rank's spans come to."""
    everything = list(spans)
    collectives = [span for span in everything if is_collective(span.name)]
    under_way = united((span.start, span.end) for span in collectives)
    computing = united(innermost([s for s in everything if not is_collective(s.name)]))
    return CommunicationShare(
        length(under_way),
        length(without(under_way, computing)),
        length(computing),
        len(collectives),
    )


def innermost(spans: Sequence[Span]) -> list[Interval]:
    """Return when a thread's innermost event was one that computes."""
    by_thread: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        by_thread[span.thread].append(span)
    return [interval for of_thread in by_thread.values() for interval in _innermost(of_thread)]


def _innermost(spans: list[Span]) -> list[Interval]:
    found: list[Interval] = []
    within: list[Span] = []
    at = 0.0

    def until(moment: float) -> None:
        nonlocal at
        if within and moment > at and computes(within[-1].name):
            found.append((at, moment))
        at = max(at, moment)

    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        while within and within[-1].end <= span.start:
            until(within[-1].end)
            within.pop()
        until(span.start)
        within.append(span)
    while within:
        until(within[-1].end)
        within.pop()
    return found


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same time in intervals that do not touch."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def without(intervals: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """Return the parts of united intervals that no other united interval covers."""
    left: list[Interval] = []
    for start, end in intervals:
        at = start
        for low, high in others:
            if high <= at or low >= end:
                continue
            if low > at:
                left.append((at, low))
            at = max(at, high)
        if at < end:
            left.append((at, end))
    return left


def length(intervals: Iterable[Interval]) -> float:
    """Return how long united intervals are together."""
    return sum(end - start for start, end in intervals)


def exchange_columns(ranks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what ranks spend on each other, as columns, and under "ranks" each one's own."""
    communication = fmean(rank["communication_ms"] for rank in ranks)
    busy = [rank["wall_ms"] - rank["exposed_ms"] for rank in ranks]
    return {
        "communication_ms": communication,
        "communication_share": min(1.0, communication / fmean(r["wall_ms"] for r in ranks)),
        "exposed_communication_ms": fmean(rank["exposed_ms"] for rank in ranks),
        "straggler_ratio": max(busy) / median(busy),
        "ranks": ranks,
    }

"""Collectives of a program that XLA has compiled for several devices, and what they take of a step.

The profiler notes each operation of each device; which are collectives is told by their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from accelbench.core.clock import Clock
from accelbench.runtimes.jax.profile import Event, readable, recorded
from accelbench.runtimes.shared.communication import Span, exchange_columns, shared

#: XLA's names of the operations by which devices exchange something.
_KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
#: Where one is called in XLA's text: those that run beside others have a start and an end.
_CALLED = re.compile(rf" ({'|'.join(_KINDS)})(?:-start)?\(")


def collectives_of(text: str) -> dict[str, int]:
    """How many collectives of each kind a program's text has."""
    return dict(sorted(Counter(_CALLED.findall(text)).items()))


def exchanged(step: Callable[[], Any], clock: Clock, steps: int, devices: int) -> dict[str, Any]:
    """What collectives take of so many steps: columns, and each device's own under "ranks".

    No columns where this JAX cannot read what XLA's profiler writes.

    Args:
        step: makes one, and waits for it.
        clock: what steps are timed by.
        steps: how many.
        devices: among how many each is shared.
    """
    if not readable():
        return {"ranks": []}
    with recorded(step, clock, steps) as (events, times, _):
        wall = sum(times) / steps / 1e6
        ranks = [of_device(events, number, steps, wall) for number in range(devices)]
    return exchange_columns(ranks)


def of_device(events: Iterable[Event], number: int, steps: int, wall: float) -> dict[str, Any]:
    """What a device's collectives come to in a step, in milliseconds."""
    own = shared(_spans(event for event in events if event.ordinal == number))
    each = steps * 1e6  # nanoseconds of the record in milliseconds of a step
    return {
        "device": number,
        "steps": steps,
        "wall_ms": wall,
        "communication_ms": own.collectives / each,
        "exposed_ms": own.exposed / each,
        "computing_ms": own.computing / each,
        "collectives": own.calls / steps,
    }


def _spans(events: Iterable[Event]) -> Iterator[Span]:
    threads: dict[str, int] = {}
    for event in events:
        thread = threads.setdefault(event.thread, len(threads))
        kind = "xla:" if is_collective(event.operation) else "hlo::"
        end = event.start + event.duration
        yield Span(f"{kind}{event.operation}", thread, event.start, end)


def is_collective(operation: str) -> bool:
    """Whether an operation is one, by its name: "all-reduce.3"."""
    return operation.startswith(_KINDS)

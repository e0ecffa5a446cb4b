"""How engines that run in the worker's own process are sampled.

An engine hands in what it alone knows — how to make a step, how to wait until
the device has done it, how to mark the end of a phase — and gets `sample`.

    EACH    |t step sync t|t step sync t|…      one latency a step
    WHOLE   |t step step step … sync t|         one duration a block
    PHASES  |t forward sync t backward sync t|  a duration a phase; a pass of its own
    DEVICE  |e step e step e … sync|            the device's own event timers

What profiles of several engines have in common: steps that are timed around, times without
what was called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from accelbench.core.clock import Clock, pause_garbage_collection
from accelbench.core.protocols import Block, most_steps
from accelbench.core.vocabulary import Timing

Mark = Callable[[str], None]


class DeviceTimer(Protocol):
    """Event timers of a device."""

    def record(self) -> Any:
        """Put an event into the device's queue."""

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Return the time between two events that have passed."""


@dataclass
class LocalSampler:
    """Samples steps of an engine in this process."""

    clock: Clock
    step: Callable[[Any], Any]  # starts one step; may return before the device is done
    # waits for the device; None where a step returns when it is done
    synchronize: Callable[[], None] | None = None
    # one step that calls mark(name) at the end of each phase
    split: Callable[[Any, Mark], Any] | None = None
    timer: DeviceTimer | None = None  # the device's event timers, if it has any
    # entered once around a block, such as the engine's no-gradient mode
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    # reads running totals: compilations, and nanoseconds spent in them
    compiled: Callable[[], tuple[int, int]] = lambda: (0, 0)
    # gives what the steps since the last call noted, as fields of a Block
    drain: Callable[[], Mapping[str, Any]] = dict
    # what the last step of the last block returned. It is given up before the next block begins, so
    # that no more is alive during a step than without it
    left: Any = None

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """Measure n steps, or fewer within `stopping_after`; see the module's diagram."""
        self.left = None
        n = most_steps(n)
        count, spent = self.compiled()
        take = {
            Timing.EACH: self._each,
            Timing.WHOLE: self._whole,
            Timing.PHASES: self._phases,
            Timing.DEVICE: self._device,
        }[timing]
        with pause_garbage_collection(), self.around():
            phase_ns = take(inputs, n)
            noted = self.drain()
        count_after, spent_after = self.compiled()
        return Block(
            steps=n,
            timing=timing,
            phase_ns=phase_ns,
            compilations=count_after - count,
            compile_ns=spent_after - spent,
            **noted,
        )

    def _each(self, inputs: Any, n: int) -> Mapping[str, list[int]]:
        now, step, synchronize = self.clock.now_ns, self.step, self.synchronize
        durations = [0] * n
        last = n - 1
        if synchronize is None:
            for i in range(last):
                start = now()
                step(inputs)
                durations[i] = now() - start
            start = now()
            self.left = step(inputs)
            durations[last] = now() - start
        else:
            synchronize()
            for i in range(last):
                start = now()
                step(inputs)
                synchronize()
                durations[i] = now() - start
            start = now()
            self.left = step(inputs)
            synchronize()
            durations[last] = now() - start
        return {"step": durations}

    def _whole(self, inputs: Any, n: int) -> Mapping[str, list[int]]:
        now, step, synchronize = self.clock.now_ns, self.step, self.synchronize
        if synchronize is not None:
            synchronize()
        start = now()
        for _ in range(n - 1):
            step(inputs)
        self.left = step(inputs)
        if synchronize is not None:
            synchronize()
        return {"step": [now() - start]}

    def _phases(self, inputs: Any, n: int) -> Mapping[str, list[int]]:
        if self.split is None:
            raise ValueError("this session has no phases to split")
        now, synchronize = self.clock.now_ns, self.synchronize
        durations: dict[str, list[int]] = {}
        last = 0

        def mark(phase: str) -> None:
            nonlocal last
            if synchronize is not None:
                synchronize()
            end = now()
            durations.setdefault(phase, []).append(end - last)
            last = end

        for _ in range(n):
            if synchronize is not None:
                synchronize()
            last = now()
            self.split(inputs, mark)
        return durations

    def _device(self, inputs: Any, n: int) -> Mapping[str, list[int]]:
        timer, synchronize = self.timer, self.synchronize
        if timer is None or synchronize is None:
            raise ValueError("this device has no event timers")
        pairs = []
        for _ in range(n):
            start = timer.record()
            self.step(inputs)
            pairs.append((start, timer.record()))
        synchronize()
        return {"step": [timer.elapsed_ns(start, end) for start, end in pairs]}


def walls(clock: Clock, steps: int, step: Callable[[], Any]) -> list[int]:
    """Return the nanoseconds of so many steps, each done when it returns."""
    times = []
    with pause_garbage_collection():
        for _ in range(steps):
            start = clock.now_ns()
            step()
            times.append(clock.now_ns() - start)
    return times


def own(events: Sequence[tuple[Hashable, float, float]]) -> list[float]:
    """Return each event's time without the events that lie within it on the same thread.

    Events are thread, start and duration of each, in any order.
    """
    times = [duration for _, _, duration in events]
    threads: dict[Hashable, list[int]] = defaultdict(list)
    for i, (thread, _, _) in enumerate(events):
        threads[thread].append(i)
    for indices in threads.values():
        open_: list[tuple[int, float]] = []  # those that the next one may lie within, and their end
        for i in sorted(indices, key=lambda i: (events[i][1], -events[i][2])):
            _, start, duration = events[i]
            while open_ and open_[-1][1] <= start:
                open_.pop()
            if open_:
                outer, end = open_[-1]
                times[outer] -= min(start + duration, end) - start
            open_.append((i, start + duration))
    return [max(time, 0.0) for time in times]


def shares(counted: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each in their sum, the largest first; nothing for those of nothing."""
    total = sum(counted.values())
    ordered = sorted(counted.items(), key=lambda pair: -pair[1])
    return {name: value / total for name, value in ordered if value}


def rounded_shares(found: Mapping[str, float]) -> dict[str, float]:
    """Return shares as evidence has them."""
    return {name: round(share, 4) for name, share in found.items()}


def listed(counted: Counter[str], most: int | None = 8) -> str:
    """Return counts in words, the most first: "MatMul × 3, Add × 1"."""
    return ", ".join(f"{name} × {count}" for name, count in counted.most_common(most))

"""Timing of a probe: warm-up, then blocks of steps until its time is over.

    first step │ warm-up, twice as many steps each time │ block │ block │ block …

A block takes 20 ms: 10,000 times what a clock's reading costs, and five of them fit a tenth of a
second. The device is waited for only at a block's end, so that launches overlap as they do in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accelbench.core.clock import Clock

_BLOCK_NS = 20_000_000
_WARMUP_SHARE = 0.25
#: An interval of a median needs five; they may take three times the probe's time.
FEWEST_BLOCKS = 5
_OVERTIME = 3.0
_MOST_BLOCKS = 200


@dataclass(frozen=True)
class ProbeBlocks:
    """Blocks of a probe: how many steps each has, and what each took."""

    steps: int
    samples_ns: tuple[int, ...]

    @property
    def step_seconds(self) -> float:
        """What a step of the fastest block took."""
        return min(self.samples_ns) / self.steps / 1e9


def time_probe(
    step: Callable[[], object], synchronize: Callable[[], None] | None, seconds: float, clock: Clock
) -> ProbeBlocks:
    """Time a probe for so many seconds, warm-up included.

    A step may return before the device has done it, if `synchronize` waits for the device.
    """

    def block(steps: int) -> int:
        begin = clock.now_ns()
        for _ in range(steps):
            step()
        if synchronize is not None:
            synchronize()
        return clock.now_ns() - begin

    return time_blocks(block, seconds, clock)


def time_blocks(block: Callable[[int], int], seconds: float, clock: Clock) -> ProbeBlocks:
    """Return the nanoseconds of blocks of steps, after a warm-up."""
    begin = clock.now_ns()
    budget = int(seconds * 1e9)
    block(1)  # pages, kernels and workspaces of the first step
    steps, took = 1, block(1)
    while clock.now_ns() - begin < budget * _WARMUP_SHARE:
        if took < _BLOCK_NS:
            steps *= 2
        took = block(steps)
    steps = max(1, round(steps * _BLOCK_NS / max(took, 1)))
    samples = [block(steps)]
    while len(samples) < _MOST_BLOCKS:
        elapsed = clock.now_ns() - begin
        few = len(samples) < FEWEST_BLOCKS
        if elapsed >= (budget * _OVERTIME if few else budget):
            break
        samples.append(block(steps))
    return ProbeBlocks(steps, tuple(samples))

"""How a step is timed, given how fine the clock is.

A step of fewer than 1000 clock ticks would be known to no better than one part
in a thousand, and reading the clock would be part of what is measured. Such steps
are timed in blocks: one pair of readings around k steps. What single steps did
inside a block is not known then, so percentiles, minimum, maximum and standard
deviation are not given; the mean is exact, and its interval is of the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelbench.core.vocabulary import Timing

LEAST_TICKS = 1000
MOST_OVERHEAD = 1e-4


@dataclass(frozen=True)
class Resolution:
    """How to time: by EACH step, or by the WHOLE of `steps_per_sample` steps."""

    timing: Timing
    steps_per_sample: int = 1


def choose_timing(step_ns: float, tick_ns: float, reading_ns: float | None = None) -> Resolution:
    """Choose between timing each step and timing blocks of steps.

    Args:
        step_ns: what a step takes, as far as warm-up has shown.
        tick_ns: the smallest difference the clock shows.
        reading_ns: what one reading of the clock costs. Taken to be a tick where it
            is not known: two readings in a row cannot differ by less than a reading costs.
    """
    if step_ns >= LEAST_TICKS * tick_ns:
        return Resolution(Timing.EACH)
    reading = tick_ns if reading_ns is None else reading_ns
    block_ns = max(LEAST_TICKS * tick_ns, reading / MOST_OVERHEAD)
    # A clock coarser than the step may have shown 0 ns; no call into a runtime takes less than 1.
    return Resolution(Timing.WHOLE, math.ceil(block_ns / max(step_ns, 1.0)))

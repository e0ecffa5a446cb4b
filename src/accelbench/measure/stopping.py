"""When has a case been sampled enough? Decided between blocks, at fixed sizes only.

Looking after every sample and stopping at the first narrow interval would select
lucky moments, so looks happen at n = 30, 60, 120 … The time limit bites between looks
too: when it falls does not depend on what the interval says.

Slow steps: the limit never ends a case before 5 samples, so steps of 1 s get 10
samples, of 2 s and more 5. With fewer than 30 samples the quality is `time_limited`
however narrow the interval looks, and `sample_warnings` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accelbench.core.words import Quality
from accelbench.measure.bootstrap import MINIMUM_SAMPLES, Interval, median_interval
from accelbench.measure.series import Samples, series


@dataclass(frozen=True)
class Decision:
    """Whether to stop, what the figure is then worth, and the latest interval of the median."""

    stop: bool
    quality: Quality | None = None  # None while not stopped
    interval: Interval | None = None  # None below five samples


@dataclass(frozen=True)
class StoppingRule:
    """When to stop. `fixed` takes exactly so many samples, whatever the time."""

    half_width: float = 0.01  # of the median
    minimum: int = 30
    time_limit_ns: int = 10_000_000_000
    fixed: int | None = None
    shrink: float = 0.10  # an interval that narrows by less over a doubling has met the noise

    def next_look(self, n: int) -> int:
        """The first number of samples beyond `n` at which `decide` looks at the interval."""
        if self.fixed is not None:
            return self.fixed
        look = self.minimum
        while look <= n:
            look *= 2
        return look

    def next_block(self, n: int, elapsed_ns: int, step_ns: float) -> int:
        """How many samples to take next: to the next look, or as many as the time limit leaves.

        Args:
            n: samples taken.
            elapsed_ns: since sampling began.
            step_ns: what one sample takes, as far as is known.
        """
        to_look = self.next_look(n) - n
        if self.fixed is not None:
            return max(to_look, 0)
        in_time = math.ceil((self.time_limit_ns - elapsed_ns) / max(step_ns, 1.0))
        return min(to_look, max(in_time, MINIMUM_SAMPLES - n, 1))

    def decide(self, samples: Samples, elapsed_ns: int, previous: Interval | None) -> Decision:
        """Stop or go on.

        Args:
            samples: all samples so far, in order.
            elapsed_ns: since sampling began.
            previous: the interval of the last look, None at the first.

        Between looks it goes on and hands `previous` back: only blocks that end at
        `next_look` are looked at.
        """
        n = len(samples)
        if self.fixed is not None:
            return self._fixed(samples, n >= self.fixed, previous)
        out_of_time = elapsed_ns >= self.time_limit_ns and n >= MINIMUM_SAMPLES
        is_look = n >= self.minimum and self.next_look(n - 1) == n
        if not (out_of_time or is_look):
            return Decision(False, None, previous)
        interval = median_interval(samples)
        if n >= self.minimum and self._narrow(samples, interval):
            return Decision(True, Quality.CONVERGED, interval)
        if is_look and self._stalled(previous, interval):
            return Decision(True, Quality.NOISE_LIMITED, interval)
        if out_of_time:
            return Decision(True, Quality.TIME_LIMITED, interval)
        return Decision(False, None, interval)

    def _fixed(self, samples: Samples, complete: bool, previous: Interval | None) -> Decision:
        if not complete:
            return Decision(False, None, previous)
        interval = median_interval(samples)
        narrow = self._narrow(samples, interval)
        return Decision(True, Quality.CONVERGED if narrow else Quality.NOISE_LIMITED, interval)

    def _narrow(self, samples: Samples, interval: Interval | None) -> bool:
        if interval is None:
            return False
        center = float(np.median(series(samples)))
        return interval.relative_half_width(center) <= self.half_width

    def _stalled(self, previous: Interval | None, interval: Interval | None) -> bool:
        if previous is None or interval is None:
            return False
        return interval.half_width > (1.0 - self.shrink) * previous.half_width


def sample_warnings(n: int, minimum: int = 30) -> tuple[str, ...]:
    """What a reader should know about a small number of samples, as sentences."""
    if n >= minimum:
        return ()
    noun = "sample" if n == 1 else "samples"
    if n < MINIMUM_SAMPLES:
        consequence = "too few to say how far the figures can be trusted"
    else:
        consequence = "the interval is rough and percentiles beyond the median are not given"
    return (f"Only {n} {noun} where {minimum} are the minimum: {consequence}.",)

"""When has a case been sampled enough? Decided between blocks, at fixed sizes only.

Looking after every sample and stopping at the first narrow interval would select
lucky moments, so looks happen at n = 30, 60, 120 … The time limit bites between looks
too: when it falls does not depend on what the interval says.

**Converged**: the interval of the median is narrow, and at least 20 independent samples carry it:
of fewer, it is not known how much samples depend on each other. AR(1) series of lag-1 0.95 and 1 %
noise that were stopped without that were covered in 77 %, with it in 94 %.

**Noise limited**: the interval narrowed by less than 10 % over each of two doublings (120 steps at
the least, however long a step), after a second, with 30 independent samples. One doubling alone
says little: most series that switch between a fast and a ten times slower mode ended by it at
n = 60, after a handful of switches, and their intervals covered 43 to 98 %, by how long modes last.

Slow steps: the limit never ends a case before 5 samples, so steps of 1 s get 10
samples, of 2 s and more 5. With fewer than 30 samples the quality is `time_limited`
however narrow the interval looks, and `sample_warnings` says so.

A **fixed** number of samples is taken whatever they say, and the quality is that word.

A mean whose interval is wider than ±25 % does not end sampling before the time limit: a few slow
blocks widen it, and more samples narrow it.

However it ended: a figure whose interval is wider than ±25 % is `unusable`. Such a median may be
off by the factor between one batch size, precision or device and the next, so that nothing can be
chosen or judged by it; one whose interval spans two modes of the machine is wider than that. Of
fewer than 30 samples that were asked for it is not said: their interval reaches nearly from the
fastest to the slowest, whatever they are, and what is said is that nothing judged them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from accelbench.core.unusable_reasons import FEWEST_JUDGED, UNUSABLE_WIDTH
from accelbench.core.vocabulary import Quality
from accelbench.measure.intervals import (
    MINIMUM_SAMPLES,
    Interval,
    MedianEstimate,
    Samples,
    mean_interval,
    median_estimate,
    series,
)


@dataclass(frozen=True)
class Decision:
    """Whether to stop, what the figure is then worth, and the latest interval of the median."""

    stop: bool
    quality: Quality | None = None  # None while not stopped
    interval: Interval | None = None  # None below five samples
    stalls: int = 0  # looks in a row at which it had hardly narrowed


@dataclass(frozen=True)
class StoppingRule:
    """When to stop. `fixed` takes exactly so many samples, whatever the time."""

    half_width: float = 0.01  # of the median
    minimum: int = FEWEST_JUDGED
    time_limit_ns: int = 10_000_000_000
    fixed: int | None = None
    shrink: float = 0.10  # an interval that narrows by less over a doubling has stalled
    stalls: int = 2  # so many in a row have met the noise
    least_ns: int = 1_000_000_000  # and not before so long
    known: float = 20.0  # effective n of an interval that is believed to be narrow
    noise_known: float = 30.0  # and of one that is believed to narrow no more

    def next_look(self, n: int) -> int:
        """Return the first number of samples beyond `n` at which `decide` looks at the interval."""
        if self.fixed is not None:
            return self.fixed
        look = self.minimum
        while look <= n:
            look *= 2
        return look

    def next_block(self, n: int, elapsed_ns: int, step_ns: float) -> int:
        """Return how many samples to take next: to the next look, or as many as the time limit
        leaves."""
        to_look = self.next_look(n) - n
        if self.fixed is not None:
            return max(to_look, 0)
        in_time = math.ceil((self.time_limit_ns - elapsed_ns) / max(step_ns, 1.0))
        return min(to_look, max(in_time, MINIMUM_SAMPLES - n, 1))

    def decide(
        self, samples: Samples, elapsed_ns: int, previous: Decision | None, shows_mean: bool = False
    ) -> Decision:
        """Stop or go on; between looks, return what was decided before.

        `previous` is the last decision. `shows_mean` if the value of the launch is the mean of the
        samples.
        """
        n = len(samples)
        before = previous or Decision(False)
        if self.fixed is not None:
            return self._fixed(samples) if n >= self.fixed else before
        out_of_time = elapsed_ns >= self.time_limit_ns and n >= MINIMUM_SAMPLES
        is_look = n >= self.minimum and self.next_look(n - 1) == n
        estimate = median_estimate(samples) if out_of_time or is_look else None
        if estimate is None:
            return before
        center = float(np.median(series(samples)))
        stalls = before.stalls + 1 if self._stalled(before.interval, estimate.interval) else 0
        now = Decision(False, None, estimate.interval, stalls)
        met = stalls >= self.stalls and elapsed_ns >= self.least_ns
        quality = None
        if n >= self.minimum and self._narrow(estimate, center):
            quality = Quality.CONVERGED
        elif is_look and met and estimate.effective >= self.noise_known:
            quality = Quality.NOISE_LIMITED
        if out_of_time:
            return replace(
                now, stop=True, quality=worth(quality or Quality.TIME_LIMITED, now, center)
            )
        if quality is None or (shows_mean and mean_half_width(samples) > UNUSABLE_WIDTH):
            return now
        return replace(now, stop=True, quality=worth(quality, now, center))

    def _fixed(self, samples: Samples) -> Decision:
        estimate = median_estimate(samples)
        if estimate is None:
            return Decision(True, Quality.FIXED)
        now = Decision(True, Quality.FIXED, estimate.interval)
        if len(samples) < self.minimum:
            return now
        return replace(now, quality=worth(Quality.FIXED, now, float(np.median(series(samples)))))

    def _narrow(self, estimate: MedianEstimate, center: float) -> bool:
        wide = estimate.interval.relative_half_width(center)
        # Of samples that are all alike there is nothing more to know.
        return wide <= self.half_width and (wide == 0.0 or estimate.effective >= self.known)

    def _stalled(self, previous: Interval | None, interval: Interval) -> bool:
        if previous is None:
            return False
        return interval.half_width > (1.0 - self.shrink) * previous.half_width


def mean_half_width(samples: Samples) -> float:
    """Return half of the interval of the mean as a share of the mean; 0 if it has no interval."""
    interval = mean_interval(samples)
    return interval.relative_half_width(fmean(samples)) if interval else 0.0


def worth(quality: Quality, decision: Decision, center: float) -> Quality:
    """Return the quality that a decision gives, or that its interval is too wide for any use."""
    interval = decision.interval
    wide = interval is not None and interval.relative_half_width(center) > UNUSABLE_WIDTH
    return Quality.UNUSABLE if wide else quality


def sample_warnings(n: int, minimum: int = 30) -> tuple[str, ...]:
    """What a reader should know about a small number of samples, as sentences."""
    if n >= minimum:
        return ()
    noun = "sample" if n == 1 else "samples"
    if n < MINIMUM_SAMPLES:
        consequence = "too few to say how far the figures can be trusted"
    else:
        consequence = "the interval is rough"
    return (f"Only {n} {noun}, fewer than the minimum of {minimum}: {consequence}.",)

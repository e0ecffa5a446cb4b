"""Rule for the end of sampling, decided between blocks at fixed sample counts only.

Stopping at the first narrow interval after any sample would select lucky moments, so decisions
happen at n = 30, 60, 120 …. The time limit also applies in between: it does not depend on the
interval.

**Converged**: the interval of the median is narrow, and at least 20 independent samples support it;
with fewer, the dependence between samples is not known. AR(1) series of lag-1 0.95 and 1 % noise
that stopped without this condition had a coverage of 77 %, with it 94 %.

**Noise limited**: the interval narrowed by less than 10 % over each of two doublings (at least 120
steps, however long a step is), after a second, with 30 independent samples. One doubling is not
enough: most series that switch between a fast and a ten times slower mode ended by it at n = 60,
after a few switches, with a coverage of 43 to 98 % depending on how long modes last.

**Time limited**: the limit never ends a case before 5 samples, so steps of 1 s get 10 samples, and
steps of 2 s and more get 5. With fewer than 30 samples the quality is `time_limited` however narrow
the interval looks, and `sample_warnings` returns a warning.

**Fixed**: a requested number of samples is taken regardless of their spread.

A mean whose interval is wider than ±25 % does not end sampling before the time limit: a few slow
blocks widen it, and more samples narrow it.

**Unusable**: any value whose interval is wider than ±25 %. Such a median may be wrong by the factor
between one batch size, precision or device and the next, so it can decide nothing; an interval that
spans two modes of the machine is wider than that. A requested number below 30 samples is not
judged: its interval extends almost from the fastest to the slowest, and a warning reports that
nothing judged them.
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
    to_series,
)


@dataclass(frozen=True)
class Decision:
    """Decision to stop, with the quality and the latest interval of the median."""

    stop: bool
    quality: Quality | None = None  # None while not stopped
    interval: Interval | None = None  # None below five samples
    stalls: int = 0  # consecutive decisions at which it had hardly narrowed


@dataclass(frozen=True)
class StoppingRule:
    """Rule for the end of sampling.

    `fixed` takes exactly that many samples, without a time limit.
    """

    half_width: float = 0.01  # of the median
    minimum: int = FEWEST_JUDGED
    time_limit_ns: int = 10_000_000_000
    fixed: int | None = None
    shrink: float = 0.10  # an interval that narrows by less over a doubling has stalled
    stalls: int = 2  # consecutive ones that mean noise limited
    least_ns: int = 1_000_000_000  # and the least time for it
    known: float = 20.0  # least effective n of a converged interval
    noise_known: float = 30.0  # and of a noise limited one

    def next_look(self, n: int) -> int:
        """Return the first number of samples beyond `n` at which `decide` checks the interval."""
        if self.fixed is not None:
            return self.fixed
        look = self.minimum
        while look <= n:
            look *= 2
        return look

    def next_block(self, n: int, elapsed_ns: int, step_ns: float) -> int:
        """Return how many samples to take next: up to the next check, or the time limit."""
        to_look = self.next_look(n) - n
        if self.fixed is not None:
            return max(to_look, 0)
        in_time = math.ceil((self.time_limit_ns - elapsed_ns) / max(step_ns, 1.0))
        return min(to_look, max(in_time, MINIMUM_SAMPLES - n, 1))

    def decide(
        self, samples: Samples, elapsed_ns: int, previous: Decision | None, shows_mean: bool = False
    ) -> Decision:
        """Return whether to stop; between checks, return the previous decision.

        `shows_mean` is whether the value of the launch is the mean of the samples.
        """
        n = len(samples)
        before = previous or Decision(False)
        if self.fixed is not None:
            return self._decide_fixed(samples) if n >= self.fixed else before
        out_of_time = elapsed_ns >= self.time_limit_ns and n >= MINIMUM_SAMPLES
        is_look = n >= self.minimum and self.next_look(n - 1) == n
        estimate = median_estimate(samples) if out_of_time or is_look else None
        if estimate is None:
            return before
        center = float(np.median(to_series(samples)))
        stalls = before.stalls + 1 if self._has_stalled(before.interval, estimate.interval) else 0
        now = Decision(False, None, estimate.interval, stalls)
        met = stalls >= self.stalls and elapsed_ns >= self.least_ns
        quality = None
        if n >= self.minimum and self._is_narrow(estimate, center):
            quality = Quality.CONVERGED
        elif is_look and met and estimate.effective >= self.noise_known:
            quality = Quality.NOISE_LIMITED
        if out_of_time:
            return replace(
                now, stop=True, quality=limit_quality(quality or Quality.TIME_LIMITED, now, center)
            )
        if quality is None or (shows_mean and mean_half_width(samples) > UNUSABLE_WIDTH):
            return now
        return replace(now, stop=True, quality=limit_quality(quality, now, center))

    def _decide_fixed(self, samples: Samples) -> Decision:
        estimate = median_estimate(samples)
        if estimate is None:
            return Decision(True, Quality.FIXED)
        now = Decision(True, Quality.FIXED, estimate.interval)
        if len(samples) < self.minimum:
            return now
        return replace(
            now, quality=limit_quality(Quality.FIXED, now, float(np.median(to_series(samples))))
        )

    def _is_narrow(self, estimate: MedianEstimate, center: float) -> bool:
        wide = estimate.interval.relative_half_width(center)
        # Equal samples need no further evidence.
        return wide <= self.half_width and (wide == 0.0 or estimate.effective >= self.known)

    def _has_stalled(self, previous: Interval | None, interval: Interval) -> bool:
        if previous is None:
            return False
        return interval.half_width > (1.0 - self.shrink) * previous.half_width


def mean_half_width(samples: Samples) -> float:
    """Return half of the interval of the mean as a share of the mean; 0 if it has no interval."""
    interval = mean_interval(samples)
    return interval.relative_half_width(fmean(samples)) if interval else 0.0


def limit_quality(quality: Quality, decision: Decision, center: float) -> Quality:
    """Return a quality, or `unusable` if the interval of the decision is too wide."""
    interval = decision.interval
    wide = interval is not None and interval.relative_half_width(center) > UNUSABLE_WIDTH
    return Quality.UNUSABLE if wide else quality


def sample_warnings(n: int, minimum: int = 30) -> tuple[str, ...]:
    """Return warnings about a small number of samples."""
    if n >= minimum:
        return ()
    noun = "sample" if n == 1 else "samples"
    consequence = "too few for an interval" if n < MINIMUM_SAMPLES else "the interval is rough"
    return (f"Only {n} {noun}, fewer than the minimum of {minimum}: {consequence}.",)

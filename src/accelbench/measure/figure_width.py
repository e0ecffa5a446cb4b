"""Whether the interval of the figure that a launch shows is too wide for any use.

Of steps timed one by one the figure is their median, by which sampling is ended. Of steps timed in
blocks it is their mean, which a few slow blocks move and widen, and their median does not show it.
"""

from __future__ import annotations

import math
from statistics import fmean, median

from accelbench.core.vocabulary import Quality, Timing
from accelbench.measure.intervals import mean_interval
from accelbench.measure.series import Samples
from accelbench.measure.stopping import UNUSABLE_WIDTH, Decision, StoppingRule


def too_wide(
    samples: Samples, timing: Timing, decision: Decision, rule: StoppingRule
) -> str | None:
    """What is said of a figure that counts nowhere; None where its interval lets it count.

    One figure is in it, so that a run that warns of many results can give its range.
    """
    whole = timing is Timing.WHOLE
    few = rule.fixed is not None and len(samples) < rule.minimum
    interval = mean_interval(samples) if whole and not few else None
    wide = interval.relative_half_width(fmean(samples)) if interval else 0.0
    if wide > UNUSABLE_WIDTH:
        return _sentence(wide, "mean")
    if decision.quality is Quality.UNUSABLE and decision.interval is not None:
        wide = decision.interval.relative_half_width(median(samples))
        return _sentence(wide, "median of its blocks" if whole else "median")
    return None


def _sentence(wide: float, figure: str) -> str:
    return (
        f"Half of the 95 % interval is {_percent(wide)} % of the {figure}, where"
        f" {_percent(UNUSABLE_WIDTH)} % is the most: the figure is shown and counts nowhere."
    )


def _percent(share: float) -> str:
    """Rounded up: what is more than a limit does not look like it."""
    return f"{math.ceil(100 * share):,}" if math.isfinite(share) else "more than 1,000"

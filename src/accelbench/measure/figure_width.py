"""Whether the interval of the figure that a launch shows is too wide for any use.

Of steps timed one by one the figure is their median, by which sampling is ended. Of steps timed in
blocks it is their mean, which a few slow blocks move and widen, and their median does not show it.
"""

from __future__ import annotations

import math
from statistics import median

from accelbench.core.vocabulary import Quality, Timing
from accelbench.core.worth import NOT_USED, UNUSABLE_WIDTH
from accelbench.measure.series import Samples
from accelbench.measure.stopping import Decision, StoppingRule, mean_half_width


def too_wide(
    samples: Samples, timing: Timing, decision: Decision, rule: StoppingRule
) -> str | None:
    """Return the warning that the interval of a launch's value is too wide, or None if it is not.

    It has one number, so that a run that warns of many results can give its range.
    """
    whole = timing is Timing.WHOLE
    few = rule.fixed is not None and len(samples) < rule.minimum
    wide = mean_half_width(samples) if whole and not few else 0.0
    if wide > UNUSABLE_WIDTH:
        return _sentence(wide)
    if decision.quality is Quality.UNUSABLE and decision.interval is not None:
        wide = decision.interval.relative_half_width(median(samples))
        return _sentence(wide)
    return None


def _sentence(wide: float) -> str:
    return f"Too noisy: {_percent(wide)} (limit {_percent(UNUSABLE_WIDTH)}). {NOT_USED}"


def _percent(share: float) -> str:
    """Round up: a value beyond the limit does not look like the limit."""
    return f"±{math.ceil(100 * share):,} %" if math.isfinite(share) else "more than ±1,000 %"

"""Two arms of one run, whose launches were interleaved: each launch beside its neighbour. Pure.

The i-th launch of one arm and the i-th of the other were measured one after the other, A B B A.
Whatever the machine did meanwhile, and whatever this run differs from another by, is in both and
falls out of their ratio: what is left is the noise of pairs, and Student's t over the logarithms of
the ratios decides. No variance between runs has to be known, since there is one run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accelbench.analysis.judging import Judged, Judgement, Metric, as_times
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.measure.launches import (
    HUGE,
    LEAST_EFFECT,
    MOST_LAUNCHES,
    POWER,
    Noise,
    logs_of,
    minimum_detectable_effect,
    paired_interval,
    required_launches,
    spread,
    typical,
)
from accelbench.measure.student import t_quantile

_LEVEL = 0.99


def judged_pairs(
    metric: Metric,
    against: Sequence[float],
    this: Sequence[float],
    threshold: float | None = None,
) -> Judged:
    """Whether launches of this arm are worse than those of the other.

    Args:
        metric: which figure.
        against: of the arm that is compared with, one value a launch; at least one.
        this: of the other, each beside the launch that it was measured next to.
        threshold: what a change has to exceed at least, as a share.
    """
    then, here = as_times(metric, against, this)
    pairs = len(then)
    floor = max(threshold or 0.0, LEAST_EFFECT)
    interval = paired_interval(then, here, _LEVEL)
    if interval is None:
        return _alone(metric, against, this, floor)
    logs = [b - a for a, b in zip(logs_of(then), logs_of(here), strict=True)]
    apart = spread(logs)
    error = apart / math.sqrt(pairs)
    limit = max(floor, math.expm1(min(3.0 * error, HUGE)))
    effect = math.log(interval.ratio)
    answer = Judgement.CANNOT_TELL
    if pairs >= FEWEST_LAUNCHES:
        if interval.p_value < 1.0 - _LEVEL and abs(effect) > math.log1p(limit):
            answer = Judgement.WORSE if effect > 0 else Judgement.BETTER
        elif abs(effect) + t_quantile(POWER, pairs - 1) * error <= math.log1p(floor):
            answer = Judgement.STEADY
    # Noise is of one launch throughout; a pair has that of two.
    noise = apart / math.sqrt(2.0)
    required = required_launches(noise, floor)
    most = minimum_detectable_effect(MOST_LAUNCHES, noise) or 0.0
    return Judged(
        metric,
        typical(against),
        typical(this),
        interval.ratio - 1.0,
        answer,
        limit,
        (pairs, pairs),
        math.expm1(max(math.log(interval.low), -HUGE)),
        math.expm1(min(math.log(interval.high), HUGE)),
        Noise(noise, pairs - 1),
        least_shown=max(minimum_detectable_effect(pairs, noise) or 0.0, floor),
        required=required,
        required_both=required,
        most_shown=max(most, floor),
        paired=True,
    )


def _alone(metric: Metric, against: Sequence[float], this: Sequence[float], floor: float) -> Judged:
    """One pair says nothing of its own noise."""
    before, now = typical(against), typical(this)
    by = now / before if metric.lower_is_better else before / now
    return Judged(
        metric, before, now, by - 1.0, Judgement.CANNOT_TELL, floor,
        (len(against), len(this)), required=FEWEST_LAUNCHES, required_both=FEWEST_LAUNCHES,
        paired=True,
    )  # fmt: skip

"""What each quality of a figure means, for whoever sees the word alone."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.core.vocabulary import Quality

#: One phrase each; docs/measuring.md has the rules.
QUALITY_SAID: Mapping[str, str] = {
    Quality.CONVERGED: "the 95 % interval is within ±1 %",
    Quality.NOISE_LIMITED: "more samples hardly narrowed the interval any more",
    Quality.TIME_LIMITED: "the time for sampling was over before the interval was narrow",
    Quality.UNSTEADY: "times changed while they were measured",
    Quality.THROTTLED: "the device slowed down while it was measured",
    Quality.FIXED: "as many samples as were asked for: nothing judged whether they suffice",
    Quality.UNUSABLE: "the interval is wider than ±25 %",
}

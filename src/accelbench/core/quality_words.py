"""What each quality of a figure means, for whoever sees the word alone."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.core.vocabulary import Quality
from accelbench.core.worth import REASON_TEXTS, REASONS_OF_TIMES

#: One phrase each; docs/measuring.md has the rules.
QUALITY_SAID: Mapping[str, str] = {
    Quality.CONVERGED: "the 95 % interval is within ±1 %",
    Quality.NOISE_LIMITED: "more samples no longer narrowed the interval",
    Quality.TIME_LIMITED: "the time ended before the interval was narrow",
    Quality.UNSTEADY: "the step changed while it was measured",
    Quality.THROTTLED: "the device slowed down",
    Quality.FIXED: "as many samples as were asked for: nothing judged whether they suffice",
    Quality.UNUSABLE: ", or ".join(REASON_TEXTS[one] for one in REASONS_OF_TIMES),
}

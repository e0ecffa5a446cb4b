"""The view `launches`: every result, whether it may decide anything, and why not.

A launch that is not usable is shown, and takes no part in comparisons, predictions or
recommendations. This is the one place with that rule.
"""

from __future__ import annotations

from enum import StrEnum

from accelbench.core.launch_failures import FAILED, LAUNCHED, WRONG_SQL, whole_runs_sql
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.core.worth import MOST_UNACCOUNTED, MOST_WAITING, wide_sql


class UnusableReason(StrEnum):
    """Reasons in the column `unusable_reason`; the first that applies is recorded."""

    SKIPPED = "skipped"
    WRONG_OUTPUTS = "wrong_outputs"
    FAILED = "failed"
    EMULATED = "emulated"
    SIMULATED = "simulated"
    PREDICTED = "predicted"
    IMPLAUSIBLE = "implausible_rate"
    MOST_LAUNCHES_FAILED = "most_launches_failed"
    WAITED = "waited_for_cpus"
    UNACCOUNTED = "time_not_accounted_for"
    TOO_NOISY = "too_noisy"


#: Conditions in the order of the reasons. The last four describe a quality of `unusable`.
_CONDITIONS = {
    UnusableReason.SKIPPED: f"status = '{Status.SKIPPED}'",
    UnusableReason.WRONG_OUTPUTS: WRONG_SQL,
    UnusableReason.FAILED: f"status <> '{Status.OK}'",
    UnusableReason.EMULATED: "emulated",
    UnusableReason.SIMULATED: f"provenance = '{Provenance.SIMULATED}'",
    UnusableReason.PREDICTED: f"provenance = '{Provenance.PREDICTED}'",
    UnusableReason.IMPLAUSIBLE: "implausible_rate IS NOT NULL",
}
_CONDITIONS_OF_TIMES = {
    UnusableReason.MOST_LAUNCHES_FAILED: f"2 * {FAILED} > {LAUNCHED}",
    UnusableReason.WAITED: f"cpu_wait_share > {MOST_WAITING}",
    UnusableReason.UNACCOUNTED: f"unexplained_share > {MOST_UNACCOUNTED} AND NOT {wide_sql()}",
}


def _whens(conditions: dict[UnusableReason, str]) -> str:
    return " ".join(f"WHEN {sql} THEN '{reason}'" for reason, sql in conditions.items())


#: The view's definition.
LAUNCHES = f"""
CREATE VIEW launches AS
SELECT *, unusable_reason IS NULL AS usable FROM (
    SELECT *, CASE {_whens(_CONDITIONS)}
        WHEN quality = '{Quality.UNUSABLE}' THEN CASE
            {_whens(_CONDITIONS_OF_TIMES)} ELSE '{UnusableReason.TOO_NOISY}' END
        END AS unusable_reason
    FROM {whole_runs_sql()}
)
"""  # noqa: S608 — our words

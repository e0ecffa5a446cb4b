"""What the times of the worker's threads show of a measurement."""

from __future__ import annotations

import pytest

from accelbench.hardware.thread_times import ThreadUse
from accelbench.run.worker.load_checks import judge

S = 1_000_000_000


@pytest.mark.parametrize(
    ("ran", "waited", "share", "unusable"),
    [
        (S // 3, 2 * S // 3, 2 / 3, True),
        (S // 100, 3 * S // 100, None, False),  # a device computes, and its host thread waits
        (2 * S // 3, S // 3, 1 / 3, False),
    ],
)
def test_a_share_above_one_half_is_stored_of_unusable_launches_only(
    ran: int, waited: int, share: float | None, unusable: bool
) -> None:
    report = judge(ThreadUse(S, ran, waited), None)
    assert report.unusable is unusable
    assert report.columns["cpu_wait_share"] == (None if share is None else pytest.approx(share))
    assert ("cpu_wait_share" in report.reasons) is (share is None)
    assert report.warnings == ()  # the conductor warns, which knows what else ran

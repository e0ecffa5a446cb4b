"""What the times of the worker's threads show of a measurement."""

import pytest

from accelbench.hardware.hostmemory import PageUse, has_glibc, read_page_use
from accelbench.hardware.thread_times import ThreadUse
from accelbench.run.worker.case_checks import KEEP_MEMORY, judge, judge_pages

S = 1_000_000_000


@pytest.mark.parametrize(
    ("ran", "waited", "share", "unusable"),
    [
        (S // 3, 2 * S // 3, 2 / 3, True),
        (S // 100, 3 * S // 100, None, False),  # a device computes, and its host thread waits
        (2 * S // 3, S // 3, 1 / 3, False),
    ],
)
def test_a_share_above_one_half_is_stored_of_unusable_launches_only(ran, waited, share, unusable):
    report = judge(ThreadUse(S, ran, waited), None)
    assert report.unusable is unusable
    assert report.columns["cpu_wait_share"] == (None if share is None else pytest.approx(share))
    assert ("cpu_wait_share" in report.reasons) is (share is None)
    assert report.warnings == ()  # the conductor warns, which knows what else ran


@pytest.mark.parametrize(
    ("faults", "system_s", "warned"),
    [(20_000, 1.5, True), (19_999, 5.0, False), (20_000, 1.49, False), (0, 0.0, False)],
)
def test_pages_that_steps_touch_anew_are_warned_of_if_they_are_many_and_cost_much(
    faults, system_s, warned
):
    before, after = PageUse(50, 3.0, 2.0), PageUse(50 + faults, 13.0 - system_s, 2.0 + system_s)
    report = judge_pages(before, after, 100, {})
    assert report.details == {
        "page_faults_per_step": pytest.approx(faults / 100, abs=0.06),
        "system_time_share": pytest.approx(system_s / 10, abs=0.001),
    }
    assert bool(report.warnings) is warned
    assert not report.unusable


def test_settings_are_named_unless_one_is_set():
    use = PageUse(0, 0.0, 0.0), PageUse(104_000, 7.2, 2.8)
    (advised,) = judge_pages(*use, 100, {}).warnings
    assert advised == (
        "Each step touched 1,040 memory pages anew. The system took 28 % of the CPU time, mostly"
        " for this. The allocator returns freed memory to the system after each step. To keep it,"
        " set MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000."
    )
    for name, value in KEEP_MEMORY.items():
        (plain,) = judge_pages(*use, 100, {name: value}).warnings
        assert name not in plain


@pytest.mark.skipif(not has_glibc(), reason="the C library is not glibc")
def test_pages_are_counted_where_memory_is_touched():
    before = read_page_use()
    touched = bytearray(400 * 4096)
    after = read_page_use()
    assert len(touched) == 400 * 4096
    assert after.faults > before.faults

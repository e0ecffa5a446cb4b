"""Worse, better, steady or unknown: from launches; of a single one by a plain threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accelbench.analysis import judging
from accelbench.analysis.judging import METRICS, Judged, Judgement, Metric, NoisePrior
from accelbench.measure.launches import Noise, pooled, pooled_noise
from accelbench.measure.runs import PRIOR, noise_between
from accelbench.report.check import change

LATENCY, THROUGHPUT, MEMORY, *_ = METRICS
QUIET = Noise(0.005, 8)


def judged(
    metric: Metric,
    before: Sequence[float],
    now: Sequence[float],
    noise: Noise | None,
    threshold: float | None = None,
    runs: Noise | None = None,
    *,
    settled: bool = True,
) -> Judged:
    """Of one run, unless it is said by how much runs differ."""
    known = NoisePrior(noise, runs)
    return judging.judged(metric, before, now, known, threshold, settled=settled)


def launches(center: float, noise: float = 0.004, count: int = 8, seed: int = 0) -> list[float]:
    drawn = np.random.default_rng(seed).normal(0.0, noise, count)
    drawn -= drawn.mean()
    return [center * math.exp(one) for one in drawn]


def of(before: float, now: float, noise: Noise | None = QUIET, count: int = 8) -> Judged:
    return judged(LATENCY, launches(before, count=count), launches(now, count=count, seed=1), noise)


def test_a_change_beyond_the_noise_is_worse_or_better() -> None:
    assert of(10.0, 10.6).answer is Judgement.WORSE
    assert of(10.0, 9.4).answer is Judgement.BETTER
    assert of(10.0, 10.0).answer is Judgement.STEADY
    assert of(10.0, 10.6).worse_by == pytest.approx(0.06)


def test_a_change_that_is_sure_but_small_is_none() -> None:
    found = of(10.0, 10.2)
    assert found.low is not None
    assert found.low > 0.0  # sure to be there
    assert (found.answer, found.limit) == (Judgement.STEADY, 0.03)


def test_the_threshold_is_what_a_change_has_to_exceed() -> None:
    before, now = launches(10.0), launches(10.8, seed=1)
    assert judged(LATENCY, before, now, QUIET).answer is Judgement.WORSE
    assert judged(LATENCY, before, now, QUIET, 0.1).answer is Judgement.STEADY
    assert judged(LATENCY, before, launches(11.2, seed=1), QUIET, 0.1).answer is Judgement.WORSE


def test_less_throughput_is_worse() -> None:
    found = judged(THROUGHPUT, launches(100.0), launches(90.0, seed=1), QUIET)
    assert found.answer is Judgement.WORSE
    assert found.worse_by == pytest.approx(1.0 / 0.9 - 1.0)
    assert (
        judged(THROUGHPUT, launches(90.0), launches(100.0, seed=1), QUIET).answer
        is Judgement.BETTER
    )


def test_memory_that_is_the_same_to_the_byte_is_steady() -> None:
    assert judged(MEMORY, [64.0] * 5, [64.0] * 5, Noise(0.0, 8)).answer is Judgement.STEADY
    assert judged(MEMORY, [64.0] * 5, [70.0] * 5, Noise(0.0, 8)).answer is Judgement.WORSE


def test_noise_raises_what_counts_and_how_many_launches_it_takes() -> None:
    loud = of(10.0, 10.2, Noise(0.05, 30))
    assert loud.answer is Judgement.CANNOT_TELL
    assert loud.limit == pytest.approx(3 * 0.05 * math.sqrt(2 / 8))
    assert (loud.required, loud.required_both) == (None, None)  # not even forty a side
    assert loud.least_shown is not None
    assert loud.least_shown > loud.limit


def test_few_launches_show_what_is_plain_but_never_that_nothing_changed() -> None:
    assert of(10.0, 25.0, count=3).answer is Judgement.WORSE
    assert of(10.0, 15.0, count=3).answer is Judgement.CANNOT_TELL  # two slow modes of a machine
    assert of(10.0, 10.0, count=3).answer is Judgement.CANNOT_TELL
    few = of(10.0, 10.0, count=4)
    assert (few.required, few.required_both) == (None, 5)  # the baseline's are too few as well
    found = judged(LATENCY, launches(10.0), launches(10.0, count=3, seed=1), QUIET)
    assert (found.answer, found.required) == (Judgement.CANNOT_TELL, 5)


def test_quiet_times_do_not_speak_for_loud_launches() -> None:
    """Older launches were within 0.2 %, these are at two levels: nothing is known of them."""
    quiet = Noise(0.002, 300)
    found = judged(LATENCY, [8.0] * 5, [8.0, 8.01, 10.0, 10.1, 10.05], quiet, 0.1)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.worse_by > 0.1


def test_an_interval_that_stays_within_what_is_asked_shows_that_nothing_changed() -> None:
    found = judged(LATENCY, launches(10.0, 0.01), launches(10.0, 0.01, seed=1), Noise(0.04, 5), 0.2)
    assert found.high is not None
    assert found.high < 0.2
    assert found.answer is Judgement.STEADY


def test_wild_launches_have_an_interval_that_can_be_told() -> None:
    for metric in METRICS:
        found = judged(metric, [8.0, 30.0], [8.0, 8.1], Noise(0.9, 2))
        assert found.answer is Judgement.CANNOT_TELL
        assert change(found)


def test_a_single_launch_has_the_plain_threshold_alone() -> None:
    assert judged(LATENCY, [10.0], [10.8], None).answer is Judgement.STEADY
    assert judged(LATENCY, [10.0], [11.2], None).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [10.8], None, 0.05).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [20.1], None).answer is Judgement.WORSE
    assert judged(LATENCY, [10.0], [4.9], None).answer is Judgement.BETTER
    assert judged(THROUGHPUT, [100.0], [92.0], None).answer is Judgement.STEADY
    assert judged(THROUGHPUT, [100.0], [49.0], None).answer is Judgement.WORSE
    assert judged(LATENCY, [10.0], [25.0], None, 2.0).answer is Judgement.STEADY
    found = judged(LATENCY, [10.0], [11.2, 11.3, 11.1], None)
    assert found.plain
    assert (found.launches, found.low) == ((1, 3), None)


def test_memory_of_a_single_process_may_be_that_launchs_alone() -> None:
    """Of 276 pairs of launches of one thing, 8 differed by more than 10 %: one by 38 %."""
    assert judged(MEMORY, [100.0], [138.0], None).answer is Judgement.CANNOT_TELL
    assert judged(MEMORY, [100.0], [72.0], None).answer is Judgement.CANNOT_TELL
    assert judged(MEMORY, [100.0], [201.0], None, settled=False).answer is Judgement.WORSE
    assert judged(MEMORY, [100.0], [108.0], None, settled=False).answer is Judgement.STEADY


def test_memory_of_one_allocator_is_the_same_in_every_launch() -> None:
    rows = [{"memory_peak_mb": 1.0, "memory_source": "torch.cuda allocator"}] * 2
    exact = MEMORY.common(rows)
    assert exact is not None
    assert exact.exact
    assert judged(exact, [100.0], [112.0], None).answer is Judgement.WORSE
    mixed = MEMORY.common([rows[0], {**rows[0], "memory_source": "VmHWM"}])
    assert mixed is not None
    assert not mixed.exact


@pytest.mark.parametrize("count", [1, 4])
def test_a_launch_that_its_own_samples_do_not_bear_out_turns_nothing_red(count: int) -> None:
    slow = launches(30.0, count=count, seed=1)
    found = judged(LATENCY, launches(10.0, count=count), slow, QUIET, settled=False)
    assert found.answer is Judgement.CANNOT_TELL
    found = judged(LATENCY, launches(10.0, count=count), slow, QUIET)
    assert found.answer is Judgement.WORSE


def test_five_launches_are_not_doubted_for_the_noise_within_each() -> None:
    found = judged(LATENCY, launches(10.0), launches(11.0, seed=1), QUIET, settled=False)
    assert found.answer is Judgement.WORSE


def test_a_change_between_runs_has_to_exceed_what_runs_differ_by() -> None:
    """8 % that launches are sure of: nothing within one run, unknown between two of no history."""
    before, now = launches(10.0), launches(10.8, seed=1)
    assert judged(LATENCY, before, now, QUIET).answer is Judgement.WORSE
    found = judged(LATENCY, before, now, QUIET, runs=PRIOR)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.low is not None
    assert found.low < 0.0
    assert found.required is None  # more launches would not tell
    assert found.required_both is None
    assert (
        judged(LATENCY, before, launches(12.0, seed=1), QUIET, runs=PRIOR).answer is Judgement.WORSE
    )
    quiet = noise_between([launches(10.0, seed=n) for n in range(12)])
    assert judged(LATENCY, before, now, QUIET, runs=quiet).answer is Judgement.WORSE


def test_that_nothing_changed_between_runs_wants_room_below_the_threshold() -> None:
    before, now = launches(10.0), launches(10.5, seed=1)
    assert judged(LATENCY, before, now, QUIET, 0.1, PRIOR).answer is Judgement.STEADY
    assert judged(LATENCY, before, now, QUIET, 0.06, PRIOR).answer is Judgement.CANNOT_TELL


@given(
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
)
def test_the_interval_is_welchs(before: list[float], now: list[float]) -> None:
    a, b = np.log(before), np.log(now)
    if a.std() < 1e-3 or b.std() < 1e-3:
        return
    found = judged(LATENCY, before, now, QUIET)
    interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.99)
    assert found.low is not None
    assert found.high is not None
    assert math.log1p(found.low) == pytest.approx(interval.low, rel=1e-6, abs=1e-9)
    assert math.log1p(found.high) == pytest.approx(interval.high, rel=1e-6, abs=1e-9)


@given(st.lists(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6), min_size=1, max_size=5))
def test_pooled_noise_is_the_spread_within_runs(runs: list[list[float]]) -> None:
    centered = [np.log(run) - np.log(run).mean() for run in runs]
    freedom = sum(len(run) - 1 for run in runs)
    found = pooled_noise(runs)
    if freedom == 0:
        assert found is None
        return
    assert found is not None
    wanted = math.sqrt(sum(float(one @ one) for one in centered) / freedom)
    assert found.freedom == freedom
    assert found.value == pytest.approx(wanted, abs=1e-12)


def test_several_estimates_of_noise_count_by_what_they_rest_on() -> None:
    assert pooled([]) is None
    found = pooled([Noise(0.01, 30), Noise(0.02, 10)])
    assert found == Noise(pytest.approx(math.sqrt((30 * 1e-4 + 10 * 4e-4) / 40)), 40)


def test_launches_that_drift_count_for_fewer() -> None:
    """Forty launches on a machine that wanders tell less than forty of one that does not."""
    rng = np.random.default_rng(5)
    calm = rng.normal(0.0, 0.02, 80)
    wandering = np.empty(80)
    wandering[0] = 0.0
    for n in range(1, 80):
        wandering[n] = 0.9 * wandering[n - 1] + rng.normal(0.0, 0.02 * math.sqrt(1 - 0.81))
    found = {}
    for name, logs in (("calm", calm), ("wandering", wandering)):
        both = [math.exp(one) for one in logs]
        found[name] = judged(LATENCY, both[:40], both[40:], Noise(0.02, 78))
    wide = {name: one.high - one.low for name, one in found.items() if one.high and one.low}
    assert wide["wandering"] > 1.5 * wide["calm"]
    assert found["wandering"].limit > found["calm"].limit


def test_what_is_shown_is_what_was_judged() -> None:
    """The middle of launches is one thing for the figure, its change and the interval."""
    uneven = [1.0] * 6 + [0.9] * 4
    found = judged(LATENCY, uneven, [1.0] * 6 + [1.1] * 4, Noise(0.05, 18))
    assert found.worse_by == pytest.approx(found.now / found.before - 1.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.worse_by < found.high
    rate = judged(THROUGHPUT, [115.0], [607.0, 17.1], None)
    assert (rate.answer, rate.now < rate.before) == (Judgement.WORSE, True)


def test_a_threshold_is_part_of_what_is_found() -> None:
    found = judged(LATENCY, launches(1.0), launches(1.05, seed=1), QUIET, 0.1)
    assert found.answer is Judgement.STEADY
    assert found.least_shown is not None
    assert found.least_shown > 0.1

"""Worse, better, steady or unknown: from launches; of a single one by a plain threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accelbench.judge import verdicts
from accelbench.judge.verdicts import METRICS, Judged, Judgement, Metric, NoisePrior
from accelbench.measure.launch_verdicts import Noise, pool_noise, pool_runs
from accelbench.measure.run_to_run_noise import UnpairedPower, find_gate_noise, independent_count
from accelbench.present.check import change

LATENCY, THROUGHPUT, MEMORY, *_ = METRICS
QUIET = Noise(0.005, 8)
#: Runs without a history: they are taken to differ by 2 %.
KNOWN = find_gate_noise([])


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
    return verdicts.judged(metric, before, now, known, threshold, settled=settled)


def launches(center: float, noise: float = 0.004, count: int = 8, seed: int = 0) -> list[float]:
    drawn = np.random.default_rng(seed).normal(0.0, noise, count)
    drawn -= drawn.mean()
    return [center * math.exp(one) for one in drawn]


def of(before: float, now: float, noise: Noise | None = QUIET, count: int = 8) -> Judged:
    return judged(LATENCY, launches(before, count=count), launches(now, count=count, seed=1), noise)


def test_changes_beyond_a_threshold():
    # A change beyond the noise is worse or better.
    assert of(10.0, 10.6).answer is Judgement.WORSE
    assert of(10.0, 9.4).answer is Judgement.BETTER
    assert of(10.0, 10.0).answer is Judgement.STEADY
    assert of(10.0, 10.6).worse_by == pytest.approx(0.06)
    # A change that is sure but small is none.
    found = of(10.0, 10.2)
    assert found.low is not None
    assert found.low > 0.0  # sure to be there
    assert (found.answer, found.limit) == (Judgement.STEADY, 0.03)
    # The threshold is what a change has to exceed.
    before, now = launches(10.0), launches(10.8, seed=1)
    assert judged(LATENCY, before, now, QUIET).answer is Judgement.WORSE
    assert judged(LATENCY, before, now, QUIET, 0.1).answer is Judgement.STEADY
    assert judged(LATENCY, before, launches(11.2, seed=1), QUIET, 0.1).answer is Judgement.WORSE
    # Less throughput is worse.
    found = judged(THROUGHPUT, launches(100.0), launches(90.0, seed=1), QUIET)
    assert found.answer is Judgement.WORSE
    assert found.worse_by == pytest.approx(1.0 / 0.9 - 1.0)
    assert (
        judged(THROUGHPUT, launches(90.0), launches(100.0, seed=1), QUIET).answer
        is Judgement.BETTER
    )
    assert judged(MEMORY, [64.0] * 5, [64.0] * 5, Noise(0.0, 8)).answer is Judgement.STEADY
    assert judged(MEMORY, [64.0] * 5, [70.0] * 5, Noise(0.0, 8)).answer is Judgement.WORSE


def test_noise_and_how_many_launches_it_takes():
    # Noise raises what counts and how many launches it takes.
    loud = of(10.0, 10.2, Noise(0.05, 30))
    assert loud.answer is Judgement.CANNOT_TELL
    assert loud.limit == pytest.approx(3 * 0.05 * math.sqrt(2 / 8))
    assert (loud.required, loud.required_both) == (None, None)  # not even forty a side
    assert loud.least_shown is not None
    assert loud.least_shown > loud.limit
    # Few launches show what is plain but never that nothing changed.
    assert of(10.0, 25.0, count=3).answer is Judgement.WORSE
    assert of(10.0, 13.0, count=3).answer is Judgement.CANNOT_TELL  # two slow modes of a machine
    assert of(10.0, 10.0, count=3).answer is Judgement.CANNOT_TELL
    few = of(10.0, 10.0, count=4)
    assert (few.required, few.required_both) == (None, 5)  # the baseline's are too few as well
    found = judged(LATENCY, launches(10.0), launches(10.0, count=3, seed=1), QUIET)
    assert (found.answer, found.required) == (Judgement.CANNOT_TELL, 5)
    # Older launches were within 0.2 %, these are at two levels: nothing is known of them.
    quiet = Noise(0.002, 300)
    found = judged(LATENCY, [8.0] * 5, [8.0, 8.01, 10.0, 10.1, 10.05], quiet, 0.1)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.worse_by > 0.1
    # An interval that stays within what is asked shows that nothing changed.
    found = judged(LATENCY, launches(10.0, 0.01), launches(10.0, 0.01, seed=1), Noise(0.04, 5), 0.2)
    assert found.high is not None
    assert found.high < 0.2
    assert found.answer is Judgement.STEADY
    # Wild launches have an interval that can be told.
    for metric in METRICS:
        found = judged(metric, [8.0, 30.0], [8.0, 8.1], Noise(0.9, 2))
        assert found.answer is Judgement.CANNOT_TELL
        assert change(found)


def test_a_single_launch_and_its_memory():
    # A single launch has the plain threshold alone.
    assert judged(LATENCY, [10.0], [10.0], None).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [10.8], None).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [11.2], None).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [10.8], None, 0.05).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [13.2], None).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [13.4], None).answer is Judgement.WORSE
    assert judged(LATENCY, [10.0], [7.4], None).answer is Judgement.BETTER
    assert judged(THROUGHPUT, [100.0], [92.0], None).answer is Judgement.CANNOT_TELL
    assert judged(THROUGHPUT, [100.0], [74.0], None).answer is Judgement.WORSE
    assert judged(LATENCY, [10.0], [25.0], None, 2.0).answer is Judgement.CANNOT_TELL
    found = judged(LATENCY, [10.0], [11.2, 11.3, 11.1], None)
    assert found.plain
    assert (found.launches, found.low) == ((1, 3), None)
    # Of 276 pairs of launches of one thing, 8 differed by more than 10 %: one by 38 %.
    assert judged(MEMORY, [100.0], [138.0], None).answer is Judgement.CANNOT_TELL
    assert judged(MEMORY, [100.0], [72.0], None).answer is Judgement.CANNOT_TELL
    assert judged(MEMORY, [100.0], [201.0], None, settled=False).answer is Judgement.WORSE
    assert judged(MEMORY, [100.0], [108.0], None, settled=False).answer is Judgement.CANNOT_TELL
    # Memory of one allocator is the same in every launch.
    rows = [{"memory_peak_mb": 1.0, "memory_source": "torch.cuda allocator"}] * 2
    exact = MEMORY.common(rows)
    assert exact is not None
    assert exact.exact
    assert judged(exact, [100.0], [112.0], None).answer is Judgement.WORSE
    mixed = MEMORY.common([rows[0], {**rows[0], "memory_source": "VmHWM"}])
    assert mixed is not None
    assert not mixed.exact


@pytest.mark.parametrize("count", [1, 4])
def test_a_launch_that_its_own_samples_do_not_bear_out_turns_nothing_red(count):
    slow = launches(30.0, count=count, seed=1)
    found = judged(LATENCY, launches(10.0, count=count), slow, QUIET, settled=False)
    assert found.answer is Judgement.CANNOT_TELL
    found = judged(LATENCY, launches(10.0, count=count), slow, QUIET)
    assert found.answer is Judgement.WORSE


def test_changes_between_runs():
    found = judged(LATENCY, launches(10.0), launches(11.0, seed=1), QUIET, settled=False)
    assert found.answer is Judgement.WORSE
    # The launches show 6 %: a change within one run, and unknown between two without a history.
    before, now = launches(10.0), launches(10.6, seed=1)
    assert judged(LATENCY, before, now, QUIET).answer is Judgement.WORSE
    found = judged(LATENCY, before, now, QUIET, runs=KNOWN)
    assert found.answer is Judgement.CANNOT_TELL
    assert found.low is not None
    assert found.low < 0.0
    assert found.required is None  # more launches would not tell
    assert found.required_both is None
    much = launches(10.8, seed=1)
    assert judged(LATENCY, before, much, QUIET, runs=KNOWN).answer is Judgement.WORSE
    quiet = find_gate_noise([launches(10.0, seed=n) for n in range(12)])
    assert judged(LATENCY, before, now, QUIET, runs=quiet).answer is Judgement.WORSE
    # That nothing changed between runs wants room below the threshold.
    before, now = launches(10.0), launches(10.5, seed=1)
    assert judged(LATENCY, before, now, QUIET, 0.1, KNOWN).answer is Judgement.STEADY
    assert judged(LATENCY, before, now, QUIET, 0.06, KNOWN).answer is Judgement.CANNOT_TELL


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("metric", [LATENCY, MEMORY])
def test_what_so_many_launches_find_is_above_what_counts(metric, count):
    values = launches(10.0, count=count)
    found = judged(metric, values, values, Noise(0.01, 30), runs=KNOWN)
    assert found.least_shown is not None
    assert found.least_shown > found.limit


@pytest.mark.parametrize("count", [5, 10, 40])
def test_between_runs_the_limit_is_that_of_a_one_sided_test(count):
    """Twice the variance of runs and that of the launches' means, and not three times the noise."""
    found = judged(
        LATENCY,
        launches(10.0, count=count),
        launches(10.0, count=count),
        Noise(0.02, 300),
        runs=KNOWN,
    )
    n = independent_count(launches(10.0, count=count))
    error = math.sqrt(2 * 0.02**2 + 0.02**2 * 2 / n)
    freedom = error**4 / ((0.02**2 * 2 / n) ** 2 / (2 * n - 2))  # Welch and Satterthwaite
    limit = stats.t.ppf(0.99, freedom) * error
    assert math.log1p(found.limit) == pytest.approx(limit, rel=1e-5)
    assert found.least_shown is not None
    power = limit + stats.t.ppf(0.8, freedom) * error
    assert math.log1p(found.least_shown) == pytest.approx(power, rel=1e-5)


def test_limits_between_runs_of_ten_launches():
    # Launches that agree to the last digit: only the known deviation of runs is left.
    found = judged(LATENCY, [10.0] * 5, [10.7] * 5, Noise(0.0, 8), runs=KNOWN)
    reach = stats.norm.ppf(0.99) * 0.02 * math.sqrt(2)
    assert found.low is not None
    assert found.high is not None
    assert math.log1p(found.low) == pytest.approx(math.log(1.07) - reach, abs=1e-6)
    assert math.log1p(found.high) == pytest.approx(math.log(1.07) + reach, abs=1e-6)
    assert found.answer is Judgement.WORSE
    found = judged(LATENCY, [10.7] * 5, [10.0] * 5, Noise(0.0, 8), runs=KNOWN)
    assert found.answer is Judgement.BETTER
    # 6.8 % exceeds z at 99 %, and not z at 99.5 %.
    assert reach < math.log(1.07) < stats.norm.ppf(0.995) * 0.02 * math.sqrt(2)
    # Ten launches without a history find ten percent.
    found = simulate(600, 10, 0.02, (0.0, 0.1, 0.15, -0.15), KNOWN)
    assert share(found, 1, Judgement.WORSE) >= 0.75
    assert share(found, 2, Judgement.WORSE) >= 0.98
    assert share(found, 3, Judgement.BETTER) >= 0.98
    # 1 % of 600 are 6; 13 would be beyond three standard errors.
    assert share(found, 0, Judgement.WORSE) <= 13 / 600
    assert share(found, 0, Judgement.BETTER) <= 13 / 600
    assert share(found, 0, Judgement.STEADY) == 0.0  # 3 % is found in no more than a fifth of cases


@pytest.mark.parametrize(("threshold", "answer"), [(0.09, "can't tell"), (0.1, "no change shown")])
def test_no_change_is_shown_only_if_the_threshold_would_have_been_found(threshold, answer):
    """Of two runs that differ by 2 % a change of 9.4 % is found in four of five cases."""
    same = [10.0] * 10
    found = judged(LATENCY, same, same, Noise(0.0, 18), threshold, KNOWN)
    assert found.answer == answer
    assert found.worse_by == 0.0
    assert found.required_both == (None if answer == "can't tell" else 5)


def simulate(
    trials: int, count: int, deviation: float, shifts: Sequence[float], runs: Noise
) -> list[list[Judged]]:
    """Judge two runs with launches that differ by 2 %, at each shift."""
    rng = np.random.default_rng([count, trials])
    found = []
    for _ in range(trials):
        before, now = (
            np.exp(rng.normal(0.0, deviation) + rng.normal(0.0, 0.02, count)) for _ in range(2)
        )
        noise = pool_runs([before.tolist(), now.tolist()])
        found.append(
            [
                judged(LATENCY, before.tolist(), (now * (1 + shift)).tolist(), noise, None, runs)
                for shift in shifts
            ]
        )
    return found


def share(found: Sequence[Sequence[Judged]], at: int, answer: Judgement) -> float:
    return sum(one[at].answer is answer for one in found) / len(found)


@pytest.mark.parametrize(("count", "deviation"), [(5, 0.02), (10, 0.02), (40, 0.02), (10, 0.005)])
def test_the_printed_change_is_found_in_four_of_five_cases(count, deviation):
    runs = Noise(deviation, math.inf)
    printed = UnpairedPower(0.02, count, count, runs).detectable()
    assert printed is not None
    found = simulate(600, count, deviation, [printed], runs)
    # Three standard errors of 600 trials are 4.9 %.
    assert share(found, 0, Judgement.WORSE) == pytest.approx(0.8, abs=0.05)


def test_a_single_launch_never_shows_that_nothing_changed():
    found = simulate(300, 1, 0.02, (0.0, 0.05, 0.105, 0.15), KNOWN)
    assert {one.answer for each in found for one in each} == {Judgement.CANNOT_TELL}


@given(
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
    st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8),
)
def test_the_interval_is_welchs(before, now):
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
def test_pooled_noise_is_the_spread_within_runs(runs):
    centered = [np.log(run) - np.log(run).mean() for run in runs]
    freedom = sum(len(run) - 1 for run in runs)
    found = pool_runs(runs)
    if freedom == 0:
        assert found is None
        return
    assert found is not None
    wanted = math.sqrt(sum(float(one @ one) for one in centered) / freedom)
    assert found.freedom == freedom
    assert found.value == pytest.approx(wanted, abs=1e-12)


def test_how_noise_is_estimated_and_shown():
    # Several estimates of noise count by what they rest on.
    assert pool_noise([]) is None
    found = pool_noise([Noise(0.01, 30), Noise(0.02, 10)])
    assert found == Noise(pytest.approx(math.sqrt((30 * 1e-4 + 10 * 4e-4) / 40)), 40)
    # Forty launches on a machine that wanders tell less than forty of one that does not.
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
    # The middle of launches is one thing for the figure, its change and the interval.
    uneven = [1.0] * 6 + [0.9] * 4
    found = judged(LATENCY, uneven, [1.0] * 6 + [1.1] * 4, Noise(0.05, 18))
    assert found.worse_by == pytest.approx(found.now / found.before - 1.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.worse_by < found.high
    rate = judged(THROUGHPUT, [115.0], [607.0, 17.1], None)
    assert (rate.answer, rate.now < rate.before) == (Judgement.WORSE, True)
    # A threshold is part of what is found.
    found = judged(LATENCY, launches(1.0), launches(1.05, seed=1), QUIET, 0.1)
    assert found.answer is Judgement.STEADY
    assert found.least_shown is not None
    assert found.least_shown > 0.1


@pytest.mark.parametrize(("now", "answer"), [(10.7, "no change shown"), (10.8, "can't tell")])
def test_no_change_leaves_room_for_chance_below_the_threshold(now, answer):
    """Below 9.5 %, as a logarithm, by 0.84 of √2 times 2 %."""
    assert judged(LATENCY, [10.0] * 10, [now] * 10, Noise(0.0, 18), 0.1, KNOWN).answer == answer


def test_no_change_and_single_launches():
    # No change has the power of the louder launches.
    loud = launches(10.0, 0.15, 5)
    for noise in (Noise(0.001, 300), Noise(0.05, 300)):
        assert judged(LATENCY, loud, loud, noise, 0.1).answer is Judgement.CANNOT_TELL
    quiet = launches(10.0, 0.001, 5)
    assert judged(LATENCY, quiet, quiet, Noise(0.001, 300), 0.1).answer is Judgement.STEADY
    # Runs that differ by 30 %: four times √2 times that is a factor of 5.5.
    noisy = Noise(0.3, math.inf)
    assert judged(LATENCY, [10.0], [54.0], None, runs=noisy).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [55.0], None, runs=noisy).answer is Judgement.WORSE


def test_few_launches_have_the_limit_of_the_prior():
    # Four times √2 times 5 % is 32.7 %; a history that is noisier replaces the prior.
    limit = math.expm1(4 * math.sqrt(2) * 0.05)
    for runs in (None, KNOWN, Noise(0.03, 40)):
        for metric, factor in ((LATENCY, 1.0 + limit), (THROUGHPUT, 1.0 / (1.0 + limit))):
            below, beyond = factor**0.99, factor**1.01
            found = judged(metric, [10.0], [10.0 * below], None, 0.1, runs)
            assert (found.answer, found.limit) == (Judgement.CANNOT_TELL, pytest.approx(limit))
            assert judged(metric, [10.0], [10.0 * beyond], None, 0.1, runs).answer == "worse"
            assert judged(metric, [10.0 * beyond], [10.0], None, 0.1, runs).answer == "better"
    noisy = judged(LATENCY, [10.0], [13.5], Noise(0.06, 40), 0.1, Noise(0.08, 40))
    assert noisy.answer is Judgement.CANNOT_TELL
    assert noisy.limit == pytest.approx(math.expm1(4 * math.sqrt(2) * 0.1))  # 6 % and 8 %
    assert judged(LATENCY, [10.0], [14.9], None, 0.5).answer is Judgement.CANNOT_TELL
    assert judged(LATENCY, [10.0], [14.0], None, settled=False).answer is Judgement.CANNOT_TELL
    # Two launches a side have the limit of single ones.
    before, now = launches(10.0, count=2), launches(14.0, count=2, seed=1)
    assert judged(LATENCY, before, now, QUIET, 0.1, KNOWN).answer is Judgement.WORSE
    now = launches(13.0, count=2, seed=1)
    assert judged(LATENCY, before, now, QUIET, 0.1, KNOWN).answer is Judgement.CANNOT_TELL


@pytest.mark.parametrize(("launch", "run"), [(0.05, 0.0), (0.045, 0.02), (0.02, 0.02)])
def test_single_launches_alarm_rarely_though_one_in_fifty_is_outlying(launch, run):
    """All at once: the limit depends only on the prior."""
    rng = np.random.default_rng(0)
    sides = rng.normal(0.0, math.hypot(launch, run), (2, 200_000))
    sides += math.log(1.3) * (rng.random(sides.shape) < 0.02)
    limit = judged(LATENCY, [10.0], [10.0], None, 0.1, KNOWN).limit
    assert np.mean(sides[1] - sides[0] > math.log1p(limit)) <= 0.01

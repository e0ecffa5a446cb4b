import numpy as np
import pytest
from known_series import CENTER, ar1

from accelbench.core.words import Quality
from accelbench.measure.bootstrap import Interval, median_interval
from accelbench.measure.stopping import Decision, StoppingRule, sample_warnings

S = 10**9


def run(rule, samples):
    """Sample until the rule stops; time passes as the samples say. Returns decision, n and s."""
    n, elapsed, previous = 0, 0, None
    while True:
        step_ns = float(np.median(samples[:n])) if n else float(samples[0])
        n += rule.next_block(n, elapsed, step_ns)
        elapsed = int(sum(samples[:n]))
        decision = rule.decide(samples[:n], elapsed, previous)
        if decision.stop:
            return decision, n, elapsed / S
        previous = decision.interval


def test_looks_double():
    rule = StoppingRule()
    assert [rule.next_look(n) for n in (0, 29, 30, 59, 60, 61, 120)] == [
        30,
        30,
        60,
        60,
        120,
        120,
        240,
    ]


def test_a_quiet_case_converges_at_the_first_look():
    decision, n, _ = run(StoppingRule(), ar1(100, 0.0, 1, relative=0.002))
    assert (decision.quality, n) == (Quality.CONVERGED, 30)
    assert decision.interval.relative_half_width(CENTER) <= 0.01


def test_equal_samples_converge():
    decision, n, _ = run(StoppingRule(), [10**7] * 30)
    assert (decision.quality, n, decision.interval) == (
        Quality.CONVERGED,
        30,
        Interval(10**7, 10**7),
    )


def test_a_noisy_case_takes_more_samples_until_it_is_narrow_enough():
    sizes = {}
    for seed in range(30):
        decision, n, _ = run(StoppingRule(), ar1(2000, 0.5, seed, relative=0.04))
        if decision.quality is Quality.CONVERGED:
            assert decision.interval.relative_half_width(CENTER) <= 0.0105
        sizes[n] = sizes.get(n, 0) + 1
    assert set(sizes) <= {30 * 2**k for k in range(7)}
    assert sum(count for n, count in sizes.items() if n >= 120) >= 15


def test_noise_that_more_samples_do_not_average_out_ends_it():
    # A random walk: twice the samples know no more.
    walk = CENTER * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 0.02, 2000)))
    decision, n, _ = run(StoppingRule(), walk)
    assert decision.quality is Quality.NOISE_LIMITED
    assert n <= 240


def test_the_width_must_fall_by_ten_per_cent_over_a_doubling():
    samples = ar1(60, 0.0, 4, relative=0.2)
    now = median_interval(samples)
    wider = Interval(CENTER - now.half_width / 0.89, CENTER + now.half_width / 0.89)
    close = Interval(CENTER - now.half_width / 0.91, CENTER + now.half_width / 0.91)
    assert StoppingRule().decide(samples, S, wider) == Decision(False, None, now)
    assert StoppingRule().decide(samples, S, close) == Decision(True, Quality.NOISE_LIMITED, now)
    assert StoppingRule().decide(samples, S, None) == Decision(False, None, now)


def test_between_looks_nothing_is_looked_at():
    quiet, before = [10**7] * 45, Interval(1, 2)
    assert StoppingRule().decide(quiet, S, before) == Decision(False, None, before)
    assert StoppingRule().decide(quiet[:29], S, None) == Decision(False, None, None)


def test_the_time_limit_bites_between_looks():
    # 0.3 s a step: 30 take 9 s, and 60 would take 18.
    decision, n, seconds = run(StoppingRule(), 0.3e9 * ar1(60, 0, 2, 0.1) / CENTER)
    assert decision.quality is Quality.TIME_LIMITED
    assert 30 < n < 40
    assert 10 <= seconds < 10.5
    assert decision.interval is not None


def test_out_of_time_with_a_narrow_interval_is_converged_only_from_thirty_on():
    narrow = ar1(45, 0, 1, relative=0.001)
    assert StoppingRule().decide(narrow, 10 * S, None).quality is Quality.CONVERGED
    assert StoppingRule().decide(narrow[:29], 10 * S, None).quality is Quality.TIME_LIMITED


@pytest.mark.parametrize(
    ("seconds", "samples"), [(0.5, 20), (1, 10), (1.5, 7), (2, 5), (4, 5), (60, 5)]
)
def test_slow_steps_get_five_to_ten_samples(seconds, samples):
    decision, n, _ = run(StoppingRule(), [int(seconds * S)] * 100)
    assert n == samples
    assert decision.quality is Quality.TIME_LIMITED


def test_four_samples_are_never_enough_whatever_the_time():
    assert StoppingRule().decide([60 * S] * 4, 240 * S, None) == Decision(False, None, None)


@pytest.mark.parametrize("fixed", [1, 3, 10, 50])
def test_a_fixed_number_is_exact_whatever_the_time(fixed):
    decision, n, _ = run(StoppingRule(fixed=fixed), [4 * S] * 100)
    assert n == fixed
    known = fixed >= 5
    assert decision.quality is (Quality.CONVERGED if known else Quality.NOISE_LIMITED)
    assert (decision.interval is not None) == known


def test_a_fixed_number_of_noisy_samples_is_noise_limited():
    decision, n, _ = run(StoppingRule(fixed=50), ar1(50, 0.5, 1, relative=0.2))
    assert (decision.quality, n) == (Quality.NOISE_LIMITED, 50)
    part = StoppingRule(fixed=50).decide([1] * 49, 0, Interval(1, 2))
    assert part == Decision(False, None, Interval(1, 2))


def test_the_interval_on_which_it_stopped_still_covers():
    """Looking repeatedly and stopping when narrow must not select lucky intervals."""
    covered = []
    for seed in range(300):
        decision, _, _ = run(StoppingRule(), ar1(2000, 0.75, seed, relative=0.03))
        covered.append(decision.interval.low <= CENTER <= decision.interval.high)
    assert np.mean(covered) >= 0.88


def test_a_block_ends_at_the_next_look_or_with_the_time():
    rule = StoppingRule()
    assert rule.next_block(0, 0, 1e6) == 30
    assert rule.next_block(30, S, 1e6) == 30
    assert rule.next_block(40, 9 * S, 1e6) == 20
    assert rule.next_block(30, 9 * S, 0.3e9) == 4
    assert rule.next_block(0, 0, 4e9) == 5  # three fill the time, five are the least
    assert rule.next_block(7, 11 * S, 1e9) == 1
    assert StoppingRule(fixed=50).next_block(20, 99 * S, 1e9) == 30


def test_few_samples_are_flagged():
    assert sample_warnings(30) == ()
    assert "Only 29 samples where 30 are the minimum" in sample_warnings(29)[0]
    assert "too few to say" in sample_warnings(4)[0]
    assert "Only 1 sample where" in sample_warnings(1)[0]
    assert "rough" in sample_warnings(5)[0]

import numpy as np
import pytest
from known_series import CENTER, ar1, two_modes, two_modes_median

from accelbench.core.vocabulary import Quality
from accelbench.measure.intervals import Interval, median_interval
from accelbench.measure.stopping import Decision, StoppingRule, limit_quality, sample_warnings

S = 10**9


def run(rule, samples):
    """Sample until the rule stops; time passes as the samples say. Returns decision, n and s."""
    n, elapsed, decision = 0, 0, None
    while True:
        step_ns = float(np.median(samples[:n])) if n else float(samples[0])
        n += rule.next_block(n, elapsed, step_ns)
        elapsed = int(sum(samples[:n]))
        decision = rule.decide(samples[:n], elapsed, decision)
        if decision.stop:
            return decision, n, elapsed / S


def test_quiet_cases_converge_at_the_first_look():
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

    decision, n, _ = run(StoppingRule(), ar1(100, 0.0, 1, relative=0.002))
    assert (decision.quality, n) == (Quality.CONVERGED, 30)
    assert decision.interval.relative_half_width(CENTER) <= 0.01

    decision, n, _ = run(StoppingRule(), [10**7] * 30)
    assert (decision.quality, n, decision.interval) == (
        Quality.CONVERGED,
        30,
        Interval(10**7, 10**7),
    )

    assert sample_warnings(30) == ()
    assert "Only 29 samples, fewer than the minimum of 30" in sample_warnings(29)[0]
    assert "too few for an interval" in sample_warnings(4)[0]
    assert "Only 1 sample, fewer" in sample_warnings(1)[0]
    assert "rough" in sample_warnings(5)[0]


def test_a_noisy_case_takes_more_samples_until_it_is_narrow_enough():
    sizes = {}
    for seed in range(30):
        decision, n, _ = run(StoppingRule(), ar1(2000, 0.5, seed, relative=0.04))
        if decision.quality is Quality.CONVERGED:
            assert decision.interval.relative_half_width(CENTER) <= 0.0105
        sizes[n] = sizes.get(n, 0) + 1
    assert set(sizes) <= {30 * 2**k for k in range(7)}
    assert sum(count for n, count in sizes.items() if n >= 120) >= 15


def modes(n, slower, seed=0):
    """Independent samples of two modes, half of each: between them no median is found."""
    random = np.random.default_rng(seed)
    return CENTER * np.where(random.random(n) < 0.5, 1.0, slower) * random.normal(1, 0.02, n)


def test_noise_ends_it_after_a_second():
    decision, n, seconds = run(StoppingRule(), modes(4000, 1.3))
    assert decision.quality is Quality.NOISE_LIMITED
    assert decision.stalls == 2
    assert n >= 120
    assert seconds >= 1

    decision, n, seconds = run(StoppingRule(), modes(4000, 1.3) / 10)
    assert decision.quality is Quality.NOISE_LIMITED
    assert n >= 960  # of 1.15 ms: the first look beyond a second
    assert 1 <= seconds < 10

    # Fewer than 30 samples of it are independent, however many are taken.
    walk = CENTER * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 0.02, 2000)))
    decision, _, seconds = run(StoppingRule(), walk)
    assert decision.quality in (Quality.TIME_LIMITED, Quality.UNUSABLE)
    assert seconds >= 10


def test_two_looks_in_a_row_have_to_narrow_by_less_than_ten_per_cent():
    samples = ar1(240, 0.0, 4, relative=0.2)
    now = median_interval(samples)

    def before(narrowed, stalls):
        half = now.half_width / narrowed
        return Decision(False, None, Interval(CENTER - half, CENTER + half), stalls)

    rule = StoppingRule()
    assert rule.decide(samples, S, before(0.89, 1)) == Decision(False, None, now, 0)
    assert rule.decide(samples, S, before(0.91, 0)) == Decision(False, None, now, 1)
    assert rule.decide(samples, S, before(0.91, 1)) == Decision(True, Quality.NOISE_LIMITED, now, 2)
    assert rule.decide(samples, S - 1, before(0.91, 1)) == Decision(False, None, now, 2)
    assert rule.decide(samples, S, None) == Decision(False, None, now, 0)


def test_series_that_switch_are_not_ended_by_what_was_seen_first():
    """Seven in ten ended after 60 samples, their intervals covered 0.79."""
    covered, sizes = [], []
    for seed in range(60):
        decision, n, _ = run(StoppingRule(), two_modes(2000, 20, 0.7, seed))
        covered.append(decision.interval.low <= two_modes_median(0.7) <= decision.interval.high)
        sizes.append(n)
    assert np.mean(covered) >= 0.92
    assert min(sizes) >= 120


@pytest.mark.parametrize(
    ("slower", "quality"), [(1.3, Quality.NOISE_LIMITED), (10, Quality.UNUSABLE)]
)
def test_noise_is_one_thing_and_no_figure_at_all_another(slower, quality):
    assert run(StoppingRule(), modes(4000, slower))[0].quality is quality
    assert run(StoppingRule(fixed=50), modes(50, slower))[0].quality in (quality, Quality.FIXED)


def test_few_samples_and_wide_intervals():
    at = Decision(True, None, Interval(75.0, 125.0))
    assert limit_quality(Quality.TIME_LIMITED, at, 100.0) is Quality.TIME_LIMITED
    assert limit_quality(Quality.TIME_LIMITED, at, 99.9) is Quality.UNUSABLE
    assert limit_quality(Quality.FIXED, Decision(True), 99.9) is Quality.FIXED

    # Of AR(1) series with lag-1 0.95, whose first steps are alike, intervals covered 0.7.
    covered = []
    for seed in range(150):
        decision, _, _ = run(StoppingRule(), ar1(4000, 0.95, seed, relative=0.01) / 10)
        covered.append(decision.interval.low <= CENTER / 10 <= decision.interval.high)
    assert np.mean(covered) >= 0.92

    quiet, before = [10**7] * 45, Decision(False, None, Interval(1, 2), 1)
    assert StoppingRule().decide(quiet, S, before) == before
    assert StoppingRule().decide(quiet[:29], S, None) == Decision(False, None, None)

    # 0.3 s a step: 30 take 9 s, and 60 would take 18.
    decision, n, seconds = run(StoppingRule(), 0.3e9 * ar1(60, 0, 2, 0.1) / CENTER)
    assert decision.quality is Quality.TIME_LIMITED
    assert 30 < n < 40
    assert 10 <= seconds < 10.5
    assert decision.interval is not None

    narrow = ar1(45, 0, 1, relative=0.001)
    assert StoppingRule().decide(narrow, 10 * S, None).quality is Quality.CONVERGED
    assert StoppingRule().decide(narrow[:29], 10 * S, None).quality is Quality.TIME_LIMITED
    assert StoppingRule().decide([60 * S] * 4, 240 * S, None) == Decision(False, None, None)


@pytest.mark.parametrize(
    ("seconds", "samples"), [(0.5, 20), (1, 10), (1.5, 7), (2, 5), (4, 5), (60, 5)]
)
def test_slow_steps_get_five_to_ten_samples(seconds, samples):
    decision, n, _ = run(StoppingRule(), [int(seconds * S)] * 100)
    assert n == samples
    assert decision.quality is Quality.TIME_LIMITED


@pytest.mark.parametrize("fixed", [1, 3, 10, 50])
def test_a_fixed_number_is_exact_whatever_the_time(fixed):
    decision, n, _ = run(StoppingRule(fixed=fixed), [4 * S] * 100)
    assert n == fixed
    assert decision.quality is Quality.FIXED
    assert (decision.interval is not None) == (fixed >= 5)


def test_a_fixed_number_is_fixed_however_noisy_up_to_where_it_is_of_no_use():
    rule = StoppingRule(fixed=50)
    assert run(rule, ar1(50, 0.5, 1, relative=0.2))[0].quality is Quality.FIXED
    assert run(rule, ar1(50, 0.5, 1, relative=0.9))[0].quality is Quality.UNUSABLE
    few = run(StoppingRule(fixed=29), ar1(50, 0.5, 1, relative=0.9))[0]
    assert few.quality is Quality.FIXED  # from the fastest to the slowest, which says little
    before = Decision(False, None, Interval(1, 2))
    assert rule.decide([1] * 49, 0, before) == before


def test_the_interval_on_which_it_stopped_still_covers():
    """Looking repeatedly and stopping when narrow must not select lucky intervals."""
    covered = []
    for seed in range(300):
        decision, _, _ = run(StoppingRule(), ar1(2000, 0.75, seed, relative=0.03))
        covered.append(decision.interval.low <= CENTER <= decision.interval.high)
    assert np.mean(covered) >= 0.92


def test_a_block_ends_at_the_next_look_or_with_the_time():
    rule = StoppingRule()
    assert rule.next_block(0, 0, 1e6) == 30
    assert rule.next_block(30, S, 1e6) == 30
    assert rule.next_block(40, 9 * S, 1e6) == 20
    assert rule.next_block(30, 9 * S, 0.3e9) == 4
    assert rule.next_block(0, 0, 4e9) == 5  # three fill the time, five are the least
    assert rule.next_block(7, 11 * S, 1e9) == 1
    assert StoppingRule(fixed=50).next_block(20, 99 * S, 1e9) == 30


def test_a_mean_that_a_slow_block_widens_goes_on_although_its_median_is_narrow():
    samples = [1000 + n % 7 for n in range(59)] + [60_000]
    rule = StoppingRule()
    assert rule.decide(samples, S, None).quality is Quality.CONVERGED
    assert not rule.decide(samples, S, None, shows_mean=True).stop
    more = [1000 + n % 7 for n in range(59 + 120_000)] + [60_000]
    limit = rule.time_limit_ns
    assert rule.decide(more, limit, None, shows_mean=True).quality is Quality.CONVERGED

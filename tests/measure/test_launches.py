import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.measure.launch_verdicts import (
    ComparisonAnswer,
    aa_noise,
    abba_order,
    least_effect,
    minimum_detectable_effect,
    paired_interval,
    required_launches,
    verdict,
)

medians = st.lists(st.floats(1e3, 1e9), min_size=2, max_size=40)


def launches(random, k, noise=0.03, effect=0.0, drift=0.0):
    """Medians of k interleaved launches a side: launch noise, and a machine that drifts."""
    clock = {"a": [], "b": []}
    for i, arm in enumerate(abba_order(k)):
        level = 1e7 * (1 + drift * i / (2 * k)) * ((1 + effect) if arm == "b" else 1)
        clock[arm].append(level * math.exp(random.normal(0, noise)))
    return clock["a"], clock["b"]


def test_launches_in_turns():
    assert "".join(abba_order(1)) == "ab"
    assert "".join(abba_order(2)) == "abba"
    assert "".join(abba_order(5)) == "abbaabbaab"
    assert abba_order(40).count("a") == abba_order(40).count("b") == 40
    with pytest.raises(ValueError, match="at least one"):
        abba_order(0)

    random = np.random.default_rng(0)
    a, b = launches(random, 10, noise=1e-6, drift=0.5)
    assert paired_interval(a, b).ratio == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("k", [5, 10, 20])
def test_simulated_launches_are_covered(k):
    random = np.random.default_rng(k)
    hits = 0
    for _ in range(1500):
        found = paired_interval(*launches(random, k, effect=0.08))
        hits += found.low <= 1.08 <= found.high
    assert 0.93 <= hits / 1500 <= 0.97


def test_an_aa_comparison_claims_nothing():
    random = np.random.default_rng(1)
    k = required_launches(0.02)
    answers = [verdict(*launches(random, k, noise=0.02), noise=0.02).answer for _ in range(1000)]
    assert set(answers) <= {
        ComparisonAnswer.NO_DIFFERENCE,
        ComparisonAnswer.FASTER,
        ComparisonAnswer.SLOWER,
    }
    assert np.mean([answer is not ComparisonAnswer.NO_DIFFERENCE for answer in answers]) <= 0.01


@pytest.mark.parametrize(("k", "noise"), [(6, 0.03), (10, 0.01), (14, 0.02), (20, 0.05)])
def test_the_minimum_detectable_effect_is_found_with_its_power(k, noise):
    random = np.random.default_rng(2)
    effect = minimum_detectable_effect(k, noise)
    found = []
    for _ in range(600):
        outcome = verdict(*launches(random, k, noise, effect), noise)
        shown = outcome.interval.p_value < 0.01
        past = math.log(outcome.interval.ratio) > math.log1p(least_effect(k, noise))
        found.append(shown and past)
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_a_verdict_needs_enough_launches_and_an_effect_past_the_floor():
    a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2]
    assert verdict(a, [0.8 * x for x in a], noise=0.01).answer is ComparisonAnswer.FASTER
    assert verdict(a, [1.2 * x for x in a], noise=0.01).answer is ComparisonAnswer.SLOWER
    assert verdict(a, a, noise=0.01).answer is ComparisonAnswer.NO_DIFFERENCE
    assert verdict(a, a, noise=0.01).answer == "no difference shown"

    a = [100.0 + i / 100 for i in range(10)]
    found = verdict(a, [1.029 * x for x in a], noise=0.01)
    assert found.interval.p_value < 1e-9
    assert found.answer is ComparisonAnswer.NO_DIFFERENCE
    assert verdict(a, [1.031 * x for x in a], noise=0.01).answer is ComparisonAnswer.SLOWER

    # Five pairs agree on 8 % by chance, where an A/A comparison is known to swing by 9.5 %.
    a = [100.0] * 40
    found = verdict(a, [108.0 + i / 1000 for i in range(40)], noise=0.2)
    assert found.least_effect == pytest.approx(3 * 0.2 * math.sqrt(2 / 40))
    assert found.answer is ComparisonAnswer.NO_DIFFERENCE

    found = verdict([100.0] * 4, [50.0, 51.0, 50.5, 49.5], noise=0.02)
    assert found.answer is ComparisonAnswer.CANNOT_TELL
    assert found.required == required_launches(0.02) > 4
    assert found.minimum_detectable_effect == minimum_detectable_effect(4, 0.02) > 0.05
    one = verdict([100.0], [50.0], noise=0.02)
    assert one.answer == "can't tell"
    assert one.interval is None
    assert one.minimum_detectable_effect is None
    assert verdict([], [], noise=0.02).answer is ComparisonAnswer.CANNOT_TELL


def test_launches_that_are_required():
    needed = [required_launches(noise) for noise in (0, 0.001, 0.01, 0.02, 0.03, 0.05, 0.5)]
    assert needed == sorted(needed)
    assert needed[0] == 5
    assert needed[-1] == 40
    assert 10 <= required_launches(0.02) <= 16
    assert required_launches(0.03, effect=0.10) < required_launches(0.03)

    assert aa_noise([5.0]) is None

    a = [1.0, 2.0, 4.0]
    same, double = paired_interval(a, a), paired_interval(a, [2.0, 4.0, 8.0])
    assert (same.ratio, same.low, same.high, same.p_value) == (1, 1, 1, 1)
    assert double.ratio == pytest.approx(2)
    assert double.p_value < 1e-10

    with pytest.raises(ValueError, match="pairs"):
        paired_interval([1.0, 2.0], [1.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_a_time_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="positive"):
        paired_interval([1.0, bad], [1.0, 1.0])


@given(medians, st.sampled_from([1e-6, 0.5, 3.0]))
def test_the_unit_does_not_matter_and_swapping_inverts(row, unit):
    other = row[::-1]
    found = paired_interval(row, other)
    scaled = paired_interval([x * unit for x in row], [x * unit for x in other])
    swapped = paired_interval(other, row)
    assert scaled.ratio == pytest.approx(found.ratio, rel=1e-9)
    assert swapped.ratio == pytest.approx(1 / found.ratio, rel=1e-9)
    assert found.low <= found.ratio <= found.high

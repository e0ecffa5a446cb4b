"""Steps, spikes and drift: found where they were put, and nowhere else."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accelbench.measure import changes
from accelbench.measure.changes import find_changes, find_changes_in_all


def series(*levels, noise=0.01, seed=0):
    """So many points at each level, with noise."""
    flat = [level for count, level in levels for _ in range(count)]
    drawn = np.random.default_rng(seed).normal(0.0, noise, len(flat))
    return [level * math.exp(one) for level, one in zip(flat, drawn, strict=True)]


def test_steps_are_found_where_they_are():
    found = find_changes(series((12, 10.0), (10, 10.8)))
    (step,) = found.steps
    assert step.at == 12
    assert step.low < 0.08 < step.high
    assert step.share == pytest.approx(0.08, abs=0.015)
    assert (found.spikes, found.drift, found.unconfirmed) == ((), None, None)
    assert found.noise == pytest.approx(0.01, rel=0.6)

    found = find_changes(series((10, 10.0), (8, 12.0), (9, 9.0)))
    assert [step.at for step in found.steps] == [10, 18]
    assert [step.share > 0 for step in found.steps] == [True, False]

    values = series((20, 10.0))
    values[9] *= 1.3
    found = find_changes(values)
    assert (found.steps, [spike.at for spike in found.spikes]) == ((), [9])
    assert found.spikes[0].share == pytest.approx(0.3, abs=0.04)

    values = series((20, 10.0))
    values[9] *= 1.3
    values[10] *= 1.3
    assert [step.at for step in find_changes(values).steps] == [9, 11]

    found = find_changes([*series((20, 10.0)), 12.0])
    assert found.steps == ()
    assert found.unconfirmed.at == 20
    assert found.unconfirmed.share == pytest.approx(0.2, abs=0.03)
    found = find_changes([*series((20, 10.0)), 12.0, 12.1])
    assert [step.at for step in found.steps] == [20]
    assert found.unconfirmed is None

    values = [10.0 * 1.003**n for n in range(25)]
    noise = series((25, 1.0), noise=0.004)
    found = find_changes([a * b for a, b in zip(values, noise, strict=True)])
    assert found.steps or found.drift
    slow = [10.0 * 1.0015**n * b for n, b in enumerate(series((30, 1.0), noise=0.005))]
    told = find_changes(slow)
    assert told.steps == ()
    assert told.drift.share == pytest.approx(1.0015**29 - 1.0, abs=0.015)
    assert told.drift.since == 0

    values = series((30, 10.0), (30, 10.2), noise=0.002)
    assert find_changes(values).steps == ()
    assert [step.at for step in find_changes(values, least=0.01).steps] == [30]
    assert find_changes([5.0] * 12) == find_changes([7.0] * 12)
    assert find_changes([5.0] * 12).steps == ()
    assert [step.at for step in find_changes([5.0] * 6 + [5.5] * 6).steps] == [6]


@pytest.mark.parametrize("count", [4, 8, 20, 60, 200])
def test_where_nothing_happened_nothing_is_found(count):
    told = [find_changes(series((count, 10.0), seed=seed)) for seed in range(60)]
    assert sum(bool(one.steps) for one in told) == 0
    assert sum(one.drift is not None for one in told) <= 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_points_tell_nothing(count):
    assert find_changes([10.0, 11.0, 10.0][:count]).steps == ()


@settings(deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=9), st.floats(0.05, 0.5))
def test_the_partition_is_the_cheapest_of_all(logs, noise):
    x = np.array(logs)
    price = changes.CUT_PRICE * math.log(len(x))

    def cost(cuts):
        pieces = np.split(x, cuts)
        if any(len(piece) < 2 for piece in pieces):
            return math.inf
        spread = sum(float(((piece - piece.mean()) ** 2).sum()) for piece in pieces)
        return spread / noise**2 + price * len(cuts)

    best = min(
        cost(cuts)
        for count in range(len(x))
        for cuts in itertools.combinations(range(1, len(x)), count)
    )
    assert cost(tuple(changes.find_cuts(x, noise))) == pytest.approx(best, rel=1e-6, abs=1e-6)


@given(st.integers(0, 10_000))
def test_a_step_between_two_levels_is_students(seed):
    values = series((7, 10.0), (9, 13.0), noise=0.02, seed=seed)
    logs = np.log(values)
    (step,) = changes._measure_steps(logs, [7], 1e-9)
    t = stats.ttest_ind(logs[7:], logs[:7], equal_var=True)
    interval = t.confidence_interval(0.999)
    assert step.p_value == pytest.approx(t.pvalue, rel=1e-6)
    assert math.log1p(step.low) == pytest.approx(interval.low, rel=1e-6)
    assert math.log1p(step.high) == pytest.approx(interval.high, rel=1e-6)


@given(st.integers(0, 10_000))
def test_a_drift_is_the_slope_of_a_line(seed):
    rng = np.random.default_rng(seed)
    logs = 0.005 * np.arange(20) + rng.normal(0.0, 0.01, 20)
    wanted = stats.linregress(np.arange(20), logs)
    found = changes._find_drift(logs, np.arange(20), 0.03)
    assert found.share == pytest.approx(math.expm1(wanted.slope * 19))
    assert found.p_value == pytest.approx(wanted.pvalue, rel=1e-5, abs=1e-14)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30))
def test_any_series_has_a_course(values):
    found = find_changes(values)
    places = [step.at for step in found.steps]
    assert places == sorted(set(places))
    assert all(0 < at < len(values) for at in places)
    assert all(abs(math.log1p(step.share)) > math.log1p(0.03) for step in found.steps)


def test_many_series_together_are_told_as_each_alone():
    rng = np.random.default_rng(7)
    several = []
    for noise in (0.0, 0.004, 0.02, 0.2):
        for n in range(1, 27):
            quiet = np.exp(rng.normal(2.0, noise, (4, n)))
            quiet[1, n // 2 :] *= 1.3
            quiet[2, n // 3] *= 1.6
            quiet[3] *= np.exp(np.linspace(0.0, 0.2, n))  # where partitions cost the same
            several += quiet.tolist()
    assert find_changes_in_all(several) == [find_changes(one) for one in several]
    assert find_changes_in_all(several, 0.2) == [find_changes(one, 0.2) for one in several]

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_series import CENTER, ar1, many, two_modes, two_modes_median
from scipy.stats import binom

from accelbench.measure.intervals import Interval, mean_interval, median_estimate, median_interval

rows = st.lists(st.integers(1, 10**9), min_size=5, max_size=60)


def naive_interval(row):
    """The order statistics that enclose the median of *independent* samples with 95 %."""
    n, values = len(row), np.sort(row)
    rank = int(binom.ppf(0.025, n, 0.5))
    return Interval(values[rank - 1], values[n - rank])


def coverage(intervals, truth):
    return np.mean([i.low <= truth <= i.high for i in intervals])


@pytest.mark.parametrize("n", [60, 120, 480])
def test_autocorrelated_samples_are_covered_where_the_naive_interval_fails(n):
    rows = list(many(lambda seed: ar1(n, 0.75, seed), 400))
    assert 0.42 <= coverage(map(naive_interval, rows), CENTER) <= 0.70
    assert 0.88 <= coverage(map(median_interval, rows), CENTER) <= 0.98


@pytest.mark.parametrize(("lag1", "n"), [(0.9, 60), (0.9, 480), (0.95, 240)])
def test_the_longer_samples_hang_together_the_wider_it_is(lag1, n):
    """A moving-block bootstrap covered 0.90, 0.93 and 0.91 of these."""
    rows = list(many(lambda seed: ar1(n, lag1, seed), 300))
    assert coverage(map(median_interval, rows), CENTER) >= 0.93


@pytest.mark.parametrize(("n", "least"), [(480, 0.90), (1920, 0.93)])
def test_two_modes_that_take_turns_are_covered(n, least):
    """A moving-block bootstrap covered 0.87 and 0.89 of these."""
    rows, truth = [two_modes(n, 50, 0.7, seed) for seed in range(200)], two_modes_median(0.7)
    assert coverage(map(median_interval, rows), truth) >= least


def test_the_width_follows_samples_level_and_dependence():
    assert median_estimate(ar1(20_000, 0.75, 1)).effective == pytest.approx(20_000 / 7, rel=0.2)
    wild = ar1(2000, 0.75, 2)
    wild[::100] *= 1000  # hides from the mean how samples depend on each other, not from ranks
    assert median_estimate(wild).effective < 600
    assert median_estimate([7] * 30).effective > 15

    def width(n):
        return np.mean([median_interval(r).half_width for r in many(lambda s: ar1(n, 0.5, s), 60)])

    assert width(400) / width(6400) == pytest.approx(4.0, rel=0.15)
    row = ar1(240, 0.5, seed=3)
    widths = [median_interval(row, level).half_width for level in (0.8, 0.95, 0.99)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3
    interval = median_interval([100, 101, 102] * 40 + [130, 131, 132] * 40)
    assert interval.low <= 102
    assert interval.high >= 130
    random = np.random.default_rng(5)
    row = random.permutation([100] * 120 + [140] * 120)
    assert median_interval(row) == Interval(100, 140)
    ticks = np.random.default_rng(6).choice([10, 11, 12], p=[0.1, 0.8, 0.1], size=240)
    assert median_interval(ticks) == Interval(11, 11)
    row = ar1(120, 0.5, seed=8)
    wild = row.copy()
    wild[60] *= 1000
    assert median_interval(wild).half_width < 1.5 * median_interval(row).half_width
    row = ar1(480, 0.75, seed=2)
    assert median_interval(row) == median_interval(list(row))
    assert Interval(98, 102).half_width == 2
    assert Interval(98, 102).relative_half_width(100) == 0.02
    assert Interval(0, 0).relative_half_width(0) == 0
    assert Interval(-1, 1).relative_half_width(0) == math.inf


def test_intervals_are_as_wide_as_the_truth_needs():
    # Against the spread of the medians of many series of the same process.
    widths = [median_interval(row).half_width for row in many(lambda s: ar1(480, 0.75, s), 100)]
    spread = np.std([np.median(row) for row in many(lambda s: ar1(480, 0.75, s), 400)])
    assert 1.0 <= np.mean(widths) / (1.96 * spread) <= 1.3

    blocks = [1.0, 1.1, 0.9, 1.0, 40.0]
    interval = mean_interval(blocks)
    assert interval.low == 0.0
    assert interval.relative_half_width(np.mean(blocks)) > 1.0
    around = mean_interval([value - 8.8 for value in blocks])
    assert around.low < -8.8


INDEPENDENT = {
    "normal": lambda random: (CENTER * (1 + 0.05 * random.normal(size=120)), CENTER),
    "lognormal": lambda random: (CENTER * random.lognormal(0, 0.5, 120), CENTER),
    "heavy tail": lambda random: (CENTER * (1 + 0.01 * random.standard_cauchy(120)), CENTER),
    "coarse clock": lambda random: (np.round(10 + 1.5 * random.normal(size=120)), 10),
    "skewed modes": lambda random: (
        np.where(random.random(120) < 0.8, 1.0, 1.4)
        * CENTER
        * (1 + 0.02 * random.normal(size=120)),
        CENTER * (1 + 0.02 * 0.3186),  # Φ(0.3186) = 0.5 / 0.8
    ),
}


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_independent_samples_of_any_shape_are_covered(kind):
    draws = [INDEPENDENT[kind](np.random.default_rng(seed)) for seed in range(300)]
    assert coverage([median_interval(row) for row, _ in draws], draws[0][1]) >= 0.92


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.92), (0.75, 0.88)])
def test_the_mean_is_covered_too(phi, least):
    rows = many(lambda seed: ar1(240, phi, seed), 300)
    assert least <= coverage(map(mean_interval, rows), CENTER) <= 0.99


@pytest.mark.parametrize("interval", [median_interval, mean_interval])
def test_few_and_equal_samples(interval):
    assert [interval([7] * n) for n in range(5)] == [None] * 5
    for value in (0, 7, 10**12):
        assert interval([value] * 5) == Interval(value, value)
        assert interval([value] * 4096) == Interval(value, value)


@given(rows)
def test_the_interval_encloses_the_median_and_lies_within_the_samples(row):
    interval = median_interval(row)
    assert min(row) <= interval.low <= np.median(row) <= interval.high <= max(row)


@given(rows, st.sampled_from([0.5, 2.0, 1e-6]))
def test_the_unit_does_not_matter(row, unit):
    interval = median_interval(row)
    scaled = median_interval([value * unit for value in row])
    assert scaled == Interval(interval.low * unit, interval.high * unit)

"""Every statistic against scipy, or against the definition written out."""

import math
from itertools import pairwise
from statistics import variance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_series import evenly_mixed
from scipy import stats

from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.measure.intervals import effective_size, lag1_correlation
from accelbench.measure.launch_verdicts import (
    MOST_LAUNCHES,
    aa_noise,
    paired_interval,
    pool_runs,
    required_launches,
)
from accelbench.measure.loop import find_drift
from accelbench.measure.run_to_run_noise import UnpairedPower, unpaired_interval
from accelbench.measure.student import binomial_cdf
from accelbench.measure.summary import MILD, SEVERE, outlier_labels, percentile

times = st.floats(1e3, 1e9)
few = st.lists(times, min_size=2, max_size=9)  # of fewer than ten all count as independent
rows = st.lists(st.integers(1, 10**6), min_size=1, max_size=80)
noises = st.floats(0.001, 0.3)


def spread_out(row):
    """Whether there is any spread that rounding did not make."""
    return variance([math.log(one) for one in row]) > 1e-12


@given(st.lists(st.tuples(times, times), min_size=2, max_size=20), st.floats(0.5, 0.999))
def test_pairs_are_students_paired_t(pairs, level):
    a, b = zip(*pairs, strict=True)
    if not spread_out([y / x for x, y in pairs]):
        return
    found = paired_interval(a, b, level)
    told = stats.ttest_rel(np.log(b), np.log(a))
    low, high = told.confidence_interval(level)
    assert found.low == pytest.approx(math.exp(low), rel=1e-6)
    assert found.high == pytest.approx(math.exp(high), rel=1e-6)
    assert found.p_value == pytest.approx(told.pvalue, rel=1e-6, abs=1e-9)
    assert found.ratio == pytest.approx(stats.gmean(b) / stats.gmean(a), rel=1e-9)


@given(few, few)
def test_sides_of_their_own_are_welchs_t(a, b):
    if not (spread_out(a) and spread_out(b)):
        return
    found = unpaired_interval(a, b)
    told = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    assert found.p_value == pytest.approx(told.pvalue, rel=1e-6, abs=1e-9)
    low = told.confidence_interval(0.95).low
    if low > -600:  # what cannot be told in doubles is cut off
        assert found.low == pytest.approx(math.exp(low), rel=1e-6)


@given(few)
def test_noise_is_the_standard_deviation_of_logs(row):
    assert aa_noise(row) == pytest.approx(np.std(np.log(row), ddof=1), rel=1e-9, abs=1e-12)


@given(st.lists(few, min_size=2, max_size=5))
def test_pooled_noise_is_the_error_of_an_analysis_of_variance(runs):
    logs = [np.log(run) for run in runs]
    within = sum(float(((one - one.mean()) ** 2).sum()) for one in logs)
    freedom = sum(map(len, runs)) - len(runs)
    found = pool_runs(runs)
    assert found.freedom == freedom
    assert found.value == pytest.approx(math.sqrt(within / freedom), rel=1e-9, abs=1e-12)


def power(k, noise, effect, level=0.01):
    """That of a paired t test, by the noncentral distribution."""
    centre = math.log1p(effect) / (noise * math.sqrt(2.0 / k))
    reach = stats.t.ppf(1.0 - level / 2.0, k - 1)
    return float(stats.nct.sf(reach, k - 1, centre))


@settings(max_examples=40)
@given(noises, st.floats(0.01, 0.5))
def test_as_many_launches_as_power_asks_for(noise, effect):
    """The noncentral t says whether so many do; one more or less is rounding."""
    k = required_launches(noise, effect)
    assert FEWEST_LAUNCHES <= k <= MOST_LAUNCHES
    if k < MOST_LAUNCHES:
        assert power(k + 1, noise, effect) >= 0.79
    if k > FEWEST_LAUNCHES:
        assert power(k - 2, noise, effect) < 0.81


@settings(max_examples=40)
@given(noises, st.integers(5, 40), st.integers(5, 40))
def test_what_sides_of_their_own_can_show(noise, first, second):
    """With that change in truth the test finds it four times in five, or more.

    The sum of two quantiles is within three hundredths of the noncentral t's power.
    """
    found = UnpairedPower(noise, first, second).detectable()
    assert found is not None
    freedom = first + second - 2
    centre = math.log1p(found) / (noise * math.sqrt(1.0 / first + 1.0 / second))
    reach = stats.t.ppf(0.995, freedom)
    assert stats.nct.sf(reach, freedom, centre) >= 0.77


@given(rows)
def test_neighbours_are_correlated_by_the_definition(row):
    mean = sum(row) / len(row)
    whole = sum((x - mean) ** 2 for x in row)
    want = 0.0
    if len(row) >= 3 and len(set(row)) > 1:
        want = sum((x - mean) * (y - mean) for x, y in pairwise(row)) / whole
    assert lag1_correlation(row) == pytest.approx(want, abs=1e-9)


@given(rows)
def test_the_effective_size_is_geyers_sum(row):
    n, mean = len(row), sum(row) / len(row)
    off = [x - mean for x in row]
    whole = sum(x * x for x in off)
    if n < 3 or len(set(row)) == 1:
        assert effective_size(row) == n
        return
    rho = [sum(off[i] * off[i + lag] for i in range(n - lag)) / whole for lag in range(n)]
    total = 0.0
    for even in range(0, n // 2 * 2, 2):
        pair = rho[even] + rho[even + 1]
        if pair <= 1e-12:
            break
        total += pair
    assert effective_size(row) == pytest.approx(n / min(max(2 * total - 1, 1), n), rel=1e-6)


@given(rows, st.integers(1, 99))
def test_percentiles_lie_between_two_samples_in_order(row, q):
    ordered = sorted(row)
    place = (len(row) - 1) * q / 100
    below = ordered[math.floor(place)]
    above = ordered[math.ceil(place)]
    want = below + (above - below) * (place - math.floor(place))
    found = percentile(row, q, len(row))
    assert (found is None) == (len(row) < 100 / min(q, 100 - q))
    assert found is None or found.value == pytest.approx(want, rel=1e-9)


@given(st.integers(1, 3000), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.floats(0, 0.999))
def test_the_binomial_distribution(n, p, part):
    count = math.floor(part * n)
    assert binomial_cdf(count, n, p) == pytest.approx(stats.binom.cdf(count, n, p), abs=1e-9)


@pytest.mark.parametrize("n", [10, 36, 72, 100, 368, 1000])
@pytest.mark.parametrize("q", [90, 95, 99])
def test_a_percentiles_interval_is_the_exact_one_of_order_statistics(n, q):
    found = percentile(evenly_mixed(n), q, n)
    if n < 100 / (100 - q):
        assert found is None
        return
    # Samples are their own ranks from 0: of so many that lie below q, the next one encloses it.
    fewest, most = stats.binom.ppf([0.025, 0.975], n, q / 100)
    assert found.low == (None if fewest == 0 else fewest - 1)
    assert found.high == (None if most == n else most)


@given(rows)
def test_outliers_lie_beyond_tukeys_fences(row):
    low, high = stats.scoreatpercentile(row, [25, 75])
    for value, label in zip(row, outlier_labels(row), strict=True):
        beyond = max(low - value, value - high)
        want = SEVERE if beyond > 3 * (high - low) else MILD if beyond > 1.5 * (high - low) else 0
        assert label == want


@given(st.lists(st.integers(1, 10**6), min_size=30, max_size=90))
def test_a_drift_is_that_of_the_medians_of_the_thirds(row):
    found = find_drift(row)
    third = len(row) // 3
    if found is None:
        return
    want = np.median(row[-third:]) / np.median(row[:third]) - 1.0
    assert found.relative == pytest.approx(want, rel=1e-9, abs=1e-12)
    if found.found:
        # Medians whose intervals lie apart are not of one distribution by a rank test either.
        assert stats.mannwhitneyu(row[:third], row[-third:]).pvalue < 0.2

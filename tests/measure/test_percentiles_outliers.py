import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_series import CENTER, ar1, evenly_mixed

from accelbench.measure.intervals import effective_size
from accelbench.measure.summary import (
    MILD,
    SEVERE,
    Outliers,
    count_outliers,
    outlier_labels,
    percentile,
    required_size,
)

rows = st.lists(st.integers(0, 10**12), min_size=1, max_size=100)


def independent(n, seed=0, spread=0.02):
    return 1e6 * np.random.default_rng(seed).lognormal(0, spread, n)


@pytest.mark.parametrize(("q", "fewest"), [(90, 10), (95, 20), (99, 100)])
def test_a_percentile_is_given_as_soon_as_one_sample_lies_beyond_it(q, fewest):
    row = independent(fewest)
    assert percentile(row[:-1], q, fewest) is None
    found = percentile(row, q, fewest)
    assert found.value == pytest.approx(np.percentile(row, q))
    assert found.rough
    assert found.high is None  # the largest sample may well lie below it


@pytest.mark.parametrize(("q", "least"), [(90, 100), (95, 200), (99, 1000)])
def test_it_is_rough_below_ten_independent_samples_beyond_it(q, least):
    row = 1e6 + evenly_mixed(8000)
    assert required_size(q) == least
    assert percentile(row, q, least - 0.01).rough
    assert not percentile(row, q, 8000).rough


def test_rough_and_upper_ends():
    assert not percentile(independent(400), 90, 400).rough
    assert percentile(independent(400, spread=1.0), 90, 400).rough
    for q, least in ((90, 36), (95, 72), (99, 368)):
        assert percentile(evenly_mixed(least), q, least).high is not None
        assert percentile(evenly_mixed(least - 1), q, least - 1).high is None
    assert percentile(independent(5000), 99, 300).high is None

    # Each sample beyond p90 came with fifty others: of the whole series that does not show.
    row = CENTER + evenly_mixed(2000)
    assert not percentile(row, 95, 2000).rough
    row[800:1000] *= 10
    found = percentile(row, 95, 2000)
    assert found.rough
    assert found.low < 2 * CENTER < found.value

    assert percentile([7, 9], 50, 2).value == 8
    assert percentile([], 50, 0) is None

    row = np.random.default_rng(1).lognormal(0, 1, 200_000)
    for q, truth in ((50, 1.0), (90, 3.602), (95, 5.180), (99, 10.240)):
        found = percentile(row, q, 200_000)
        assert found.value == pytest.approx(truth, rel=0.02)
        assert found.low <= truth <= found.high


@pytest.mark.parametrize(("q", "truth"), [(90, 1.2816), (95, 1.6449), (99, 2.3263)])
@pytest.mark.parametrize("lag1", [0.0, 0.75])
def test_its_interval_covers(q, truth, lag1):
    covered = []
    for seed in range(200):
        row = ar1(2000, lag1, seed)
        found = percentile(row, q, effective_size(row))
        at = CENTER * (1 + 0.05 * truth)
        covered.append(found.low <= at <= (found.high or np.inf))
    assert np.mean(covered) >= 0.92


@given(rows)
def test_percentiles_are_ordered_and_within_the_samples(row):
    found = [percentile(row, q, len(row)) for q in (1, 50, 90, 95, 99)]
    known = [one for one in found if one]
    assert [one.value for one in known] == sorted(one.value for one in known)
    for one in known:
        assert min(row) <= (one.value if one.low is None else one.low) <= one.value
        assert one.value <= (one.value if one.high is None else one.high) <= max(row)


@pytest.mark.parametrize("q", [0, 100, -5, 150])
def test_no_percentile_outside_the_open_range(q):
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1, 2], q, 10**9)


def test_outliers_lie_beyond_the_fences():
    # Quartiles 3 and 7 of 1 … 9, range 4: fences at 13 and 19, -3 and -9.
    row = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert count_outliers(row) == Outliers(0, 0)
    assert list(outlier_labels([*row[:-1], 13])) == [0] * 9
    assert list(outlier_labels([*row[:-1], 14])) == [0] * 8 + [MILD]
    assert list(outlier_labels([*row[:-1], 20])) == [0] * 8 + [SEVERE]
    assert list(outlier_labels([-10, *row[1:]])) == [SEVERE] + [0] * 8

    random = np.random.default_rng(2)
    normal = count_outliers(random.normal(100, 1, 100_000))
    assert normal.mild / 100_000 == pytest.approx(0.0070, abs=0.001)
    assert normal.severe < 5
    assert count_outliers(random.standard_cauchy(100_000)).severe / 100_000 > 0.05

    for row in ([], [5], [5, 5], [0] * 100):
        assert count_outliers(row) == Outliers(0, 0)
        assert len(outlier_labels(row)) == len(row)


@given(rows)
def test_every_sample_keeps_its_place_and_counts_agree(row):
    marks = outlier_labels(row)
    assert len(marks) == len(row)
    assert count_outliers(row) == Outliers(int((marks == MILD).sum()), int((marks == SEVERE).sum()))

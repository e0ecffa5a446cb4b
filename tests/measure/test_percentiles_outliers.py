import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.measure.outliers import MILD, SEVERE, Outliers, labels, outliers
from accelbench.measure.percentiles import percentile, required_size

rows = st.lists(st.integers(0, 10**12), min_size=1, max_size=100)


@pytest.mark.parametrize(("q", "least"), [(90, 100), (95, 200), (99, 1000)])
def test_a_percentile_is_given_from_its_effective_size_on(q, least):
    row = np.arange(1, 2002)
    assert required_size(q) == least
    assert percentile(row, q, least - 0.01) is None
    assert percentile(row, q, least) == pytest.approx(1 + 20 * q)


def test_many_samples_that_depend_on_each_other_are_not_enough():
    assert percentile(range(5000), 90, effective_n=99) is None


def test_the_median_is_always_given_and_nothing_of_nothing():
    assert percentile([7], 50, 1) == 7
    assert percentile([7, 9], 50, 1) == 8
    assert percentile([], 50, 0) is None


def test_known_distribution():
    row = np.random.default_rng(1).lognormal(0, 1, 200_000)
    for q, truth in ((50, 1.0), (90, 3.602), (95, 5.180), (99, 10.240)):
        assert percentile(row, q, 200_000) == pytest.approx(truth, rel=0.02)


@given(rows)
def test_percentiles_are_ordered_and_within_the_samples(row):
    given_ones = [percentile(row, q, 10**9) for q in (1, 50, 90, 95, 99)]
    assert given_ones == sorted(given_ones)
    assert min(row) <= given_ones[0]
    assert given_ones[-1] <= max(row)


@pytest.mark.parametrize("q", [0, 100, -5, 150])
def test_no_percentile_outside_the_open_range(q):
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1, 2], q, 10**9)


def test_fences_by_hand():
    # Quartiles 3 and 7 of 1 … 9, range 4: fences at 13 and 19, -3 and -9.
    row = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert outliers(row) == Outliers(0, 0)
    assert list(labels([*row[:-1], 13])) == [0] * 9
    assert list(labels([*row[:-1], 14])) == [0] * 8 + [MILD]
    assert list(labels([*row[:-1], 20])) == [0] * 8 + [SEVERE]
    assert list(labels([-10, *row[1:]])) == [SEVERE] + [0] * 8


def test_a_normal_sample_has_few_and_a_heavy_tail_many():
    random = np.random.default_rng(2)
    normal = outliers(random.normal(100, 1, 100_000))
    assert normal.mild / 100_000 == pytest.approx(0.0070, abs=0.001)
    assert normal.severe < 5
    assert outliers(random.standard_cauchy(100_000)).severe / 100_000 > 0.05


def test_nothing_and_equal_samples_have_no_outliers():
    for row in ([], [5], [5, 5], [0] * 100):
        assert outliers(row) == Outliers(0, 0)
        assert len(labels(row)) == len(row)


@given(rows)
def test_every_sample_keeps_its_place_and_counts_agree(row):
    marks = labels(row)
    assert len(marks) == len(row)
    assert outliers(row) == Outliers(int((marks == MILD).sum()), int((marks == SEVERE).sum()))

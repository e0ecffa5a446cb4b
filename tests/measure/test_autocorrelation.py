import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_series import ar1

from accelbench.measure.intervals import effective_size, lag1_correlation

rows = st.lists(st.integers(1, 10**12), min_size=1, max_size=80)


@pytest.mark.parametrize("truth", [0.0, 0.5, 0.75, 0.9])
def test_lag1_of_a_known_process(truth):
    assert lag1_correlation(ar1(50_000, truth, seed=1)) == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize(("phi", "share"), [(0.0, 1.0), (0.5, 1 / 3), (0.75, 1 / 7), (0.9, 1 / 19)])
def test_effective_size_of_a_known_process(phi, share):
    sizes = [effective_size(ar1(20_000, phi, seed)) / 20_000 for seed in range(10)]
    assert np.mean(sizes) == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("row", [[], [7], [7, 9], [0, 0, 0], [0.1] * 1000, [10**15] * 50])
def test_lag1_is_zero_where_there_is_nothing_to_correlate(row):
    assert lag1_correlation(row) == 0.0


def test_alternation_steps_and_rows():
    row = [10, 20] * 50
    assert lag1_correlation(row) == pytest.approx(-0.99, abs=0.011)
    assert effective_size(row) == 100
    assert effective_size([100] * 200 + [130] * 200) < 10
    with pytest.raises(ValueError, match="one row"):
        lag1_correlation(np.ones((3, 3)))


@given(rows, st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_unit_does_not_matter(row, unit):
    scaled = [value * unit for value in row]
    assert lag1_correlation(scaled) == pytest.approx(lag1_correlation(row), abs=1e-9)
    assert effective_size(scaled) == pytest.approx(effective_size(row), rel=1e-6)

"""Boosting over columns of names: as many as there are."""

import numpy as np
import pytest

from prediction.boosting import fit_regression

pytestmark = pytest.mark.full


@pytest.mark.parametrize("names", [40, 200, 400])
def test_a_column_of_many_names_is_learned_from(names):
    rng = np.random.default_rng(0)
    column = np.repeat(np.arange(names), 12).astype(float)
    target = np.where(column % 2 > 0, 1.0, -1.0) + rng.normal(0, 0.01, len(column))
    fitted = fit_regression(column[:, None], target, trees=30, seed=0, categories=(0,))
    assert np.isfinite(fitted(column[:, None])).all()
    if names <= 255:  # of more the numbers stand for themselves
        assert np.abs(fitted(column[:, None]) - target).mean() < 0.3

"""Regression of a residual on features: boosted trees by scikit-learn, else ridge in numpy.

Boosting minimises the absolute error: on this data squared error gave a median 20 % larger, since
a few models whose kernels are missing on a device are off by a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from accelbench.predict.signatures import Floats

BOOSTING, RIDGE = "boosting", "ridge"
Regression = Callable[[Floats], Floats]
_MOST_BINS = 255  # of scikit-learn


def sklearn_is_here() -> bool:
    """Whether scikit-learn can be imported, without importing it."""
    return find_spec("sklearn") is not None


def fit_regression(
    features: Floats,
    target: Floats,
    weight: Floats | None = None,
    *,
    trees: int = 150,
    seed: int = 0,
    categories: tuple[int, ...] = (),
    rate: float = 0.06,
    bins: int = _MOST_BINS,
) -> Regression:
    """A function from features to the target. Columns named as categories hold small numbers.

    Fewer bins and a higher rate take less time.
    """
    if not sklearn_is_here():
        return _ridge(features, target, weight, categories)
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    # scikit-learn puts a column into bins, and fails for one in which nothing is known.
    unknown = np.asarray(np.isnan(features).all(axis=0))
    features = np.where(unknown, 0.0, features)

    # As many names as scikit-learn takes; of a column with more the numbers stand for themselves.
    several = {column: len(np.unique(features[:, column])) for column in categories}
    named = [column for column, number in several.items() if number <= _MOST_BINS]
    bins = max([bins, *(several[column] for column in named)])

    model: Any = HistGradientBoostingRegressor(
        loss="absolute_error",
        max_iter=trees,
        learning_rate=rate,
        max_bins=bins,
        max_leaf_nodes=31,
        min_samples_leaf=10,
        l2_regularization=1.0,
        max_features=0.5,
        random_state=seed,
        categorical_features=named or None,
        early_stopping=False,
    )
    # Its threads wait for each other by spinning: on two busy cores two of them took 27 s for what
    # one does in 1.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(features, target, sample_weight=weight)

    return _Boosted(model, unknown)


@dataclass(frozen=True)
class _Boosted:
    model: Any
    unknown: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # columns of which nothing is known

    def __call__(self, rows: Floats) -> Floats:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="openmp"):
            values = self.model.predict(np.where(self.unknown, 0.0, rows))
        return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class _Linear:
    mean: Floats
    scale: Floats
    coefficients: Floats
    constant: float
    categories: tuple[tuple[int, Floats], ...]

    def expanded(self, rows: Floats) -> Floats:
        plain = np.delete(rows, [column for column, _ in self.categories], axis=1)
        flags = [rows[:, [column]] == values for column, values in self.categories]
        return np.column_stack([np.nan_to_num(plain), *(flag.astype(float) for flag in flags)])

    def __call__(self, rows: Floats) -> Floats:
        z = np.clip((self.expanded(rows) - self.mean) / self.scale, -4, 4)
        return np.asarray(z @ self.coefficients + self.constant)


def _ridge(
    features: Floats, target: Floats, weight: Floats | None, categories: tuple[int, ...]
) -> Regression:
    kinds = tuple((column, np.unique(features[:, column])) for column in categories)
    bare = _Linear(np.zeros(1), np.ones(1), np.zeros(1), 0.0, kinds)
    wide = bare.expanded(features)
    mean, scale = wide.mean(axis=0), wide.std(axis=0) + 1e-6
    z = np.clip((wide - mean) / scale, -4, 4)
    w = np.ones(len(z)) if weight is None else weight / weight.mean()
    constant = float(np.average(target, weights=w))
    gram = z.T @ (z * w[:, None]) + 10.0 * np.eye(z.shape[1])
    coefficients = np.linalg.solve(gram, z.T @ (w * (target - constant)))
    return _Linear(mean, scale, np.asarray(coefficients), constant, kinds)

"""Empty cells of a table of models by devices: boosting on what measured neighbours say.

Without scikit-learn a table's cells are predicted by device vectors (`device_grid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.signatures import Floats, Ints
from prediction.boosting import fit_regression
from prediction.intervals import weighted_quantile
from prediction.measurements import TableMeasurement
from prediction.neighbour_features import (
    CATEGORIES,
    NeighbourFeatures,
    cell_of,
    neighbour_features,
)

METHOD = "boosting on neighbours"
_FOLDS = 3
_SEEDS = 2  # one alone was 3 % worse
_TREES, _SCALE_TREES = 250, 80
_LEAST_ERROR = 2e-3  # in logarithms, so that a copy does not say that errors are zero
_MOST_ROWS = 16000  # that boosting learns from


@dataclass(frozen=True)
class CellPredictions:
    """Logarithms of cells with half their intervals, and the median error on held-out cells."""

    log_value: Floats
    half_width: Floats
    error: float


def predict_cells(
    train: Sequence[TableMeasurement], test: Sequence[TableMeasurement], seed: int
) -> CellPredictions:
    """Predictions of cells that are empty in the training table."""
    neighbours = neighbour_features(train, test)
    number = len(train)
    truth = np.log([m.value for m in train])
    base = _base(neighbours, truth, number)
    rest = truth - base[:number]
    rng = np.random.default_rng(seed)
    fold = _folds(train, rng)
    chosen = np.arange(number)
    if number > _MOST_ROWS:
        chosen = np.sort(rng.choice(number, _MOST_ROWS, replace=False))
    x, fold, rest = neighbours.features[chosen], fold[chosen], rest[chosen]
    errors = np.zeros(len(chosen))
    for n in range(_FOLDS):
        some = fold == n
        fit = fit_regression(x[~some], rest[~some], trees=_TREES, seed=seed, categories=CATEGORIES)
        errors[some] = rest[some] - fit(x[some])
    log_value = base[number:].copy()
    for variant in range(seed, seed + _SEEDS):
        fit = fit_regression(x, rest, trees=_TREES, seed=variant, categories=CATEGORIES)
        log_value += fit(neighbours.features[number:]) / _SEEDS
    width = _half_widths(x, errors, fold, neighbours.features[number:], seed)
    return CellPredictions(log_value, width, float(np.median(np.abs(errors))))


def _base(neighbours: NeighbourFeatures, truth: Floats, number: int) -> Floats:
    """What boosting corrects: the estimate of neighbours, else the mean."""
    return np.where(np.isfinite(neighbours.estimate), neighbours.estimate, truth[:number].mean())


def _folds(train: Sequence[TableMeasurement], rng: np.random.Generator) -> Ints:
    """A part of each row, all rows of a cell and all copies of a job in one."""
    numbers: dict[object, int] = {}
    keys = [m.job or cell_of(m) for m in train]
    codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    return np.asarray(rng.integers(0, _FOLDS, len(numbers))[codes], dtype=np.int64)


def _half_widths(x: Floats, errors: Floats, fold: Ints, wanted: Floats, seed: int) -> Floats:
    """Nine in ten of the errors, by a scale that is learned from the same features."""
    size = np.log(np.abs(errors) + _LEAST_ERROR)
    scale = np.zeros(len(errors))
    for n in range(_FOLDS):
        some = fold == n
        fit = fit_regression(
            x[~some], size[~some], trees=_SCALE_TREES, seed=seed, categories=CATEGORIES
        )
        scale[some] = fit(x[some])
    ratios = np.abs(errors) / np.exp(scale)
    ratio = weighted_quantile(ratios, np.ones(len(ratios)), LEVEL)
    fit = fit_regression(x, size, trees=_SCALE_TREES, seed=seed, categories=CATEGORIES)
    return np.asarray(ratio * np.exp(fit(wanted)))

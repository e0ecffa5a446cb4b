"""Regression of a step's time on work, weights and sizes of other models, about one that is asked.

For models whose operators are not known: results of others say how many operations and weights a
model has, and no more. Near what is asked the time is taken to grow as the operations do, but for
slopes that the others show, held near zero: leaving out each of 67 families of timm's results in
turn, 400 cases on two cards, the median error was 28 % and 87 % lay inside the interval; the
median rate of the hundred nearest models gave 35 % and 70 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.arrays import Floats
from accelbench.predict.device_limits import LEVEL

#: Slopes are drawn to zero as if by so many figures, and by that part of those there are.
_PRIOR_FIGURES, _PRIOR_SHARE = 1.0, 0.05
_FOLDS = 5
#: A residual beyond this, as a logarithm, counts less the farther it is out.
_OUTLIER = 0.3
_ROUNDS = 3
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class WorkFigure:
    """A figure of another model, beside the one that is asked.

    Attributes:
        log_ms: logarithm of the time of its step, as far as it grows with operations: at those of
            the step that is asked.
        apart: how far its work, weights, sizes and batch are from those that are asked, as
            logarithms; 0 where either is not known.
        kind: what it has in common with others: they are left out together.
    """

    log_ms: float
    apart: Sequence[float]
    kind: str


@dataclass(frozen=True)
class WorkEstimate:
    """A time in milliseconds, and between which it lies nine times in ten."""

    middle: float
    low: float
    high: float


def from_work(figures: Sequence[WorkFigure]) -> WorkEstimate:
    """The time of a step from figures of other models, of which there is at least one."""
    values = np.array([entry.log_ms for entry in figures])
    apart = np.array([list(entry.apart) for entry in figures]).reshape(len(figures), -1)
    weight = np.maximum(np.exp(-0.5 * np.sum(apart**2, axis=1)), _LEAST_WEIGHT)
    design = np.column_stack([np.ones(len(values)), apart])
    middle = float(_fit(design, values, weight)[0])
    errors = _left_out(design, values, weight, [entry.kind for entry in figures])
    half = _quantile(np.abs(errors), weight)
    low, middle, high = np.exp([middle - half, middle, middle + half]).tolist()
    return WorkEstimate(middle, low, high)


def _fit(design: Floats, values: Floats, weight: Floats) -> Floats:
    """Coefficients of a ridge regression in which outliers count less; the first is of no slope."""
    ridge = np.zeros(design.shape[1])
    ridge[1:] = _PRIOR_FIGURES + _PRIOR_SHARE * weight.sum()
    counted = weight
    for _ in range(_ROUNDS):
        gram = design.T @ (design * counted[:, None]) + np.diag(ridge)
        coefficients = np.linalg.solve(gram, design.T @ (counted * values))
        residual = np.abs(values - design @ coefficients)
        counted = weight * np.minimum(1.0, _OUTLIER / (residual + 1e-9))
    return np.asarray(coefficients)


def _left_out(design: Floats, values: Floats, weight: Floats, kinds: Sequence[str]) -> Floats:
    """Errors of each figure from the others, those of its kind left out with it."""
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    fold = np.array([numbers[kind] % _FOLDS for kind in kinds])
    errors = np.zeros(len(values))
    for number in np.unique(fold):
        out = fold == number
        if not out.all():
            kept = ~out
            coefficients = _fit(design[kept], values[kept], weight[kept])
            errors[out] = values[out] - design[out] @ coefficients
    return errors


def _quantile(errors: Floats, weight: Floats) -> float:
    """What nine in ten errors are below, of a sample as large as its weights make it."""
    effective = weight.sum() ** 2 / np.sum(weight**2)
    order = np.argsort(errors)
    share = np.cumsum(weight[order]) / weight.sum()
    place = int(np.searchsorted(share, min(LEVEL * (1 + 1 / effective), 1.0) - 1e-9))
    return float(errors[order][min(place, len(errors) - 1)])

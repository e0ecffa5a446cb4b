"""Predictions without operator graphs: from a model's published counts and its hardware.

Multiply-accumulates, parameters and activations say far less than operators do: on unseen families
the median error is about twice as large. A figure that the source does not give is left empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelbench.predict.boosting import BOOSTING, RIDGE, fit_regression, sklearn_is_here
from accelbench.predict.graph_predictor import limits_of
from accelbench.predict.graphs import Floats, Ints
from accelbench.predict.intervals import half_width
from accelbench.predict.measurements import LATENCY, TableConfiguration, TableMeasurement
from accelbench.predict.scoring import Predictions
from accelbench.predict.transfer import NEW_MODEL

_FOLDS = 3
_TREES = 250
_UNKNOWN = -1  # a configuration that training never saw
#: scikit-learn takes no more categories in a column.
_MOST_CONFIGURATIONS = 250


def tabular_method() -> str:
    """What learns, by what is installed."""
    return f"{BOOSTING if sklearn_is_here() else RIDGE} on tabular counts"


def predict_by_table(
    train: Sequence[TableMeasurement],
    test: Sequence[TableMeasurement],
    rows: Ints,
    target: str,
    seed: int,
) -> Predictions:
    """Predictions of some rows of the test table."""
    counted: dict[TableConfiguration, int] = {}
    for m in train:
        counted[m.configuration] = counted.get(m.configuration, 0) + 1
    common = sorted(counted, key=lambda one: -counted[one])[:_MOST_CONFIGURATIONS]
    numbers = {one: n for n, one in enumerate(common)}
    features = _features(train, numbers)
    offset = _offset(train, target)
    wanted = np.array([_value(m, target) for m in train]) - offset
    families = sorted({m.family for m in train})
    fold_of = {f: n % _FOLDS for n, f in enumerate(families)}
    fold = np.array([fold_of[m.family] for m in train])
    last = (features.shape[1] - 1,)
    errors: list[Floats] = []
    held: list[str] = []
    for one in range(_FOLDS if len(families) >= _FOLDS else 0):
        fit = fit_regression(
            features[fold != one], wanted[fold != one], trees=_TREES, seed=seed, categories=last
        )
        errors.append(fit(features[fold == one]) - wanted[fold == one])
        held += [m.family for m, mine in zip(train, fold == one, strict=True) if mine]
    fit = fit_regression(features, wanted, trees=_TREES, seed=seed, categories=last)
    chosen = [test[int(n)] for n in rows]
    found = fit(_features(chosen, numbers)) + _offset(chosen, target)
    if target == LATENCY:
        found = found + np.log([m.batch for m in chosen])
    width = half_width(np.concatenate(errors), held) if errors else 0.5
    return Predictions(
        found,
        np.full(len(chosen), width),
        (NEW_MODEL,) * len(chosen),
        np.zeros(len(chosen), dtype=bool),
    )


def _value(m: TableMeasurement, target: str) -> float:
    return float(np.log(m.value / m.batch if target == LATENCY else m.value))


def _offset(measurements: Sequence[TableMeasurement], target: str) -> Floats:
    """What scales without being learned: operations by the peak, or parameters in memory."""
    if target != LATENCY:
        return np.zeros(len(measurements))
    found = []
    for m in measurements:
        peak = limits_of(m.configuration).peak(m.configuration.precision)
        operations = m.gmacs if m.gmacs > 0 else max(m.parameters_m, 0.1) / 5
        if not np.isfinite(operations):
            operations = 1.0
        found.append(np.log(2 * operations / peak))
    return np.array(found)


def _features(
    measurements: Sequence[TableMeasurement], numbers: dict[TableConfiguration, int]
) -> Floats:
    return np.array([
        [
            np.log(max(m.gmacs, 1e-4)) if np.isfinite(m.gmacs) else np.nan,
            np.log(max(m.parameters_m, 1e-3)) if np.isfinite(m.parameters_m) else np.nan,
            np.log(max(m.activations_m, 1e-3)) if np.isfinite(m.activations_m) else np.nan,
            np.log(max(m.image_size, 1)), np.log2(m.batch),
            np.log(limits_of(m.configuration).peak(m.configuration.precision)),
            np.log(limits_of(m.configuration).bandwidth),
            m.configuration.compiled, m.configuration.channels_last, m.configuration.version,
            m.configuration.mode == "training",
            numbers.get(m.configuration, _UNKNOWN),
        ]
        for m in measurements
    ], dtype=np.float64)  # fmt: skip

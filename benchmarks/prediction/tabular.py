"""Predictions without operator graphs: from a model's published counts and its hardware.

Multiply-accumulates, parameters and activations say far less than operators do: on unseen families
the median error is about twice as large. A figure that the source does not give is left empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from accelbench.predict.cases import LATENCY
from accelbench.predict.scoring import Predictions
from accelbench.predict.signatures import Floats, Ints
from prediction.boosting import (
    BOOSTING,
    RIDGE,
    Regression,
    fit_regression,
    sklearn_is_here,
)
from prediction.graph_predictor import limits_of
from prediction.measurements import TableConfiguration, TableMeasurement
from prediction.tabular_intervals import HeldOutRows, bases_of, held_out, unknown_width
from prediction.transfer import BOTH_NEW, NEW_HARDWARE, NEW_MODEL

_TREES = 250
_DOUBT = 0.5  # anchors that a shift of zero is worth
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
    *,
    anchors: int = 0,
    measured: Ints | None = None,
) -> Predictions:
    """Predictions of some rows of the test table.

    Hardware that training does not know is shifted by its anchors: by those rows of the test table
    that were measured as anchors already, else by rows chosen here.
    """
    predictor = _Predictor(train, target, seed)
    chosen = [test[int(n)] for n in rows]
    basis = bases_of(train, chosen)
    log_value = predictor(chosen)
    widths = {name: predictor.half_width(name) for name in dict.fromkeys(basis)}
    width = np.array([widths[name] for name in basis])
    anchor = np.zeros(len(chosen), dtype=bool)
    hardware = np.array([m.configuration.hardware for m in chosen])
    new = np.isin(basis, (NEW_HARDWARE, BOTH_NEW))
    given = [test[int(n)] for n in (() if measured is None else measured)]
    for device in dict.fromkeys(hardware[new]) if anchors else ():
        mine = np.flatnonzero(hardware == device)
        known = [m for m in given if m.configuration.hardware == device]
        if not known:
            picked = mine[_spread(log_value[mine], anchors)]
            anchor[picked] = True
            known = [chosen[n] for n in picked]
        residual = np.log([m.value for m in known]) - predictor(known)
        log_value[mine] += np.median(residual) * len(known) / (len(known) + _DOUBT)
        width[mine] = [predictor.half_width(basis[n], len(known)) for n in mine]
    return Predictions(log_value, width, basis, anchor)


def _spread(log_value: Floats, number: int) -> Ints:
    """Rows that are spread evenly over the predicted figures."""
    places = np.linspace(0, len(log_value) - 1, min(number, len(log_value)) + 2)[1:-1]
    return np.unique(np.argsort(log_value)[np.round(places).astype(np.int64)])


class _Predictor:
    """Boosting, or ridge, on counts of the training table."""

    def __init__(self, train: Sequence[TableMeasurement], target: str, seed: int) -> None:
        counted = Counter(m.configuration for m in train)
        common = [each for each, _ in counted.most_common(_MOST_CONFIGURATIONS)]
        self.train, self.target, self.seed = train, target, seed
        self.numbers = {each: n for n, each in enumerate(common)}
        self.features = _features(train, self.numbers)
        self.wanted = np.array([_value(m, target) for m in train]) - _offset(train, target)
        self.fit = self._fit(np.arange(len(train)))
        self.errors: dict[str, HeldOutRows | None] = {}

    def __call__(self, rows: Sequence[TableMeasurement]) -> Floats:
        log_value = self.fit(_features(rows, self.numbers)) + _offset(rows, self.target)
        if self.target == LATENCY:
            log_value = log_value + np.log([m.batch for m in rows])
        return log_value

    def half_width(self, basis: str, anchors: int = 0) -> float:
        """Half an interval in logarithms, by what is new of a row."""
        if basis not in self.errors:
            self.errors[basis] = held_out(self.train, self._off, basis)
        held = self.errors[basis]
        if held is not None:
            return held.anchored(anchors) if anchors else held.half_width()
        return unknown_width(basis, None if basis == NEW_MODEL else self.half_width(NEW_MODEL))

    def _off(self, kept: Ints, out: Ints) -> Floats:
        return self._fit(kept)(self.features[out]) - self.wanted[out]

    def _fit(self, rows: Ints) -> Regression:
        return fit_regression(
            self.features[rows], self.wanted[rows], trees=_TREES, seed=self.seed,
            categories=(self.features.shape[1] - 1,),
        )  # fmt: skip


def _value(m: TableMeasurement, target: str) -> float:
    return float(np.log(m.value / m.batch if target == LATENCY else m.value))


def _offset(measurements: Sequence[TableMeasurement], target: str) -> Floats:
    """What scales without being learned: operations by the peak, or parameters in memory."""
    if target != LATENCY:
        return np.zeros(len(measurements))
    offsets = []
    for m in measurements:
        peak = limits_of(m.configuration).peak(m.configuration.precision)
        operations = m.gmacs if m.gmacs > 0 else max(m.parameters_m, 0.1) / 5
        if not np.isfinite(operations):
            operations = 1.0
        offsets.append(np.log(2 * operations / peak))
    return np.array(offsets)


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

"""Monotone predictions: a larger batch takes no less time than a smaller one. Pure numpy.

A process of residuals is free to predict that a batch of 16 is quicker than one of 8, and a knee
would then be a figure of its noise. Isotonic regression of the logarithms pools such neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from accelbench.predict.case_predictions import CasePredictions
from accelbench.predict.cases import SIZES_WITHOUT_BATCH, PredictedCase, numbers_of_places
from accelbench.predict.graphs import Floats, Ints

#: How many times the weight of all else that of a measured figure is, which is not to move.
_CERTAIN = 1e6


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The rising sequence that is nearest to values, by weighted squares: adjacent are pooled."""
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, count = value, weight, 1
        while means and means[-1] > mean:
            before, held = means.pop(), masses.pop()
            mean = (before * held + mean * mass) / (held + mass)
            mass, count = mass + held, count + counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return np.repeat(means, counts)


@dataclass(frozen=True)
class BatchSeries:
    """The cases of one question, those that differ in their batch alone beside each other.

    Attributes:
        order: of the cases: by series, and within each by batch.
        number: of each case's series, in that order.
    """

    order: Ints
    number: Ints

    @classmethod
    def of(cls, cases: Sequence[PredictedCase]) -> BatchSeries:
        """The series of cases in any order."""
        numbers: dict[tuple[object, ...], int] = {}
        keys = (
            (case.model, case.part, place, SIZES_WITHOUT_BATCH(case.shapes))
            for case, place in zip(cases, numbers_of_places(cases), strict=True)
        )
        series = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        batches = np.array([case.shapes.batch for case in cases], dtype=np.int64)
        order = np.lexsort((batches, series))
        return cls(order, series[order])

    def rising(self, predictions: CasePredictions) -> CasePredictions:
        """The same predictions, rising with the batch within each series.

        Values and both ends of the intervals are pooled alike, each with the weight of how surely
        it is known. The same weights for all three leave each value between its ends. What was
        measured stays as it is, and others are pooled towards it.
        """
        logs = np.log(np.stack([predictions.value, predictions.low, predictions.high]))
        falls = (np.diff(logs[:, self.order], axis=1) < 0).any(axis=0)
        falling = np.unique(self.number[1:][falls & (np.diff(self.number) == 0)])
        if not len(falling):
            return predictions
        weights = 1.0 / np.maximum(logs[2] - logs[1], 1e-6) ** 2
        weights[predictions.measured] = _CERTAIN * weights.max()
        starts = np.searchsorted(self.number, falling)
        ends = np.searchsorted(self.number, falling, side="right")
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            rows = self.order[start:end]
            for figures in logs:
                figures[rows] = isotonic(figures[rows], weights[rows])
        value, low, high = np.exp(logs)
        rows, pooled = predictions.measured, replace(predictions, value=value, low=low, high=high)
        return pooled.with_values(rows, predictions.value[rows]) if len(rows) else pooled

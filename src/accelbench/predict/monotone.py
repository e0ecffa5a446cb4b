"""Monotone predictions: a larger batch takes no less time than a smaller one. Pure numpy.

A process of residuals is free to predict that a batch of 16 is quicker than one of 8, and a knee
would then be a figure of its noise. Isotonic regression of the logarithms pools such neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accelbench.predict.case_predictions import CasePredictions
from accelbench.predict.cases import (
    SIZES_WITHOUT_BATCH,
    MeasuredCase,
    PredictedCase,
    numbers_of_places,
)
from accelbench.predict.graphs import Floats, Ints

#: How many times the weight of all else that of a measured figure is, which is not to move.
_CERTAIN = 1e6
#: Nothing is known any nearer than a single measured figure, of which runs differ by 3 %.
SINGLE = 1.03


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


def held_by_measured(
    predictions: CasePredictions,
    cases: Sequence[PredictedCase],
    known: Collection[MeasuredCase],
    target: str,
) -> CasePredictions:
    """Predictions no less than a smaller batch of the same was measured at, nor more than a larger.

    Where the measured ones fall themselves, what lies between such two stays as it is.

    Args:
        predictions: of the cases.
        cases: that are predicted.
        known: what was measured.
        target: latency or memory.
    """
    there = [entry.case for entry in known]
    places = numbers_of_places([*cases, *there])
    measured: dict[tuple[object, ...], list[tuple[int, float]]] = {}
    for entry, place in zip(known, places[len(cases) :], strict=True):
        if value := entry.value(target):
            line = measured.setdefault(series_key(entry.case, place), [])
            line.append((entry.case.shapes.batch, value))
    models = {str(key[0]) for key in measured}
    ends = np.stack([predictions.value, predictions.low, predictions.high])
    for row, case in enumerate(cases):
        line = measured.get(series_key(case, places[row]), []) if case.model in models else []
        batch = case.shapes.batch
        least = max((value for size, value in line if size < batch), default=0.0)
        most = min((value for size, value in line if size > batch), default=np.inf)
        if line and least <= most:
            _hold(ends[:, row], least, most)
    value, low, high = ends
    return replace(predictions, value=value, low=low, high=high)


def _hold(ends: Floats, least: float, most: float) -> None:
    """A value and its ends between two figures, and as wide about it as a measured one is."""
    value, low, high = ends
    held = min(max(value, least), most)
    low, high = (min(max(end * held / value, least), most) for end in (low, high))
    ends[:] = held, min(low, held / SINGLE), max(high, held * SINGLE)


def series_key(case: PredictedCase, place: int) -> tuple[object, ...]:
    """What cases that differ in their batch alone have in common; place is its configuration's."""
    return case.model, case.part, place, SIZES_WITHOUT_BATCH(case.shapes)


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
            series_key(case, place)
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
        certain = np.zeros(len(weights), dtype=bool)
        certain[predictions.measured] = True
        starts = np.searchsorted(self.number, falling)
        ends = np.searchsorted(self.number, falling, side="right")
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            rows = self.order[start:end]
            # Of its own series alone: what else is asked is not to decide how far one moves.
            weights[rows[certain[rows]]] = _CERTAIN * weights[rows].max()
            for figures in logs:
                figures[rows] = isotonic(figures[rows], weights[rows])
        value, low, high = np.exp(logs)
        rows, pooled = predictions.measured, replace(predictions, value=value, low=low, high=high)
        return pooled.with_values(rows, predictions.value[rows]) if len(rows) else pooled

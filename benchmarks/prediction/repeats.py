"""Cells that the training table has already: their latest figure, and how far repeats differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.signatures import Floats
from prediction.intervals import weighted_quantile
from prediction.measurements import TableMeasurement
from prediction.neighbour_features import cell_of

#: Of repeats, where the training table has none: two runs of one release on a phone.
_PRIOR = 0.05
_FEWEST = 20  # repeats, by which an interval is told


class MeasuredCells:
    """The figures of every measured cell, oldest first."""

    def __init__(self, train: Sequence[TableMeasurement]) -> None:
        self.rows: dict[tuple[str, ...], list[TableMeasurement]] = {}
        for m in train:
            self.rows.setdefault(cell_of(m), []).append(m)
        for several in self.rows.values():
            several.sort(key=lambda m: np.nan_to_num(m.month))
        self.half_width = self._half_width()

    def has(self, m: TableMeasurement) -> bool:
        """Whether the cell was measured."""
        return cell_of(m) in self.rows

    def log_value(self, m: TableMeasurement) -> float:
        """The logarithm of the figure that is nearest in time, the mean of several."""
        several = self.rows[cell_of(m)]
        away = np.array([abs(np.nan_to_num(row.month) - np.nan_to_num(m.month)) for row in several])
        nearest = [row.value for row, far in zip(several, away, strict=True) if far == away.min()]
        return float(np.log(nearest).mean())

    def _half_width(self) -> float:
        """Nine in ten of the changes from one measuring of a cell to its next."""
        changes: list[Floats] = []
        weights: list[Floats] = []
        for several in self.rows.values():
            change = np.abs(np.diff(np.log([m.value for m in several])))
            apart = np.array([
                not row.job or row.job != later.job
                for row, later in pairwise(several)
            ], dtype=bool)  # fmt: skip
            if apart.any():
                changes.append(change[apart])
                weights.append(np.full(int(apart.sum()), 1 / apart.sum()))
        if sum(map(len, changes)) < _FEWEST:
            return _PRIOR
        return weighted_quantile(np.concatenate(changes), np.concatenate(weights), LEVEL)

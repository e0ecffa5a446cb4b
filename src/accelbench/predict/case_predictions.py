"""Predictions of cases: a value, the ends of its interval, and what it rests on. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from accelbench.predict.bases import Basis
from accelbench.predict.cases import MeasuredCase, PredictedCase
from accelbench.predict.graphs import Floats, Ints


@dataclass(frozen=True)
class CasePredictions:
    """Predictions of cases, a place each.

    Attributes:
        value: milliseconds of a step, or megabytes.
        low: with high, where the value lies nine times in ten.
        basis: what each rests on.
        limited: the rows of which what was learned says less than is possible.
        measured: the rows whose value is the one that was measured.
    """

    value: Floats
    low: Floats
    high: Floats
    basis: tuple[Basis, ...]
    limited: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    measured: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def as_measured(
        self,
        cases: Sequence[PredictedCase],
        known: Mapping[PredictedCase, MeasuredCase],
        target: str,
    ) -> CasePredictions:
        """The same with what was measured of a case in place of what was learned of it.

        Args:
            cases: that these are of.
            known: what was measured.
            target: latency or memory.
        """
        rows, values = [], []
        for row, kind in enumerate(self.basis):
            entry = known.get(cases[row]) if kind is Basis.MEASURED else None
            value = entry and entry.value(target)
            if value:
                rows.append(row)
                values.append(value)
        if not rows:
            return self
        measured = np.array(rows, dtype=np.int64)
        limited = np.setdiff1d(self.limited, measured)
        return replace(self, measured=measured, limited=limited).with_values(measured, values)

    def at(self, rows: Ints) -> CasePredictions:
        """Those of some rows, in that order."""
        return CasePredictions(
            self.value[rows], self.low[rows], self.high[rows],
            tuple(self.basis[row] for row in rows.tolist()),
            np.flatnonzero(np.isin(rows, self.limited)),
            np.flatnonzero(np.isin(rows, self.measured)),
        )  # fmt: skip

    def scaled(self, row: int, value: float) -> CasePredictions:
        """The same with another value in a row, and its interval as wide about it as before."""
        by = np.ones(len(self.value))
        by[row] = value / self.value[row]
        return replace(self, value=self.value * by, low=self.low * by, high=self.high * by)

    def with_values(self, rows: Ints, values: Sequence[float] | Floats) -> CasePredictions:
        """The same with some values in place of others, each of them in its interval."""
        value = self.value.copy()
        value[rows] = values
        return replace(
            self, value=value, low=np.minimum(self.low, value), high=np.maximum(self.high, value)
        )

"""Predictions of cases: a value, the ends of its interval, and its basis. Pure numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from accelbench.predict.cases import (
    MeasuredCase,
    PredictedCase,
    numbers_of_places,
)
from accelbench.predict.signatures import Floats, Ints


class Basis(StrEnum):
    """What a prediction rests on, from the nearest to the farthest."""

    MEASURED = "this case, measured"
    OTHER_SIZES = "the model here, at other sizes"
    ELSEWHERE = "the model in another configuration"
    FAMILY = "models of its family in this configuration"
    OTHER_MODELS = "other models in this configuration"
    OTHER_CONFIGURATIONS = "other configurations"
    PEAKS = "vendor peaks alone"


def bases_of(cases: Sequence[PredictedCase], known: Sequence[PredictedCase]) -> list[Basis]:
    """What predictions of cases rest on, by the cases that are known."""
    measured = set(known)
    pairs = {(case.model, case.configuration) for case in known}
    models = {case.model for case in known}
    configurations = {case.configuration for case in known}
    families = {(case.relatives, case.configuration) for case in known}

    def basis(case: PredictedCase) -> Basis:
        model, place = case.model, case.configuration
        if (model, place) in pairs:
            return Basis.OTHER_SIZES
        if place in configurations:
            if model in models:
                return Basis.ELSEWHERE
            return Basis.FAMILY if (case.relatives, place) in families else Basis.OTHER_MODELS
        return Basis.OTHER_CONFIGURATIONS if known else Basis.PEAKS

    bases: dict[tuple[str, int], Basis] = {}
    found = []
    for case, number in zip(cases, numbers_of_places(cases), strict=True):
        key = (case.model, number)
        if key not in bases:
            bases[key] = basis(case)
        kind = bases[key]
        is_measured = kind is Basis.OTHER_SIZES and case in measured
        found.append(Basis.MEASURED if is_measured else kind)
    return found


def left_out_bases(cases: Sequence[PredictedCase], groups: Ints) -> list[Basis]:
    """What each case would rest on without its group."""
    counts = Counter((c.model, c.configuration) for c in cases)
    models = Counter(c.model for c in cases)
    families = Counter((c.relatives, c.configuration) for c in cases)
    own = Counter((group, c.configuration) for c, group in zip(cases, groups.tolist(), strict=True))
    sizes = Counter(groups.tolist())
    bases = []
    for case, group in zip(cases, groups.tolist(), strict=True):
        if counts[case.model, case.configuration] > sizes[group]:
            bases.append(Basis.OTHER_SIZES)
        elif models[case.model] > sizes[group]:
            bases.append(Basis.ELSEWHERE)
        elif families[case.relatives, case.configuration] > own[group, case.configuration]:
            bases.append(Basis.FAMILY)
        else:
            bases.append(Basis.OTHER_MODELS)
    return bases


def with_its_parts(case: PredictedCase) -> object:
    """What a case has in common with the parts of its request, which say nothing of its length."""
    if not case.shapes.new_tokens:
        return case
    return case.model, case.configuration, replace(case.shapes, new_tokens=1)


def numbered_alike(keys: Sequence[object]) -> Ints:
    """The number of each key, equal ones alike."""
    index = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([index[key] for key in keys], dtype=np.int64)


@dataclass(frozen=True)
class CasePredictions:
    """Predictions of cases, a place each.

    Attributes:
        low: with high, where the value lies nine times in ten.
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
        """The same with what was measured of a case in place of what was learned of it."""
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


def joined_predictions(
    parts: Sequence[tuple[Ints, CasePredictions]], count: int
) -> CasePredictions:
    """Return the predictions of so many cases, from those of some of their rows each."""
    value, low, high = np.zeros((3, count))
    basis = [Basis.PEAKS] * count
    limited = np.zeros(count, dtype=bool)
    for rows, part in parts:
        value[rows], low[rows], high[rows] = part.value, part.low, part.high
        limited[rows[part.limited]] = True
        for row, kind in zip(rows.tolist(), part.basis, strict=True):
            basis[row] = kind
    return CasePredictions(value, low, high, tuple(basis), np.flatnonzero(limited))

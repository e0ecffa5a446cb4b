"""How good predictions were: relative errors, bias and coverage of intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.signatures import Floats, Ints


@dataclass(frozen=True)
class Predictions:
    """Logarithms of figures with half the width of their intervals; NaN where there is none."""

    log_value: Floats
    half_width: Floats
    basis: Sequence[str]
    anchor: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # measured to calibrate, not scored


Score = dict[str, float | int | None]


@dataclass(frozen=True)
class EvaluatedCase:
    """One case with what was measured and what was predicted of it, as a picture draws it."""

    model: str
    group: str
    measured: float
    predicted: float
    low: float
    high: float


@dataclass(frozen=True)
class EvaluatedCases:
    """Cases with what was measured and what was predicted of them.

    Attributes:
        measured: milliseconds or megabytes.
        groups: of each what it is told by: its engine, or its hardware.
    """

    target: str
    predictions: Predictions
    measured: Floats
    models: Sequence[str]
    groups: Sequence[str]

    @property
    def rows(self) -> Ints:
        """Those that are scored: with a prediction, and no anchors."""
        known = np.isfinite(self.predictions.log_value) & ~self.predictions.anchor
        return np.flatnonzero(known)

    def score(self, rows: Ints | None = None) -> Score:
        """The scores of some rows, or of all."""
        every = np.arange(len(self.measured))
        return score(self.predictions, self.measured, every if rows is None else rows)

    def score_by_group(self) -> dict[str, Score]:
        """The scores of each group, the largest first."""
        return score_by(self.predictions, self.measured, self.groups)

    def only(self, rows: Ints) -> EvaluatedCases:
        """Some of the cases."""
        picks = [int(row) for row in rows]
        predictions = Predictions(
            self.predictions.log_value[rows],
            self.predictions.half_width[rows],
            [self.predictions.basis[row] for row in picks],
            self.predictions.anchor[rows],
        )
        return EvaluatedCases(
            self.target,
            predictions,
            self.measured[rows],
            [self.models[row] for row in picks],
            [self.groups[row] for row in picks],
        )

    def drawn(self, most: int) -> list[EvaluatedCase]:
        """Scored cases one by one; of more than so many as many, drawn evenly."""
        rows = self.rows
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        log_value, half = self.predictions.log_value, self.predictions.half_width
        return [
            EvaluatedCase(
                self.models[row],
                self.groups[row],
                float(self.measured[row]),
                *(float(np.exp(log_value[row] + sign * half[row])) for sign in (0, -1, 1)),
            )
            for row in map(int, rows)
        ]


def joined_cases(target: str, every: Sequence[EvaluatedCases]) -> EvaluatedCases:
    """Return several cases as one."""
    predictions = Predictions(
        np.concatenate([np.zeros(0), *(some.predictions.log_value for some in every)]),
        np.concatenate([np.zeros(0), *(some.predictions.half_width for some in every)]),
        [basis for some in every for basis in some.predictions.basis],
        np.concatenate([np.zeros(0, dtype=bool), *(some.predictions.anchor for some in every)]),
    )
    return EvaluatedCases(
        target,
        predictions,
        np.concatenate([np.zeros(0), *(some.measured for some in every)]),
        [model for some in every for model in some.models],
        [group for some in every for group in some.groups],
    )


def score(predictions: Predictions, measured: Floats, rows: Ints) -> Score:
    """The scores of some rows; anchors and rows without a prediction are left out."""
    scored = np.array(
        [r for r in rows if not predictions.anchor[r] and np.isfinite(predictions.log_value[r])],
        dtype=np.int64,
    )
    if not len(scored):
        keys = ("mdape", "mape", "within25", "coverage90", "band90", "bias")
        empty: Score = dict.fromkeys(keys)
        return {"n": 0, **empty}
    error = predictions.log_value[scored] - np.log(measured[scored])
    percentage = np.abs(np.expm1(error)) * 100
    covered = np.abs(error) <= predictions.half_width[scored]
    return {
        "n": len(scored),
        "mdape": _rounded(np.median(percentage)),
        "mape": _rounded(percentage.mean()),
        "within25": _rounded((percentage <= 25).mean() * 100),
        "coverage90": _rounded(covered.mean() * 100),
        "band90": _rounded(np.exp(2.0 * np.median(predictions.half_width[scored]))),
        "bias": _rounded(np.expm1(np.median(error)) * 100),
    }


def score_by(predictions: Predictions, measured: Floats, groups: Sequence[str]) -> dict[str, Score]:
    """The scores of each group, the largest first."""
    rows: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        rows.setdefault(group, []).append(number)
    ordered = sorted(rows.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        group: score(predictions, measured, np.array(mine, dtype=np.int64))
        for group, mine in ordered
    }


def _rounded(value: float | np.floating[np.typing.NBitBase]) -> float:
    return round(float(value), 2)

"""How good predictions were: relative errors, bias and coverage of intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.graphs import Floats, Ints


@dataclass(frozen=True)
class Predictions:
    """Logarithms of figures with half the width of their intervals; NaN where there is none."""

    log_value: Floats
    half_width: Floats
    basis: Sequence[str]
    anchor: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]  # measured to calibrate, not scored


Score = dict[str, float | int | None]


def score(predictions: Predictions, measured: Floats, rows: Ints) -> Score:
    """The scores of some rows; anchors and rows without a prediction are left out."""
    scored = np.array(
        [r for r in rows if not predictions.anchor[r] and np.isfinite(predictions.log_value[r])],
        dtype=np.int64,
    )
    if not len(scored):
        empty: Score = dict.fromkeys(("mdape", "mape", "within25", "coverage90", "bias"))
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

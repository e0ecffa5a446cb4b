"""Measurement plan: which cases to measure first, by what they would teach of all others. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.case_predictor import CaseFeatures, CasePredictor
from accelbench.predict.cases import PredictedCase, sizes_of
from accelbench.query.run_words import (
    batch_words,
    mode_words,
    precision_words,
    run_command,
    size_words,
)


@dataclass(frozen=True)
class PlannedMeasurement:
    """A case to measure.

    Attributes:
        case: what.
        command: what measures it.
        deviation: how far the figures asked about may be off once it is measured, in percent, as
            the root of their mean variance.
    """

    case: PredictedCase
    command: str
    deviation: float


@dataclass(frozen=True)
class MeasurementPlan:
    """Cases to measure first, and how far predictions may be off before them, in percent."""

    before: float
    measurements: Sequence[PlannedMeasurement]


def plan(features: CaseFeatures, predictor: CasePredictor, number: int) -> MeasurementPlan:
    """The measurements that lower the deviation of all cases most, the best first.

    Greedy: the next one is what takes most variance from all of the cases together.

    Args:
        features: the cases that are asked about; one of them is measured each time.
        predictor: what is known already.
        number: how many.
    """
    covariance, noise = predictor.covariance(features)
    before = _percent(covariance)
    planned: list[PlannedMeasurement] = []
    for _ in range(min(number, len(features))):
        gain = (covariance**2).sum(axis=0) / (np.diag(covariance) + noise)
        gain[[features.cases.index(entry.case) for entry in planned]] = -1.0
        best = int(np.argmax(gain))
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (covariance[best, best] + noise)
        case = features.cases[best]
        planned.append(PlannedMeasurement(case, command_of(case), _percent(covariance)))
    return MeasurementPlan(before, planned)


def _percent(covariance: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.expm1(np.sqrt(max(np.diag(covariance).mean(), 0.0))) * 100)


def command_of(case: PredictedCase) -> str:
    """The command that measures a case."""
    place = case.configuration
    return run_command(
        case.model,
        place.hardware,
        ("--framework", place.runtime),
        precision_words(place.precision),
        batch_words(case.shapes.batch),
        size_words(sizes_of(case.shapes)),
        mode_words(place.mode),
        ("--compile",) if place.compiled else (),
    )

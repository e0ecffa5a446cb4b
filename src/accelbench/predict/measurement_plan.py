"""Measurement plan: which cases to measure first, by what they would teach of all others.

What they teach is compared with how long measuring them takes, as far as that is predicted. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.core.devices import card_of
from accelbench.core.run_command import (
    batch_arguments,
    mode_arguments,
    precision_arguments,
    run_command,
    size_arguments,
)
from accelbench.core.vocabulary import Mode
from accelbench.predict.case_predictor import CaseFeatures, PredictorsByKind
from accelbench.predict.cases import PredictedCase, sizes_of
from accelbench.predict.questions import is_too_large
from accelbench.predict.signatures import Floats
from accelbench.run.plan.run_forecast import LONG_STEP, SecondsRange, commands_seconds

Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

_MOST_NAMED = 5


@dataclass(frozen=True)
class PlannedMeasurement:
    """A case to measure.

    Attributes:
        deviation: how far the figures asked about may be off once it is measured, in percent, as
            the root of their mean variance.
    """

    case: PredictedCase
    command: str
    deviation: float
    seconds: SecondsRange


@dataclass(frozen=True)
class MeasurementPlan:
    """Cases to measure first, and how far predictions may be off before them, in percent.

    Attributes:
        measurements: in the order in which they are worth their time most.
        slow: models with cases that take minutes a step, and are left out.
        too_large: models with cases that need more memory than there is, and are left out.
    """

    before: float
    measurements: Sequence[PlannedMeasurement]
    seconds: SecondsRange
    slow: Sequence[str] = ()
    too_large: Sequence[str] = ()

    @property
    def left_out(self) -> str:
        """What is left out, as a sentence; empty where nothing is."""
        parts = []
        if self.slow:
            parts.append(f"a minute a step and more: {_named(self.slow)}")
        if self.too_large:
            parts.append(f"more memory than there is: {_named(self.too_large)}")
        return f"Left out, as predicted to take {'; '.join(parts)}." if parts else ""


@dataclass(frozen=True)
class MeasurementCosts:
    """What measuring each of some cases takes, a place each.

    Attributes:
        memory_bytes: that it works in.
        room_bytes: memory that its device has; None where that is not known.
    """

    step: Sequence[SecondsRange]
    memory_bytes: Sequence[float]
    room_bytes: Sequence[float | None]
    weights: Sequence[int]

    @property
    def slow(self) -> Mask:
        """Which take minutes a step."""
        return np.array([step.middle >= LONG_STEP for step in self.step], dtype=bool)

    @property
    def too_large(self) -> Mask:
        """Which need more memory than there is."""
        sizes = zip(self.memory_bytes, self.room_bytes, strict=True)
        return np.array([is_too_large(need, room) for need, room in sizes], dtype=bool)


def most_telling(
    covariance: Floats, noise: float, costs: Floats, number: int
) -> Iterator[tuple[int, Floats]]:
    """Yield the cases to measure first, each with the covariance that remains after it.

    Greedy: the next case is the one that takes most variance from all of them for its cost, which
    is infinite if it cannot be measured.
    """
    open_to = np.isfinite(costs)
    for _ in range(number):
        gain = (covariance**2).sum(axis=0) / (np.diag(covariance) + noise) / costs
        best = int(np.argmax(np.where(open_to, gain, -1.0)))
        open_to[best] = False
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (covariance[best, best] + noise)
        yield best, covariance


def plan(
    features: CaseFeatures, predictor: PredictorsByKind, number: int, costs: MeasurementCosts
) -> MeasurementPlan:
    """Return the measurements that lower the deviation of all cases most for their time.

    One of the cases is measured each time. Cases that take minutes a step or do not fit are left
    out.
    """
    covariance, noise = predictor.covariance(features)
    before = _percent(covariance)
    commands = [
        (step, weights, _is_parted(case))
        for step, weights, case in zip(costs.step, costs.weights, features.cases, strict=True)
    ]
    taken = [commands_seconds([entry]) for entry in commands]
    middle = np.array([seconds.middle for seconds in taken])
    open_to = ~(costs.slow | costs.too_large)
    planned: list[PlannedMeasurement] = []
    chosen: list[int] = []
    costly = np.where(open_to, middle, np.inf)
    count = min(number, int(open_to.sum()))
    for best, remaining in most_telling(covariance, noise, costly, count):
        case = features.cases[best]
        chosen.append(best)
        planned.append(PlannedMeasurement(case, command_of(case), _percent(remaining), taken[best]))
    return MeasurementPlan(
        before,
        planned,
        commands_seconds([commands[place] for place in chosen]),
        _models(features, costs.slow & ~costs.too_large),
        _models(features, costs.too_large),
    )


def _is_parted(case: PredictedCase) -> bool:
    return case.configuration.mode == Mode.TRAINING or bool(case.shapes.new_tokens)


def _models(features: CaseFeatures, which: Mask) -> tuple[str, ...]:
    return tuple(dict.fromkeys(features.cases[int(n)].model for n in np.flatnonzero(which)))


def _named(models: Sequence[str]) -> str:
    more = len(models) - _MOST_NAMED
    return ", ".join(models[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _percent(covariance: Floats) -> float:
    return float(np.expm1(np.sqrt(max(np.diag(covariance).mean(), 0.0))) * 100)


def command_of(case: PredictedCase) -> str:
    """The command that measures a case."""
    place = case.configuration
    return run_command(
        case.model,
        place.hardware,
        ("--framework", place.runtime),
        precision_arguments(place.precision),
        batch_arguments(case.shapes.batch),
        size_arguments(sizes_of(case.shapes)),
        mode_arguments(place.mode),
        ("--compile",) if place.compiled and not _always_compiles(place.runtime) else (),
    )


def _always_compiles(runtime: str) -> bool:
    """Whether a runtime compiles, asked or not: asking it is refused."""
    card = card_of(runtime)
    return bool(card and card.compiles)

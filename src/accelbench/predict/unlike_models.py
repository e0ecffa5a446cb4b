"""What an engine's deviation of a model in one precision says of its other precisions. Pure numpy.

An export that computes every expert of a mixture takes ten times as long as its operators say, in
int8 as in fp32. The process holds precisions for too little alike to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accelbench.predict.cases import CaseConfiguration, PredictedCase, numbers_of_places
from accelbench.predict.graphs import Floats, Ints

#: A model in an engine, whatever the precision.
EngineModel = tuple[str, CaseConfiguration]
#: Of what is carried over so much may be wrong, as a standard deviation.
_UNSURE = 0.5


@dataclass
class CarriedDeviations:
    """By model and engine the logarithm by which it deviates in the precisions that were measured.

    Attributes:
        of: the deviations.
        measured: models in configurations that were measured: they have their own.
    """

    of: Mapping[EngineModel, float]
    measured: frozenset[tuple[str, CaseConfiguration]]

    def __call__(self, cases: Sequence[PredictedCase]) -> tuple[Floats, Floats]:
        """What is added to the logarithm of each case, and to its variance."""
        if not self.of:
            return np.zeros(len(cases)), np.zeros(len(cases))
        # A matrix has a hundred thousand cases of few models in few configurations.
        places = numbers_of_places(cases)
        shifts: dict[tuple[str, int], float] = {}
        for case, place in zip(cases, places, strict=True):
            if (case.model, place) not in shifts:
                shifts[case.model, place] = self._of(case)
        shift = np.array([shifts[c.model, p] for c, p in zip(cases, places, strict=True)])
        return shift, (_UNSURE * shift) ** 2

    def _of(self, case: PredictedCase) -> float:
        if (case.model, case.configuration) in self.measured:
            return 0.0
        return self.of.get(_engine(case), 0.0)


def carried_deviations(
    known: Sequence[PredictedCase],
    unlike: Mapping[tuple[str, CaseConfiguration], float],
    errors: Callable[[Ints], Floats],
) -> CarriedDeviations:
    """The deviations of models that are unlike others in an engine.

    Args:
        known: the measured cases.
        unlike: models that are unlike in a configuration.
        errors: by groups of cases, what each is off by without its group; a negative group stays.
    """
    engines: dict[EngineModel, list[int]] = {}
    for row, case in enumerate(known):
        if (case.model, case.configuration) in unlike:
            engines.setdefault(_engine(case), []).append(row)
    if not engines:
        return CarriedDeviations({}, frozenset())
    groups = np.full(len(known), -1, dtype=np.int64)
    for number, rows in enumerate(engines.values()):
        groups[rows] = number
    off = errors(groups)
    return CarriedDeviations(
        {engine: float(np.median(off[rows])) for engine, rows in engines.items()},
        frozenset((case.model, case.configuration) for case in known),
    )


def _engine(case: PredictedCase) -> EngineModel:
    return case.model, replace(case.configuration, precision="")

"""What predictions of cases rest on: the nearest of what was measured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from accelbench.predict.cases import CaseConfiguration, PredictedCase, numbers_of_places
from accelbench.predict.graphs import Ints


class Basis(StrEnum):
    """What a prediction rests on, from the nearest to the farthest."""

    MEASURED = "this case, measured"
    OTHER_SIZES = "the model here, at other sizes"
    ELSEWHERE = "the model in another configuration"
    OTHER_MODELS = "other models in this configuration"
    OTHER_CONFIGURATIONS = "other configurations"
    PEAKS = "vendor peaks alone"


def bases_of(cases: Sequence[PredictedCase], known: Sequence[PredictedCase]) -> list[Basis]:
    """What predictions of cases rest on, by the cases that are known."""
    measured = set(known)
    pairs = {(case.model, case.configuration) for case in known}
    models = {case.model for case in known}
    configurations = {case.configuration for case in known}
    hardware = {case.configuration.hardware for case in known}

    def basis(model: str, place: CaseConfiguration) -> Basis:
        if (model, place) in pairs:
            return Basis.OTHER_SIZES
        if place in configurations:
            return Basis.ELSEWHERE if model in models else Basis.OTHER_MODELS
        return Basis.OTHER_CONFIGURATIONS if place.hardware in hardware else Basis.PEAKS

    bases: dict[tuple[str, int], Basis] = {}
    found = []
    for case, number in zip(cases, numbers_of_places(cases), strict=True):
        key = (case.model, number)
        if key not in bases:
            bases[key] = basis(case.model, case.configuration)
        kind = bases[key]
        is_measured = kind is Basis.OTHER_SIZES and case in measured
        found.append(Basis.MEASURED if is_measured else kind)
    return found


def left_out_bases(cases: Sequence[PredictedCase], groups: Ints) -> list[Basis]:
    """What each case would rest on without its group."""
    counts = Counter((c.model, c.configuration) for c in cases)
    models = Counter(c.model for c in cases)
    sizes = Counter(groups.tolist())
    bases = []
    for case, group in zip(cases, groups.tolist(), strict=True):
        if counts[case.model, case.configuration] > sizes[group]:
            bases.append(Basis.OTHER_SIZES)
        elif models[case.model] > sizes[group]:
            bases.append(Basis.ELSEWHERE)
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

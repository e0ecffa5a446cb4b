"""By how much a predictor was off where what it rests on was held out, by its own cases. Pure.

A figure that rests on other models says nothing of how far those carry: a store of phones was off
by 87 % in the median on models that it had not seen. Each basis is held out as it is defined: a
case, a model in one configuration, a model, a whole configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.case_predictions import (
    Basis,
    left_out_bases,
    numbered_alike,
    with_its_parts,
)
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.residual_process import ResidualProcess
from accelbench.predict.signatures import Floats

#: Of fewer held-out cases nothing is said of an engine; then all engines count together.
_FEWEST = 10
_NOTHING: Floats = np.zeros(0)


@dataclass(frozen=True)
class HeldOutError:
    """How far predictions of a kind were off.

    Attributes:
        median: of the errors, as a share of what was measured.
        cases: that were held out.
        engine: and platform, that they are of; "" for all.
    """

    median: float
    cases: int
    engine: str = ""


class HeldOutErrors:
    """Errors of a predictor of latency, by what predictions rest on.

    The process is of the residuals of its cases; None if it learned from nothing. `unseen` has the
    error of each case by a predictor that does not know its model, as a logarithm.
    """

    def __init__(
        self,
        cases: Sequence[PredictedCase] = (),
        process: ResidualProcess | None = None,
        unseen: Floats = _NOTHING,
    ) -> None:
        self._cases, self._process, self._unseen = cases, process, unseen
        self._engines = np.array([_engine(case.configuration) for case in cases])
        self._whole = np.array([not case.part for case in cases], dtype=bool)
        self._of: dict[Basis, Floats] = {}
        self._found: dict[tuple[Basis, str], HeldOutError | None] = {}

    def of(self, basis: Basis, place: CaseConfiguration) -> HeldOutError | None:
        """The error of predictions that rest on something, in a configuration's engine.

        Returns:
            None where too few were held out, and of what rests on no other case.
        """
        if basis in (Basis.MEASURED, Basis.PEAKS) or self._process is None:
            return None
        key = basis, _engine(place)
        if key not in self._found:
            self._found[key] = self._look_up(*key, self._process)
        return self._found[key]

    def _look_up(self, basis: Basis, engine: str, process: ResidualProcess) -> HeldOutError | None:
        if basis not in self._of:
            self._of[basis] = np.abs(np.exp(-self._errors(basis, process)) - 1.0)
        errors = self._of[basis]
        for name, rows in ((engine, self._engines == engine), ("", self._whole)):
            some = errors[rows & ~np.isnan(errors)]
            if len(some) >= _FEWEST:
                return HeldOutError(float(np.median(some)), len(some), name)
        return None

    def _errors(self, basis: Basis, process: ResidualProcess) -> Floats:
        """Of each case as a logarithm; NaN of those that would rest on something else."""
        if basis is Basis.OTHER_MODELS:
            return np.where(self._whole, self._unseen, np.nan)
        groups = numbered_alike([_held_with(case, basis) for case in self._cases])
        mean, _ = process.left_out(groups)
        if basis is Basis.OTHER_CONFIGURATIONS:
            kept = self._whole & bool(groups.any())  # else there is no other configuration
        else:
            kinds = left_out_bases(self._cases, groups)
            kept = self._whole & np.array([kind is basis for kind in kinds], dtype=bool)
        return np.where(kept, process.residual - mean, np.nan)


def cases_held_out(error: HeldOutError, place: CaseConfiguration) -> str:
    """How many cases an error is of, and of which engine, in words."""
    engine = _engine(place)
    where = f"of {error.engine}" if error.engine else f"of all engines, {engine} having too few"
    return f"{error.cases:,} cases {where}"


def _held_with(case: PredictedCase, basis: Basis) -> object:
    if basis is Basis.OTHER_CONFIGURATIONS:
        return case.configuration
    if basis is Basis.ELSEWHERE:
        return case.model, case.configuration
    if basis is Basis.FAMILY:
        return case.model
    return with_its_parts(case)


def _engine(place: CaseConfiguration) -> str:
    return f"{place.runtime}/{place.hardware}"

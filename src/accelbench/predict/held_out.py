"""By how much a predictor was off where what it rests on was held out, by its own cases. Pure.

A figure that rests on other models says nothing of how far those carry: a store of phones was off
by 87 % in the median on models that it had not seen. Each basis is held out as it is defined: a
case, a model in one configuration, a model, a whole configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.case_predictions import Basis
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.signatures import Floats

#: Of fewer held-out cases nothing is said of an engine; then all engines count together.
_FEWEST = 10
_NOTHING: Mapping[Basis, Floats] = {}


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
    """Errors of a predictor of latency on its cases, by what predictions rest on.

    `errors` has, by basis, the error of each case with that basis held out, as a logarithm; NaN of
    cases that would rest on something else.
    """

    def __init__(
        self, cases: Sequence[PredictedCase] = (), errors: Mapping[Basis, Floats] = _NOTHING
    ) -> None:
        self._engines = np.array([_engine(case.configuration) for case in cases])
        self._whole = np.array([not case.part for case in cases], dtype=bool)
        self._errors = errors
        self._found: dict[tuple[Basis, str], HeldOutError | None] = {}

    def of(self, basis: Basis, place: CaseConfiguration) -> HeldOutError | None:
        """The error of predictions that rest on something, in a configuration's engine.

        Returns:
            None where too few were held out, and of what rests on no other case.
        """
        key = basis, _engine(place)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, basis: Basis, engine: str) -> HeldOutError | None:
        if basis not in self._errors:
            return None
        errors = self._errors[basis]
        counted = self._whole & ~np.isnan(errors)
        for name, rows in ((engine, counted & (self._engines == engine)), ("", counted)):
            if np.count_nonzero(rows) >= _FEWEST:
                shares = np.abs(np.exp(-errors[rows]) - 1.0)
                return HeldOutError(float(np.median(shares)), len(shares), name)
        return None


def cases_held_out(error: HeldOutError, place: CaseConfiguration) -> str:
    """How many cases an error is of, and of which engine, in words."""
    engine = _engine(place)
    where = f"of {error.engine}" if error.engine else f"of all engines, {engine} having too few"
    return f"{error.cases:,} cases {where}"


def _engine(place: CaseConfiguration) -> str:
    return f"{place.runtime}/{place.hardware}"

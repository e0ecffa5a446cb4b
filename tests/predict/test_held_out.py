"""What is said of figures whose kind was poor where it was held out."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_cases import HERE, THERE, made_case

from accelbench.predict.case_predictions import Basis
from accelbench.predict.cases import PredictedCase, off_held_out, poor_notes
from accelbench.predict.held_out import HeldOutError, HeldOutErrors, cases_held_out

CASES = [made_case(model, place, 1).case for model in range(12) for place in (HERE, THERE)]
ENGINE = f"{HERE.runtime}/{HERE.hardware}"


def errors(cases: list[PredictedCase]) -> HeldOutErrors:
    """Predictions are four times what was measured, of unseen models five times."""
    by = {Basis.ELSEWHERE: 0.25, Basis.OTHER_MODELS: 0.2, Basis.OTHER_SIZES: np.nan}
    return HeldOutErrors(cases, {basis: np.full(len(cases), np.log(x)) for basis, x in by.items()})


def test_errors_on_what_was_held_out():
    # Each basis has the error of what is held out so.
    held = errors(CASES)
    seen = held.of(Basis.ELSEWHERE, HERE)
    unseen = held.of(Basis.OTHER_MODELS, HERE)
    assert seen is not None
    assert unseen is not None
    assert seen.median == pytest.approx(3.0)  # four times what was measured
    assert unseen.median == pytest.approx(4.0)
    assert held.of(Basis.OTHER_SIZES, HERE) is None  # no model was measured at two sizes
    assert held.of(Basis.MEASURED, HERE) is None
    assert held.of(Basis.PEAKS, HERE) is None
    assert HeldOutErrors().of(Basis.OTHER_MODELS, HERE) is None
    # Of an engine with too few cases all are counted and it is said.
    cases = [made_case(model, HERE, 1).case for model in range(12)]
    held = errors(cases)
    other = made_case(1, THERE, 1).case
    found = held.of(Basis.OTHER_MODELS, THERE)
    assert found is not None
    assert (found.engine, found.cases) == ("", 12)
    words = cases_held_out(found, other.configuration)
    assert words == f"12 cases of all engines, {THERE.runtime}/{THERE.hardware} having too few"
    assert off_held_out(found.median, words) == f"400% ({words})"
    # A store of phones, off by 87 % on models that it had not seen, said nothing of it.
    words = cases_held_out(HeldOutError(0.87, 292, ENGINE), HERE)
    models = Basis.OTHER_MODELS.value
    poor, good = (models, 0.87, words), (Basis.ELSEWHERE.value, 0.2, words)
    (note,) = poor_notes([poor, poor, good, (Basis.PEAKS.value, None, None)])
    assert f"off in the median by 87% (292 cases of {ENGINE})" in note
    assert Basis.OTHER_MODELS.value in note

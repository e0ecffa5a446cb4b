"""Errors of a store's own predictors on models that they had not seen, and a plan to lower them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelbench.predict.case_predictor import CasePredictor
from accelbench.predict.graphs import Floats
from accelbench.predict.intervals import LEVEL
from accelbench.predict.scoring import Predictions, score, score_by

_FOLDS = 5


def evaluate_own(predictors: Mapping[str, CasePredictor], seed: int = 0) -> dict[str, Any]:
    """Scores by target: every model predicted from all others.

    Intervals are as wide as nine in ten errors, standardised, of the models of other folds.
    """
    return {target: _scores(predictor, seed) for target, predictor in predictors.items()}


def _scores(predictor: CasePredictor, seed: int) -> dict[str, Any]:
    if not len(predictor.known):
        return {"n": 0}
    error, standard = predictor.errors_of_unseen_models(seed)
    models = [case.model for case in predictor.known.cases]
    deviation = np.abs(error) / np.maximum(standard, 1e-9)
    half = _widths(standard, models, seed) * deviation
    count = len(error)
    predictions = Predictions(
        predictor.log_values - error, half, ("unseen model",) * count, np.zeros(count, dtype=bool)
    )
    measured = np.exp(predictor.log_values)
    engines = [
        f"{case.configuration.runtime}/{case.configuration.hardware}"
        for case in predictor.known.cases
    ]
    return {
        **score(predictions, measured, np.arange(count)),
        "models": len(set(models)),
        "per_engine": score_by(predictions, measured, engines),
        "per_model": score_by(predictions, measured, models),
    }


def _widths(standard: Floats, models: Sequence[str], seed: int) -> Floats:
    """Each case's half interval as standard deviations, from the models of other folds."""
    names = list(dict.fromkeys(models))
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {name: int(place) % _FOLDS for name, place in zip(names, order, strict=True)}
    folds = np.array([fold[name] for name in models])
    widths = np.full(len(standard), np.nan)
    for number in range(_FOLDS):
        others = standard[folds != number]
        if len(others):
            widths[folds == number] = np.quantile(others, LEVEL, method="higher")
    return widths

"""Errors of a store's own predictors on models that they had not seen, and a plan to lower them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accelbench.predict.case_predictor import CasePredictor
from accelbench.predict.cases import DECODE, LATENCY, PREFILL
from accelbench.predict.graphs import Floats
from accelbench.predict.intervals import LEVEL
from accelbench.predict.scoring import EvaluatedCases, Predictions, score_by

_FOLDS = 5
#: What the times of a request's parts are called, beside the targets.
_PARTS = {PREFILL: "time to first token", DECODE: "time per token after it"}


def own_cases(predictors: Mapping[str, CasePredictor], seed: int = 0) -> dict[str, EvaluatedCases]:
    """Every measured case by target, its model predicted from all others.

    Intervals are as wide as nine in ten errors, standardised, of the models of other folds.
    """
    cases = {target: _cases(predictor, seed) for target, predictor in predictors.items()}
    for part, name in _PARTS.items():
        timed = _cases(predictors[LATENCY], seed, part)
        if len(timed.measured):
            cases[name] = replace(timed, target=name)
    return cases


def own_scores(cases: Mapping[str, EvaluatedCases]) -> dict[str, Any]:
    """Scores by target, as JSON holds them."""
    return {target: _scores(entry) for target, entry in cases.items()}


def _cases(predictor: CasePredictor, seed: int, part: str = "") -> EvaluatedCases:
    known = predictor.known.cases
    if not known:
        nothing = np.zeros(0)
        unpredicted = Predictions(nothing, nothing, (), nothing.astype(bool))
        return EvaluatedCases(predictor.target, unpredicted, nothing, (), ())
    error, standard = predictor.unseen or predictor.errors_of_unseen_models(seed)
    models = [case.model for case in known]
    deviation = np.abs(error) / np.maximum(standard, 1e-9)
    half = _widths(standard, models, seed) * deviation
    count = len(error)
    predictions = Predictions(
        predictor.log_values - error, half, ("unseen model",) * count, np.zeros(count, dtype=bool)
    )
    engines = [f"{case.configuration.runtime}/{case.configuration.hardware}" for case in known]
    cases = EvaluatedCases(
        predictor.target, predictions, np.exp(predictor.log_values), models, engines
    )
    return cases.only(np.flatnonzero([case.part == part for case in known]))


def _scores(cases: EvaluatedCases) -> dict[str, Any]:
    if not len(cases.measured):
        return {"n": 0}
    return {
        **cases.score(),
        "models": len(set(cases.models)),
        "per_engine": cases.score_by_group(),
        "per_model": score_by(cases.predictions, cases.measured, cases.models),
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

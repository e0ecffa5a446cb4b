"""Scores of a store's predictor: of its own cases, each model held out, or of two tables.

Tables are imported as `accelbench db import tidy` imports them, each into a store of its own. What
the predictor sees of them, and what it answers, is therefore what users get.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_count, join_first
from accelbench.predict.answers import MIDDLE_FACTOR, MIDDLE_PEAKS
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import (
    CaseFeatures,
    CasePredictor,
    PredictorsByKind,
    grids_of,
)
from accelbench.predict.cases import (
    DECODE,
    LATENCY,
    PREFILL,
    TARGETS,
    MeasuredCase,
    PredictedCase,
)
from accelbench.predict.device_limits import LEVEL
from accelbench.predict.graph_file_models import TableModels, operator_models
from accelbench.predict.measurement_plan import most_telling
from accelbench.predict.monotone import rising_with_batch, with_nodes
from accelbench.predict.scoring import EvaluatedCases, Predictions, joined_cases, score_by
from accelbench.predict.signatures import Floats
from accelbench.predict.stored_cases import StoredCases, stored_cases
from accelbench.predict.stored_predictors import drawn_evenly, fitted_predictors
from accelbench.predict.terms import TracedCase, peaks_are_known
from accelbench.predict.traces import Traces

#: Of a device's cases so many can be anchors at most: choosing takes the square of them.
_MOST_CANDIDATES = 1000
_MOST_NAMED = 5


@dataclass(frozen=True)
class TableRequest:
    """Tables to learn from and to predict.

    Attributes:
        graph_features: operators of models that the catalogue does not have.
        anchors: measurements of each device of the test table that are learned from too.
    """

    train: tuple[Path, ...]
    test: Path
    graph_features: Path | None = None
    anchors: int = 0
    target: str = LATENCY


def evaluate_tables(
    request: TableRequest, hear: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Any], EvaluatedCases]:
    """Return the scores as JSON holds them, and the cases of the test table.

    Raises:
        UsageError: a table cannot be read, or nothing of the test table can be predicted.
    """
    if request.target not in TARGETS:
        raise UsageError("--target takes latency or memory.", "Leave it out for latency.")
    if request.anchors < 0:
        raise UsageError("--anchors takes a number of measurements, 0 or more.")
    started = time.monotonic()
    models = TableModels()
    if request.graph_features is not None:
        models |= operator_models(request.graph_features)
    traces = Traces(own=models, hear=hear)
    hear("Reading the tables …")
    train = _imported(request.train, models)
    test = _imported((request.test,), models)
    measured, of_draw = drawn_evenly(
        [entry for entry in train.cases if entry.value(request.target)]
    )
    traces.own |= {**test.named_models, **train.named_models}
    measured = [*measured, *(entry for entry in train.named if entry.value(request.target))]
    asked = [entry for entry in (*test.cases, *test.named) if entry.value(request.target)]
    traced, failures = traces.of_cases([entry.case for entry in (*measured, *asked)])
    operators = {entry.case: entry for entry in traced}
    notes = [*of_draw, *map(str, failures.values())]
    asked = [entry for entry in asked if entry.case in operators]
    known = PredictorsByKind(request.target, {}, grids_of(measured, request.target))
    answered = known.is_answerable([entry.case for entry in asked])
    notes += _unpredicted([entry for entry, is_ in zip(asked, answered, strict=True) if not is_])
    asked = [entry for entry, is_ in zip(asked, answered, strict=True) if is_]
    if not asked:
        raise UsageError(
            f"Nothing of {request.test.name} is predicted: no {request.target} of a model whose"
            " operators are known.",
            "Name a table of operators: --graph-features.",
        )
    hear(f"Learning from {format_count(len(measured), 'case')} …")
    predictor = fitted_predictors(measured, operators, request.target)
    anchors = _anchors(predictor, asked, operators, request.anchors)
    if anchors:
        measured = [*measured, *(asked[row] for row in anchors)]
        predictor = fitted_predictors(measured, operators, request.target)
    cases = _evaluated(predictor, measured, asked, operators, anchors)
    modes = [entry.case.configuration.mode for entry in asked]
    return {
        "target": request.target,
        "anchors": request.anchors,
        "learned_from": len(predictor),
        **cases.score(),
        "per_hardware": cases.score_by_group(),
        "per_basis": score_by(cases.predictions, cases.measured, cases.predictions.basis),
        "per_mode": score_by(cases.predictions, cases.measured, modes),
        "notes": notes,
        "seconds": round(time.monotonic() - started, 2),
    }, cases


def _imported(tables: Sequence[Path], models: TableModels) -> StoredCases:
    """Return the measured cases of tables, as a store that imported them has them."""
    from accelbench.exchange.imports.reading import read_import
    from accelbench.store.database import Database
    from accelbench.store.files import create_temporary_folder

    scratch = create_temporary_folder()
    try:
        database = Database(scratch.folder / "tables.duckdb")
        for table in tables:
            content = read_import("tidy", table)
            database.bring_in(content.run_id, content.facts, content.bodies, content.queries)
        return stored_cases(database, models)
    finally:
        scratch.close()


def _unpredicted(unknown: Sequence[MeasuredCase]) -> list[str]:
    """Return a sentence about models without operators that were not measured, if there are any."""
    counts = Counter(entry.case.model for entry in unknown)
    if not counts:
        return []
    names = [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    note = (
        f"{len(unknown):,} results are not predicted: the operators of their models are unknown,"
        f" and no other device measured them ({join_first(names, _MOST_NAMED)})"
    )
    return [note]


def _anchors(
    predictor: PredictorsByKind,
    asked: Sequence[MeasuredCase],
    operators: Mapping[PredictedCase, TracedCase],
    number: int,
) -> list[int]:
    """Return the rows of each device that `--suggest-anchors` would measure first."""
    if not number:
        return []
    by_device: dict[tuple[str, str], list[int]] = {}
    for row, entry in enumerate(asked):
        place = entry.case.configuration
        by_device.setdefault((place.hardware, place.device), []).append(row)
    anchors: list[int] = []
    for rows in by_device.values():
        if len(rows) > _MOST_CANDIDATES:
            drawn = np.random.default_rng(0).choice(len(rows), _MOST_CANDIDATES, replace=False)
            rows = [rows[int(place)] for place in np.sort(drawn)]
        features = CaseFeatures.of([operators[asked[row].case] for row in rows], predictor.target)
        covariance, noise = predictor.covariance(features)
        chosen = most_telling(covariance, noise, np.ones(len(rows)), min(number, len(rows)))
        anchors += [rows[place] for place, _ in chosen]
    return anchors


def _evaluated(
    predictor: PredictorsByKind,
    measured: Sequence[MeasuredCase],
    asked: Sequence[MeasuredCase],
    operators: Mapping[PredictedCase, TracedCase],
    anchors: Sequence[int],
) -> EvaluatedCases:
    target = predictor.target
    traced = [operators[entry.case] for entry in asked]
    nodes = with_nodes(traced, measured)
    made = rising_with_batch(nodes, measured, target, predictor.predict_traced)
    truth = np.array([entry.value(target) for entry in asked])
    half, bases = _half_widths(made, truth), [kind.value for kind in made.basis]
    for row, kind in enumerate(made.basis):
        if kind is Basis.PEAKS and not peaks_are_known(asked[row].case.configuration):
            bases[row], half[row] = MIDDLE_PEAKS, np.log(MIDDLE_FACTOR)
    is_anchor = np.zeros(len(asked), dtype=bool)
    is_anchor[list(anchors)] = True
    return EvaluatedCases(
        target,
        Predictions(np.log(made.value), half, bases, is_anchor),
        truth,
        [entry.case.model for entry in asked],
        [entry.case.configuration.device for entry in asked],
    )


def _half_widths(made: CasePredictions, truth: Floats) -> Floats:
    """Return the part of each interval on the side on which the measured value lies."""
    above, below = np.log(made.high / made.value), np.log(made.value / made.low)
    return np.asarray(np.where(truth > made.value, above, below))


_FOLDS = 5
#: What the times of a request's parts are called, beside the targets.
_PARTS = {PREFILL: "time to first token", DECODE: "time per token after it"}


def own_cases(
    predictors: Mapping[str, PredictorsByKind], seed: int = 0
) -> dict[str, EvaluatedCases]:
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


def _cases(predictors: PredictorsByKind, seed: int, part: str = "") -> EvaluatedCases:
    every = [_cases_of_kind(one, seed) for one in predictors.of.values()]
    whole = joined_cases(predictors.target, every)
    known = [case for one in predictors.of.values() for case in one.known.cases]
    return whole.only(np.flatnonzero([case.part == part for case in known]))


def _cases_of_kind(predictor: CasePredictor, seed: int) -> EvaluatedCases:
    known = predictor.known.cases
    error, standard = predictor.unseen or predictor.errors_of_unseen_models(seed)
    models = [case.model for case in known]
    deviation = np.abs(error) / np.maximum(standard, 1e-9)
    half = _widths(standard, models, seed) * deviation
    count = len(error)
    predictions = Predictions(
        predictor.log_values - error, half, ("unseen model",) * count, np.zeros(count, dtype=bool)
    )
    engines = [f"{case.configuration.runtime}/{case.configuration.hardware}" for case in known]
    return EvaluatedCases(
        predictor.target, predictions, np.exp(predictor.log_values), models, engines
    )


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

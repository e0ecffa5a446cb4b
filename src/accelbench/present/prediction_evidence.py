"""How good a store's predictor is, for report and dashboard: errors on unseen models, scaling.

The predictor is the one kept beside the store; that of a small store is fitted, and not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import TYPE_CHECKING

from accelbench.core.formatting import format_count
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import Mode
from accelbench.models.find import find_exact
from accelbench.present.charts.chart import ChartLabel, Picture, pictured
from accelbench.present.charts.predicted import evaluation_picture, predicted_by_batch
from accelbench.present.charts.words import left_out
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictionAnswer
    from accelbench.predict.cases import MeasuredCase, PredictedCase
    from accelbench.predict.scoring import EvaluatedCases
    from accelbench.predict.stored_cases import StoredCases
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.store.database import Database

BATCH_SCALING = ChartLabel(
    "batch-scaling",
    phrase("report.scaling-title"),
    phrase("report.scaling-answers"),
    phrase("report.scaling-needs"),
)
#: Fewer say nothing of how good predictions are: a fold has to have others to learn from.
FEWEST_CASES, FEWEST_MODELS = 10, 3
#: More are not fitted for a page: 300 take a second of one core, 1,500 ten; kept ones 0.05 and 1.
MOST_FITTED = 300
#: A picture has room for so many.
_MOST_SCALED = 4
#: The largest batch that is predicted is so many times the largest that was measured.
_FURTHER = 4
#: Of a case what tells it from others in a report: the model, where, and how.
CaseKey = tuple[str, str, str, str, str, str, int]
_SCALED = phrase("report.scaling-note")


@dataclass(frozen=True)
class PredictionEvidence:
    """What is known of a store's predictor."""

    #: of each target the measured cases, each predicted by who does not know its model
    cases: Mapping[str, EvaluatedCases] = field(default_factory=dict)
    #: predictions over batches of models that were measured at several
    scaling: PredictionAnswer | None = None
    not_scaled: int = 0  # models with several batches that are not among them
    why: str = ""  # in a sentence, why there are no cases; empty where there are

    @property
    def picture(self) -> Picture | None:
        """Predicted against measured."""
        return evaluation_picture([*self.cases.values()], phrase("report.leave-one-out"))

    @property
    def scaling_picture(self) -> Picture | None:
        """Batch scaling; None where nothing was measured at two batches."""
        if self.scaling is None:
            return None
        more = left_out(self.not_scaled, "model", advice="accelbench predict MODEL --plot FILE")
        drawn = predicted_by_batch(self.scaling.figures, self.scaling.knees, [_SCALED, *more])
        return None if drawn is None else pictured(BATCH_SCALING, drawn)


def evidence_in(
    database: Database, among: Callable[[PredictedCase], bool] = lambda _: True
) -> PredictionEvidence:
    """What a store says of its own predictor; `among` tells which cases are judged and scaled."""
    from accelbench.predict.stored_cases import stored_cases

    stored = stored_cases(database)
    kept = [entry for entry in stored.cases if among(entry.case)]
    if why := _too_few(kept):
        return PredictionEvidence(why=why)
    predictors = _predictors(database, stored)
    if predictors is None:
        return PredictionEvidence(why=_not_learned(stored))
    return _judged(predictors, kept, among)


def scaling_of(database: Database, model: str) -> tuple[Picture | None, str]:
    """Predictions of one model over batches; else why there are none."""
    from accelbench.predict.stored_cases import stored_cases

    stored = stored_cases(database)
    if why := _too_few(stored.cases):
        return None, why
    predictors = _predictors(database, stored)
    if predictors is None:
        return None, _not_learned(stored)
    known = find_exact(model)
    names = {model} if known is None else {model, known.id}
    ours = [entry for entry in stored.cases if entry.case.model in names]
    works = _several_batches(ours, 1)[:_MOST_SCALED]
    evidence = PredictionEvidence(scaling=_scaling(predictors, works))
    picture = evidence.scaling_picture if works else None
    if known is None and picture is None:
        return None, (phrase("report.operators-unknown"))
    return picture, "" if picture else phrase("report.batch-not-learned")


def _too_few(cases: Sequence[MeasuredCase]) -> str:
    models = {entry.case.model for entry in cases}
    if len(cases) >= FEWEST_CASES and len(models) >= FEWEST_MODELS:
        return ""
    return phrase(
        "report.too-few-cases",
        fewest_cases=FEWEST_CASES,
        fewest_models=FEWEST_MODELS,
        cases=format_count(len(cases), "case"),
        models=format_count(len(models), "model"),
    )


def _not_learned(stored: StoredCases) -> str:
    return phrase("report.not-learned", cases=len(stored.cases))


def _predictors(database: Database, stored: StoredCases) -> Predictors | None:
    from accelbench.predict.stored_predictors import kept_predictors, predictors_of
    from accelbench.predict.traces import Traces

    kept = kept_predictors(database, stored)
    if kept is not None or len(stored.cases) > MOST_FITTED:
        return kept
    return predictors_of(database, Traces(trace=False), keep=False)


def _judged(
    predictors: Predictors, kept: Sequence[MeasuredCase], among: Callable[[PredictedCase], bool]
) -> PredictionEvidence:
    import numpy as np

    from accelbench.predict.evaluation import own_cases

    scored = own_cases(predictors.of)
    cases = {
        target: scored[target].only(np.flatnonzero([among(case) for case in predictor.whole]))
        for target, predictor in predictors.of.items()
    }
    scaled = _several_batches(kept)
    shown = scaled[:_MOST_SCALED]
    return PredictionEvidence(cases, _scaling(predictors, shown), len(scaled) - len(shown))


#: Measured cases of a model at sizes, a list for each configuration.
_Lines = list[list["PredictedCase"]]


def _several_batches(kept: Iterable[MeasuredCase], fewest: int = 2) -> list[_Lines]:
    lines: dict[tuple[object, ...], list[PredictedCase]] = {}
    for entry in kept:
        case = entry.case
        if entry.latency_ms and case.configuration.mode == Mode.INFERENCE:
            work = (case.model, replace(case.shapes, batch=1))
            lines.setdefault((*work, case.configuration), []).append(case)
    works: dict[tuple[object, ...], _Lines] = {}
    for (model, alike, _), line in lines.items():
        if len(line) >= fewest:
            works.setdefault((model, alike), []).append(line)
    return sorted(works.values(), key=lambda several: -sum(map(len, several)))


def _scaling(predictors: Predictors, works: Iterable[_Lines]) -> PredictionAnswer | None:
    from accelbench.predict.answers import answer
    from accelbench.predict.traces import Traces

    cases = [
        replace(line[0], shapes=replace(line[0].shapes, batch=batch))
        for lines in works
        for line in lines
        for batch in _around([case.shapes.batch for case in line])
    ]
    if not cases:
        return None
    traces = Traces(trace=False)
    measured = predictors.stored.learnable
    scaling = answer(cases, predictors.of, measured, traces, predictors.calibrated)
    # Without their operators they would be predicted by others' terms than were learned from.
    coarse = traces.left_out
    scaling.figures = [entry for entry in scaling.figures if entry["model"] not in coarse]
    scaling.knees = [knee for knee in scaling.knees if knee["model"] not in coarse]
    return scaling


def _around(batches: Sequence[int]) -> list[int]:
    powers = range(ceil(log2(min(batches))), ceil(log2(_FURTHER * max(batches))) + 1)
    return sorted({*batches, *(2**power for power in powers)})


def among_rows(rows: Iterable[Row]) -> Callable[[PredictedCase], bool]:
    """Whether a case is one of those that results are of."""
    keys = {_key_of(row) for row in rows} - {None}

    def among(case: PredictedCase) -> bool:
        place = case.configuration
        return (
            case.model, place.hardware, place.device, place.runtime, place.precision, place.mode,
            case.shapes.batch,
        ) in keys  # fmt: skip

    return among


def _key_of(row: Row) -> CaseKey | None:
    spec = find_exact(text(row, "model"))
    if spec is None:
        return None
    return (
        spec.id, text(row, "hardware"), text(row, "device_name"), text(row, "runtime"),
        text(row, "precision") or "fp32", text(row, "mode") or Mode.INFERENCE,
        int(number(row, "batch_size") or 1),
    )  # fmt: skip

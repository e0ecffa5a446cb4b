"""Predictions of candidates that have no figure: for the answer alone, never for its order.

What a candidate is ranked by stays what was measured, an estimate from that, or the rules. A
prediction from vendor peaks is off by a factor of three either way: it says what to expect, not who
is first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.predict.cases import shapes_from
from accelbench.predict.questions import PredictionQuestion, cases_of
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.query.query import Query

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.predict.traces import Traces
    from accelbench.store.database import Database

_EXACT = "fp32"


class CandidatePredictions:
    """Predicts cases by what a database has measured, and by vendor peaks where it has nothing.

    Args:
        database: what to learn from; None where nothing was measured.
        device_here: the name of a platform's device on this machine; None where it has none.
    """

    def __init__(self, database: Database | None, device_here: Callable[[str], str | None]) -> None:
        self._database = database
        self._device_here = device_here

    def of(self, query: Query, candidates: Iterable[Candidate]) -> dict[str, PredictedFigures]:
        """The prediction of each candidate, by its name; of none where nothing is known of it.

        Operators are known of the catalogue's models alone.
        """
        if query.spec is None:
            return {}
        question = PredictionQuestion(
            models=(query.spec,),
            batches=(query.batch,),
            sizes=(shapes_from(query.batch, query.shapes),),
            precisions=(query.precision,) if query.precision else (),
            mode=query.mode,
        )
        predictions = {
            candidate.name: self._fastest(question, candidate) for candidate in candidates
        }
        return {name: figures for name, figures in predictions.items() if figures is not None}

    def _fastest(
        self, question: PredictionQuestion, candidate: Candidate
    ) -> PredictedFigures | None:
        """Of the ways that were measured there the fastest; exact ones, where none is named."""
        from accelbench.predict.answers import answer

        named = f"{candidate.platform}:{candidate.device.removeprefix('=')}".removesuffix(":")
        known = self._predictors
        measured = known.stored.cases
        try:
            cases = cases_of(
                replace(question, hardware=(named,)), measured, self._device_here, known.calibrated
            )
        except UsageError:  # nothing was measured there, and no document gives its peaks
            return None
        figures = answer(cases.cases, known.of, measured, self._traces, known.calibrated).figures
        # Without its operators a model would be predicted by others' terms than were learned from.
        if question.models[0].id in self._traces.left_out:
            return None
        exact = [entry for entry in figures if entry["precision"] == _EXACT]
        some = figures if question.precisions else exact or figures
        return min(some, key=lambda entry: entry["latency_ms"], default=None)

    @cached_property
    def _traces(self) -> Traces:
        from accelbench.predict.traces import Traces

        return Traces(trace=False)

    @cached_property
    def _predictors(self) -> Predictors:
        from accelbench.predict.stored_predictors import predictors_of

        return predictors_of(self._database, self._traces)

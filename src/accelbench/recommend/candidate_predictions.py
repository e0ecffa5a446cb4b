"""Predictions of candidates, by the predictors of `accelbench predict`, with their joint error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.precision import PRECISIONS, bytes_per_weight, is_quantised
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.predict.cases import shapes_from
from accelbench.predict.questions import PredictionQuestion, cases_of, is_too_large, memory_words
from accelbench.recommend.config import BROWSERS
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.model_evidence import own_shapes
from accelbench.recommend.figures import Figure, predicted_figure
from accelbench.recommend.platform_rules import is_generation
from accelbench.recommend.query import GENERATING, Query

if TYPE_CHECKING:
    from accelbench.core.model import ModelSpec
    from accelbench.predict.cases import MeasuredCase, PredictedCase
    from accelbench.predict.graph_file_models import FileModel
    from accelbench.predict.signatures import Floats
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.predict.traces import Traces
    from accelbench.store.database import Database


#: The smallest precision that is not quantised, for weights whose precision is free.
_SMALLEST = "bf16"
#: The held-out errors of more cases take longer than an answer may.
_MOST_ERRORS = 2_000
#: Engines; None is one that a source does not record.
Engines = frozenset[str | None]
#: Devices of the named machine by platform; None if no machine is named.
MachineDevices = Callable[[], Mapping[str, Sequence[str]] | None]


@dataclass(frozen=True)
class PredictedCandidates:
    """Predictions by the candidates' names.

    Attributes:
        of: the predicted configurations of each candidate.
        correlation: of the logarithms of their errors, by the numbers of the figures.
        too_large: why candidates do not fit by their weights alone.
    """

    of: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    correlation: Floats | None = None
    too_large: Mapping[str, str] = field(default_factory=dict)


class CandidatePredictions:
    """Predictions from the results of a database, else from vendor peaks.

    `hear` is called before a predictor is fitted.
    """

    def __init__(
        self,
        database: Database | None,
        device_here: Callable[[str], str | None],
        machine_devices: MachineDevices = lambda: None,
        memory: Callable[[str, str], int | None] = lambda *_: None,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._hear = hear
        self._database = database
        self._device_here = device_here
        self._machine_devices = machine_devices
        self._memory = memory
        self._known: tuple[object, Predictors, Traces] | None = None
        self._files: dict[str, FileModel] = {}
        self._measured: tuple[object, dict[str, list[MeasuredCase]]] | None = None

    def model(self, name: str) -> ModelSpec | None:
        """Return a model of the tables of operators next to the database, or of a file; or None."""
        from accelbench.models.find import find_exact
        from accelbench.predict.graph_file_models import file_model, kept_operators, names_a_file

        tables = None if self._database is None else kept_operators(self._database.path)
        entry = self._files.get(name) or (tables.find(name) if tables else None)
        if entry is None and name and find_exact(name) is None and names_a_file(name):
            try:
                entry = self._files[name] = file_model(name, (Shapes(1),))
            except UsageError:  # its results have its name, and its file may be elsewhere
                return None
        return None if entry is None else entry.spec

    def of(
        self,
        query: Query,
        candidates: Iterable[Candidate],
        sizes: Mapping[str, int],
        failed: Mapping[str, Engines] = MappingProxyType({}),
        batches: Sequence[int] = (),
    ) -> PredictedCandidates:
        """Return the predictions of candidates, at the batch of the question or at several."""
        several = list(candidates)
        if query.spec is None or not several:
            return PredictedCandidates(too_large=self._by_weights(query, several))
        known, traces = self._predictors()
        wanted = dict(sizes or own_shapes(query.spec))
        if query.mode == Mode.TRAINING:
            wanted = {name: size for name, size in wanted.items() if name not in GENERATING}
        elif not is_generation(query, sizes):
            wanted["new_tokens"] = 0  # a forward pass
        question = PredictionQuestion(
            models=(query.spec,),
            batches=tuple(batches) or (query.batch,),
            sizes=(shapes_from(query.batch, wanted),),
            precisions=(query.precision,) if query.precision else (),
            mode=query.mode,
            every_way=True,
        )
        cases = {
            candidate.name: self._cases(
                question, candidate, known, failed.get(candidate.name, frozenset())
            )
            for candidate in several
        }
        figures, correlation = self._figures(cases, known, traces)
        # Without its operators a model has no terms like those of the training data.
        if query.spec.id in traces.coarse:
            figures = {}
        without = [candidate for candidate in several if not figures.get(candidate.name)]
        return PredictedCandidates(figures, correlation, self._by_weights(query, without))

    def _cases(
        self, question: PredictionQuestion, candidate: Candidate, known: Predictors, failed: Engines
    ) -> list[PredictedCase]:
        """Return the cases of the configurations of a candidate that may be predicted."""
        device, platform = candidate.device.removeprefix("="), candidate.platform
        machine = self._machine_devices()
        names: Sequence[str] = (device,)
        if machine is not None:
            some = machine.get(platform, ())
            names = [name for name in some if device.lower() in name.lower()]
        cases: dict[PredictedCase, None] = {}
        measured = self._measured_on(platform, known)
        for name in names:
            word = f"{platform}:{name}".removesuffix(":")
            made = self._cases_on(word, question, measured, known)
            of_others = all(entry.provenance == Provenance.IMPORTED for entry in measured)
            here = None if device or machine is not None else self._device_here(platform)
            if made and of_others and here is not None:
                # What others measured are their devices: the one here is asked about too.
                made += self._cases_on(platform, question, (), known)
            cases |= dict.fromkeys(
                case
                for case in made
                if case.configuration.device not in candidate.but
                and case.configuration.runtime not in failed
                # Quantised outputs count only if they are verified, or asked for.
                and (question.precisions or not is_quantised(case.configuration.precision))
                and (machine is None or case.configuration.device == name)
            )
        return list(cases)

    def _cases_on(
        self,
        word: str,
        question: PredictionQuestion,
        measured: Sequence[MeasuredCase],
        known: Predictors,
    ) -> list[PredictedCase]:
        try:
            return cases_of(
                replace(question, hardware=(word,)), measured, self._device_here, known.calibrated
            ).cases
        except UsageError:  # nothing was measured there, and no document gives its peaks
            return []

    def _measured_on(self, platform: str, known: Predictors) -> list[MeasuredCase]:
        """Return the measured cases of a platform: each candidate needs no others."""
        if self._measured is None or self._measured[0] is not known:
            by_platform: dict[str, list[MeasuredCase]] = {}
            for entry in known.stored.cases:
                by_platform.setdefault(entry.case.configuration.hardware, []).append(entry)
            self._measured = known, by_platform
        return self._measured[1].get(platform, [])

    def _figures(
        self, cases: Mapping[str, Sequence[PredictedCase]], known: Predictors, traces: Traces
    ) -> tuple[dict[str, list[Figure]], Floats | None]:
        import numpy as np

        from accelbench.predict.answers import answer
        from accelbench.predict.case_predictor import CaseFeatures
        from accelbench.predict.cases import LATENCY

        every = list(dict.fromkeys(case for several in cases.values() for case in several))
        if not every:
            return {}, None
        measured = known.stored.learnable
        made = answer(
            every, known.of, measured, traces, known.calibrated,
            with_errors=len(measured) <= _MOST_ERRORS,
        ).figures  # fmt: skip
        traced, _ = traces.of_cases(every)
        by_case = {
            entry.case: predicted_figure(figure, number, entry.case.configuration.options)
            for number, (entry, figure) in enumerate(zip(traced, made, strict=True))
            # A measurement that counts is among the evidence, and one that does not is no estimate.
            if figure["measured_provenance"] is None or not _is_measurement(figure["basis"])
        }
        features = CaseFeatures.of(traced, LATENCY, calibrated=known.calibrated)
        covariance, _ = known.of[LATENCY].covariance(features)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
        correlation = covariance / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, 1.0)
        figures = {
            name: [by_case[case] for case in several if case in by_case]
            for name, several in cases.items()
        }
        return figures, np.clip(correlation, -1.0, 1.0)

    def room(self, platform: str, device: str) -> float | None:
        """Return the megabytes of a device; of a browser here those of the machine.

        A page holds its weights in the machine's memory before any device has them.
        """
        known = self._memory(platform, device)
        here = self._device_here("cpu")
        if known is None and platform in BROWSERS and device == self._device_here(platform):
            known = None if here is None else self._memory("cpu", here)
        return None if known is None else known / MIB

    def _by_weights(self, query: Query, candidates: Iterable[Candidate]) -> dict[str, str]:
        """Return why the weights alone exceed devices, by the candidates' names."""
        reasons = {
            candidate.name: self._weights_too_large(query, candidate) for candidate in candidates
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def _weights_too_large(self, query: Query, candidate: Candidate) -> str:
        device = candidate.device.removeprefix("=") or self._device_here(candidate.platform)
        precision, weights = query.precision or _SMALLEST, query.size.parameters
        room = self.room(candidate.platform, device or "")
        if weights is None or room is None or precision not in PRECISIONS:
            return ""
        needed = float(weights * bytes_per_weight(precision))
        if not is_too_large(needed, room * MIB):
            return ""
        words = memory_words(needed, room * MIB)
        return f"it does not fit {device} in {precision}: its weights alone take {words}"

    def _predictors(self) -> tuple[Predictors, Traces]:
        from accelbench.predict.stored_predictors import predictors_of
        from accelbench.predict.traces import Traces

        now = None if self._database is None else self._database.path.stat().st_mtime_ns
        if self._known is None or self._known[0] != now:
            # Traced as by `predict`: else an answer would depend on earlier predictions.
            traces = Traces(hear=self._hear)
            self._known = (now, predictors_of(self._database, traces, hear=self._hear), traces)
        known, traces = self._known[1:]
        traces.own |= self._files
        return known, traces


def _is_measurement(basis: str) -> bool:
    from accelbench.predict.answers import OF_OTHERS
    from accelbench.predict.case_predictions import Basis

    return basis in (Basis.MEASURED, OF_OTHERS)

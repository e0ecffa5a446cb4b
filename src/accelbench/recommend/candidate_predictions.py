"""Predictions of candidates without results, by the predictors of a database.

A prediction from results of other models there, or of the model elsewhere, ranks candidates
(`ranks`). One from other devices or from peaks may be off by a factor of three: it ranks candidates
only if all rivals have one and nothing better is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from accelbench.core.errors import UsageError
from accelbench.core.precision import PRECISIONS, bytes_per_weight
from accelbench.core.result_statistics import Statistic
from accelbench.core.vocabulary import MIB, Mode, Provenance
from accelbench.predict.cases import POOR, shapes_from
from accelbench.predict.questions import PredictionQuestion, cases_of, is_too_large, memory_words
from accelbench.recommend.config import BROWSERS
from accelbench.recommend.estimated_figures import PREDICTED, Figure
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import EvidenceCell, EvidenceRow, FigureOrigin
from accelbench.recommend.evidence.model_evidence import own_shapes
from accelbench.recommend.platform_rules import is_generation
from accelbench.recommend.query import GENERATING, Query

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.predict.traces import Traces
    from accelbench.store.database import Database


_EXACT = "fp32"
#: A prediction ranks a candidate if so many other models were measured there.
_FEWEST_MODELS = 5
#: The basis of a case that the store itself has.
_MEASUREMENTS = ("this case, measured", "this case, measured by others")
#: What identifies a way of running a model.
_WAY = ("hardware", "device", "runtime", "precision", "mode", "compiled", "threads")
#: Engines; None is one that a source does not record.
Engines = frozenset[str | None]
#: Devices of the named machine by platform; None if no machine is named.
MachineDevices = Callable[[], Mapping[str, Sequence[str]] | None]


@dataclass(frozen=True)
class PredictedCandidates:
    """Predictions by the candidates' names."""

    of: Mapping[str, PredictedFigures] = field(default_factory=dict)
    ranking: frozenset[str] = frozenset()  # those that rank candidates
    #: those of a known device, which rank candidates if all rivals have one
    comparable: frozenset[str] = frozenset()
    #: why candidates are predicted not to fit
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

    def of(
        self,
        query: Query,
        candidates: Iterable[Candidate],
        sizes: Mapping[str, int],
        failed: Mapping[str, Engines] = MappingProxyType({}),
    ) -> PredictedCandidates:
        """Return the predictions of candidates, for models of the catalogue only."""
        several = list(candidates)
        if query.spec is None or not several:
            return PredictedCandidates()
        known, traces = self._predictors()
        wanted = dict(sizes or own_shapes(query.spec))
        if query.mode == Mode.TRAINING:
            wanted = {name: size for name, size in wanted.items() if name not in GENERATING}
        elif not is_generation(query, sizes):
            wanted["new_tokens"] = 0  # a forward pass
        question = PredictionQuestion(
            models=(query.spec,),
            batches=(query.batch,),
            sizes=(shapes_from(query.batch, wanted),),
            precisions=(query.precision,) if query.precision else (),
            mode=query.mode,
        )
        machine = self._machine_devices()
        found = {
            candidate.name: self._fastest(
                question, candidate, machine, failed.get(candidate.name, frozenset())
            )
            for candidate in several
        }
        # Without its operators a model has no terms like those of the training data.
        if query.spec.id in traces.coarse:
            return PredictedCandidates(too_large=self._by_weights(query, several))
        of = {name: figures for name, figures in found.items() if figures is not None}
        ranking = {name for name, figures in of.items() if ranks(figures, known)}
        too_large = {
            name: words for name, figures in of.items()
            if (words := self._too_large(figures, certain=name not in ranking))
        }  # fmt: skip
        unknown = [candidate for candidate in several if candidate.name not in of]
        too_large |= self._by_weights(query, unknown)
        comparable = frozenset(
            candidate.name for candidate in several
            if candidate.name in of and self._is_comparable(candidate, of[candidate.name])
        )  # fmt: skip
        return PredictedCandidates(
            of, frozenset(ranking - too_large.keys()), comparable - too_large.keys(), too_large
        )

    def _is_comparable(self, candidate: Candidate, figures: PredictedFigures) -> bool:
        """Return whether a prediction is of a device that is named or here, with known peaks."""
        from accelbench.predict.answers import MIDDLE_PEAKS

        is_known = bool(candidate.device) or self._device_here(candidate.platform) is not None
        return is_known and figures["basis"] != MIDDLE_PEAKS

    def _too_large(self, figures: PredictedFigures, *, certain: bool = False) -> str:
        """Return why a case does not fit its device, by its least memory if `certain`; else ""."""
        room = self._room(figures["hardware"], figures["device"])
        needed = (figures["memory_low_mb" if certain else "memory_mb"] or 0.0) * MIB
        if room is None or not is_too_large(needed, room):
            return ""
        least = "at least " if certain else ""
        return (
            f"it does not fit {figures['device']} at batch {figures['batch_size']:,} in"
            f" {figures['precision']}: predicted {least}{memory_words(needed, room)}"
        )

    def _by_weights(self, query: Query, candidates: Iterable[Candidate]) -> dict[str, str]:
        """Return why the weights alone exceed devices, by the candidates' names."""
        reasons = {
            candidate.name: self._weights_too_large(query, candidate) for candidate in candidates
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def _weights_too_large(self, query: Query, candidate: Candidate) -> str:
        device = candidate.device.removeprefix("=") or self._device_here(candidate.platform)
        precision, weights = query.precision or _EXACT, query.size.parameters
        room = self._room(candidate.platform, device or "")
        if weights is None or room is None or precision not in PRECISIONS:
            return ""
        needed = float(weights * bytes_per_weight(precision))
        if not is_too_large(needed, room):
            return ""
        words = memory_words(needed, room)
        return f"it does not fit {device} in {precision}: its weights alone take {words}"

    def _room(self, platform: str, device: str) -> int | None:
        """Return the memory of a device; of a browser here that of the machine.

        A page holds its weights in the machine's memory before any device has them.
        """
        known = self._memory(platform, device)
        here = self._device_here("cpu")
        if known is None and platform in BROWSERS and device == self._device_here(platform):
            return None if here is None else self._memory("cpu", here)
        return known

    def _fastest(
        self,
        question: PredictionQuestion,
        candidate: Candidate,
        machine: Mapping[str, Sequence[str]] | None,
        failed: Engines,
    ) -> PredictedFigures | None:
        """Return the fastest prediction of a way; an exact one if no precision is named."""
        device = candidate.device.removeprefix("=")
        if machine is None:
            figures = self._of(question, f"{candidate.platform}:{device}".removesuffix(":"))
        else:
            names = machine.get(candidate.platform, ())
            figures = [
                figure
                for name in names
                for figure in self._of(question, f"{candidate.platform}:{name}")
                if figure["device"] == name and device.lower() in name.lower()
            ]
        # Measured results that do not count, such as int8 unasked, are no predictions.
        figures = [
            figure
            for figure in figures
            if figure["device"] not in candidate.but
            and figure["runtime"] not in failed
            and (figure["measured_provenance"] is None or figure["basis"] not in _MEASUREMENTS)
        ]
        exact = [entry for entry in figures if entry["precision"] == _EXACT]
        some = figures if question.precisions else exact or figures
        fitting = [entry for entry in some if not self._too_large(entry)]
        return min(fitting or some, key=lambda entry: entry["latency_ms"], default=None)

    def _of(self, question: PredictionQuestion, place: str) -> list[PredictedFigures]:
        from accelbench.predict.answers import answer

        known, traces = self._predictors()
        measured = known.stored.cases
        try:
            cases = cases_of(
                replace(question, hardware=(place,)), measured, self._device_here, known.calibrated
            )
        except UsageError:  # nothing was measured there, and no document gives its peaks
            return []
        learnable = known.stored.learnable
        return answer(cases.cases, known.of, learnable, traces, known.calibrated).figures

    def _predictors(self) -> tuple[Predictors, Traces]:
        from accelbench.predict.stored_predictors import predictors_of
        from accelbench.predict.traces import Traces

        now = None if self._database is None else self._database.path.stat().st_mtime_ns
        if self._known is None or self._known[0] != now:
            # Traced as by `predict`: else an answer would depend on earlier predictions.
            traces = Traces(hear=self._hear)
            self._known = (now, predictors_of(self._database, traces, hear=self._hear), traces)
        return self._known[1:]


def ranks(figures: PredictedFigures, known: Predictors) -> bool:
    """Return whether a prediction ranks a candidate: the model, or enough others, ran there.

    For a model that ran there, it is better than extrapolation even if nothing else was measured:
    batch 8 from batch 1 alone was off by 28 and 67 % in the median, by extrapolation by 414 and
    84 % (inference and training on a CPU). Its interval held all, that of extrapolation 3 in 10.
    """
    from accelbench.predict.case_predictions import Basis

    if figures["basis"] == Basis.OTHER_SIZES:
        return True
    if figures["basis"] not in (Basis.ELSEWHERE, Basis.FAMILY, Basis.OTHER_MODELS):
        return False
    place = tuple(figures[name] for name in _WAY)  # type: ignore[literal-required]
    models = {
        entry.case.model
        for entry in known.stored.cases
        if tuple(getattr(entry.case.configuration, name) for name in _WAY) == place
    }
    return len(models) >= _FEWEST_MODELS


def predicted_figure(predicted: PredictedFigures) -> Figure:
    """Return a prediction as a figure with its 90 % interval."""
    row: EvidenceRow = {
        "model": predicted["model"],
        "hardware": predicted["hardware"],
        "device_name": predicted["device"],
        "runtime": predicted["runtime"],
        "precision": predicted["precision"],
        "mode": predicted["mode"],
        "compiled": predicted["compiled"],
        "threads": predicted["threads"],
        "batch_size": predicted["batch_size"],
        "throughput_unit": predicted["throughput_unit"],
        "provenance": Provenance.PREDICTED,
    }
    cell = EvidenceCell(row, (), (predicted["throughput"],), statistic=Statistic.MEDIAN)
    return Figure(
        PREDICTED,
        predicted["latency_ms"],
        predicted["throughput"],
        predicted["latency_low_ms"],
        predicted["latency_high_ms"],
        cell,
        _basis(predicted),
        batch=predicted["batch_size"],
        predicted=predicted,
        origin=FigureOrigin(tuple(predicted["rests_on"])),
    )


def _basis(predicted: PredictedFigures) -> str:
    """Return the basis of a prediction, with its error if that is poor."""
    error = predicted["held_out_error"]
    poor = "" if error is None or error <= POOR else f", off by {error:,.0%} in the median held out"
    return f"from {predicted['basis']}{poor}"

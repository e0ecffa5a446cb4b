"""Answers of a prediction: a figure a case with its interval and what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from accelbench.catalog.inputs import items_per_step, throughput_unit
from accelbench.core.model import ModelSpec
from accelbench.core.nouns import listed
from accelbench.core.vocabulary import Provenance
from accelbench.predict.bases import Basis
from accelbench.predict.batch_nodes import rising_with_batch
from accelbench.predict.case_predictions import CasePredictions
from accelbench.predict.case_predictor import CaseFeatures, CasePredictor
from accelbench.predict.cases import (
    LATENCY,
    MEMORY,
    SIZES_WITHOUT_BATCH,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    is_calibrated,
    sizes_of,
)
from accelbench.predict.held_out import cases_held_out
from accelbench.predict.knees import Knee, knees_of
from accelbench.predict.learned_words import measured_cases, poor_notes
from accelbench.predict.operator_counts import PassCounts
from accelbench.predict.peak_notes import in_brief, peak_notes
from accelbench.predict.request_parts import RequestParts, no_parts, request_parts
from accelbench.predict.terms import (
    NOT_CALIBRATED,
    Calibrated,
    TracedCase,
    peaks_are_known,
)
from accelbench.predict.traces import Traces

#: The basis of what rests on a device's peaks alone, where they were measured.
MEASURED_PEAKS = "measured peaks alone"
#: The basis of a case that was imported.
OF_OTHERS = "this case, measured by others"
MIDDLE_PEAKS = "peaks of a typical device"
#: By so much such a figure may be off either way: in the median it was 16 on one CPU.
MIDDLE_FACTOR = 30.0


class PredictedFigures(RequestParts):
    """A predicted case as JSON holds it; what was measured of the same case stands beside it."""

    provenance: str
    model: str
    family: str
    hardware: str
    device: str
    runtime: str
    precision: str
    mode: str
    compiled: bool
    threads: int | None
    batch_size: int
    sizes: dict[str, int]
    basis: str
    latency_ms: float
    latency_low_ms: float
    latency_high_ms: float
    throughput: float
    throughput_low: float
    throughput_high: float
    throughput_unit: str
    memory_mb: float
    memory_low_mb: float
    memory_high_mb: float
    measured_latency_ms: float | None
    measured_memory_mb: float | None
    measured_provenance: str | None  # measured here, or imported
    measured_source: str | None  # who measured it, where it was imported
    rests_on: list[str]  # provenances of what it was learned from
    latency_is_least: bool  # what was learned says less than the device can do
    memory_is_least: bool  # what was learned says less than its weights take
    held_out_error: float | None  # median of such figures of time, held out: 0.5 is half off
    held_out_of: str | None  # how many cases that is the error of, and of which engine


@dataclass
class PredictionAnswer:
    """Predicted figures of a question.

    Attributes:
        figures: one a case.
        knees: of questions with several batches.
        notes: what is to be said.
        learned_from: how many measured cases the figures rest on.
        learned_imported: how many of them others measured.
        files: of models that are files, what those are.
        operators: what the passes of each model take, by operator class.
        peak_notes: those of the notes that say whose peaks are not known, with the platforms.
    """

    figures: list[PredictedFigures]
    knees: list[Knee] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    learned_from: int = 0
    learned_imported: int = 0
    files: list[dict[str, object]] = field(default_factory=list)
    operators: list[PassCounts] = field(default_factory=list)
    peak_notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def brief_notes(self) -> list[str]:
        """The notes as people read them: several devices without peaks are counted."""
        return in_brief(self.notes, self.peak_notes)

    @property
    def learned_said(self) -> str:
        """What the figures were learned from, in words."""
        return f"learned from {measured_cases(self.learned_from, self.learned_imported)}"

    def to_dict(self) -> dict[str, object]:
        """As JSON holds it."""
        return {
            "provenance": "predicted",
            "learned_from": self.learned_from,
            "learned_imported": self.learned_imported,
            "predictions": self.figures,
            "knees": self.knees,
            "notes": self.notes,
            **({"files": self.files} if self.files else {}),
            **({"operators": self.operators} if self.operators else {}),
        }


def answer(
    cases: Sequence[PredictedCase],
    predictors: Mapping[str, CasePredictor],
    measured: Sequence[MeasuredCase],
    traces: Traces,
    calibrated: Calibrated = NOT_CALIBRATED,
) -> PredictionAnswer:
    """The predictions of cases.

    Args:
        cases: what is asked.
        predictors: by target.
        measured: what a store has: of a case that is among it the prediction is what was measured.
        traces: where operators come from.
        calibrated: measured limits of devices, with which the predictors were fitted.
    """
    traced, failures = traces.of_cases(cases)
    known_cases = [entry.case for entry in traced]
    known = {entry.case: entry for entry in measured}

    def predicted(target: str) -> CasePredictions:
        def each(entries: Sequence[TracedCase]) -> CasePredictions:
            return predictors[target].predict(
                CaseFeatures.of(entries, target, calibrated=calibrated)
            )

        return rising_with_batch(traced, measured, target, each)

    latency, memory = predicted(LATENCY), predicted(MEMORY)
    requests = request_parts(traced, latency, predictors[LATENCY], known, calibrated)
    latency = requests.whole
    models = {entry.case.model for entry in measured}
    specs = {model: traces.spec(model) for model in {case.model for case in known_cases}}
    columns = zip(
        *(values.tolist() for values in (latency.value, latency.low, latency.high)),
        *(values.tolist() for values in (memory.value, memory.low, memory.high)),
        strict=True,
    )
    units: dict[tuple[object, ...], _Unit] = {}
    figures = [
        _figures(
            case,
            _unit_of(case, specs[case.model], units),
            row,
            basis,
            known.get(case) if case.model in models else None,
            requests.parts.get(place, no_parts()),
        )
        for place, (case, row, basis) in enumerate(
            zip(known_cases, columns, latency.basis, strict=True)
        )
    ]
    for row in latency.limited.tolist():
        figures[row]["latency_is_least"] = True
    for row in memory.limited.tolist():
        figures[row]["memory_is_least"] = True
    rests_on_results = any(basis is not Basis.PEAKS for basis in latency.basis)
    learned = learned_from(predictors[LATENCY].whole if rests_on_results else (), known)
    kinds = sorted(learned, reverse=True)
    for figure, basis in zip(figures, latency.basis, strict=True):
        _say_what_it_rests_on(figure, basis, kinds)
    for entry, figure in zip(traced, figures, strict=True):
        if figure["basis"] == Basis.PEAKS:
            _say_whose_peaks(figure, entry.case.configuration, calibrated)
    held_out = predictors[LATENCY].held_out
    places = [case.configuration for case in known_cases]
    errors = [held_out.of(*row) for row in zip(latency.basis, places, strict=True)]
    for figure, error, place in zip(figures, errors, places, strict=True):
        if error is not None:
            figure["held_out_error"] = error.median
            figure["held_out_of"] = cases_held_out(error, place)
    notes = [str(error) for error in failures.values()]
    of_peaks = peak_notes(dict.fromkeys(places), calibrated)
    notes += poor_notes(
        (figure["basis"], figure["held_out_error"], figure["held_out_of"]) for figure in figures
    )
    notes += _platform_notes(figures, predictors[LATENCY].whole)
    notes += [*_notes_of(of_peaks, traces), *requests.notes, *_least_notes(figures)]
    return PredictionAnswer(
        figures, knees_of(figures), notes,
        learned_from=sum(learned.values()), learned_imported=learned[Provenance.IMPORTED],
        peak_notes=of_peaks,
    )  # fmt: skip


def learned_from(
    whole: Iterable[PredictedCase], known: Mapping[PredictedCase, MeasuredCase]
) -> Counter[str]:
    """How many cases a predictor learned from, by who measured them.

    One that was kept may have learned from a case that a store has no longer: that was measured.

    Args:
        whole: the cases that it learned from.
        known: what a store has.
    """
    entries = (known.get(case) for case in whole)
    return Counter(entry.provenance if entry else Provenance.MEASURED for entry in entries)


def _say_what_it_rests_on(figure: PredictedFigures, basis: Basis, learned: list[str]) -> None:
    """Whose measurements a figure is learned from; peaks alone are nobody's."""
    own = figure["measured_provenance"] if basis is Basis.MEASURED else None
    if own is not None:
        figure["rests_on"] = [own]
        figure["basis"] = OF_OTHERS if own == Provenance.IMPORTED else figure["basis"]
    elif basis is not Basis.PEAKS:
        figure["rests_on"] = learned


def devices_told(figures: Sequence[PredictedFigures]) -> str:
    """The devices that figures are of, each with its platforms, where a platform has one alone.

    Of several a table or a picture names the device of each figure.
    """
    by_platform: dict[str, set[str]] = {}
    for figure in figures:
        by_platform.setdefault(figure["hardware"], set()).add(figure["device"])
    platforms: dict[str, list[str]] = {}
    for platform, devices in by_platform.items():
        if len(devices) == 1 and (name := next(iter(devices))):
            platforms.setdefault(name, []).append(platform)
    return listed([f"{name} ({', '.join(on)})" for name, on in platforms.items()], 4)


def _say_whose_peaks(
    figure: PredictedFigures, place: CaseConfiguration, calibrated: Calibrated
) -> None:
    """The basis of a figure from peaks alone; those of a typical device are farther off."""
    if is_calibrated(place, calibrated):
        figure["basis"] = MEASURED_PEAKS
    elif not peaks_are_known(place):
        figure["basis"] = MIDDLE_PEAKS
        for low, value, high in (
            ("latency_low_ms", "latency_ms", "latency_high_ms"),
            ("throughput_low", "throughput", "throughput_high"),
            ("ttft_low_ms", "ttft_ms", "ttft_high_ms"),
            ("tpot_low_ms", "tpot_ms", "tpot_high_ms"),
        ):
            if figure[value] is not None:  # type: ignore[literal-required]
                figure[low] = figure[value] / MIDDLE_FACTOR  # type: ignore[literal-required]
                figure[high] = figure[value] * MIDDLE_FACTOR  # type: ignore[literal-required]


class _Unit(NamedTuple):
    """What cases that differ in their batch and place alone have in common."""

    sizes: dict[str, int]
    items: int  # of a batch of one
    throughput: str


def _unit_of(case: PredictedCase, spec: ModelSpec, units: dict[tuple[object, ...], _Unit]) -> _Unit:
    mode, shapes = case.configuration.mode, case.shapes
    key = (case.model, mode, SIZES_WITHOUT_BATCH(shapes))
    if key not in units:
        single = replace(shapes, batch=1)
        units[key] = _Unit(
            sizes_of(shapes),
            items_per_step(spec, single, mode),
            throughput_unit(spec, shapes, mode),
        )
    return units[key]


def _figures(
    case: PredictedCase,
    unit: _Unit,
    row: tuple[float, ...],
    basis: Basis,
    known: MeasuredCase | None,
    parts: RequestParts,
) -> PredictedFigures:
    configuration, batch = case.configuration, case.shapes.batch
    items = 1e3 * batch * unit.items
    ms, low, high, memory, memory_low, memory_high = row
    return {
        "provenance": "predicted",
        "model": case.model,
        "family": case.family,
        "hardware": configuration.hardware,
        "device": configuration.device,
        "runtime": configuration.runtime,
        "precision": configuration.precision,
        "mode": configuration.mode,
        "compiled": configuration.compiled,
        "threads": configuration.threads,
        "batch_size": batch,
        "sizes": unit.sizes,
        "basis": basis.value,
        "latency_ms": ms,
        "latency_low_ms": low,
        "latency_high_ms": high,
        "throughput": items / ms,
        "throughput_low": items / high,
        "throughput_high": items / low,
        "throughput_unit": unit.throughput,
        "memory_mb": memory,
        "memory_low_mb": memory_low,
        "memory_high_mb": memory_high,
        "measured_latency_ms": known.latency_ms if known else None,
        "measured_memory_mb": known.memory_mb if known else None,
        "measured_provenance": known.provenance if known else None,
        "measured_source": (known.source or None) if known else None,
        "rests_on": [],
        "held_out_error": None,
        "held_out_of": None,
        "latency_is_least": False,
        "memory_is_least": False,
        **parts,
    }


def _platform_notes(
    figures: Sequence[PredictedFigures], learned: Iterable[PredictedCase]
) -> list[str]:
    """Return a sentence for each platform whose figures rest in part on others' results."""
    known = {case.configuration.hardware for case in learned}
    asked = {
        figure["hardware"]
        for figure in figures
        if figure["basis"] not in (Basis.MEASURED, OF_OTHERS) and figure["rests_on"]
    }
    return [
        f"figures of {platform} share efficiencies of operators with results of {listed(others)}"
        for platform in sorted(asked)
        if (others := sorted(known - {platform}))
    ]


def _least_notes(figures: Sequence[PredictedFigures]) -> list[str]:
    """Of which models a figure says no more than what cannot be less."""
    notes = []
    for key, what in (
        ("memory_is_least", "the memory of {} is the least that its weights take"),
        ("latency_is_least", "the time of {} is the least that its device can take"),
    ):
        names = dict.fromkeys(entry["model"] for entry in figures if entry[key])  # type: ignore[literal-required]
        if names:
            told = what.format(listed(list(names)))
            notes.append(f"{told}, or little more: what was learned says less")
    return notes


def _notes_of(of_peaks: Iterable[str], traces: Traces) -> list[str]:
    notes = [*of_peaks]
    if traces.coarse:
        names = ", ".join(sorted(traces.coarse))
        notes.append(f"torch is not installed: {names} by operations and bytes alone")
    return notes

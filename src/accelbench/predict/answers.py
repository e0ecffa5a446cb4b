"""Answers of a prediction: a value for each case with its interval, basis, knees and notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from accelbench.core.formatting import join_first
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode, Provenance
from accelbench.judge.comparison import KNEE_SHARE
from accelbench.judge.costs import per_million, price_of
from accelbench.models.inputs import items_per_step, throughput_unit
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.case_predictor import CaseFeatures, PredictorsByKind
from accelbench.predict.cases import (
    DECODE,
    LATENCY,
    PREFILL,
    SIZES_WITHOUT_BATCH,
    TARGETS,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    kind_of,
    measured_cases,
    poor_notes,
    sizes_of,
)
from accelbench.predict.held_out import cases_held_out
from accelbench.predict.monotone import rising_with_batch, with_nodes
from accelbench.predict.terms import (
    NOT_CALIBRATED,
    Calibrated,
    PassCounts,
    TracedCase,
    peaks_are_known,
    time_terms,
)
from accelbench.predict.traces import Traces

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices

#: Parts that come to within so much of the whole add up to it, as figures are shown.
_ROUNDING = 1e-3
#: What remains for a part that was not measured is believed to within this factor.
_LIKE = 2.0


class RequestParts(TypedDict):
    """Milliseconds to the first token, and of each after it; None of what is no request."""

    ttft_ms: float | None
    ttft_low_ms: float | None
    ttft_high_ms: float | None
    tpot_ms: float | None
    tpot_low_ms: float | None
    tpot_high_ms: float | None
    measured_ttft_ms: float | None
    measured_tpot_ms: float | None


def no_parts() -> RequestParts:
    """The parts of what is no request."""
    return {
        "ttft_ms": None, "ttft_low_ms": None, "ttft_high_ms": None,
        "tpot_ms": None, "tpot_low_ms": None, "tpot_high_ms": None,
        "measured_ttft_ms": None, "measured_tpot_ms": None,
    }  # fmt: skip


@dataclass(frozen=True)
class RequestFigures:
    """Predictions of requests whose parts add up to the whole.

    Attributes:
        parts: by their places, those of requests.
        notes: which of them were measured apart and do not add up.
    """

    whole: CasePredictions
    parts: Mapping[int, RequestParts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def request_parts(
    traced: Sequence[TracedCase],
    whole: CasePredictions,
    predictor: PredictorsByKind,
    known: Mapping[PredictedCase, MeasuredCase],
    calibrated: Calibrated,
) -> RequestFigures:
    """Return the parts of each case, and the whole that they come to.

    Prefill and decode are passes of their own, with their own work and bytes of weights and of
    cached keys and values. They are predicted as such, from what the predictor of latency learned
    of whole requests, of their parts and of everything else. They are then brought to the whole.
    """
    requests = [(place, parts) for place, entry in enumerate(traced) if (parts := _parts(entry))]
    if not requests:
        return RequestFigures(whole)
    cases = [part for _, parts in requests for part in parts]
    features = CaseFeatures.of(cases, LATENCY, calibrated=calibrated)
    each = partial(predictor.predict_traced, calibrated=calibrated)
    nodes = with_nodes(cases, known.values())
    predicted = rising_with_batch(nodes, known.values(), LATENCY, each)
    measured, least = set(predicted.measured.tolist()), predictor.least(features)
    measured_wholes = set(whole.measured.tolist())
    values, ends = predicted.value.tolist(), (predicted.low.tolist(), predicted.high.tolist())
    totals: dict[int, float] = {}
    shown: dict[int, RequestParts] = {}
    apart: dict[tuple[str, bool], float] = {}
    row = 0
    for place, parts in requests:
        rows = range(row, row + len(parts))
        row = rows.stop
        counts = (1, (traced[place].case.shapes.new_tokens or 1) - 1)
        summed = [
            RequestTerm(values[r], count, float(least[r]), r in measured)
            for r, count in zip(rows, counts[: len(rows)], strict=True)
        ]
        total = float(whole.value[place])
        brought, came_to = brought_to(summed, total, fixed=place in measured_wholes)
        if abs(came_to / total - 1) > _ROUNDING:
            if place in measured_wholes:
                timed_apart = all(r in measured for r in rows)
                apart.setdefault((traced[place].case.model, timed_apart), came_to / total)
            else:
                totals[place] = came_to
        entry = no_parts()
        for r, value in zip(rows, brought, strict=True):
            by = value / values[r]
            low, high = (min(ends[0][r] * by, value), max(ends[1][r] * by, value))
            timed = known.get(cases[r].case)
            _take(entry, cases[r].case.part, (value, max(low, min(least[r], value)), high), timed)
        shown[place] = entry
    for place, came_to in totals.items():
        whole = whole.scaled(place, came_to)
    return RequestFigures(whole, shown, tuple(_apart_words(apart)))


@dataclass(frozen=True)
class RequestTerm:
    """A part of a request among those that add up to it.

    Attributes:
        value: milliseconds of it once.
        least: what it cannot be below.
        measured: whether it is what was measured, which stays.
    """

    value: float
    count: int
    least: float = 0.0
    measured: bool = False


def brought_to(
    terms: Sequence[RequestTerm], total: float, *, fixed: bool = False
) -> tuple[list[float], float]:
    """Parts that add up to a whole: those that were not measured make up for what is amiss.

    Where they cannot, since all were measured or what remains for them is less than is possible or
    nothing like what was predicted, they stay as they are.

    Args:
        terms: the parts.
        total: the whole.
        fixed: whether that was measured: parts are brought to it however far it is off.
    """
    kept = [term.value for term in terms]
    free = [term for term in terms if not term.measured and term.count]
    rest = total - sum(term.count * term.value for term in terms if term.measured)
    now = sum(term.count * term.value for term in free)
    least = sum(term.count * term.least for term in free)
    most = math.inf if fixed else _LIKE
    if not free or rest <= least or not now / most <= rest <= now * most:
        return kept, sum(term.count * term.value for term in terms)

    def moved(term: RequestTerm) -> float:
        if rest >= now:
            return term.value * rest / now
        return term.least + (term.value - term.least) * (rest - least) / (now - least)

    values = [moved(term) if term in free else term.value for term in terms]
    return values, sum(term.count * value for term, value in zip(terms, values, strict=True))


def _take(
    entry: RequestParts,
    part: str,
    figures: tuple[float, float, float],
    timed: MeasuredCase | None,
) -> None:
    measured = timed.latency_ms if timed else None
    value, low, high = map(float, figures)
    if part == PREFILL:
        entry["ttft_ms"], entry["measured_ttft_ms"] = value, measured
        entry["ttft_low_ms"], entry["ttft_high_ms"] = low, high
    else:
        entry["tpot_ms"], entry["measured_tpot_ms"] = value, measured
        entry["tpot_low_ms"], entry["tpot_high_ms"] = low, high


def _apart_words(apart: Mapping[tuple[str, bool], float]) -> Iterator[str]:
    for (model, measured), share in apart.items():
        how = "were measured apart from" if measured else "are predicted beside"
        yield (
            f"of {model} the first token and the tokens after it {how} the whole"
            f" request, and come to {share:.1%} of it"
        )


def _parts(whole: TracedCase) -> list[TracedCase]:
    case = whole.case
    if case.configuration.mode != Mode.INFERENCE or PREFILL not in whole.passes:
        return []
    parts = [case.first_token, case.next_token] if DECODE in whole.passes else [case.first_token]
    return [TracedCase(part, whole.passes) for part in parts]


_KINDS_NAMED = 4


def peak_notes(places: Iterable[CaseConfiguration], calibrated: Calibrated) -> dict[str, str]:
    """A note for each device that no peaks are known of, with its platform."""
    return {
        f"no peaks of {place.device or place.hardware} are documented, and none were measured"
        " (accelbench hardware --calibrate): it is taken for a typical device of its kind": (
            place.hardware
        )
        for place in places
        if not peaks_are_known(place, calibrated)
    }


class Knee(TypedDict):
    """The batch from which on a larger one gains little, in one configuration."""

    model: str
    hardware: str
    device: str
    runtime: str
    precision: str
    compiled: bool
    options: str
    sizes: dict[str, int]
    batch_size: int | None


def knees_of(figures: Sequence[PredictedFigures]) -> list[Knee]:
    """Of each configuration with several batches the smallest that has most of the throughput.

    None where the largest batch still gains: the knee lies beyond it.
    """
    groups: dict[tuple[str, ...], list[PredictedFigures]] = {}
    for entry in figures:
        key = (entry["model"], entry["hardware"], entry["device"], entry["runtime"],
               entry["precision"], entry["mode"], str(entry["compiled"]), str(entry["threads"]),
               entry["options"], str(entry["sizes"]))  # fmt: skip
        groups.setdefault(key, []).append(entry)
    knees: list[Knee] = []
    for entries in groups.values():
        if len(entries) < 3:
            continue
        entries = sorted(entries, key=lambda entry: entry["batch_size"])
        most = max(entry["throughput"] for entry in entries)
        first = next(e for e in entries if e["throughput"] >= KNEE_SHARE * most)
        knees.append({
            "model": first["model"], "hardware": first["hardware"], "device": first["device"],
            "runtime": first["runtime"], "precision": first["precision"], "sizes": first["sizes"],
            "compiled": first["compiled"], "options": first["options"],
            "batch_size": None if first is entries[-1] else first["batch_size"],
        })  # fmt: skip
    return knees


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
    options: str
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
    memory_mb: float | None  # None if only the model's name is known, and no memory of it
    memory_low_mb: float | None
    memory_high_mb: float | None
    measured_latency_ms: float | None
    measured_memory_mb: float | None
    measured_provenance: str | None  # measured here, or imported
    measured_source: str | None  # who measured it, where it was imported
    rests_on: list[str]  # provenances of what it was learned from
    latency_is_least: bool  # what was learned says less than the device can do
    memory_is_least: bool  # what was learned says less than its weights take
    held_out_error: float | None  # median of such figures of time, held out: 0.5 is half off
    held_out_of: str | None  # how many cases that is the error of, and of which engine


class PricedFigures(PredictedFigures):
    """A predicted case with the cost of a million items; None without a price."""

    cost_per_million: float | None
    cost_per_million_low: float | None
    cost_per_million_high: float | None


@dataclass
class PredictionAnswer:
    """Predicted figures of a question.

    Attributes:
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
    currency: str | None = None

    def price(self, prices: Prices | None) -> None:
        """Give each figure the cost of a million items, with the interval of its time."""
        if prices is None:
            return
        self.currency = prices.currency
        self.figures = [_priced(figure, prices) for figure in self.figures]

    @property
    def brief_notes(self) -> list[str]:
        """The notes as people read them: several devices without peaks are counted."""
        notes, of_peaks = self.notes, self.peak_notes
        if len(of_peaks) < 2:
            return list(notes)
        kinds = Counter(of_peaks.values()).most_common()
        how_many = join_first([f"{count:,} on {kind}" for kind, count in kinds], _KINDS_NAMED)
        said = (
            f"no peaks of {len(of_peaks):,} devices are documented, and none were measured"
            f" ({how_many}): each is taken for a typical device of its kind; --json and --debug"
            " name them"
        )
        first = next((place for place, note in enumerate(notes) if note in of_peaks), len(notes))
        rest = [note for note in notes[first:] if note not in of_peaks]
        return [*notes[:first], said, *rest]

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
            **({"currency": self.currency} if self.currency else {}),
            **({"files": self.files} if self.files else {}),
            **({"operators": self.operators} if self.operators else {}),
        }


def _priced(figure: PredictedFigures, prices: Prices) -> PricedFigures:
    row = {"hardware": figure["hardware"], "device_name": figure["device"]}
    price = price_of(row, prices)
    rates = (figure["throughput"], figure["throughput_high"], figure["throughput_low"])
    middle, low, high = (
        None if price is None else per_million(price.per_hour, rate) for rate in rates
    )
    return {
        **figure,
        "cost_per_million": middle,
        "cost_per_million_low": low,
        "cost_per_million_high": high,
    }


def answer(
    cases: Sequence[PredictedCase],
    predictors: Mapping[str, PredictorsByKind],
    measured: Sequence[MeasuredCase],
    traces: Traces,
    calibrated: Calibrated = NOT_CALIBRATED,
    *,
    with_errors: bool = True,
) -> PredictionAnswer:
    """Return the predictions of cases. A measured case is answered with its measurement.

    The predictors were fitted with the same measured limits of devices. `with_errors` looks up the
    held-out errors of each basis, which takes seconds for ten thousand measured cases.
    """
    traced, failures = traces.of_cases(cases)
    is_answered = predictors[LATENCY].is_answerable([entry.case for entry in traced])
    not_measured = [entry.case for entry, is_ in zip(traced, is_answered, strict=True) if not is_]
    traced = [entry for entry, is_ in zip(traced, is_answered, strict=True) if is_]
    known_cases = [entry.case for entry in traced]
    known = {entry.case: entry for entry in measured}

    nodes = with_nodes(traced, measured)
    times = time_terms(nodes.entries, calibrated)  # a matrix has two hundred thousand nodes

    def predict(target: str, entries: Sequence[TracedCase]) -> CasePredictions:
        known_times = times if entries is nodes.entries else None
        return predictors[target].predict(CaseFeatures.of(entries, target, known_times, calibrated))

    latency, memory = (
        rising_with_batch(nodes, measured, target, partial(predict, target)) for target in TARGETS
    )
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
    whole = predictors[LATENCY].whole_of(known_cases) if rests_on_results else []
    learned = learned_from(whole, known)
    kinds = sorted(learned, reverse=True)
    latency_predictors = predictors[LATENCY]
    for figure, case, basis in zip(figures, known_cases, latency.basis, strict=True):
        _say_what_it_rests_on(figure, basis, kinds)
        if figure["basis"] == Basis.PEAKS:
            _say_whose_peaks(figure, case.configuration, calibrated)
        if not with_errors:
            continue
        if (error := latency_predictors.held_out_error(basis, case)) is not None:
            figure["held_out_error"] = error.median
            figure["held_out_of"] = cases_held_out(error, case.configuration)
    notes = [*map(str, failures.values()), *_unmeasured_notes(not_measured, known_cases)]
    with_operators = [case for case in known_cases if case.has_operators]
    of_peaks = peak_notes(dict.fromkeys(case.configuration for case in with_operators), calibrated)
    notes += poor_notes(
        (figure["basis"], figure["held_out_error"], figure["held_out_of"]) for figure in figures
    )
    notes += _platform_notes(figures, known_cases, whole)
    notes += of_peaks
    if traces.coarse:
        names = ", ".join(sorted(traces.coarse))
        notes.append(f"torch is not installed: {names} by operations and bytes alone")
    notes += [*requests.notes, *_least_notes(figures)]
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
    return join_first([f"{name} ({', '.join(on)})" for name, on in platforms.items()], 4)


def _say_whose_peaks(
    figure: PredictedFigures, place: CaseConfiguration, calibrated: Calibrated
) -> None:
    """The basis of a figure from peaks alone; those of a typical device are farther off."""
    if place.calibrated_as in calibrated:
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
    ms, low, high = row[:3]
    memory, memory_low, memory_high = (None if math.isnan(end) else end for end in row[3:])
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
        "options": configuration.options,
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
    figures: Sequence[PredictedFigures],
    cases: Sequence[PredictedCase],
    learned: Iterable[PredictedCase],
) -> list[str]:
    """Return a sentence for each platform whose values rest in part on other platforms' results."""
    known: dict[str, set[str]] = {}
    for case in learned:
        known.setdefault(kind_of(case.configuration), set()).add(case.configuration.hardware)
    asked = {
        (figure["hardware"], kind_of(case.configuration))
        for figure, case in zip(figures, cases, strict=True)
        if case.has_operators
        and figure["basis"] not in (Basis.MEASURED, OF_OTHERS)
        and figure["rests_on"]
    }
    return [
        f"figures of {platform} share efficiencies of operators with results of"
        f" {join_first(others)}"
        for platform, kind in sorted(asked)
        if (others := sorted(known.get(kind, set()) - {platform}))
    ]


def _unmeasured_notes(
    cases: Sequence[PredictedCase], answered: Sequence[PredictedCase]
) -> list[str]:
    """Return a sentence for each model and size that is known by name and was not measured."""
    has_answer = {(case.model, case.shapes) for case in answered}
    asked = dict.fromkeys((case.model, case.shapes) for case in cases)
    return [
        f"{model} is not predicted at batch {shapes.batch:,}: its operators are not known, and"
        " there is no result of it at these sizes in that engine and precision on that platform"
        for model, shapes in asked
        if (model, shapes) not in has_answer
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
            told = what.format(join_first(list(names)))
            notes.append(f"{told}, or little more: what was learned says less")
    return notes

"""Questions to a predictor: models, where they would run, and at which sizes; and their cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from accelbench.catalog.inputs import settle
from accelbench.core.case import Shapes
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Mode
from accelbench.hardware.rooflines import Roofline, is_called, roofline, rooflines_of
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase

#: What runs a model on a platform where nothing else is known.
_USUAL_RUNTIME = {"openvino": "openvino", "qnn": "onnxruntime", "directml": "onnxruntime",
                  "webgpu": "browser", "webnn": "browser", "wasm": "browser"}  # fmt: skip
_PYTORCH = "pytorch"
_USUAL_PRECISION = "fp32"


@dataclass(frozen=True)
class PredictionQuestion:
    """What is to be predicted.

    Attributes:
        models: the models.
        batches: items in one step.
        sizes: further sizes, each of which is asked of every model.
        hardware: platforms, or PLATFORM:NAME with a part of a device's name; those that were
            measured where none is named.
        runtimes: engines; those that were measured there where none is named.
        precisions: those that were measured there where none is named.
        mode: inference or training.
    """

    models: tuple[ModelSpec, ...]
    batches: tuple[int, ...] = (1,)
    sizes: tuple[Shapes, ...] = (Shapes(1),)
    hardware: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    mode: str = Mode.INFERENCE


@dataclass
class QuestionCases:
    """The cases of a question, and what is to be said of those that there are none of."""

    cases: list[PredictedCase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def cases_of(
    question: PredictionQuestion,
    measured: Sequence[MeasuredCase],
    device_here: Callable[[str], str | None],
) -> QuestionCases:
    """The cases of a question.

    Args:
        question: what is to be predicted.
        measured: what a store has.
        device_here: the name of a platform's device on this machine; None where it has none.

    Raises:
        UsageError: hardware is named of which nothing is known.
    """
    cases = QuestionCases()
    places = configurations(question, measured, device_here, cases.notes)
    for spec in question.models:
        for shapes in _settled(spec, question, cases.notes):
            cases.cases += [PredictedCase(spec.id, spec.family, shapes, place) for place in places]
    return cases


def _settled(spec: ModelSpec, question: PredictionQuestion, notes: list[str]) -> list[Shapes]:
    settled = dict[Shapes, None]()
    for sizes in question.sizes:
        try:
            shapes = settle(spec, sizes)
        except UnsupportedError as error:
            notes.append(error.message)
        else:
            settled |= {replace(shapes, batch=batch): None for batch in question.batches}
    return list(settled)


def configurations(
    question: PredictionQuestion,
    measured: Sequence[MeasuredCase],
    device_here: Callable[[str], str | None],
    notes: list[str],
) -> list[CaseConfiguration]:
    """Where a question's models would run: of each place the way that was measured most."""
    counts = Counter(
        entry.case.configuration for entry in measured
        if entry.case.configuration.mode == question.mode
    )  # fmt: skip
    if not question.hardware:
        usual = _usual(counts)
        places = list(usual) or _never_measured("cpu", question, device_here, notes)
        return _in_precisions(_by_runtimes(places, question, notes), question)
    places = []
    for word in question.hardware:
        matching = [place for place in _usual(counts) if _matches(place, word)]
        some = matching or _never_measured(word, question, device_here, notes)
        places += _by_runtimes(some, question, notes)
    return _in_precisions(list(dict.fromkeys(places)), question)


def _usual(counts: Counter[CaseConfiguration]) -> list[CaseConfiguration]:
    """Of each device, engine and precision the plain way, or the one with the most cases."""
    best: dict[tuple[str, str, str, str], CaseConfiguration] = {}
    for place in sorted(counts, key=lambda c: (bool(c.options), c.compiled, -counts[c], str(c))):
        key = (place.hardware, place.device, place.runtime, place.precision)
        best.setdefault(key, place)
    return [best[key] for key in sorted(best)]


def _matches(place: CaseConfiguration, word: str) -> bool:
    platform, _, name = word.partition(":")
    return place.hardware == platform.lower() and name.lower() in place.device.lower()


def _by_runtimes(
    places: Iterable[CaseConfiguration], question: PredictionQuestion, notes: list[str]
) -> list[CaseConfiguration]:
    """Those of the runtimes that are named; an engine that was not measured there is said."""
    places = list(places)
    if not question.runtimes:
        return places
    kept = [place for place in places if place.runtime in question.runtimes]
    for runtime in question.runtimes:
        if not any(place.runtime == runtime for place in kept):
            where = ", ".join(dict.fromkeys(place.hardware for place in places))
            notes.append(f"{runtime} was not measured on {where}")
    return kept


def _in_precisions(
    places: Sequence[CaseConfiguration], question: PredictionQuestion
) -> list[CaseConfiguration]:
    """Those in the precisions that are named; one that was not measured is asked of its engine."""
    if not question.precisions:
        return list(places)
    wanted: dict[CaseConfiguration, None] = {}
    for precision in question.precisions:
        exact = [place for place in places if place.precision == precision]
        engines = {(place.hardware, place.device, place.runtime) for place in exact}
        others = [
            replace(place, precision=precision) for place in places
            if (place.hardware, place.device, place.runtime) not in engines
        ]  # fmt: skip
        wanted |= dict.fromkeys([*exact, *others])
    return list(wanted)


def _never_measured(
    word: str,
    question: PredictionQuestion,
    device_here: Callable[[str], str | None],
    notes: list[str],
) -> list[CaseConfiguration]:
    """A platform that nothing was measured on: this machine's device, or a documented one.

    Raises:
        UsageError: neither is known.
    """
    platform, _, name = word.lower().partition(":")
    documented = _documented(platform, name)
    device_name = None if name else device_here(platform)
    device = device_name or (documented.device if documented else None)
    if device is None:
        names = [entry.name for entry in rooflines_of(platform)]
        advice = (
            f"Documented: {', '.join(f'{platform}:{entry}' for entry in names)}." if names else ""
        )
        raise UsageError(
            f"Nothing was measured on {in_quotes(word)}, and no peaks of it are documented.", advice
        )
    notes.append(f"nothing was measured on {word}: {device} is predicted by its peaks")
    runtime = (question.runtimes or (_USUAL_RUNTIME.get(platform, _PYTORCH),))[0]
    precision = (question.precisions or (_usual_precision(documented),))[0]
    return [CaseConfiguration(platform, device, runtime, precision, question.mode)]


def _usual_precision(documented: Roofline | None) -> str:
    """fp32; of a device that has documented peaks in others alone, the first of them."""
    peaks = documented.teraops if documented else {}
    return _USUAL_PRECISION if _USUAL_PRECISION in peaks or not peaks else next(iter(peaks))


def _documented(platform: str, name: str) -> Roofline | None:
    """A documented device by the short name that asks for it, or by the one of its driver."""
    called = (entry for entry in rooflines_of(platform) if name and is_called(entry, name))
    return roofline(platform, name) or next(called, None)

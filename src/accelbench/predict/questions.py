"""Questions to a predictor: models, hardware and sizes; their cases, or why there are none."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from accelbench.core.axes import numeric_axes
from accelbench.core.case import Shapes
from accelbench.core.device_facts import (
    DeviceFacts,
    devices_on,
    facts_of,
    find_devices,
    find_documented_device,
    known_devices,
    match_device,
    refuse_several,
    typical_device,
)
from accelbench.core.devices import card_of, cards, title_of
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Device
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode
from accelbench.hardware.detect import list_platforms
from accelbench.models.inputs import settle
from accelbench.predict.cases import (
    FROM_FILE,
    NAME_ONLY,
    ON_CPUS,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    family_of,
)
from accelbench.run.plan.request import sizes_taken

if TYPE_CHECKING:
    from accelbench.store.database import Database


def hardware_of(word: str) -> str:
    """Return a word of `--hardware` as PLATFORM or PLATFORM:NAME, also that of a bare name.

    Raises:
        UsageError: several documented devices are called so; they are named.
    """
    if ":" in word or word.lower() in platforms():
        return word
    place = find_documented_device(word)
    if place is None:
        raise UsageError(
            f"There is no platform and no documented device called {in_quotes(word)}.",
            _suggest(word),
        )
    return place


def platforms() -> frozenset[str]:
    """Return every platform that a runtime runs on, or that is looked for here."""
    of_runtimes = (platform for card in cards().values() for platform in card.hardware)
    return frozenset({*of_runtimes, *list_platforms()})


def _suggest(word: str) -> str:
    names = {facts.short: facts for facts in known_devices()}
    near = difflib.get_close_matches("-".join(word.lower().split()), list(names), n=3, cutoff=0.6)
    every = f"Platforms: {', '.join(sorted(platforms()))}."
    return f"Did you mean {', '.join(near)}? {every}" if near else every


#: What training or autocast computes in is no precision of weights.
_AUTOCAST = "amp-"
_USUAL = "fp32"


def why_not(
    place: CaseConfiguration, calibrated: Container[tuple[str, str]], *, generates: bool
) -> str:
    """Why nothing is predicted in a configuration; "" where it is."""
    card, name = card_of(place.runtime), title_of(place.runtime)
    if card is None:
        return f"there is no runtime {place.runtime}"
    if place.hardware not in card.hardware:
        return f"{name} does not run on {place.hardware}"
    if place.mode == Mode.TRAINING and card.consumes != "torch":
        return f"{name} does not train"
    if place.mode == Mode.TRAINING and place.precision == "int8":
        return "a model quantised to int8 is not trained"
    if generates and not card.generates:
        return f"{name} does not generate token by token"
    if place.precision not in card.precisions:
        return f"{name} has no {place.precision}"
    return _unknown_peak(place, calibrated)


def _unknown_peak(place: CaseConfiguration, calibrated: Container[tuple[str, str]]) -> str:
    """Why the peak of a precision is not known.

    A CPU without units for a narrow type computes it by loops that take ten to five hundred times
    as long as fp32 (bert-tiny in PyTorch: bf16 231 ms, int8 548 ms, fp32 2.8 ms).
    """
    precision = place.precision.removeprefix(_AUTOCAST)
    if precision == _USUAL or place.calibrated_as in calibrated:
        return ""
    facts = facts_of(place.device, place.hardware)
    if facts and precision in facts.teraops:
        return ""
    if place.hardware in ON_CPUS:
        return (
            f"how fast {place.device} is in {precision} is not known: measure a case in it there, "
            "or run accelbench hardware --calibrate"
        )
    return f"no document gives a peak of {place.device} in {precision}" if facts else ""


#: Cases from which on a way of a device, engine and precision is one of its own.
_SEVERAL = 20
#: What names the first device of a platform, or a platform's own unit.
_FIRST = ("0", "cpu")
_PYTORCH = "pytorch"
#: How the builder of a file's model begins; its format follows.
_FILE = "file:"
_USUAL_PRECISION = "fp32"


@dataclass(frozen=True)
class PredictionQuestion:
    """What is to be predicted.

    Attributes:
        sizes: further sizes, each of which is asked of every model.
        hardware: platforms, PLATFORM:NAME with a part of a device's name, or the name of a
            documented device; those that were measured where none is named.
        runtimes: engines; those that were measured there where none is named.
        precisions: those that were measured there where none is named.
        fixed_batches: of models whose graph takes so many items at once, and no other number.
        every_way: ask of every way in which several cases were measured, not only of the usual one.
    """

    models: tuple[ModelSpec, ...]
    batches: tuple[int, ...] = (1,)
    sizes: tuple[Shapes, ...] = (Shapes(1),)
    hardware: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    mode: str = Mode.INFERENCE
    fixed_batches: Mapping[str, int] = field(default_factory=dict)
    every_way: bool = False


@dataclass
class QuestionCases:
    """The cases of a question, and what is to be said of those that there are none of."""

    cases: list[PredictedCase] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def cases_of(
    question: PredictionQuestion,
    measured: Sequence[MeasuredCase],
    device_here: Callable[[str], str | None],
    calibrated: Container[tuple[str, str]] = (),
) -> QuestionCases:
    """The cases of a question.

    Raises:
        UsageError: hardware is named of which nothing is known.
    """
    cases = QuestionCases()
    named = tuple(spec for spec in question.models if NAME_ONLY in spec.sets)
    if named:  # only what was measured answers questions about them
        measured_too = [entry for entry in measured if not entry.case.has_operators]
        places = configurations(question, measured_too, device_here, cases.notes)
        cases.cases = [
            PredictedCase(spec.id, NAME_ONLY, shapes, place)
            for spec in named
            for shapes in _settled(spec, question, cases.notes, requests=False)
            for place in places
        ]
        question = replace(
            question, models=tuple(spec for spec in question.models if spec not in named)
        )
        measured = [entry for entry in measured if entry.case.has_operators]
        if not question.models:
            return cases
    places = configurations(question, measured, device_here, cases.notes)
    run = {entry.case.configuration for entry in measured}
    requests = _makes_requests(question, places, cases.notes)

    @cache
    def left_out(place: CaseConfiguration, generates: bool) -> str:
        if place in run and not generates:
            return ""
        why = why_not(place, calibrated, generates=generates)
        return why and f"{place.hardware} in {place.precision} is left out: {why}"

    for spec in question.models:
        for shapes in _settled(spec, question, cases.notes, requests=requests):
            for place in places:
                generates = shapes.new_tokens is not None and place.mode == Mode.INFERENCE
                if why := left_out(place, generates):
                    cases.notes.append(why)
                else:
                    cases.cases.append(PredictedCase(spec.id, family_of(spec), shapes, place))
    cases.notes += _unused(question, cases.cases)
    return cases


def _unused(question: PredictionQuestion, cases: Sequence[PredictedCase]) -> list[str]:
    """A sentence for each size that no case took up, as of a run's."""
    notes = []
    of_files = any(FROM_FILE in spec.sets for spec in question.models)
    for axis in numeric_axes():
        asked = {getattr(sizes, axis.field) for sizes in question.sizes} - {None, 0}
        if cases and asked and not any(asked & sizes_taken(axis, case.shapes) for case in cases):
            fixed = ", or leaves that size open" if of_files else ""
            notes.append(
                f"{axis.option} changes nothing: no model that is asked about {axis.usage}{fixed}"
            )
    return notes


def _makes_requests(
    question: PredictionQuestion, places: Sequence[CaseConfiguration], notes: list[str]
) -> bool:
    """Whether models that can generate are asked for whole requests where no size says it, as `run`
    measures them: unless one of the runtimes cannot."""
    known = cards()
    cannot = {p.runtime for p in places if p.runtime in known and not known[p.runtime].generates}
    unsaid = any(sizes.new_tokens is None for sizes in question.sizes)
    could = question.mode == Mode.INFERENCE and any(spec.generation for spec in question.models)
    if cannot and could and unsaid:
        names = " and ".join(sorted(map(title_of, cannot)))
        notes.append(
            f"{names} cannot generate token by token: of models that could, one forward pass is"
            " predicted (--new-tokens, on another runtime, for whole requests)"
        )
    return could and not cannot


def _settled(
    spec: ModelSpec, question: PredictionQuestion, notes: list[str], *, requests: bool
) -> list[Shapes]:
    settled = dict[Shapes, None]()
    for sizes in question.sizes:
        if requests and spec.generation is not None and sizes.new_tokens is None:
            prompt = sizes.prompt_tokens or sizes.sequence
            new_tokens = spec.generation.new_tokens
            sizes = replace(sizes, prompt_tokens=prompt, new_tokens=new_tokens)
        try:
            shapes = settle(spec, sizes)
        except UnsupportedError as error:
            notes.append(error.message)
        else:
            fixed = question.fixed_batches.get(spec.id)
            if fixed is not None and fixed not in question.batches:
                notes.append(f"{spec.id} takes {fixed:,} items at once, and no other number")
            batches = [b for b in question.batches if fixed is None or b == fixed]
            settled |= {replace(shapes, batch=batch): None for batch in batches}
    return list(settled)


#: Of so many models each way that they were measured in is predicted, next to the usual ones.
_MOST_OWN = 8


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
        places = list(usual) or _never_measured("cpu", question, (), device_here, notes)
        return _in_precisions(_by_runtimes(places, question, notes), question)
    places = []
    usual = _usual(counts)
    asked = {spec.id for spec in question.models[:_MOST_OWN]}
    own = {entry.case.configuration for entry in measured if entry.case.model in asked}
    several = {place for place, count in counts.items() if count >= _SEVERAL}
    known = own & {*counts} | (several if question.every_way else set())
    usual = list(dict.fromkeys([*usual, *sorted(known, key=str)]))
    for word in (word.rstrip(": ") for word in question.hardware):
        platform, name = _split(word)
        match = match_device(name, platform)
        matching = _measured_called(platform, name, usual)
        if match and match.is_assumed and all(p.device.lower() != name.lower() for p in matching):
            notes.append(f"{word} is taken for {match.facts.name}, the usual one of its variants")
        some = matching or _never_measured(hardware_of(word), question, usual, device_here, notes)
        places += _by_runtimes(some, question, notes)
    return _in_precisions(list(dict.fromkeys(places)), question)


def _split(word: str) -> tuple[str, str]:
    """Return the platform and the name of a device; either may be empty."""
    platform, colon, name = word.partition(":")
    if not colon and word.lower() not in platforms():
        return "", word
    return platform.lower(), "" if name.lower() in _FIRST else name


def _measured_called(
    platform: str, name: str, measured: Iterable[CaseConfiguration]
) -> list[CaseConfiguration]:
    """Return the measured configurations of a platform or a device.

    The whole name of a measured device goes before a documented device, and that before names that
    contain the word: no import changes which device a name means.
    """
    places = [p for p in measured if not platform or p.hardware == platform]
    if not name:
        return places
    if exact := [p for p in places if p.device.lower() == name.lower()]:
        return exact
    devices = find_devices(name, platform)
    if len(devices) == 1:
        return [p for p in places if facts_of(p.device, p.hardware) is devices[0]]
    return [p for p in places if platform and name.lower() in p.device.lower()]


def _usual(counts: Counter[CaseConfiguration]) -> list[CaseConfiguration]:
    """Of each device, engine and precision the plain way, or the one with the most cases."""
    best: dict[tuple[str, str, str, str], CaseConfiguration] = {}
    for place in sorted(counts, key=lambda c: (bool(c.options), c.compiled, -counts[c], str(c))):
        key = (place.hardware, place.device, place.runtime, place.precision)
        best.setdefault(key, place)
    return [best[key] for key in sorted(best)]


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
    measured: Iterable[CaseConfiguration],
    device_here: Callable[[str], str | None],
    notes: list[str],
) -> list[CaseConfiguration]:
    """A platform that nothing was measured on: this machine's device, or a documented one.

    An accelerator is asked in each way too in which others of its platform were measured, in
    precisions that it has units for: an H100 in fp32 alone would lose to a measured card in fp16.

    Raises:
        UsageError: neither is known.
    """
    platform, name = _split(word.lower())
    typical = typical_device(platform, name)
    devices = [typical] if typical else find_devices(name, platform)
    if len(devices) > 1:
        refuse_several(word, devices)
    documented = next((facts for facts in devices if facts.bandwidth), None)
    device_name = None if name else device_here(platform)
    device = device_name or (documented.name if documented else None)
    if device is None:
        names = [entry.short for entry in devices_on(platform) if entry.bandwidth]
        advice = (
            f"Documented: {', '.join(f'{platform}:{entry}' for entry in names)}." if names else ""
        )
        raise UsageError(
            f"Nothing was measured on {in_quotes(word)}, and no peaks of it are documented.", advice
        )
    what = "nothing" if question.mode == Mode.INFERENCE else f"no {question.mode}"
    notes.append(f"{what} was measured on {word}: {device} is known by its documented peaks alone")
    runtimes = question.runtimes or (_usual_runtime(platform, question.models),)
    precision = (question.precisions or (_usual_precision(documented),))[0]
    places = [
        CaseConfiguration(platform, device, runtime, precision, question.mode)
        for runtime in runtimes
    ]
    facts = facts_of(device, platform)
    if facts is not None and platform not in ON_CPUS:
        places += [
            replace(place, device=device) for place in measured
            if place.hardware == platform and _has_units(facts, place.precision)
        ]  # fmt: skip
    return list(dict.fromkeys(places))


def _has_units(facts: DeviceFacts, precision: str) -> bool:
    return precision == "fp32" or facts.documented_rate(precision.removeprefix("amp-")) is not None


def _usual_runtime(platform: str, models: Sequence[ModelSpec]) -> str:
    """Return the runtime that `run` takes on a platform, for files one that reads all of them."""
    formats = {spec.builder.removeprefix(_FILE) for spec in models}
    known = cards()
    default = next((name for name, card in known.items() if platform in card.default_for), _PYTORCH)
    readers = [
        name
        for name, card in known.items()
        if platform in card.hardware and formats and formats <= set(card.files)
    ]
    return default if default in readers or not readers else readers[0]


def _usual_precision(documented: DeviceFacts | None) -> str:
    """fp32; of a device that has documented peaks in others alone, the first of them."""
    peaks = documented.teraops if documented else {}
    return _USUAL_PRECISION if _USUAL_PRECISION in peaks or not peaks else next(iter(peaks))


_MIB = 2**20
#: Several devices may have one name: only what fits none of them does not fit.
_STORED_SQL = """
SELECT hardware, device_name, max(memory_mb) FROM hardware_info
WHERE memory_mb > 0 AND device_name IS NOT NULL AND NOT coalesce(emulated, false)
GROUP BY ALL
"""


@dataclass
class MemoryByDevice:
    """How much memory devices have, in bytes.

    Attributes:
        detected: what this machine has of a platform.
    """

    detected: Callable[[str], Iterable[object]]
    database: Database | None = None
    _looked_up: dict[tuple[str, str], int | None] = field(default_factory=dict)

    def __call__(self, platform: str, device: str) -> int | None:
        """The memory of a device; None where nobody knows it."""
        key = (platform, device)
        if key not in self._looked_up:
            self._looked_up[key] = self._here(*key) or self._stored.get(key) or documented(*key)
        return self._looked_up[key]

    def _here(self, platform: str, device: str) -> int | None:
        entries = (entry for entry in self.detected(platform) if isinstance(entry, Device))
        return next((entry.memory_bytes for entry in entries if entry.name == device), None)

    @cached_property
    def _stored(self) -> Mapping[tuple[str, str], int]:
        if self.database is None or not self.database.is_created:
            return {}
        _, rows = self.database.query(_STORED_SQL)
        return {
            (str(platform), str(device)): int(memory * _MIB)
            for platform, device, memory in rows
            if isinstance(memory, float)
        }


def documented(platform: str, device: str) -> int | None:
    """The memory of a device by its maker's document."""
    facts = facts_of(device, platform)
    return None if facts is None else facts.memory_bytes


_GIB = 2.0**30


def is_too_large(needed: float | None, room: float | None) -> bool:
    """Whether more memory is needed than there is; of what is not known it is not said."""
    return needed is not None and room is not None and needed > room


def memory_words(needed: float, room: float) -> str:
    """How much is needed of how much there is."""
    return f"{needed / _GIB:,.3g} GiB of {room / _GIB:,.3g} GiB"

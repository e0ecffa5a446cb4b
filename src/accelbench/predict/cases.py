"""Cases to predict and measured cases: a model at sizes, in a configuration. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

from accelbench.core.axes import AXES, numeric_axes
from accelbench.core.case import Shapes
from accelbench.core.device_facts import kind_of as device_kind
from accelbench.core.formatting import join_first
from accelbench.core.jsonc import loads
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Provenance

#: What is predicted.
LATENCY, MEMORY = "latency", "memory"
TARGETS = (LATENCY, MEMORY)
#: Parts of a request that have a time of their own, by the pass that they are traced as: reading
#: the prompt up to the first token, and each token after it.
PREFILL, DECODE = "prefill", "decode"

#: Platforms whose engines compute on the CPU.
ON_CPUS = ("cpu", "openvino", "wasm")
#: The set of models that a file describes, of which no family is known.
FROM_FILE = "file"
UNKNOWN_FAMILY = "unknown"
#: The set, and the family, of models that results name and of which no operators are known.
NAME_ONLY = "name only"


#: The sizes of a case's shapes without the batch, in the order of the axes.
SIZES_WITHOUT_BATCH = attrgetter(*(axis.field for axis in AXES))


@dataclass(frozen=True, slots=True)
class CaseConfiguration:
    """Where and how a model runs: everything of a case but the model and its sizes."""

    hardware: str  # platform
    device: str  # the device's name
    runtime: str
    precision: str
    mode: str
    compiled: bool = False
    threads: int | None = None
    options: str = ""

    @property
    def calibrated_as(self) -> tuple[str, str]:
        """The platform and name by which a calibration knows its device: a CPU is one of `cpu`."""
        return platform_of(self), self.device

    def __str__(self) -> str:
        parts = [f"{self.runtime}/{self.hardware}", self.precision]
        parts += ["compiled"] if self.compiled else []
        parts += [f"{self.threads} threads"] if self.threads else []
        parts += [self.options] if self.options else []
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class PredictedCase:
    """A model at sizes in a configuration."""

    model: str  # the catalogue's name
    family: str
    shapes: Shapes  # settled: with the model's own sizes
    configuration: CaseConfiguration
    part: str = ""  # of a request: PREFILL, DECODE; the whole step unless said

    @property
    def has_operators(self) -> bool:
        """Whether more than the name of its model is known."""
        return self.family != NAME_ONLY

    @property
    def relatives(self) -> str:
        """The near relatives of its model, as one word."""
        return relatives_of(self.family, self.model)

    @property
    def first_token(self) -> PredictedCase:
        """A request up to its first token, however many come after it."""
        return replace(self, part=PREFILL, shapes=replace(self.shapes, new_tokens=1))

    @property
    def next_token(self) -> PredictedCase:
        """One token of a request after the first, in the middle of what is written."""
        return replace(self, part=DECODE)


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """A case with what it was measured to take: the middle of the launches of its newest run.

    Attributes:
        source: who measured it, if it was imported and its source is known.
    """

    case: PredictedCase
    latency_ms: float | None
    memory_mb: float | None
    provenance: str = Provenance.MEASURED
    source: str = ""

    def value(self, target: str) -> float | None:
        """Return the milliseconds or megabytes; None if they were not measured."""
        return self.latency_ms if target == LATENCY else self.memory_mb


def family_of(spec: ModelSpec) -> str:
    """Return the family of a model; files do not have one."""
    if NAME_ONLY in spec.sets:
        return NAME_ONLY
    return UNKNOWN_FAMILY if FROM_FILE in spec.sets else spec.family


_TAG, _LETTERS = re.compile(r"^[a-z]{2}_"), re.compile(r"[a-z]+")


@lru_cache(maxsize=8192)
def relatives_of(family: str, model: str) -> str:
    """Return what a model's near relatives have in common: its family and its name's first word.

    An owner, a short tag before an underscore and a version are left out. The families that a table
    states gave the same errors, and a user's own file has none.
    """
    name = _TAG.sub("", model.lower().rpartition("/")[2])
    word = _LETTERS.match(name)
    return f"{family} {word[0] if word else name}"


#: By so much a difference in each field parts two configurations: e to the minus of the sum is what
#: their residuals have in common.
APART = {
    "device": 0.3, "hardware": 0.4, "runtime": 1.0, "precision": 0.6, "mode": 1.0,
    "compiled": 0.5, "threads": 0.2, "options": 0.3,
}  # fmt: skip


def case_values(case: PredictedCase, place: int) -> list[Any]:
    """Return a case as JSON keeps it, with the number of its configuration."""
    return [case.model, case.family, place, case.part, [*asdict(case.shapes).values()]]


def case_of_values(values: Sequence[Any], places: Sequence[CaseConfiguration]) -> PredictedCase:
    """Return the case that JSON keeps so."""
    model, family, place, part, shapes = values
    return PredictedCase(model, family, Shapes(*shapes), places[place], part)


def option_words(options: str) -> list[str]:
    """Return the options of an engine, and the optimizer, of a configuration."""
    end = options.rfind("}") + 1
    settings = loads(options[:end] or "{}")
    return [*(f"{name}={value}" for name, value in settings.items()), *options[end:].split()]


def distance(some: CaseConfiguration, other: CaseConfiguration) -> float:
    """Return by how much two configurations differ."""
    return sum(
        weight for name, weight in APART.items() if getattr(some, name) != getattr(other, name)
    )


#: Platforms that are a kind of their own, whatever their device: browsers, and Vulkan, on which the
#: same card takes many times as long as on CUDA.
_OWN_KINDS = {**dict.fromkeys(("wasm", "webgpu", "webnn"), "browser"), "vulkan": "Vulkan"}


def platform_of(configuration: CaseConfiguration) -> str:
    """Return the platform of a configuration; engines that compute on the CPU share one."""
    return "cpu" if configuration.hardware in ON_CPUS else configuration.hardware


@cache
def kind_of(configuration: CaseConfiguration) -> str:
    """Return the kind of platform of a configuration: GPU, CPU, phone, board, browser and so on.

    Cards of desktops teach something of those of servers, and so do processors.
    """
    if configuration.hardware in _OWN_KINDS:
        return _OWN_KINDS[configuration.hardware]
    kind = device_kind(platform_of(configuration), configuration.device)
    return kind.removeprefix("server ").removeprefix("desktop ")


def numbers_of_places(cases: Sequence[PredictedCase]) -> list[int]:
    """The number of each case's configuration, equal ones alike.

    A matrix has a hundred thousand cases in a few configurations, and hashing one of those takes
    as long as predicting it: each object is hashed once.
    """
    numbers: dict[CaseConfiguration, int] = {}
    of_object: dict[int, int] = {}
    places = []
    for case in cases:
        place = case.configuration
        number = of_object.get(id(place))
        if number is None:
            number = of_object[id(place)] = numbers.setdefault(place, len(numbers))
        places.append(number)
    return places


def sizes_of(shapes: Shapes) -> dict[str, int]:
    """The sizes by their columns, without the batch and without those that the model has not."""
    sizes = {axis.column: getattr(shapes, axis.field) for axis in numeric_axes()}
    return {column: size for column, size in sizes.items() if size is not None}


def shapes_from(batch: int, sizes: Mapping[str, int]) -> Shapes:
    """The shapes of a batch and of sizes by their columns."""
    named: dict[str, Any] = {axis.field: sizes.get(axis.column) for axis in numeric_axes()}
    return Shapes(batch, **named)


#: Half as much again as is measured, or half of it: beyond that a figure is to be read as a band.
POOR = 0.5
_MOST_NAMED = 3


def measured_cases(number: int, of_others: int) -> str:
    """Some measured cases, and how many of them others measured, in words."""
    some = "all" if of_others == number else f"{of_others:,}"
    imported = f", {some} of them measured by others" if of_others else ""
    return f"{number:,} measured case{'s' * (number != 1)}{imported}"


def off_held_out(error: float, of: str) -> str:
    """By how much figures were off where what they rest on was held out, and how many."""
    return f"{error:,.0%} ({of})"


def poor_notes(figures: Iterable[tuple[str, float | None, str | None]]) -> list[str]:
    """A sentence for each basis whose figures were poor where it was held out."""
    poor: dict[str, dict[str, None]] = {}
    for basis, error, of in figures:
        if error is not None and error > POOR:
            poor.setdefault(basis, {})[off_held_out(error, of or "")] = None
    return [
        f"figures that rest on {basis} are poor, and their intervals alone are to be relied on:"
        f" held out, such figures were off in the median by {join_first(list(named), _MOST_NAMED)}"
        for basis, named in poor.items()
    ]

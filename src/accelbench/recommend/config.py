"""The configuration of choosing, JSON with comments, in the documents' format.

A file overrides the defaults key by key. Unknown keys and wrong values are refused with their line.

The size of a model, spellings of model names, and deployments with their platforms. Pure.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypedDict, cast

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, parse
from accelbench.core.model import ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import FAMILIES, HARDWARE, Mode
from accelbench.recommend.validation import amount

IMPORTANCES = ("low", "medium", "high")
SIZES = ("small", "medium", "large")
RATINGS = ("high", "medium", "low")
FACTORS = ("cost_factor", "availability_factor", "power_factor")
_MOST_FACTOR = 1e6
_WEIGHTS = {
    Mode.INFERENCE.value: ("latency", "throughput", "memory", "compatibility"),
    Mode.TRAINING.value: ("throughput", "convergence", "memory", "compatibility"),
}
_IMPORTANCE_OF = ("batch_size_importance", "model_size_importance")
#: Every family, in `compatibility`.
ANY_FAMILY = "*"


class PlatformEntry(TypedDict):
    """The compatibility of a platform with a family."""

    compatible: bool
    performance_rating: str


class Config(TypedDict):
    """A complete configuration."""

    selection_criteria: dict[str, dict[str, float]]
    model_families: dict[str, dict[str, str]]
    hardware_preferences: dict[str, dict[str, float]]
    batch_size_thresholds: dict[str, float]
    model_size_categories: dict[str, float]
    fallback_order: list[str]
    compatibility: dict[str, dict[str, PlatformEntry]]


_FILE = Path(__file__).with_name("config_defaults.toml")
_GIVEN: Any = tomllib.loads(_FILE.read_text(encoding="utf-8"))
#: The factors are 1: only users know what their machines cost.
_PREFERENCES = {name: dict.fromkeys(FACTORS, 1.0) for name in HARDWARE}
DEFAULTS = cast(
    "Config",
    {name: _GIVEN[name] for name in Config.__annotations__}
    | {"hardware_preferences": _PREFERENCES},
)


def defaults() -> Config:
    """Return a copy of the defaults."""
    return deepcopy(DEFAULTS)


def read(path: str | PathLike[str]) -> Config:
    """Return the configuration of a file over the defaults; refuse wrong files."""
    file = Path(path).expanduser()
    try:
        given = parse(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"The configuration {file} cannot be read ({error.strerror}).", "Name a JSON file."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The configuration {file} is no text.") from error
    except JsonError as error:
        raise UsageError(f"{file}, {error}.") from error
    return over_defaults(given, str(file))


def over_defaults(given: object, place: str = "the configuration") -> Config:
    """Return the defaults with the given values over them; refuse wrong values."""
    whole = _Part(given, place, "")
    whole.allow(DEFAULTS)
    made = defaults()
    for mode, part in whole.parts("selection_criteria", _WEIGHTS):
        part.allow(f"{name}_weight" for name in _WEIGHTS[mode])
        made["selection_criteria"][mode] |= {name: part.amount(name) for name in part.given}
        if not sum(made["selection_criteria"][mode].values()):
            part.wrong("all weights are 0")
    for family, part in whole.parts("model_families", FAMILIES):
        part.allow(_IMPORTANCE_OF)
        importances = {name: part.word(name, IMPORTANCES) for name in part.given}
        made["model_families"][family] |= importances
    for hardware, part in whole.parts("hardware_preferences"):
        part.allow(FACTORS)
        neutral = dict.fromkeys(FACTORS, 1.0)
        known = made["hardware_preferences"].setdefault(hardware, neutral)
        known |= {name: part.factor(name) for name in part.given}
    for name, bounds in (
        ("batch_size_thresholds", made["batch_size_thresholds"]),
        ("model_size_categories", made["model_size_categories"]),
    ):
        if name in whole.given:
            bounds.update(_ascending(_Part(whole.given[name], place, name), bounds))
    if "fallback_order" in whole.given:
        made["fallback_order"] = whole.words("fallback_order")
    for family, part in whole.parts("compatibility", (*FAMILIES, ANY_FAMILY)):
        made["compatibility"][family] = dict(_compatibility(part))
    return made


def size_of(amount: float, thresholds: Mapping[str, float]) -> str:
    """Return small, medium or large: a threshold belongs to its size, and above all is large."""
    for name in SIZES:
        if amount <= thresholds[name]:
            return name
    return SIZES[-1]


def _compatibility(part: _Part) -> Iterable[tuple[str, PlatformEntry]]:
    for hardware, entry in part.parts():
        entry.allow(("compatible", "performance_rating"))
        compatible = entry.given.get("compatible", True)
        if not isinstance(compatible, bool):
            entry.wrong("compatible is true or false", "compatible")
        rating = "medium"
        if "performance_rating" in entry.given:
            rating = entry.word("performance_rating", RATINGS)
        yield hardware, {"compatible": compatible, "performance_rating": rating}


def _ascending(part: _Part, known: Mapping[str, float]) -> dict[str, float]:
    part.allow(SIZES)
    thresholds = {**known, **{name: part.amount(name, above=True) for name in part.given}}
    bounds = [thresholds[name] for name in SIZES]
    if any(low >= high for low, high in pairwise(bounds)):
        part.wrong(f"the bounds do not ascend: {', '.join(f'{bound:g}' for bound in bounds)}")
    return thresholds


class _Part:
    """An object of the file with its place."""

    def __init__(self, given: object, place: str, name: str, line: int | None = None) -> None:
        self.place, self.name, self.line = place, name, line
        if not isinstance(given, dict):
            self.wrong("an object in braces is expected")
        self.given: dict[str, object] = given
        for key in given:
            if not isinstance(key, str) or not key.strip():
                self.wrong(f"{in_quotes(key)} is no name")

    def wrong(self, why: str, key: str = "", advice: str = "") -> NoReturn:
        lines = getattr(getattr(self, "given", None), "lines", {})
        line = lines.get(key) or self.line
        where = f"{self.place}, line {line}" if line else self.place
        named = ".".join(part for part in (self.name, key) if part)
        raise UsageError(f"{where}{f', {named}' if named else ''}: {why}.", advice)

    def allow(self, names: Iterable[str]) -> None:
        known = [str(name) for name in names]
        for key in self.given:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.5)
                hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
                self.wrong("there is no such key", key, hint)

    def parts(
        self, name: str = "", names: Iterable[str] | None = None
    ) -> Iterable[tuple[str, _Part]]:
        """Yield the objects in it, or in the one of a name, by their keys."""
        if name:
            if name not in self.given:
                return
            inner = _Part(self.given[name], self.place, name, self._line(name))
            yield from inner.parts("", names)
            return
        if names is not None:
            self.allow(names)
        for key, value in self.given.items():
            inside = ".".join(part for part in (self.name, key) if part)
            yield key, _Part(value, self.place, inside, self._line(key))

    def factor(self, key: str) -> float:
        """Return an amount whose product with two others is finite."""
        number = self.amount(key)
        if number > _MOST_FACTOR:
            self.wrong(f"{key} is above {_MOST_FACTOR:g}", key)
        return number

    def amount(self, key: str, *, above: bool = False) -> float:
        value = self.given[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong("a number is expected", key)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.wrong("a number that has an end is expected", key)
        if number < 0 or (above and not number):
            self.wrong(f"{number:g} is {'not above' if above else 'below'} 0", key)
        return number

    def word(self, key: str, words: Iterable[str]) -> str:
        known = tuple(words)
        value = self.given[key]
        if value not in known:
            self.wrong(f"{in_quotes(value)} is none of {', '.join(known)}", key)
        return str(value)

    def words(self, key: str) -> list[str]:
        value = self.given[key]
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            self.wrong("a list of names is expected", key)
        return list(dict.fromkeys(value))

    def _line(self, key: str) -> int | None:
        return getattr(self.given, "lines", {}).get(key)


_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
#: "7b" and "350m" stand for themselves; "8x7b" is eight experts of seven billion.
_NUMBER = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([kmbt])(?![a-z0-9])")
#: The size of most models with such words in their names.
_WORDS = {
    "nano": "small",
    "tiny": "small",
    "mini": "small",
    "small": "small",
    "base": "medium",
    "medium": "medium",
    "large": "medium",
    "xl": "large",
    "xxl": "large",
    "huge": "large",
}
#: The size of most models, for names without a size.
_UNSAID = "medium"
_ESTIMATES = "It gives a number of weights, small, medium or large, or None."


@dataclass(frozen=True)
class ModelSize:
    """Small, medium or large, and its source."""

    name: str
    source: str
    parameters: int | None = None


def from_name(name: str) -> int | str | None:
    """Return a number of weights, or small, medium or large, from a name; None if it has none."""
    text = name.lower()
    match = _NUMBER.search(text)
    if match:
        return round(int(match[1] or 1) * float(match[2]) * _UNITS[match[3]])
    sizes = [_WORDS[word] for word in re.split(r"[^a-z]+", text) if word in _WORDS]
    return sizes[0] if sizes else None


def known_size(
    spec: ModelSpec | None, measured: int | None, categories: Mapping[str, float]
) -> ModelSize | None:
    """Return the size by the weights in the catalogue or in results, or None."""
    if spec is not None:
        return ModelSize(size_of(spec.parameters, categories), "the catalogue", spec.parameters)
    if measured:
        return ModelSize(size_of(measured, categories), "stored results", measured)
    return None


def estimated_size(
    estimate: int | float | str | None, categories: Mapping[str, float]
) -> ModelSize:
    """Return the size that an estimate from a name stands for; refuse other values."""
    if estimate is None:
        return ModelSize(_UNSAID, "nothing: the name says no size")
    if isinstance(estimate, str):
        size = estimate.strip().lower()
        if size not in SIZES:
            raise UsageError(f"_estimate_model_size gave {in_quotes(estimate)}.", _ESTIMATES)
        return ModelSize(size, "the model's name")
    weights = amount("An estimate of _estimate_model_size", estimate, _ESTIMATES)
    return ModelSize(size_of(weights, categories), "the model's name", int(weights))


def plain_name(name: str) -> str:
    """Return a model's name without its owner, case and punctuation."""
    return "".join(filter(str.isalnum, name.rpartition("/")[2].lower()))


def stored_names(
    names: Sequence[str], models: Mapping[str, object], named: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the stored models of these names and of similar spellings.

    Results of resnet50 stay known when resnet-50 is measured too. A model of another owner is only
    taken if no model has one of the names.
    """
    exact = [name for name in names if name in models]
    near = [named[plain] for plain in map(plain_name, names) if plain in named]
    if not exact:
        return tuple(near[:1])
    spelt = {_whole(name) for name in names}
    return tuple(dict.fromkeys([*exact, *(name for name in near if _whole(name) in spelt)]))


def _whole(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum() or char == "/")


#: The platforms of a deployment, in the order of equals.
DEPLOYMENTS: Mapping[str, tuple[str, ...]] = {
    "development": ("cpu",),
    "mac": ("mps", "cpu"),
    "intel": ("openvino", "cpu"),
    "edge": ("openvino", "qnn", "cpu"),
    "mobile": ("qnn", "cpu"),
    "browser": ("webnn", "webgpu", "wasm"),
    "battery": ("qnn", "mps", "cpu"),
}
#: Browsers, which are chosen only if they are named.
BROWSERS = frozenset(DEPLOYMENTS["browser"])

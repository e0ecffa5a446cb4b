"""The size of a model, spellings of model names, and deployments with their platforms. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes
from accelbench.recommend.query.config import SIZES, size_of
from accelbench.recommend.query.validation import amount

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

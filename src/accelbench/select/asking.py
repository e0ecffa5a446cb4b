"""A question as it was put, with what is known of its model before any figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelbench.catalog.find import find
from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.precision import parse_precision
from accelbench.core.words import Family, Mode
from accelbench.select.evidence import Cell, Known
from accelbench.select.sizes import Size

#: By the store's names, as shapes have them.
_SIZES = {
    "sequence_length": "sequence",
    "image_size": "image",
    "audio_seconds": "audio",
    "denoising_steps": "steps",
    "prompt_tokens": "prompt_tokens",
    "new_tokens": "new_tokens",
}


@dataclass(frozen=True)
class Asked:
    """What is to be chosen for.

    Attributes:
        shapes: sizes that were named, by the store's columns.
        distributed: how many devices work on it, and what memory each has.
    """

    model: str
    family: str
    batch: int
    mode: str
    size: Size
    spec: ModelSpec | None = None
    precision: str | None = None
    task: str | None = None
    shapes: Mapping[str, int] = field(default_factory=dict)
    distributed: Mapping[str, Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What its results may be stored under."""
        return tuple(dict.fromkeys((*([self.spec.id] if self.spec else []), self.model)))

    def told(self) -> dict[str, Any]:
        """As the answer repeats it."""
        return {
            "model": self.model,
            "family": self.family,
            "batch_size": self.batch,
            "mode": self.mode,
            "task": self.task,
            "precision": self.precision,
            "shapes": dict(self.shapes),
            "model_size": self.size.name,
            "model_size_source": self.size.source,
            "parameters": self.size.parameters,
        }


def spec_of(name: str) -> ModelSpec | None:
    """The catalogue's model of that name, if it has one."""
    try:
        return find(name)
    except UsageError:
        return None


def family_named(word: str) -> str:
    """One of the five families; dashes and case do not matter.

    Raises:
        UsageError: it is none.
    """
    text = word.strip().lower().replace("-", "_").replace(" ", "_")
    if text not in tuple(Family):
        raise UsageError(f"There is no model family {word!r}.", f"Families: {', '.join(Family)}.")
    return text


def mode_named(word: str) -> str:
    """Inference or training.

    Raises:
        UsageError: it is neither.
    """
    text = word.strip().lower()
    if text not in tuple(Mode):
        raise UsageError(f"There is no mode {word!r}.", f"Modes: {', '.join(Mode)}.")
    return text


def precision_named(word: str | None) -> str | None:
    """A precision as it is stored; None stands for any.

    Raises:
        UsageError: there is none of that name.
    """
    return None if word is None else parse_precision(word)


def shapes_named(given: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes by the store's columns; the names of a case's shapes are taken too.

    Raises:
        UsageError: there is no such size.
    """
    aliases = {short: long for long, short in _SIZES.items()}
    found = {}
    for name, value in (given or {}).items():
        column = aliases.get(name, name)
        if column not in _SIZES:
            raise UsageError(f"There is no size {name!r}.", f"Sizes: {', '.join(_SIZES)}.")
        found[column] = int(value)
    return found


def known_of(asked: Asked, own: Sequence[Cell], flops: float | None = None, kin: str = "") -> Known:
    """What is known of the model: by who asks, by the catalogue, by results anywhere."""
    parameters = asked.size.parameters
    counted = flops or _counted(asked)
    for cell in own:
        parameters = parameters or cell.row.get("parameters")
        if not counted and cell.row.get("flops"):
            counted = float(cell.row["flops"]) / cell.batch
        kin = kin or str(cell.row.get("kin") or "")
    return Known(None if parameters is None else int(parameters), counted, kin)


def _counted(asked: Asked) -> float | None:
    """Operations of an item, as the catalogue counts them; None where it does not."""
    if asked.spec is None:
        return None
    from accelbench.catalog.cost import flops

    sizes = {_SIZES[name]: value for name, value in asked.shapes.items()}
    if asked.mode == Mode.TRAINING:
        sizes = {
            name: value
            for name, value in sizes.items()
            if name not in ("prompt_tokens", "new_tokens")
        }
    try:
        found = flops(asked.spec, Shapes(asked.batch, **sizes), asked.mode)
    except AccelbenchError:
        return None
    return None if found is None else found / asked.batch

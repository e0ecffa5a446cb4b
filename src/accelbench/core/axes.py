"""The sizes of an input other than the batch: the one registry. It imports nothing of ours.

A new size is one entry here; code reads a size by its name only if its meaning matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from accelbench.core.model import ModelSpec

T = TypeVar("T")


class Part(StrEnum):
    """What of a step a size is of."""

    INPUT = "input"  # what one item is
    REQUEST = "request"  # how much is read and written, token by token: inference alone has it
    PASSES = "passes"  # how often the model runs for one item: inference alone has it


#: The orders in which the sizes are told, part after part: that of questions, in columns and keys,
#: and that of titles, in words. Files and names that were written are read by them.
AS_ASKED = (Part.INPUT, Part.PASSES, Part.REQUEST)
AS_TOLD = (Part.INPUT, Part.REQUEST, Part.PASSES)


@dataclass(frozen=True)
class Axis:
    """Axis of sizes: what it is called wherever one of its sizes is asked for, stored or shown.

    What is not given below `why_absent` follows from what is above it.
    """

    field: str  # of a case's shapes, and of the model that has a size of its own
    column: str  # of results
    option: str  # of `accelbench run`
    label: str  # one size in a heading or a title, as "seq {}"
    unit: str  # what is counted
    why_absent: str  # why a result has no such size
    part: Part = Part.INPUT  # what of a step it is of
    least: int = 1  # the smallest size that can be asked for
    help: str = ""  # of the option
    idle: str = "has such a size"  # what no model of a run does that has no use for the option
    noun: str = ""  # in a sentence that refuses a size
    word: str = ""  # before the size where a model is described
    short: str = ""  # before the size in a chart
    page_label: str = ""  # as `label`, on a page, where there is more room
    text: bool = False  # its sizes are several, by name, in one text

    def __post_init__(self) -> None:
        plainly = self.column.replace("_", " ")
        follows = {
            "help": f"{self.unit[:1].upper()}{self.unit[1:]}.",
            "noun": plainly,
            "word": self.field.replace("_", " "),
            "short": plainly,
            "page_label": self.label,
        }
        for name, text in follows.items():
            if not getattr(self, name):
                object.__setattr__(self, name, text)

    @property
    def asked(self) -> str:
        """The field of a request, which holds every size that was asked for."""
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and after a size in its label."""
        before, _, after = self.label.partition("{}")
        return before, after

    def own(self, model: ModelSpec) -> Any:
        """The size that a model has for itself; None where it has none."""
        holder = model.generation if self.part is Part.REQUEST else model
        return getattr(holder, self.field, None)


#: In the order of the columns of results.
AXES: tuple[Axis, ...] = (
    Axis(field="sequence", column="sequence_length", option="--sequence-lengths", label="seq {}",
         unit="tokens in one item", why_absent="the model reads no sequence of its own",
         idle="reads text", short="seq"),
    Axis(field="image", column="image_size", option="--image-sizes", label="{}px",
         unit="side of a square image in pixels", why_absent="the model takes no image",
         idle="takes images", short="image", page_label="{} px"),
    Axis(field="prompt_tokens", column="prompt_tokens", option="--prompt-tokens",
         label="prompt {}", unit="tokens of a generation prompt",
         why_absent="nothing is generated", part=Part.REQUEST,
         help="Tokens that a model reads before it writes.", idle="is asked to write",
         noun="prompt"),
    Axis(
        field="new_tokens",
        column="new_tokens",
        option="--new-tokens",
        label="new {}",
        unit="tokens generated per request",
        why_absent="nothing is generated",
        part=Part.REQUEST,
        least=0,  # one forward pass instead of a whole request
        help="Tokens that it writes; 0 measures one forward pass instead.",
        idle="is asked to write",
    ),
    Axis(field="audio", column="audio_seconds", option="--audio-seconds", label="{} s",
         unit="seconds of sound in one item", why_absent="the model takes no sound",
         idle="takes sound", noun="sound", word="seconds", page_label="{} s sound"),
    Axis(field="steps", column="denoising_steps", option="--denoising-steps", label="{} steps",
         unit="passes of the denoiser for one image", why_absent="nothing is denoised",
         part=Part.PASSES, help="Passes of a denoiser for one image.", idle="is asked to denoise",
         noun="number of denoising steps", word="denoising steps"),
    Axis(field="dims", column="dimensions", option="--dim", label="{}",
         unit="sizes of a file's other free dimensions, by name",
         why_absent="the model has no free dimension of another name",
         help="Sizes of a free dimension of a model file, such as nodes=64,128.",
         idle="has a free dimension of that name", noun="free dimension", word="free dimensions",
         text=True),
)  # fmt: skip


def numbered() -> tuple[Axis, ...]:
    """Those whose sizes are numbers."""
    return tuple(axis for axis in AXES if not axis.text)


def axes_of(*parts: Part) -> tuple[Axis, ...]:
    """The axes of some parts of a step, part after part."""
    return tuple(axis for part in parts for axis in AXES if axis.part is part)


def columns(*parts: Part) -> tuple[str, ...]:
    """The columns of some parts, part after part; of all, in the order of results, without any."""
    return tuple(axis.column for axis in (axes_of(*parts) if parts else AXES))


def size_labels(sizes: Mapping[str, Any]) -> list[str]:
    """Return sizes by the columns of results as a heading shows them, such as "seq 128"."""
    return [
        axis.label.format(sizes[axis.column])
        for axis in axes_of(*AS_TOLD)
        if sizes.get(axis.column)
    ]


def with_axes(
    name_of: Callable[[Axis], str], default: object, *parts: Part
) -> Callable[[type[T]], type[T]]:
    """Add to a dataclass, from under its decorator, a field for each axis that it does not spell.

    It spells those that code reads by their names, for the sake of types; of any other the field is
    known by its name alone, as `name_of` makes it.
    """

    def add(cls: type[T]) -> type[T]:
        spelt = dict(cls.__annotations__)
        for axis in axes_of(*parts) if parts else AXES:
            if name_of(axis) not in spelt:
                spelt[name_of(axis)] = Any
                setattr(cls, name_of(axis), default)
        cls.__annotations__ = spelt
        return cls

    return add

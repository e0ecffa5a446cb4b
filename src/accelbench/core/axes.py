"""Registry of the sizes of an input other than the batch.

A new size is one entry here. Code reads a size by its name only if its meaning matters.
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
    """Part of a step that a size belongs to."""

    INPUT = "input"  # the size of one item
    REQUEST = "request"  # tokens read and written, in inference only
    PASSES = "passes"  # runs of the model for one item, in inference only


#: Order of the parts in columns and keys, and in titles. Stored files and names depend on both.
COLUMN_ORDER = (Part.INPUT, Part.PASSES, Part.REQUEST)
TITLE_ORDER = (Part.INPUT, Part.REQUEST, Part.PASSES)


@dataclass(frozen=True)
class Axis:
    """Axis of sizes, with its names in options, columns, titles and messages.

    Fields below `why_absent` have defaults that follow from the fields above it.
    """

    field: str  # of a case's shapes, and of the model that has a size of its own
    column: str  # of results
    option: str  # of `accelbench run`
    label: str  # one size in a heading or a title, as "seq {}"
    unit: str  # what is counted
    why_absent: str  # reason why a result has no such size
    part: Part = Part.INPUT
    least: int = 1  # the smallest size that can be asked for
    help: str = ""  # of the option
    usage: str = "has such a size"  # completes "no model of this run …" if the option is unused
    noun: str = ""  # in a message that refuses a size
    word: str = ""  # before the size in a model's description
    short: str = ""  # before the size in a chart
    page_label: str = ""  # like `label`, for pages, which have more room
    text: bool = False  # its value is one text with several sizes by name

    def __post_init__(self) -> None:
        spaced = self.column.replace("_", " ")
        defaults = {
            "help": f"{self.unit[:1].upper()}{self.unit[1:]}.",
            "noun": spaced,
            "word": self.field.replace("_", " "),
            "short": spaced,
            "page_label": self.label,
        }
        for name, text in defaults.items():
            if not getattr(self, name):
                object.__setattr__(self, name, text)

    @property
    def option_key(self) -> str:
        """Key of this axis in the sizes of a run's options."""
        return self.option.removeprefix("--").replace("-", "_")

    @property
    def label_ends(self) -> tuple[str, str]:
        """Text before and after a size in its label."""
        before, _, after = self.label.partition("{}")
        return before, after

    def default_size(self, model: ModelSpec) -> Any:
        """Return the model's own size on this axis; None if it has none."""
        holder = model.generation if self.part is Part.REQUEST else model
        return getattr(holder, self.field, None)


#: In the order of the columns of results.
AXES: tuple[Axis, ...] = (
    Axis(field="sequence", column="sequence_length", option="--sequence-lengths", label="seq {}",
         unit="tokens in one item", why_absent="the model reads no sequence of its own",
         usage="reads text", short="seq"),
    Axis(field="image", column="image_size", option="--image-sizes", label="{}px",
         unit="side of a square image in pixels", why_absent="the model takes no image",
         usage="takes images", short="image", page_label="{} px"),
    Axis(field="prompt_tokens", column="prompt_tokens", option="--prompt-tokens",
         label="prompt {}", unit="tokens of a generation prompt",
         why_absent="nothing is generated", part=Part.REQUEST,
         help="Tokens that a model reads before it writes.", usage="is asked to write",
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
        usage="is asked to write",
    ),
    Axis(field="audio", column="audio_seconds", option="--audio-seconds", label="{} s",
         unit="seconds of sound in one item", why_absent="the model takes no sound",
         usage="takes sound", noun="sound", word="seconds", page_label="{} s sound"),
    Axis(field="steps", column="denoising_steps", option="--denoising-steps", label="{} steps",
         unit="passes of the denoiser for one image", why_absent="nothing is denoised",
         part=Part.PASSES, help="Passes of a denoiser for one image.", usage="is asked to denoise",
         noun="number of denoising steps", word="denoising steps"),
    Axis(field="dims", column="dimensions", option="--dim", label="{}",
         unit="sizes of a file's other free dimensions, by name",
         why_absent="the model has no free dimension of another name",
         help="Sizes of a free dimension of a model file, such as nodes=64,128.",
         usage="has a free dimension of that name", noun="free dimension", word="free dimensions",
         text=True),
)  # fmt: skip


def numeric_axes() -> tuple[Axis, ...]:
    """Return the axes whose sizes are numbers."""
    return tuple(axis for axis in AXES if not axis.text)


def axes_of(*parts: Part) -> tuple[Axis, ...]:
    """Return the axes of some parts of a step, part after part."""
    return tuple(axis for part in parts for axis in AXES if axis.part is part)


def size_columns(*parts: Part) -> tuple[str, ...]:
    """Return the columns of some parts, part after part; without parts, all in stored order."""
    return tuple(axis.column for axis in (axes_of(*parts) if parts else AXES))


def size_labels(sizes: Mapping[str, Any]) -> list[str]:
    """Return sizes by the columns of results as a heading shows them, such as "seq 128"."""
    return [
        axis.label.format(sizes[axis.column])
        for axis in axes_of(*TITLE_ORDER)
        if sizes.get(axis.column)
    ]


def with_axes(
    name_of: Callable[[Axis], str], default: object, *parts: Part
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that adds a field for each axis that a dataclass does not spell out.

    Apply it below `@dataclass`. Classes spell out the axes that code reads by name, for the type
    checker. `name_of` gives the names of the other fields.
    """

    def add(cls: type[T]) -> type[T]:
        annotations = dict(cls.__annotations__)
        for axis in axes_of(*parts) if parts else AXES:
            if name_of(axis) not in annotations:
                annotations[name_of(axis)] = Any
                setattr(cls, name_of(axis), default)
        cls.__annotations__ = annotations
        return cls

    return add

"""The sizes a request asks of a model: every combination of those that the model has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from accelbench.catalog.file_models.dimensions import BATCH
from accelbench.core.axes import Part, axes_of
from accelbench.core.case import Shapes
from accelbench.core.free_dimensions import of_a_model
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import DEFAULT_BATCH_SIZES, Request

#: How much text there is depends on whether it is read or written, and is settled by itself.
_BESIDE_TEXT = tuple(axis for axis in axes_of(Part.INPUT, Part.PASSES) if axis.field != "sequence")


def usual_batches(model: ModelSpec) -> tuple[int, ...]:
    """The batches of a model of which none are named: those that it takes."""
    if model.fixed_batch is not None:
        return (model.fixed_batch,)
    if model.file is None:
        return DEFAULT_BATCH_SIZES
    low, high = model.file.least.get(BATCH, 1), model.file.most.get(BATCH)
    taken = (size for size in DEFAULT_BATCH_SIZES if low <= size <= (high or size))
    return tuple(taken) or (low,)


def shapes_of(model: ModelSpec, request: Request, mode: Mode) -> Iterator[Shapes]:
    """Shapes of batch 1, in ascending order of each size. Sizes that the model has not are None."""
    trains = mode is Mode.TRAINING
    own = (
        None if trains and axis.part is Part.PASSES else axis.own(model) for axis in _BESIDE_TEXT
    )
    wanted = (getattr(request, axis.asked) for axis in _BESIDE_TEXT)
    taken = (
        _combined(size, asked) if axis.text else _taken(size, asked)
        for axis, size, asked in zip(_BESIDE_TEXT, own, wanted, strict=True)
    )
    for sizes in product(*taken):
        named: dict[str, Any] = {
            axis.field: size for axis, size in zip(_BESIDE_TEXT, sizes, strict=True)
        }
        yield from _texts(Shapes(batch=1, **named), model, request, mode)


def _texts(base: Shapes, model: ModelSpec, request: Request, mode: Mode) -> Iterator[Shapes]:
    """How much text: whole requests where the model generates, a sequence where it only reads."""
    makes = model.generation if mode is Mode.INFERENCE else None
    new_tokens = sorted(set(request.new_tokens)) or [makes.new_tokens if makes else 0]
    if makes is not None:
        wanted = request.prompt_tokens or request.sequence_lengths
        for prompt, new in product(_taken(makes.prompt_tokens, wanted), filter(None, new_tokens)):
            yield replace(base, prompt_tokens=prompt, new_tokens=new)
    if makes is None or 0 in new_tokens:
        for sequence in _taken(model.sequence, request.sequence_lengths):
            yield replace(base, sequence=sequence)


def _combined(own: str | None, asked: Sequence[str]) -> Sequence[str | None]:
    """What was asked for of the dimensions that the model has, each combination once."""
    if own is None or not asked:
        return [own]
    return list(dict.fromkeys(of_a_model(own, one) for one in asked))


def _taken(default: int | None, wanted: Sequence[int]) -> Sequence[int | None]:
    """What was asked for where the model has such a size, else its default."""
    return [default] if default is None or not wanted else sorted(set(wanted))

"""Which of the questions that a model was asked is the one that is meant. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.core.model import ModelSpec
from accelbench.core.words import SINGLE_STREAM
from accelbench.select.evidence import CIRCUMSTANCES, SHAPES, Cell

_NAMES = (*SHAPES, *CIRCUMSTANCES)


def meant(
    cells: Sequence[Cell], batch: int | None, shapes: Mapping[str, int], spec: ModelSpec | None
) -> list[Cell]:
    """The cells of one context: what was measured at several places there can be held together.

    What is asked for has to be so. Of the rest counts, in this order: that the sizes are the
    model's own, that requests come one by one to one process, how many places answered at the
    batch, how many at all, and how many figures there are.
    """
    by_context: dict[tuple[Any, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        if all(cell.row.get(name) == value for name, value in shapes.items()):
            by_context[cell.context].append(cell)
    if not by_context:
        return []
    own = own_shapes(spec)

    def merit(context: tuple[Any, ...]) -> tuple[Any, ...]:
        said = dict(zip(_NAMES, context, strict=True))
        found = by_context[context]
        here = {(c.hardware, c.device) for c in found if batch in (None, c.batch)}
        return (
            -sum(said[name] == value for name, value in own.items()),
            said["scenario"] not in (None, SINGLE_STREAM),
            said["world_size"] not in (None, 1),
            -len(here),
            -len({(c.hardware, c.device) for c in found}),
            -len(found),
            tuple(str(part) for part in context),
        )

    return by_context[min(by_context, key=merit)]


def own_shapes(spec: ModelSpec | None) -> dict[str, int]:
    """The sizes that a model of the catalogue has for itself."""
    if spec is None:
        return {}
    makes = spec.generation
    sizes = {
        "sequence_length": spec.sequence,
        "image_size": spec.image,
        "audio_seconds": spec.audio,
        "denoising_steps": spec.steps,
        "prompt_tokens": makes.prompt_tokens if makes else None,
        "new_tokens": makes.new_tokens if makes else None,
    }
    return {name: value for name, value in sizes.items() if value is not None}


def told(cell: Cell) -> dict[str, Any]:
    """The sizes of a context that were said."""
    return {name: cell.row[name] for name in SHAPES if cell.row.get(name) is not None}

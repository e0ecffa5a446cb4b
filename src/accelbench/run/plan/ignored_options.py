"""What was asked for and changes nothing: said, where it would otherwise be passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelbench.core.axes import AXES, Axis
from accelbench.core.case import Case, Shapes
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Request


def unused(request: Request, cases: Sequence[Case]) -> list[str]:
    """A sentence for each size or training option that no case took up.

    A size that some models of a set have and others have not is no mistake; one that
    none has may well be, and its figures are those of a question that was not asked.
    """
    notes = []
    for axis in AXES:
        asked = getattr(request, axis.asked)
        sizes = {part for text in asked for part in text.split(",")} if axis.text else set(asked)
        sizes -= {0}
        if sizes and not any(sizes.intersection(sizes_taken(axis, case.shapes)) for case in cases):
            notes.append(f"{axis.option} changes nothing: no model of this run {axis.idle}.")
    if request.training_options and not any(case.mode is Mode.TRAINING for case in cases):
        notes.append(
            "The options for training change nothing: nothing is trained without --mode training."
        )
    measured = {case.target.runtime for case in cases}
    notes += [
        f"The options for {name} change nothing: it is no runtime of this run."
        for name in request.runtime_options
        if name not in measured
    ]
    return notes


def sizes_taken(axis: Axis, shapes: Shapes) -> set[Any]:
    """What a case made of a size; a length of text becomes a prompt where a model writes."""
    if axis.text:
        return set((getattr(shapes, axis.field) or "").split(","))
    read = {shapes.prompt_tokens} if axis.field == "sequence" else set()
    return {getattr(shapes, axis.field), *read}

"""What was asked for and changes nothing: said, where it would otherwise be passed over."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from accelbench.core.axes import AXES, Axis
from accelbench.core.case import Case, Shapes
from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import names_in
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Request

#: The command's parameters that are options for training.
_OF_TRAINING = frozenset({"optimizer", "checkpointing", "pure"})


@dataclass(frozen=True)
class UnusedOption:
    """An option that no case took up; it was typed if one of `parameters` was."""

    parameters: frozenset[str]
    note: str


def find_unused(request: Request, cases: Sequence[Case]) -> list[UnusedOption]:
    """Return the sizes and options that no case took up.

    A size that only some models of a set have is no mistake. One that none has may well be: its
    results would answer another question.
    """
    found = []
    for axis in AXES:
        names = _unused_dimensions(request, cases) if axis.text else []
        if not axis.text and _is_unused(axis, request, cases):
            names = [""]
        for name in names:
            option = f"{axis.option} {name}".strip()
            note = f"{option} changes nothing: no model of this run {axis.idle}."
            found.append(UnusedOption(frozenset({axis.asked}), note))
    if request.training_options and not any(case.mode is Mode.TRAINING for case in cases):
        note = (
            "The options for training change nothing: nothing is trained without --mode training."
        )
        found.append(UnusedOption(_OF_TRAINING, note))
    measured = {case.target.runtime for case in cases}
    return found + [
        UnusedOption(
            frozenset({"runtime_options"}),
            f"The options for {name} change nothing: it is no runtime of this run.",
        )
        for name in request.runtime_options
        if name not in measured
    ]


def unused(request: Request, cases: Sequence[Case]) -> list[str]:
    """Return a sentence for each option that no case took up."""
    return [option.note for option in find_unused(request, cases)]


def find_unused_sources(cases: Sequence[Case], weights: str) -> list[UnusedOption]:
    """Return the options about weights and code that no model of the cases reads."""
    models = {case.model.id: case.model for case in cases}.values()
    loading = [model for model in models if not model.is_own]
    found = []
    if not loading:
        note = "--weights changes nothing: every model of this run has weights of its own."
        found.append(UnusedOption(frozenset({"weights"}), note))
    if all(model.weights_from(weights) == "random" for model in loading):
        note = "--trust-remote-code changes nothing: no weights are loaded in this run."
        found.append(UnusedOption(frozenset({"trust_remote_code"}), note))
    if all(model.code is None for model in models):
        note = "--reference changes nothing: no model of this run is code."
        found.append(UnusedOption(frozenset({"reference"}), note))
    return found


def refuse_unused(
    request: Request, cases: Sequence[Case], typed: AbstractSet[str], weights: str = "random"
) -> None:
    """Refuse an option that was typed and that no case took up."""
    unused_options = find_unused(request, cases) + find_unused_sources(cases, weights)
    for option in unused_options if cases else ():
        if option.parameters & typed:
            raise UsageError(option.note, "Leave it out, or name what it is for.")


def _is_unused(axis: Axis, request: Request, cases: Sequence[Case]) -> bool:
    sizes = set(getattr(request, axis.asked)) - {0}
    taken = (sizes_taken(axis, case.shapes) for case in cases)
    return bool(sizes) and not any(map(sizes.intersection, taken))


def _unused_dimensions(request: Request, cases: Sequence[Case]) -> list[str]:
    asked = dict.fromkeys(name for text in request.dim for name in names_in(text))
    taken = {name for case in cases for name in names_in(case.shapes.dims)}
    return [name for name in asked if name not in taken]


def sizes_taken(axis: Axis, shapes: Shapes) -> set[Any]:
    """What a case made of a size; a length of text becomes a prompt where a model writes."""
    if axis.text:
        return set((getattr(shapes, axis.field) or "").split(","))
    read = {shapes.prompt_tokens} if axis.field == "sequence" else set()
    return {getattr(shapes, axis.field), *read}

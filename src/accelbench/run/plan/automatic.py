"""`--hardware auto`: what each question of a request is measured on, by a selector's answer.

A question is a model, a mode and a precision. Its batch sizes have one choice together: otherwise
nobody could read how it scales. The selector is asked only about platforms that are here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from accelbench.core.axes import AXES
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Inventory, Runtime
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.expand import plan_for
from accelbench.run.plan.request import AUTO, Plan, Planned, Request, joined, unused

#: What an answer may rest on, in words.
_BASES = {
    "measured": "what was measured",
    "predicted": "predictions, not having been measured",
    "rule": "rule alone, nothing like it being measured",
}

#: A request's sizes, by the store's columns.
SIZES = {axis.option_key: axis.column for axis in AXES}

#: Names what to take: `HardwareSelector.select_hardware`.
Choose = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class SelectedTarget:
    """What one question is measured on, and why."""

    model: ModelSpec
    mode: Mode
    precision: str
    hardware: str | None  # None where the selector names nothing
    runtime: str | None  # that the answer rests on, where it is to be taken
    reason: str
    answer: Mapping[str, Any]  # the selector's, of the largest batch that it was chosen for

    def __str__(self) -> str:
        subject = " ".join([self.model.id, self.precision, self.mode])
        by = f" by {self.runtime}" if self.runtime else ""
        what = f"is measured on {self.hardware}{by}" if self.hardware else "has no choice"
        return f"{subject} {what}: {self.reason}."


def is_automatic(request: Request) -> bool:
    """Return whether the selector is to name the hardware."""
    return request.hardware == (AUTO,)


def plan_chosen(
    request: Request, inventory: Inventory, runtimes: Mapping[str, Runtime], choose: Choose
) -> tuple[Plan, list[SelectedTarget]]:
    """The plan of a request whose hardware is chosen, and the choices; the notes say them."""
    plans, choices = [], []
    for model in request.models:
        if model.is_user_model:
            raise UsageError(
                f"--hardware {AUTO} chooses by what is known of the catalogue's models, and"
                f" {model.id} is {'a file' if model.file is not None else 'your own code'}.",
                "Name its hardware, or leave the option out: all that opens it is measured.",
            )
    for model, mode, precision in product(request.models, request.modes, request.precisions):
        cell = replace(
            request, models=(model,), modes=(mode,), precisions=(precision,), hardware=()
        )
        heading = list[str]()
        cell, plan = _planned_as_asked(cell, inventory, runtimes)
        able = [planned for planned in plan.cases if _is_able(planned)]
        if able:  # else it is refused everywhere, and the reasons are the answer
            choice = _choice(cell, able, runtimes, choose)
            choices.append(choice)
            heading = [str(choice)]
            if choice.hardware is not None:
                taken = (choice.runtime,) if choice.runtime else request.runtimes
                cell = replace(cell, hardware=(choice.hardware,), runtimes=taken)
                plan = plan_for(cell, inventory, runtimes)
        # What one question has no use for, another may have.
        remarks = set(unused(cell, [planned.case for planned in plan.cases]))
        notes = (note for note in plan.notes if note not in remarks)
        plans.append(Plan(plan.cases, (*heading, *notes)))
    whole = joined(plans)
    idle = unused(request, [planned.case for planned in whole.cases])
    return Plan(whole.cases, (*whole.notes, *idle)), choices


def _planned_as_asked(
    cell: Request, inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> tuple[Request, Plan]:
    """Return the request of one question and its plan: whole requests if any engine generates.

    Otherwise one engine that cannot generate would turn every case into a forward pass.
    """
    (model,), (mode,) = cell.models, cell.modes
    if mode is Mode.INFERENCE and model.generation is not None and not cell.new_tokens:
        generating = replace(cell, new_tokens=(model.generation.new_tokens,))
        plan = plan_for(generating, inventory, runtimes)
        if any(map(_is_able, plan.cases)):
            return generating, plan
    return cell, plan_for(cell, inventory, runtimes)


def _is_able(planned: Planned) -> bool:
    """Return whether it will be tried, on what is no stand-in."""
    device = planned.device
    return planned.refusal is None and device is not None and not device.emulated


def _choice(
    request: Request, able: Sequence[Planned], runtimes: Mapping[str, Runtime], choose: Choose
) -> SelectedTarget:
    """Ask about every batch size; the platform that is first for most of them is taken.

    Where two are, it is that of the largest batch: it has the most of the work.
    """
    (model,), (mode,), (precision,) = request.models, request.modes, request.precisions
    platforms = list(dict.fromkeys(planned.case.target.hardware for planned in able))
    batches = sorted({planned.case.shapes.batch for planned in able})
    answers = {
        batch: choose(
            model_family=model.family.value,
            model_name=model.id,
            batch_size=batch,
            mode=mode.value,
            precision=precision,
            available_hardware=platforms,
            **_sizes(request),
        )
        for batch in batches
    }
    for answer in answers.values():
        if not isinstance(answer, Mapping):
            raise UsageError(
                f"The selector answered {in_quotes(answer)}.",
                "select_hardware has to give a dictionary.",
            )
    firsts = {b: str(answer.get("primary_recommendation")) for b, answer in answers.items()}
    # A device may be named, as in "cuda:NVIDIA H200": here there is one of each platform.
    named = {batch: first.partition(":")[0] for batch, first in firsts.items()}
    votes = Counter(name for name in named.values() if name in platforms)
    if not votes:
        among = f"the selector names none of {_listed(platforms)}, so all of them are"
        return SelectedTarget(model, mode, precision, None, None, among, answers[batches[-1]])
    most = max(votes.values())
    last = max(b for b in batches if votes[named[b]] == most)
    hardware = named[last]
    scored = (answers[last].get("all_scores") or {}).get(firsts[last]) or {}
    runtime = None if request.runtimes else _runtime(scored, hardware, able, runtimes)
    reason = _reason(hardware, named, platforms, str(scored.get("basis") or ""))
    if len(platforms) > 1 and list(answers[last].get("compared") or ()) == [firsts[last]]:
        reason += "; no other has a figure"
    return SelectedTarget(model, mode, precision, hardware, runtime, reason, answers[last])


def _sizes(request: Request) -> dict[str, Any]:
    given = {name: set(getattr(request, field)) for field, name in SIZES.items()}
    sizes = {name: value for name, values in given.items() if len(values) == 1 for value in values}
    return {"shapes": sizes} if any(sizes.values()) else {}


def _runtime(
    scored: Mapping[str, Any],
    hardware: str,
    able: Sequence[Planned],
    runtimes: Mapping[str, Runtime],
) -> str | None:
    """What the answer's figures are of, if it is here and another would be taken.

    To measure another engine than the one that won would show something else than the choice.
    """
    named = str(scored.get("runtime"))
    defaults = {o.case.target.runtime for o in able if o.case.target.hardware == hardware}
    if scored.get("basis") != "measured" or named in defaults or named not in runtimes:
        return None
    return named if hardware in runtimes[named].info.hardware else None


def _reason(hardware: str, named: Mapping[int, str], platforms: Sequence[str], basis: str) -> str:
    if len(platforms) == 1:
        return "nothing else here could take it"
    others = [name for name in platforms if name != hardware]
    reason = f"chosen before {_listed(others)}"
    won = [batch for batch, name in named.items() if name == hardware]
    if len(won) < len(named):
        reason += f" for batch {_listed(won)}"
        if lost := sorted({name for name in named.values() if name in others}):
            reason += f", though {_listed(lost)} is first for others"
        if none := [batch for batch, name in named.items() if name not in platforms]:
            reason += f"; for batch {_listed(none)} none of them is recommended"
    return f"{reason}, by {_BASES.get(basis, basis)}" if basis else reason


def _listed(names: Sequence[object]) -> str:
    *most, last = map(str, names)
    return f"{', '.join(most)} and {last}" if most else last

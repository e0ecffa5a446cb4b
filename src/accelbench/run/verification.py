"""Verification: outputs held against the reference's, once a model, precision and runtime.

The reference — fp32 on the CPU with pytorch, same weights, same seeded inputs — leaves
its outputs, and those for other inputs, in a file before the worker that measures is
opened. After its first case is measured, that worker runs the same inputs and says how
far it is off (`agreement.py`). What is wrong is no result: its time would be of
something else. Training is verified by its losses, which convergence compares anyway.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Case
from accelbench.core.serial import case_to_json
from accelbench.core.words import Mode, Provenance
from accelbench.run.observer import Progress
from accelbench.run.plan import Planned
from accelbench.run.reference import NoReferenceError, ask, is_own, reference_of

if TYPE_CHECKING:
    from accelbench.run.context import Context

_log = logging.getLogger(__name__)

OK, FAILED, NOT_DONE, REFERENCE = "ok", "failed", "not_done", "reference"

#: What the reference runs: its inputs, and others; and in fp64, which takes twice as long.
_STEPS = 2
_ROUNDING_STEPS = 2

#: Some models amplify rounding: Mamba-130M in fp32 is 1.9e-4 from itself in fp64, and 2.7e-4 from
#: another order of summation that is no further from fp64. Two roundings add up, and the worse of
#: two is no cause for doubt; TF32, bf16 and fp16 round thousands of times as much.
_OWN_ROUNDINGS = 4.0

#: What is further off than so many tolerances is not asked about: no rounding explains it.
_WORTH_ASKING = 50.0


@dataclass(frozen=True)
class Verdict:
    """What is known of a cell's outputs."""

    word: str  # as the column verification says it
    why: str = ""  # what is wrong, or why nothing was compared
    error: float | None = None
    tolerance: float | None = None
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a result."""
        found = {"verification_error": self.error, "verification_tolerance": self.tolerance}
        return {"verification": self.word, **{k: v for k, v in found.items() if v is not None}}

    @property
    def reasons(self) -> dict[str, str]:
        """Why there is no figure."""
        names = ("verification_error", "verification_tolerance")
        return {} if self.error is not None else dict.fromkeys(names, self.why)


ITSELF = Verdict(REFERENCE, "it is the reference itself")


@dataclass(frozen=True)
class _Kept:
    """Where a reference's outputs are, or why there are none."""

    folder: Path | None = None
    why: str = ""


class Verifications:
    """The references of a run, and what was found."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._found: dict[str, Verdict] = {}
        self._roundings: dict[str, float] = {}
        self._first: dict[str, Case] = {}  # of a cell: the case that is compared
        self._each_batch: set[str] = set()  # cells that are another graph at each batch
        self._draw = int.from_bytes(os.urandom(4), "little")

    def gather(self, context: Context, group: Sequence[Planned]) -> None:
        """Have the reference's outputs for the first case of a group, or a reason."""
        cases = [planned.case for planned in group if planned.refusal is None]
        if context.settings.verify == "off" or not cases or _scripted(context, cases[0]):
            return
        case = self._first.setdefault(self._cell(cases[0]), cases[0])
        asked = reference_of(case)
        if self._known(case) is not None or asked.case_id in self._kept:
            return
        context.observer.progress(Progress("reference"))
        folder = context.workshop.new_folder("reference")
        request = {
            "do": "outputs", "case": case_to_json(asked), "folder": str(folder), "draw": self._draw,
        }  # fmt: skip
        try:
            ask(context, asked, _STEPS, [request])
        except NoReferenceError as error:
            self._kept[asked.case_id] = _Kept(why=str(error))
        else:
            self._kept[asked.case_id] = _Kept(folder)

    def at_each_batch(self, case: Case) -> None:
        """What runs it is made for one batch size: one that is right says nothing of another."""
        self._each_batch.add(_batchless(case))

    def _cell(self, case: Case) -> str:
        """What is verified once."""
        cell = _batchless(case)
        return case.case_id if cell in self._each_batch else cell

    def known(self, context: Context, case: Case) -> Verdict | None:
        """What is known without asking the worker; None where it is still to be asked."""
        if context.settings.verify == "off":
            return Verdict(NOT_DONE, "it was not asked for")
        if _scripted(context, case):
            return Verdict(NOT_DONE, "the runtime follows a script and computes nothing")
        found = self._known(case)
        if found is not None:
            return found
        kept = self._of(case)
        if kept is not None and kept.folder is None:
            return Verdict(NOT_DONE, f"there is no reference: {kept.why}")
        return None

    def _of(self, case: Case) -> _Kept | None:
        first = self._first.get(self._cell(case))
        return None if first is None else self._kept.get(reference_of(first).case_id)

    def _known(self, case: Case) -> Verdict | None:
        if is_own(case):
            return ITSELF
        if case.mode is Mode.TRAINING:
            return Verdict(NOT_DONE, "training is verified by its losses")
        return self._found.get(self._cell(case))

    def request(self, case: Case) -> dict[str, Any]:
        """What the worker that has measured is asked."""
        first = self._first[self._cell(case)]
        folder = self._kept[reference_of(first).case_id].folder
        return {
            "do": "verify", "case": case_to_json(first), "folder": str(folder), "draw": self._draw,
        }  # fmt: skip

    def judge(self, case: Case, answer: Mapping[str, Any]) -> Verdict:
        """Remember what a worker's outputs are worth."""
        return self._found.setdefault(self._cell(case), _judged(answer))

    def reconsider(self, context: Context, case: Case, verdict: Verdict) -> Verdict:
        """A verdict in fp32 that the reference's own rounding may explain.

        How far the reference is from itself in fp64 is asked only where it would matter.
        """
        error, tolerance = verdict.error, verdict.tolerance
        if verdict.word != FAILED or error is None or tolerance is None or case.precision != "fp32":
            return verdict
        if error > _WORTH_ASKING * tolerance:
            return verdict
        allowed = _OWN_ROUNDINGS * self._rounding(context, case)
        if error > allowed:
            return verdict
        self._found[self._cell(case)] = better = Verdict(OK, "", error, allowed, verdict.errors)
        return better

    def _rounding(self, context: Context, case: Case) -> float:
        """How far the reference is from itself in fp64; 0 where nobody can say."""
        asked = reference_of(self._first[self._cell(case)])
        if asked.case_id not in self._roundings:
            folder = self._kept[asked.case_id].folder
            request = {
                "do": "rounding", "case": case_to_json(asked), "folder": str(folder),
                "draw": self._draw,
            }  # fmt: skip
            try:
                (answer,) = ask(context, asked, _ROUNDING_STEPS, [request], wide=True)
                self._roundings[asked.case_id] = answer["error"] or 0.0
            except NoReferenceError as error:
                _log.debug("%s: what fp64 would change is not known: %s", case, error)
                self._roundings[asked.case_id] = 0.0
        return self._roundings[asked.case_id]

    def forget(self, case: Case) -> None:
        """A cell is tried in another way: what was found of it holds no more."""
        self._found.pop(self._cell(case), None)

    def give_up(self, case: Case, why: str) -> Verdict:
        """Remember that a worker could not say."""
        verdict = Verdict(NOT_DONE, f"running it to compare failed: {why}")
        return self._found.setdefault(self._cell(case), verdict)


def _scripted(context: Context, case: Case) -> bool:
    runtime = context.runtimes.get(case.target.runtime)
    return runtime is not None and runtime.info.provenance is not Provenance.MEASURED


def _judged(answer: Mapping[str, Any]) -> Verdict:
    error, tolerance, errors = answer["error"], answer["tolerance"], answer["errors"]
    if answer["wrong"]:
        return Verdict(FAILED, answer["wrong"], tolerance=tolerance)
    if error is None or error > tolerance:
        far = "no number" if error is None else f"{error:.2g}"
        worst = max(errors, key=lambda name: _large(errors[name]))
        why = f"the output {worst} is {far} off where {tolerance:g} is allowed"
        return Verdict(FAILED, why, error, tolerance, errors)
    if not answer["telling"]:
        why = "no output depends on the inputs by more than this precision rounds"
        return Verdict(NOT_DONE, why)
    return Verdict(OK, "", error, tolerance, errors)


def _large(error: float | None) -> float:
    return float("inf") if error is None else error


def _batchless(case: Case) -> str:
    """A case at whatever batch."""
    return replace(case, shapes=replace(case.shapes, batch=0)).case_id

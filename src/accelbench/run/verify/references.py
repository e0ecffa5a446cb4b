"""What the cells of a run are compared with: a reference's outputs, and what rounding costs it.

The reference — fp32 on the CPU with pytorch, same weights, same seeded inputs — leaves its
outputs, and those for other inputs, in a file before the worker that measures is opened.
Where a cell is of a narrow precision it also says how far off it is itself when what it
multiplies is rounded to that; where an fp32 cell is further off than another order of
summation explains, how far it is from itself in fp64, or by the last places of its inputs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.precision import narrowed
from accelbench.core.serial import case_to_json
from accelbench.run.process.observer import Progress
from accelbench.run.process.worker_context import WorkerContext
from accelbench.run.verify.reference import (
    NoReferenceError,
    ask,
    held_against,
    otherwise,
    reference_of,
)

_log = logging.getLogger(__name__)

#: What the reference runs: its inputs, and others; rounded, once more. In fp64 a pass takes twice
#: as long.
_STEPS = 2

#: Items of a reference that larger batches repeat. Two would be an even part of most batches: what
#: computes half of a batch and repeats it would have them right.
ITEMS = 3


#: How a reference is asked how far it is from itself, and what that shows.
FP64, LAST_PLACES = "fp64", "last_places"
_BY = {
    FP64: "rounding to fp32",
    LAST_PLACES: "one unit in the last place of its inputs",
}


@dataclass(frozen=True)
class OwnRounding:
    """How far rounding alone takes a reference's outputs; none where nobody can say."""

    by: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CellReference:
    """Where a reference's outputs are, or why there are none."""

    items: int
    folder: Path | None = None
    why: str = ""
    weights_digest: str = ""  # of what the reference was made of
    other: str = ""  # what it is where it is not the model as it is


class References:
    """The references of a run."""

    def __init__(self) -> None:
        self._kept: dict[str, CellReference] = {}  # by what the reference was asked
        self._asked: dict[str, Case] = {}  # of a cell, whatever its batch: that question
        self._rounded: dict[tuple[str, str], float | None] = {}
        self._rounded_errors: dict[tuple[str, str], Mapping[str, float]] = {}
        self._moved: dict[tuple[str, str], Mapping[str, Any]] = {}  # by what was asked
        self._drawn: dict[str, frozenset[str]] = {}
        self.draw = int.from_bytes(os.urandom(4), "little")

    def gather(self, context: WorkerContext, case: Case, batches: Sequence[int]) -> None:
        """Have what a case is compared with, which goes on to be measured at these batches.

        Of a file or an owner's code nothing is known of whether an item's outputs are its own
        alone: each batch has a reference of its own.
        """
        if case.model.is_own:
            for batch in dict.fromkeys(batches):
                self._gather(context, _of_items(case, batch), batch)
            return
        self._gather(context, case, ITEMS if max(batches, default=1) > 1 else 1)

    def _gather(self, context: WorkerContext, case: Case, items: int) -> None:
        reference = _of_items(reference_of(case), items)
        reference = self._asked.setdefault(_question(case), reference)
        precision = narrowed(case.precision)
        key = (reference.case_id, precision or "")
        kept = self._kept.get(reference.case_id)
        if key in self._rounded or (kept and (precision is None or kept.folder is None)):
            return
        context.observer.progress(Progress("reference"))
        folder = (kept.folder if kept else None) or context.worker_pool.new_folder("reference")
        request = {**self._request(reference, folder), "whole": kept is None, "rounded": precision}
        try:
            (answer,) = ask(context, reference, _STEPS + bool(precision), [request])
        except NoReferenceError as error:
            other = otherwise(reference, error)
            if other is not None:
                self._asked[_question(case)] = other
                self._gather(context, case, items)
                if (found := self.of(case)) is not None and found.folder is not None:
                    return
                self._asked[_question(case)] = reference
            if kept is None:
                self._kept[reference.case_id] = CellReference(
                    reference.shapes.batch, why=str(error)
                )
            self._rounded[key] = None
        else:
            weights = str(answer.get("weights_digest") or "")
            self._kept[reference.case_id] = CellReference(
                reference.shapes.batch, folder, "", weights, held_against(reference)
            )
            self._rounded[key] = answer["rounded"]
            self._rounded_errors[key] = _numbers(answer)

    def of(self, case: Case) -> CellReference | None:
        """What a case is compared with; None where it was never gathered."""
        reference = self._asked.get(_question(case))
        return None if reference is None else self._kept.get(reference.case_id)

    def rounded(self, case: Case) -> float | None:
        """How far off the reference is when it is rounded as a case's precision rounds."""
        reference = self._asked[_question(case)]
        return self._rounded.get((reference.case_id, narrowed(case.precision) or ""))

    def fp64(self, context: WorkerContext, case: Case) -> float:
        """How far the reference is from itself in fp64; 0 where nobody can say."""
        return self._from_itself(context, self._asked[_question(case)], FP64).get("error") or 0.0

    def own_rounding(self, context: WorkerContext, case: Case) -> OwnRounding:
        """How far rounding alone takes each of a reference's outputs in a case's precision.

        Of a narrow precision that is known. In fp32 a module is asked in fp64, and where that says
        nothing by the last places of its inputs; a file the other way about, as no engine has its
        graph in fp64. Of a callable nobody can say: what it is compared with is another function
        of its owner's, and neither need be given numbers.
        """
        reference = self._asked[_question(case)]
        if reference.model.format is FileFormat.CALLABLE:
            return OwnRounding()
        if precision := narrowed(case.precision):
            errors = self._rounded_errors.get((reference.case_id, precision), {})
            return OwnRounding(f"rounding to {precision}", errors)
        ways = (LAST_PLACES, FP64) if reference.model.graph is not None else (FP64, LAST_PLACES)
        for way in ways:
            errors = _numbers(self._from_itself(context, reference, way))
            if any(errors.values()):
                return OwnRounding(_BY[way], errors)
        return OwnRounding()

    def _from_itself(self, context: WorkerContext, reference: Case, way: str) -> Mapping[str, Any]:
        key = (reference.case_id, way)
        if key not in self._moved:
            self._moved[key] = self._again(context, reference, way, wide=way == FP64)
        return self._moved[key]

    def drawn(self, context: WorkerContext, case: Case) -> frozenset[str]:
        """Outputs of which the reference's own differ from run to run, by more than rounding."""
        reference = self._asked[_question(case)]
        if reference.case_id not in self._drawn:
            answer = self._again(context, reference, "drawn")
            self._drawn[reference.case_id] = frozenset(answer.get("drawn", ()))
        return self._drawn[reference.case_id]

    def _again(
        self, context: WorkerContext, reference: Case, what: str, wide: bool = False
    ) -> Mapping[str, Any]:
        """Ask a reference that has left its outputs something more; nothing where it cannot say."""
        folder = self._kept[reference.case_id].folder
        assert folder is not None
        context.observer.progress(Progress("reference"))
        try:
            request = {**self._request(reference, folder), "do": what}
            return ask(context, reference, _STEPS, [request], wide=wide)[0]
        except NoReferenceError as error:
            _log.debug("%s: the reference cannot say %s: %s", reference, what, error)
            return {}

    def _request(self, case: Case, folder: Path) -> dict[str, Any]:
        return {
            "do": "outputs", "case": case_to_json(case), "folder": str(folder), "draw": self.draw,
        }  # fmt: skip

    def comparison(self, case: Case) -> Mapping[str, Any]:
        """What a worker that has measured a case is asked."""
        yardstick = self.of(case)
        assert yardstick is not None
        return {
            "do": "verify",
            "case": case_to_json(case),
            "folder": str(yardstick.folder),
            "draw": self.draw,
            "items": yardstick.items,
            "rounded": self.rounded(case),
        }


def _numbers(answer: Mapping[str, Any]) -> dict[str, float]:
    """Of an answer's errors those that are numbers."""
    errors = answer.get("errors") or {}
    return {name: error for name, error in errors.items() if error is not None}


def batchless(case: Case) -> str:
    """A case at whatever batch."""
    return _of_items(case, 0).case_id


def _question(case: Case) -> str:
    """What shares a reference: a case at whatever batch, of an owner's model at its own alone."""
    return case.case_id if case.model.is_own else batchless(case)


def _of_items(case: Case, items: int) -> Case:
    return replace(case, shapes=replace(case.shapes, batch=items))

"""Verdicts on lying sessions, reached as a run reaches them: measured, verified, proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lying import BATCH, CASE, CPU, HONEST, KINDS, SPARE_NS, WORLD, Lie, ask_bench, measured, opened

from accelbench.core.case import Case, Shapes
from accelbench.core.errors import CaseError
from accelbench.core.precision import narrow_type
from accelbench.core.protocols import Job
from accelbench.core.serial import case_to_json
from accelbench.run.plan.request import Planned
from accelbench.run.verify.precision_proof import (
    PrecisionProof,
    prove_precision,
    proved,
    refuse_other_precision,
)
from accelbench.run.verify.verdicts import FAILED, judged
from accelbench.run.verify.verification import Verifications
from accelbench.run.worker.output_comparison import left


class Leaving:
    """An honest session that leaves a reference's outputs, as a worker of its own would."""

    def __init__(
        self, kind: str, lie: Lie, folder: Path, draw: int, precision: str = "fp32"
    ) -> None:
        self._session = KINDS[kind](Job(CASE, CPU), lie)
        self._base, self._draw = folder, draw
        self._items: tuple[int, ...] = ()
        self.doubts = 0
        self._precision = narrow_type(precision)
        self.rounded: float | None = None

    def leave(self, items: Sequence[int]) -> None:
        self._items = tuple(items)
        self._folder = self._base / "-".join(map(str, items))
        self._folder.mkdir(exist_ok=True)
        case = replace(CASE, shapes=Shapes(len(items)))
        request = {**self._request(case), "rounded": self._precision, "whole": True}
        self.rounded = left(self._session, 0, request)["rounded"]

    def doubt(self, context: Any, case: Case, items: Sequence[int]) -> bool:
        self.doubts += 1
        self.leave(items)
        return True

    def trust(self, case: Case) -> None: ...

    def comparison(self, context: Any, case: Case) -> dict[str, Any]:
        return {
            **self._request(case), "do": "verify", "rounded": self.rounded,
            "doubted": self.doubts > 0, "spare_ns": SPARE_NS,
        }  # fmt: skip

    def _request(self, case: Case) -> dict[str, Any]:
        return {
            "case": case_to_json(case), "items": list(self._items), "folder": str(self._folder),
            "draw": self._draw,
        }  # fmt: skip


def became(
    kind: str,
    lie: Lie,
    folder: Path,
    iterations: int = 40,
    *,
    batch: int = BATCH,
    items: int = BATCH,
    honest: Lie = HONEST,
    draw: int = 0,
    doubts: list[int] | None = None,
) -> str:
    """Return what becomes of a case that a lying session measures: ok, or a reason."""
    more = {"batch": batch, "items": items, "honest": honest, "draw": draw, "doubts": doubts}
    return judged_case(kind, lie, folder, iterations, **more)[0]


def judged_case(
    kind: str,
    lie: Lie,
    folder: Path,
    iterations: int = 40,
    precision: str = "fp32",
    *,
    batch: int = BATCH,
    items: int = BATCH,
    honest: Lie = HONEST,
    draw: int = 0,
    doubts: list[int] | None = None,
) -> tuple[str, PrecisionProof | None]:
    """Return what becomes of a case, ok or a reason, and of one that is ok what proves it.

    Args:
        kind: of session.
        lie: what it does.
        folder: for the reference.
        iterations: how many steps are measured.
        precision: the one that is asked for.
        batch: of the case.
        items: how many of those the reference computes.
        honest: what the reference does otherwise.
        draw: decides which items of the batch those are.
        doubts: is given how often the reference was asked for items in doubt.
    """
    WORLD.__init__()
    case = replace(CASE, shapes=Shapes(batch), precision=precision)
    reference = Leaving(kind, honest, folder, draw, precision)
    reference.leave(range(items))
    verifications, planned = Verifications(), Planned(case, CPU)
    verifications.yardsticks = reference
    try:
        bench = opened(kind, lie, case=case)[0]
        ask = partial(ask_bench, bench)
        evidence = proved(measured(bench, iterations, case)["evidence"], "cpu:0")
        refuse_other_precision(case, evidence)
        verified = ask(verifications.request(None, planned))
        refuse_other_precision(case, proved(verified["evidence"], "cpu:0"))
        verified = verifications.settle_doubts(None, planned, verified, ask)
        verdict = replace(judged(verified), rounded=reference.rounded)
        if verdict.word == FAILED:
            return "wrong_outputs", None
        return "ok", prove_precision(case, evidence, verdict)
    except CaseError as error:
        # Whoever reads it is told what to do.
        has_advice = error.advice.endswith(".")
        return error.reason if has_advice else f"{error.reason} without advice", None
    finally:
        if doubts is not None:
            doubts.append(reference.doubts)

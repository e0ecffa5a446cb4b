"""Convergence: how far the loss falls, relative to the same training in fp32 on the CPU.

Two untimed curves of losses are compared, both without dropout, because devices draw other numbers.
One is of the worker that has just measured the case, from a fresh start; the other is the
reference's, trained once a run with the same weights, inputs, seed and optimizer.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from accelbench.core.case import Case
from accelbench.core.precision import narrow_type
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Planned
from accelbench.run.process.worker_client import Progress, WorkerContext
from accelbench.run.verify.reference import (
    NoReferenceError,
    ask,
    is_own,
    most_seconds,
    reference_of,
)
from accelbench.run.verify.verdicts import FAILED, ITSELF, NOT_ASKED_FOR, NOT_DONE, OK, Verdict

#: Losses that are compared: of the first step to that of the tenth.
STEPS = 10

#: Where so large a part of the weights no longer learns, steps leave out a part of their work.
#: Single ones may come to rest: a unit that is never active again has no gradient.
_FROZEN_SHARE, _FROZEN_NARROW = 0.1, 0.3

#: Chooses the values of weights that references and cases are asked for.
_DRAW = secrets.randbelow(2**31)

#: Of its first loss: a reference that falls less than this is no measure for others.
LEAST_FALL = 0.01


@dataclass(frozen=True)
class Curve:
    """The losses of a reference's first steps, or why there are none."""

    losses: Sequence[float] = ()
    why: str = ""
    moved: Sequence[str] = ()  # weights that changed, of those that should learn
    still: Sequence[str] = ()  # weights that did not
    idle: Sequence[str] = ()  # weights that changed here, and in no step that was timed

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Curve:
        moved, still, idle = (tuple(answer.get(name, ())) for name in ("moved", "still", "idle"))
        return cls(tuple(answer["losses"]), "", moved, still, idle)


#: At most, of how far the reference falls: a loss that is further off is of another training.
#: Seen without dropout were 1e-4 in fp32 and 0.002 in bf16 and fp16.
_OFF = {"fp32": 0.01}
_OFF_NARROW = 0.1

#: How much larger the inputs are that the reference's own noise is read from, and how many times
#: that noise passes. ResNet-50, batch 4, five steps of SGD: 39 % by the nudge, 56 % in JAX, whose
#: gradients in fp64 agree with torch's to 3e-13.
NUDGE = 1e-6
_OWN_NOISE = 4.0

#: In fp32 so much passes without a question: of the tiny models JAX was 1e-7 to 1e-5 off, and
#: silent fp16 3e-5 to 0.03. What is further off is compared with what the reference itself is off
#: by if its products are rounded to ten bits, as TF32 and fp16 have them: fp16 by 0.6 to 6 times
#: that, and fp32 by no more than this part.
_PLAIN, _OF_NARROW = 2e-5, 0.25


@dataclass(frozen=True)
class ConvergenceResult:
    """The comparison of a case's curve with its reference's."""

    verdict: Verdict
    convergence: float | None = None
    why: str = ""  # there is no figure

    @property
    def columns(self) -> dict[str, Any]:
        if self.convergence is None:
            return {}
        return {"convergence": self.convergence, "convergence_steps": STEPS}

    @property
    def reasons(self) -> dict[str, str]:
        return {} if self.convergence is not None else dict.fromkeys(_COLUMNS, self.why)


_COLUMNS = ("convergence", "convergence_steps")
_ZERO = "the loss is 0 from the start, as a contrastive loss of a batch of one always is"


class Curves:
    """The curves of a run, each trained once."""

    def __init__(self) -> None:
        self._curves: dict[str, Curve] = {}

    def gather(self, context: WorkerContext, group: Sequence[Planned]) -> None:
        """Have a curve, or a reason, for every case of a group that trains."""
        if context.settings.verify == "off":
            return
        for planned in group:
            case = planned.case
            if case.mode is not Mode.TRAINING or planned.refusal is not None or is_own(case):
                continue
            reference = reference_of(case)
            if reference.case_id in self._curves:
                continue
            context.observer.progress(Progress("reference"))
            self._curves[reference.case_id] = _trained(context, reference)

    def known(
        self, context: WorkerContext, case: Case, measured: Mapping[str, Any] | None
    ) -> ConvergenceResult | None:
        """Return the result that needs no further pass; None if the worker has to train the curve.

        `measured` are the case's columns; None if nothing was to be measured.
        """
        if measured is None:
            why = "" if is_own(case) else _worthless(self._of(case))
            return ConvergenceResult(ITSELF, 1.0) if is_own(case) else (_no(why) if why else None)
        losses = measured.get("loss_per_step")
        if not losses:
            return _no("the runtime tells no losses")
        if is_own(case):
            return _no(_ZERO) if losses[0] == 0 else ConvergenceResult(ITSELF, 1.0)
        if context.settings.verify == "off":
            return _no(NOT_ASKED_FOR)
        why = _worthless(self._of(case))
        if why:
            return _no(why)
        # Without dropout it is other code, and is compiled once more.
        needed = (STEPS * measured["latency_mean_ms"] + (measured.get("compile_ms") or 0)) / 1e3
        most = most_seconds(context)
        if needed > most:
            return _no(
                f"{STEPS} more training steps would take {needed:.0f} s,"
                f" and {max(most, 0):.0f} s is the most"
            )
        return None

    def judge(self, context: WorkerContext, case: Case, curve: Curve) -> ConvergenceResult:
        # If it is further off than its precision explains, the reference is trained once more from
        # inputs and weights a millionth off: chaotic training, as ResNet-50's at small batches,
        # goes elsewhere by that much. In fp32 it is also trained with narrow products.
        reference = self._of(case)
        ratio, why = convergence(curve, reference)
        if ratio is None:
            return _no(why)
        frozen = _frozen(case, curve, reference)
        if frozen:
            return ConvergenceResult(Verdict(FAILED, frozen), ratio)
        errors, allowed = errors_of(curve, reference), _OFF.get(case.precision, _OFF_NARROW)
        noise = [0.0] * STEPS
        if max(errors) > (_PLAIN if case.precision == "fp32" else allowed):
            noise = self._own_errors(context, case, nudge=NUDGE)
        verdict = _verified(max(errors), max(allowed, _OWN_NOISE * max(noise)))
        if verdict.word == OK and case.precision == "fp32" and max(errors) > _PLAIN:
            narrow = self._own_errors(context, case, narrow=True)
            verdict = judge_fp32(errors, noise, narrow)
        return ConvergenceResult(verdict, ratio)

    def _own_errors(
        self, context: WorkerContext, case: Case, nudge: float = 0.0, narrow: bool = False
    ) -> list[float]:
        """Return how far the reference is off itself at each step; zeros if nothing is known."""
        reference = reference_of(case)
        key = f"{reference.case_id} {nudge} {narrow}"
        if key not in self._curves:
            context.observer.progress(Progress("reference"))
            self._curves[key] = _trained(context, reference, nudge, narrow)
        other = self._curves[key]
        return errors_of(other, self._of(case)) if len(other.losses) >= STEPS else [0.0] * STEPS

    def _of(self, case: Case) -> Curve:
        reference_id = reference_of(case).case_id
        return self._curves.get(reference_id) or Curve(why="its reference was not asked for")


def _no(why: str) -> ConvergenceResult:
    return ConvergenceResult(Verdict(NOT_DONE, why), why=why)


def errors_of(curve: Curve, reference: Curve) -> list[float]:
    """Return how far each loss is off, as a share of how far the reference falls."""
    pairs = zip(curve.losses[:STEPS], reference.losses[:STEPS], strict=True)
    return [abs(loss - other) / _fall(reference) for loss, other in pairs]


def _verified(error: float, allowed: float) -> Verdict:
    """Return whether the loss that is furthest off is where the reference's is."""
    if error <= allowed:
        return Verdict(OK, "", error, allowed)
    why = f"a loss of the first {STEPS} is {error:.2g} off where {allowed:g} is allowed"
    return Verdict(FAILED, why, error, allowed)


def judge_fp32(errors: Sequence[float], noise: Sequence[float], narrow: Sequence[float]) -> Verdict:
    """Judge losses by a nudged reference's and a narrow one's: not verified if narrow products
    would pass."""
    chaos = [max(_PLAIN, _OWN_NOISE * most) for most in accumulate(noise, max)]
    narrows = [_OF_NARROW * most for most in accumulate(narrow, max)]
    allowed = [max(pair) for pair in zip(chaos, narrows, strict=True)]
    worst = max(range(len(errors)), key=lambda step: errors[step] / allowed[step])
    error, limit = errors[worst], allowed[worst]
    if not any(n > c for n, c in zip(narrows, chaos, strict=True)):
        return Verdict(NOT_DONE, "its losses in fp32 and with narrow products cannot be told apart")
    if error > limit:
        why = (
            f"the loss of step {worst + 1} is {error:.2g} off, {limit:.2g} is what fp32 explains,"
            f" and narrow products move it by {narrow[worst]:.2g}"
        )
        return Verdict(NOT_DONE, why)
    return Verdict(OK, "", error, limit)


def _frozen(case: Case, curve: Curve, reference: Curve) -> str:
    """Return why weights that should learn do not; "" if they do or nothing is known of them."""
    if case.options.get("pure"):
        return ""
    narrow = narrow_type(case.precision) is not None
    still = sorted(set(reference.moved) & set(curve.still))
    if are_frozen(set(reference.moved) & {*curve.moved, *curve.still}, still, narrow):
        return f"{len(still)} weights that the reference trains do not change, such as {still[0]}"
    if are_frozen(curve.moved, curve.idle, narrow):
        return f"{len(curve.idle)} weights change in no timed step, such as {curve.idle[0]}"
    return ""


def convergence(curve: Curve, reference: Curve) -> tuple[float | None, str]:
    """Return how far a loss fell relative to its reference, or why that is not known."""
    if curve.why:
        return None, curve.why
    if len(curve.losses) < STEPS:
        return None, f"the runtime told {len(curve.losses)} losses of {STEPS} training steps"
    why = _worthless(reference)
    if why:
        return None, why
    return _fall(curve) / _fall(reference), ""


def _fall(curve: Curve) -> float:
    return curve.losses[0] - curve.losses[STEPS - 1]


def _worthless(reference: Curve) -> str:
    """Return why nothing can be compared with a reference; empty if it can."""
    if reference.why:
        return f"there is no reference: {reference.why}"
    first = reference.losses[0]
    if first == 0:
        return _ZERO
    if _fall(reference) < LEAST_FALL * abs(first):
        return (
            f"the reference's own loss does not fall by {LEAST_FALL:.0%} in {STEPS} steps"
            f" ({first:.4g} to {reference.losses[STEPS - 1]:.4g})"
        )
    return ""


def losses_request(case: Case, nudge: float = 0.0, narrow: bool = False) -> dict[str, Any]:
    """Return the question for a worker that has the model open."""
    return {
        "do": "losses",
        "case": case_to_json(case),
        "steps": STEPS,
        "nudge": nudge,
        "narrow": narrow,
        "draw": _DRAW,
    }


def _trained(context: WorkerContext, case: Case, nudge: float = 0.0, narrow: bool = False) -> Curve:
    """Train a reference; whatever happens to it becomes a reason."""
    try:
        (answer,) = ask(context, case, STEPS, [losses_request(case, nudge, narrow)])
    except NoReferenceError as error:
        return Curve(why=str(error))
    return Curve.of(answer)


def are_frozen(learning: Collection[str], still: Collection[str], narrow: bool = False) -> bool:
    """Return whether so many of the weights that should learn stand still that it is no chance.

    In a `narrow` precision small gradients may be lost.
    """
    most = _FROZEN_NARROW if narrow else _FROZEN_SHARE
    return bool(still) and len(still) >= most * len(learning)

"""Convergence: how far the loss falls, relative to the same training in fp32 on the CPU.

What is compared are two curves of losses that nobody times, of training without
dropout: kinds of devices draw other numbers, and which ones a model was dealt says
nothing of how well it computes. One curve is of the worker that has just measured
the case, from a fresh start. The other is the reference's, trained once a run: same
weights, inputs, seed and optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Planned
from accelbench.run.process.observer import Progress
from accelbench.run.process.worker_context import WorkerContext
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

#: Of its first loss: a reference that falls less than this is no measure for others.
LEAST_FALL = 0.01


@dataclass(frozen=True)
class Curve:
    """The losses of a reference's first steps, or why there are none."""

    losses: Sequence[float] = ()
    why: str = ""


#: At most, of how far the reference falls: a loss that is further off is of another training.
#: Seen without dropout were 1e-4 in fp32 and 0.002 in bf16 and fp16.
_OFF = {"fp32": 0.01}
_OFF_NARROW = 0.1

#: How much larger the inputs are that the reference's own noise is read from, and how many times
#: that noise passes. ResNet-50, batch 4, five steps of SGD: 39 % by the nudge, 56 % in JAX, whose
#: gradients in fp64 agree with torch's to 3e-13.
NUDGE = 1e-6
_OWN_NOISE = 4.0


@dataclass(frozen=True)
class ConvergenceResult:
    """What the curves say of a case."""

    verdict: Verdict
    convergence: float | None = None
    why: str = ""  # there is no figure

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a result."""
        if self.convergence is None:
            return {}
        return {"convergence": self.convergence, "convergence_steps": STEPS}

    @property
    def reasons(self) -> dict[str, str]:
        """Why they are empty."""
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
        """What can be said without another pass; None: the worker has to train the curve.

        Args:
            context: the run.
            case: one that was measured, in training.
            measured: its columns; None where nothing was to be measured.
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
        """Hold a case's curve against its reference.

        Where it is further off than its precision explains, the reference is trained once
        more from inputs a millionth larger: training that is chaotic from its start, as
        ResNet-50's at small batches, takes itself elsewhere by that much.
        """
        reference = self._of(case)
        ratio, why = convergence(curve, reference)
        if ratio is None:
            return _no(why)
        allowed = _OFF.get(case.precision, _OFF_NARROW)
        if _error(curve, reference) > allowed:
            nudged = self._nudged(context, case)
            if not nudged.why:
                allowed = max(allowed, _OWN_NOISE * _error(nudged, reference))
        return ConvergenceResult(_verified(curve, reference, allowed), ratio)

    def _nudged(self, context: WorkerContext, case: Case) -> Curve:
        reference = reference_of(case)
        key = f"{reference.case_id} nudged"
        if key not in self._curves:
            context.observer.progress(Progress("reference"))
            self._curves[key] = _trained(context, reference, NUDGE)
        return self._curves[key]

    def _of(self, case: Case) -> Curve:
        reference_id = reference_of(case).case_id
        return self._curves.get(reference_id) or Curve(why="its reference was not asked for")


def _no(why: str) -> ConvergenceResult:
    return ConvergenceResult(Verdict(NOT_DONE, why), why=why)


def _error(curve: Curve, reference: Curve) -> float:
    """The loss that is furthest from the reference's, in parts of how far that falls."""
    pairs = zip(curve.losses, reference.losses, strict=False)
    return max(abs(loss - other) for loss, other in pairs) / _fall(reference)


def _verified(curve: Curve, reference: Curve, allowed: float) -> Verdict:
    """Whether every loss is where the reference's is."""
    error = _error(curve, reference)
    if error <= allowed:
        return Verdict(OK, "", error, allowed)
    why = f"a loss of the first {STEPS} is {error:.2g} off where {allowed:g} is allowed"
    return Verdict(FAILED, why, error, allowed)


def convergence(curve: Curve, reference: Curve) -> tuple[float | None, str]:
    """How far a loss fell relative to its reference; without a figure, why."""
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
    """Why nothing can be compared with a reference, "" where it can."""
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


def losses_request(case: Case, nudge: float = 0.0) -> dict[str, Any]:
    """What a worker that has the model open is asked for."""
    return {"do": "losses", "case": case_to_json(case), "steps": STEPS, "nudge": nudge}


def _trained(context: WorkerContext, case: Case, nudge: float = 0.0) -> Curve:
    """Train a reference; whatever happens to it becomes a reason."""
    try:
        (answer,) = ask(context, case, STEPS, [losses_request(case, nudge)])
    except NoReferenceError as error:
        return Curve(why=str(error))
    return Curve(tuple(answer["losses"]))

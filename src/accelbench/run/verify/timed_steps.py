"""Whether the steps that are timed are the steps that are verified.

A session is asked for its outputs and for its times by different calls, and a runtime can do the
work of one and not of the other. So what timed steps leave is compared with the outputs:

    the case's own inputs   what the last block of the steady state left; how many blocks there
                            are, and how long they are, is decided by the noise
    inputs never seen       what a block of a random number of steps left

Both have to be equal to what `outputs` gives of the same inputs — which verification holds
against the reference — but for the rounding of the precision. Of a request or an image, whose
outputs are compared by a short one, a short one's steps are timed for it.

And it has to be there when it is asked for: who has to compute it first has not kept it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import SystemRandom
from statistics import median
from typing import Any, Protocol

import numpy as np

from accelbench.catalog.short_steps import shortened
from accelbench.core.abilities import LastStepOutputs, OutOfProcess, RemoteOutputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import samples_of
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.agreement import agree, tolerance_of
from accelbench.run.verify.reference_outputs import ReferenceOutputs, is_number
from accelbench.runtimes.shared.sketches import KEPT_LOGITS, MOST_VALUES, Glance, Sketch, sketch

#: The reason of a refusal, which may have another one behind it.
WRONG_STEPS = "wrong_steps"

Sketches = Mapping[str, Sketch]

#: How long a block is whose outputs are looked at: one step is as likely as five. Where steps are
#: long it is one: what such a step takes alone is needed, too (block_lengths.py).
_STEPS, _ONE_STEP, LONG_NS = (1, 5), (1, 1), 30e6

#: What was kept is there at once: so much of a step later at most, but for what it takes to bring
#: outputs to the host, what the question for the steps took beside them, and so much: from another
#: process, with five others on two cores, the quickest of 16 answers took 6 ms, with ten 22 ms. All
#: tries have to be slower.
_OF_A_STEP, _FETCHED_PER_S, _BESIDE_NS, _AFAR_NS, _TRIES = 0.5, 0.2e9, 1e6, 12e6, 16


class RandomSource(Protocol):
    """What a runtime cannot foresee."""

    def randint(self, a: int, b: int) -> int:
        """A whole number of these and all between."""
        ...


def compared_whole(case: Case) -> bool:
    """Whether a step of the case is as long as the one whose outputs are compared."""
    return shortened(case) == case


def right_of(case: Case, outputs: Mapping[str, Any]) -> dict[str, Sketch]:
    """Of outputs what steps keep: of a request, some logits of each item."""
    if case.generates and "logits" in outputs:
        outputs = {**outputs, "logits": np.asarray(outputs["logits"])[..., :KEPT_LOGITS]}
    return sketch(outputs, MOST_VALUES)


def tells(right: Sketches) -> bool:
    """Whether there is a number to be compared with: where all are NaN, so is what nobody computed.

    Of outputs with numbers these alone are judged.
    """
    numbers = [output.values for output in right.values() if is_number(output.values)]
    return not numbers or any(bool(np.isfinite(values).any()) for values in numbers)


@dataclass(frozen=True)
class StepOutputs:
    """Outputs of one run."""

    outputs: Mapping[str, Any]  # whole; some values of each where they lie far away
    sketches: Sketches
    digest: str  # of all of them; empty where they are here


def seen(session: Session, case: Case, inputs: Any) -> StepOutputs:
    """Outputs of a run, looked at where they lie if that is far away."""
    if isinstance(session, RemoteOutputs):
        glance: Glance = session.glance(inputs, MOST_VALUES)
        values = {name: output.values for name, output in glance.outputs.items()}
        return StepOutputs(values, glance.outputs, glance.digest)
    outputs = session.outputs(inputs)
    return StepOutputs(outputs, right_of(case, outputs), "")


def refuse_other(case: Case, left: Sketches, right: Sketches, other: Sketches | None) -> None:
    """Raise CaseError where what timed steps left is not what outputs are.

    Args:
        case: what was measured.
        left: by the steps.
        right: outputs of the same inputs.
        other: of other inputs: how far outputs can be apart; None where no inputs change them.
    """
    if not left:
        raise _wrong("they left none")
    wanted = right
    if case.generates:  # steps leave its logits at least, not whatever else outputs have
        needed = {"logits"} & set(right) or set(right)
        wanted = {name: entry for name, entry in right.items() if name in left or name in needed}
    for name, output in wanted.items():
        if name not in left:
            raise _wrong(f"they left no {name}")
        if left[name].shape != output.shape:
            raise _wrong(f"{name} has the shape {left[name].shape}, not {output.shape}")
    others = [] if other is None else [_kept({n: s for n, s in other.items() if n in wanted})]
    check = agree(
        {name: left[name].values for name in wanted},
        _kept(wanted),
        others,
        case.precision,
        allowed=tolerance_of(case.precision).least,
    )
    if not check.ok:
        worst = max(check.errors, key=lambda name: check.errors[name], default="")
        off = check.wrong or f"{worst} is {check.error:.2g} off where {check.tolerance:.2g} may be"
        raise _wrong(off)


class UnseenSteps:
    """Steps of inputs that nobody has seen, timed as those that are measured; once a worker."""

    def __init__(
        self, session: Session, clock: Clock, wall: Clock | None, said_ns: float, by: RandomSource
    ) -> None:
        """Nothing is asked yet.

        Args:
            session: has to be `LastStepOutputs`.
            clock: the one that its blocks are timed by.
            wall: one that it does not own.
            said_ns: what a step is said to take.
            by: decides how many steps.
        """
        assert isinstance(session, LastStepOutputs)
        self._kept = session
        self._beside_ns = _AFAR_NS if isinstance(session, OutOfProcess) else _BESIDE_NS
        self._checked = CheckedSession(session, clock, wall)
        self._clock = clock
        self._most = _STEPS if said_ns <= LONG_NS else _ONE_STEP
        self._chance = by
        self.inputs: Any = None
        self.alone: list[float] = []  # what steps took that were asked for alone
        self._waits: list[float] = []
        self._beside: list[int] = []
        self._steps: list[int] = []

    def left(self, inputs: Any) -> Sketches:
        """What the last step of a block of them left."""
        self.inputs = inputs
        steps = self._chance.randint(*self._most)
        block = self._checked.session.sample(inputs, steps, Timing.EACH)
        self._steps += samples_of(block)
        self._beside.append(self._checked.beside_ns)
        if steps == 1:
            self.alone += map(float, samples_of(block))
        start = self._clock.now_ns()
        outputs = self._kept.stepped(MOST_VALUES)
        self._waits.append(float(self._clock.now_ns() - start))
        return outputs

    def refuse_recomputed(self, right: Sketches) -> None:
        """Raise CaseError where what is left is there only after what a step takes.

        Args:
            right: outputs, whose sizes tell what it may take to bring them here.
        """
        nbytes = sum(math.prod(output.shape) * output.values.itemsize for output in right.values())
        beside = nbytes / _FETCHED_PER_S * 1e9 + self._beside_ns
        for _ in range(_TRIES):
            asking = beside + max(0, min(self._beside))
            if min(self._waits) <= _OF_A_STEP * median(self._steps) + asking:
                return
            self.left(self.inputs)
        least = min(self._waits) / 1e6
        raise _wrong(f"what they left was there only after {least:.3g} ms, as if computed then")


def refuse_short(session: Session, case: Case, seed: int, unseen: UnseenSteps) -> None:
    """Of a request or an image: the steps of a short one, which is what outputs are compared of.

    Args:
        session: the open model.
        case: what was measured.
        seed: one whose inputs were never seen, nor the next one's.
        unseen: times the steps.
    """
    short = shortened(case)
    other = seen(session, short, session.prepare(short, seed)).sketches
    inputs = session.prepare(short, seed + 1)
    left = unseen.left(inputs)
    right = seen(session, short, inputs).sketches
    refuse_other(short, left, right, other)
    unseen.refuse_recomputed(right)


def _kept(sketches: Sketches) -> dict[str, ReferenceOutputs]:
    return {name: ReferenceOutputs(out.values.shape, out.values) for name, out in sketches.items()}


def _wrong(why: str) -> CaseError:
    return CaseError(
        WRONG_STEPS,
        f"the outputs of the steps that were timed are not those that are verified: {why}",
        f"What was timed is not this model's work, whatever its outputs are. {RUNTIMES_FAULT}",
    )


CHANCE: RandomSource = SystemRandom()

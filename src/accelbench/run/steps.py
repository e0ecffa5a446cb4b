"""Whether the steps that are timed are the steps that are verified.

A session is asked for its outputs and for its times by different calls, and a runtime can do the
work of one and not of the other. So what timed steps leave is held against the outputs:

    the case's own inputs   what the last block of the steady state left; how many blocks there
                            are, and how long they are, is decided by the noise
    inputs never seen       what a block of a random number of steps left

Both have to be equal to what `outputs` gives of the same inputs — which verification holds
against the reference — but for the rounding of the precision. Of a request or an image, whose
outputs are compared by a short one, a short one's steps are timed for it.

And it has to be there when it is asked for: who has to compute it first has not kept it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import SystemRandom
from statistics import median
from typing import Any, Protocol

import numpy as np

from accelbench.catalog.short import shortened
from accelbench.core.abilities import Stepped
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Session
from accelbench.core.words import Timing
from accelbench.measure.blocks import samples_of
from accelbench.run.agreement import agree, tolerance_of
from accelbench.run.kept import Kept
from accelbench.runtimes.sketches import KEPT_LOGITS, MOST_VALUES, Sketch, sketch

Sketches = Mapping[str, Sketch]

#: How long a block is whose outputs are looked at; one step is as likely as five.
_STEPS = (1, 5)

#: What was kept is there at once: so much of a step later at most, but for what it takes to bring
#: outputs to the host, and so much beside. All tries have to be slower.
_OF_A_STEP, _FETCHED_PER_S, _BESIDE_NS, _TRIES = 0.5, 0.2e9, 1e6, 16


class Chance(Protocol):
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
    wanted = right if not case.generates else {n: one for n, one in right.items() if n in left}
    for name, one in wanted.items():
        if name not in left:
            raise _wrong(f"they left no {name}")
        if left[name].shape != one.shape:
            raise _wrong(f"{name} has the shape {left[name].shape}, not {one.shape}")
    others = [] if other is None else [_kept({n: s for n, s in other.items() if n in wanted})]
    found = agree(
        {name: left[name].values for name in wanted},
        _kept(wanted),
        others,
        case.precision,
        allowed=tolerance_of(case.precision).least,
    )
    if not found.ok:
        worst = max(found.errors, key=lambda name: found.errors[name], default="")
        off = found.wrong or f"{worst} is {found.error:.2g} off where {found.tolerance:.2g} may be"
        raise _wrong(off)


def refuse_fresh(
    session: Session, kept: Stepped, case: Case, seeds: tuple[int, int], clock: Clock, by: Chance
) -> None:
    """Time a block of inputs that nobody has seen, and look at what its last step left.

    Args:
        session: asked for steps and outputs.
        kept: the same session, asked for what is left.
        case: whose steps are looked at, or short ones in their place.
        seeds: of inputs never used before, two.
        clock: of the session.
        by: decides how many steps.
    """
    short = shortened(case)
    other = right_of(short, session.outputs(session.prepare(short, seeds[1])))
    inputs = session.prepare(short, seeds[0])
    session.sample(inputs, by.randint(*_STEPS), Timing.EACH)
    left = kept.stepped(MOST_VALUES)
    outputs = session.outputs(inputs)
    refuse_other(short, left, right_of(short, outputs), other)
    nbytes = sum(np.asarray(one).nbytes for one in outputs.values())
    _refuse_recomputed(session, kept, inputs, nbytes, clock, by)


def _refuse_recomputed(
    session: Session, kept: Stepped, inputs: Any, nbytes: int, clock: Clock, by: Chance
) -> None:
    fetched = nbytes / _FETCHED_PER_S * 1e9
    waits, steps = [], []
    for _ in range(_TRIES):
        steps += samples_of(session.sample(inputs, by.randint(1, 2), Timing.EACH))
        waits.append(_timed(clock, lambda: kept.stepped(MOST_VALUES)))
        allowed = _OF_A_STEP * median(steps) + fetched + _BESIDE_NS
        if min(waits) <= allowed:
            return
    raise _wrong(
        f"what they left was there only after {min(waits) / 1e6:.3g} ms, as if it was computed"
    )


def _timed(clock: Clock, do: Callable[[], Any]) -> float:
    start = clock.now_ns()
    do()
    return float(clock.now_ns() - start)


def _kept(sketches: Sketches) -> dict[str, Kept]:
    return {name: Kept(one.values.shape, one.values) for name, one in sketches.items()}


def _wrong(why: str) -> CaseError:
    return CaseError(
        "wrong_steps",
        f"the outputs of the steps that were timed are not those that are verified: {why}",
        "What was timed is not this model's work; look at what the runtime executes in a step.",
    )


CHANCE: Chance = SystemRandom()

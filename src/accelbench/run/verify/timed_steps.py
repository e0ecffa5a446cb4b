"""Check that the timed steps are the verified steps, and that a batch's items are all computed.

A session gives outputs and times by different calls, and an engine can do the work of only one. So
what timed steps leave is compared with the outputs, except for rounding:

    the case's own inputs   what the last block of the steady state left; noise decides how many
                            blocks there are and how long they are
    new inputs              what a block of a random number of steps left

It has to be there when it is asked for: an engine that computes it first has not kept it. If
outputs are compared by a short request or image, the steps of a short one are timed for it.

Items of a batch that the reference has not computed are compared with each other:

    copies         Two items with different inputs do not have the same outputs.
    another order  Run again in another order, each item keeps its outputs.

Neither convicts: outputs of a saturated model coincide, and a tie may be decided either way. Items
in doubt are computed by the reference, and judged like all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import SystemRandom
from statistics import median
from typing import Any, Protocol

import numpy as np

from accelbench.core.abilities import EvaluatedOutputs, LastStepOutputs, OutOfProcess, RemoteOutputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.precision import FEW_VALUES, narrow_type
from accelbench.core.protocols import Session
from accelbench.engines.shared.sketches import (
    DECODE_LOGITS,
    KEPT_LOGITS,
    MOST_VALUES,
    TOKENS,
    Glance,
    Sketch,
    sketch,
)
from accelbench.measure.block_validation import sample_times
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.short_steps import shorten_steps
from accelbench.run.messages import OTHER_STEPS
from accelbench.run.verify.agreement import (
    Array,
    Batches,
    Outputs,
    ReferenceOutputs,
    agree,
    far_apart,
    is_number,
    item_axis,
    judged_outputs,
    rows_of,
    unit_of,
)
from accelbench.run.verify.verdicts import tolerance_of

Sketches = Mapping[str, Sketch]

#: The step of a block that is looked at, counted from one: any of five, or the first if steps are
#: long. The block is announced as longer by up to seven steps, so that no step is known to be last.
_STEPS, _ONE_STEP, LONG_NS, _MORE_STEPS = (1, 5), (1, 1), 30e6, (0, 7)

#: What is kept is ready at once. The first answer for it may come later than that by this share of
#: a step, by what the block's question took outside its samples, and by what fetching ready outputs
#: costs. Every try has to be slower.
_OF_A_STEP, _TRIES = 0.5, 16
#: Before each further try the process rests a little longer. Otherwise eight busy processes on two
#: cores interrupted up to twelve tries in a row at the same place.
_REST_S = 0.5e-3
#: In this process a fetch costs a few times our own copying of as many values, measured next to it,
#: and for each output a conversion.
_TIMES_COPIED, _CONVERTED_NS, _FETCHED_PER_S = 4.0, 60e3, 0.2e9
#: The second answer for the same outputs shows more exactly what a fetch costs, unless it only
#: finds what the first has brought to the host, by a slow copy of pageable memory.
_TIMES_AGAIN, _BROUGHT_PER_S = 4.0, 1e9
#: From another process, with five others on two cores, the quickest of 16 answers took 6 ms, with
#: ten 22 ms; so did second ones.
_AFAR_NS, _AFAR_AGAIN_NS = 12e6, 4e6


class RandomSource(Protocol):
    """A source of numbers that an engine cannot foresee."""

    def randint(self, a: int, b: int) -> int:
        """Return a whole number from a to b."""


def compared_whole(case: Case) -> bool:
    """Return whether a step of the case is as long as the one whose outputs are compared."""
    return shorten_steps(case) == case


def right_of(case: Case, outputs: Mapping[str, Any]) -> dict[str, Sketch]:
    """Return the part of outputs that steps keep: of a request, some logits of each item."""
    if case.generates and "logits" in outputs:
        outputs = {**outputs, "logits": np.asarray(outputs["logits"])[..., :KEPT_LOGITS]}
    return sketch(outputs, MOST_VALUES)


def tells(right: Sketches) -> bool:
    """Return whether there is a number to compare: NaN everywhere is also what was not computed."""
    # Of outputs with numbers only these are judged.
    numbers = [output.values for output in right.values() if is_number(output.values)]
    return not numbers or any(bool(np.isfinite(values).any()) for values in numbers)


@dataclass(frozen=True)
class StepOutputs:
    """The outputs of one run."""

    outputs: Mapping[str, Any]  # whole; some values of each where they lie far away
    sketches: Sketches
    digest: str  # of all of them; empty where they are here


def seen(session: Session, case: Case, inputs: Any) -> StepOutputs:
    """Return the outputs of a run, sketched in the engine's process if that is another one."""
    if isinstance(session, RemoteOutputs):
        glance: Glance = session.glance(inputs, MOST_VALUES)
        values = {name: output.values for name, output in glance.outputs.items()}
        return StepOutputs(values, glance.outputs, glance.digest)
    outputs = session.outputs(inputs)
    return StepOutputs(outputs, right_of(case, outputs), "")


def refuse_other(case: Case, left: Sketches, right: Sketches, other: Sketches | None) -> None:
    """Raise CaseError if what timed steps left differs from the outputs.

    `left` is by the steps, `right` of the same inputs, `other` of other inputs, if they change
    outputs.
    """
    if not left:
        raise OTHER_STEPS.error("they left none")
    wanted = right
    if case.generates:  # steps leave its logits at least, not whatever else outputs have
        needed = {"logits"} & set(right) or set(right)
        wanted = {name: entry for name, entry in right.items() if name in left or name in needed}
        if needed != set(right):  # long_steps.py judges how the others were decoded
            wanted = {n: entry for n, entry in wanted.items() if n not in (TOKENS, DECODE_LOGITS)}
    for name, output in wanted.items():
        if name not in left:
            raise OTHER_STEPS.error(f"they left no {name}")
        if left[name].shape != output.shape:
            raise OTHER_STEPS.error(f"{name} has the shape {left[name].shape}, not {output.shape}")
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
        raise OTHER_STEPS.error(off)


def refuse_other_sizes(own: Sketches, others: Sketches) -> None:
    """Raise CaseError if outputs of the measured inputs have other shapes than those of others."""
    for name, output in others.items():
        if name in own and own[name].shape != output.shape:
            raise OTHER_STEPS.error(
                f"with the inputs that were measured {name} has the shape {own[name].shape}, with"
                f" others {output.shape}"
            )


class UnseenSteps:
    """Timed steps of new inputs; once a worker."""

    def __init__(
        self, session: Session, clock: Clock, wall: Clock | None, said_ns: float, by: RandomSource
    ) -> None:
        """Ask nothing yet. `wall` is a clock that the session does not own; `by` decides how
        many steps."""
        assert isinstance(session, LastStepOutputs)
        self._kept = session
        self._is_afar = isinstance(session, OutOfProcess)
        self._checked = CheckedSession(session, clock, wall)
        self._clock = clock
        self._most = _STEPS if said_ns <= LONG_NS else _ONE_STEP
        self._chance = by
        self.inputs: Any = None
        self.first_ns = math.inf  # the slowest step of the first block of inputs
        self.alone: list[float] = []  # what steps took that were asked for alone
        self._waits: list[float] = []  # until outputs came that were asked for the first time
        self._again: list[float] = []  # and the second time
        self._beside: list[int] = []
        self._steps: list[int] = []

    def left(self, inputs: Any) -> Sketches:
        """Return what a random step of a block of them left."""
        is_new = self.inputs is not inputs
        self.inputs = inputs
        steps = self._chance.randint(*self._most)
        announced = steps + self._chance.randint(*_MORE_STEPS)
        block = self._checked.sample_some(inputs, steps, announced)
        self._steps += sample_times(block)
        self._beside.append(self._checked.outside_ns)
        outputs, first_ns = self._fetched()
        self._waits.append(first_ns)
        if is_new:
            self.first_ns = float(max(sample_times(block)))
        self._again.append(self._fetched()[1])
        if block.steps == 1:  # its time lasts until its outputs are there, less what fetching takes
            self.alone.append(sample_times(block)[0] + max(0.0, first_ns - self._again[-1]))
        return outputs

    def _fetched(self) -> tuple[Sketches, float]:
        start = self._clock.now_ns()
        outputs = self._kept.stepped(MOST_VALUES)
        return outputs, float(self._clock.now_ns() - start)

    def refuse_recomputed(self, right: Sketches) -> None:
        """Raise CaseError if what a step left is computed only when it is asked for.

        The sizes of the outputs, `right`, bound the cost of a fetch.
        """
        for number in range(_TRIES):
            question_ns = max(0, min(self._beside))
            allowed_ns = _OF_A_STEP * median(self._steps) + question_ns + self._fetch_ns(right)
            if min(self._waits) <= allowed_ns:
                return
            time.sleep(number * _REST_S)
            self.left(self.inputs)
        least = min(self._waits) / 1e6
        raise OTHER_STEPS.error(
            f"what they left was there only after {least:.3g} ms, as if computed then"
        )

    def _fetch_ns(self, right: Sketches) -> float:
        """Return the most that a fetch of outputs costs that are ready."""
        nbytes = sum(math.prod(output.shape) * output.values.itemsize for output in right.values())
        again = median(self._again)
        each = _CONVERTED_NS * len(right)
        brought = _TIMES_AGAIN * again + nbytes / _BROUGHT_PER_S * 1e9
        if isinstance(self._kept, EvaluatedOutputs):  # to make an array of a long list takes long
            return each + brought
        if self._is_afar:
            bound = _AFAR_NS + nbytes / _FETCHED_PER_S * 1e9
            return min(bound, _AFAR_AGAIN_NS + again + nbytes / _BROUGHT_PER_S * 1e9)
        start = self._clock.now_ns()
        sketch({name: output.values for name, output in right.items()}, MOST_VALUES)
        copied = float(self._clock.now_ns() - start)
        return each + min(brought, _TIMES_COPIED * copied + nbytes / _FETCHED_PER_S * 1e9)


def refuse_short(session: Session, case: Case, seed: int, unseen: UnseenSteps) -> None:
    """Check the steps of a short request or image, by new inputs of `seed` and the next one."""
    short = shorten_steps(case)
    other = seen(session, short, session.prepare(short, seed)).sketches
    inputs = session.prepare(short, seed + 1)
    left = unseen.left(inputs)
    right = seen(session, short, inputs).sketches
    refuse_other(short, left, right, other)
    unseen.refuse_recomputed(right)


def _kept(sketches: Sketches) -> dict[str, ReferenceOutputs]:
    return {name: ReferenceOutputs(out.values.shape, out.values) for name, out in sketches.items()}


CHANCE: RandomSource = SystemRandom()


#: How many items the reference computes to settle doubts.
MOST_DOUBTED = 3

#: Values of each item that are compared with those of other items, and with its own in the batch
#: in another order: in all of the batch.
_COLUMNS, _VALUES = 64, 2**18

#: Two items are copies if they are nearer than this share of what items are apart on average.
#: 2,000 pairs of items of one fp32 value each are so near by chance in one of 50 batches.
_COPIES_APART = 1e-5


def copied_items(
    outputs: Mapping[str, Any], right: Outputs, batches: Batches, precision: str, draw: int
) -> list[int]:
    """Return some items of a batch whose outputs are those of another item.

    Pairs that the reference has computed are left out. `draw` decides which values are compared,
    and which items are returned. In a narrow precision few values coincide by chance.
    """
    random = np.random.default_rng([draw, 2])
    known = np.zeros(len(batches.found), bool)
    known[batches.common()[1]] = True
    least = 1 if narrow_type(precision) is None else FEW_VALUES
    for name in judged_outputs(right):
        values = _by_item(outputs[name], right[name].shape, batches, _COLUMNS, random)
        if values is None or values.shape[1] < least or not is_number(values):
            continue
        first, second = np.nonzero(np.triu(_are_near(values), 1) & ~(known[:, None] & known))
        chosen = random.permutation(len(first))[:MOST_DOUBTED]
        pairs = np.stack([first[chosen], second[chosen]], 1).reshape(-1).tolist()
        if rows := [row for row in dict.fromkeys(pairs) if not known[row]]:
            return [batches.found[row] for row in rows[:MOST_DOUBTED]]
    return []


def _are_near(values: Array) -> Array:
    """Return which pairs of items are copies, as a matrix."""
    wide = np.nan_to_num(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        wide = wide - wide.mean(axis=0)
        products = (wide @ wide.conj().T).real
        squares = np.diag(products)
        apart = squares[:, None] + squares - 2 * products
        mean = 2 * squares.mean()
        near: Array = apart <= _COPIES_APART**2 * mean
    return near if np.isfinite(mean) and mean > 0 else np.zeros_like(near)


def moved_items(
    runs: Mapping[tuple[int, ...], Mapping[str, Any]],
    right: Outputs,
    others: Sequence[Outputs],
    of_reference: tuple[int, ...],
    precision: str,
) -> list[int]:
    """Return some items whose outputs differ between two runs of a batch in different orders.

    Differences are measured by `others`, the reference's outputs for other inputs.
    """
    most = tolerance_of(precision).most
    for name in judged_outputs(right):
        first, second = (
            _sorted(found[name], right[name].shape, order, Batches(of_reference, order))
            for order, found in runs.items()
        )
        if first is None or second is None:
            continue
        scale = unit_of(name, right, others, precision, most).scale
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.sqrt(np.square(far_apart(first, second)).mean(axis=1))
        worst = np.argsort(-apart, kind="stable")[:MOST_DOUBTED]
        if doubted := [int(item) for item in worst if not apart[item] <= most * scale]:
            return doubted
    return []


def _sorted(
    output: Any, right: tuple[int, ...], order: Sequence[int], batches: Batches
) -> Array | None:
    """Return a row of values for each item, by its number."""
    by_number = rows_of(np.asarray(output), right, np.argsort(order), batches)
    most = _VALUES // len(order) + 1
    return _by_item(by_number, right, batches, most, np.random.default_rng(0))


def _by_item(
    output: Any, right: tuple[int, ...], batches: Batches, most: int, random: np.random.Generator
) -> Array | None:
    """Return a row of values for each item; None if an output has no items or no values."""
    array = np.asarray(output)
    axis = item_axis(array.shape, right, batches)
    if axis is None or not array.size:
        return None
    rows = np.moveaxis(array, axis, 0).reshape(len(batches.found), -1)
    if rows.shape[1] > most:
        rows = rows[:, random.integers(0, rows.shape[1], most)]
    return rows

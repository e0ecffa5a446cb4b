"""A model compared with itself: same seed, same outputs; other inputs or weights, other outputs.

A model that ignores its inputs or weights is not real, and its time is worthless. The check runs
after everything of a case is measured, once a worker, at the smallest batch. Weights are changed in
engines that hold them (`WeightPerturbable`). For engines that open a file verification shows it:
outputs of other weights are 0.93 or more off for every tiny model, where fp32 may be 0.0002 and
int8 0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelbench.core.abilities import DrawRepeatable, SimilarInputs, WeightPerturbable
from accelbench.core.case import Case
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Mode
from accelbench.engines.shared.sketches import outputs_digest
from accelbench.models.inputs import tensors
from accelbench.run.messages import NOT_REAL
from accelbench.run.verify.agreement import far_apart
from accelbench.run.verify.reference_outputs import is_number
from accelbench.run.verify.timed_steps import Sketches, StepOutputs, seen

#: What turns a job's seed into others, whichever it is: inputs that were not timed, so that
#: nobody has seen them before.
_OTHER_SEED, _RIGHT_SEED = 0x5EED, 0x217

#: Outputs that differ by chance alone differ by about the same whatever is changed: a change
#: that matters is this many times as large. What order of summation does is 1e6 times smaller.
_BEYOND_CHANCE = 10.0


@dataclass(frozen=True)
class SelfCheck:
    """The result of a self-check; None if something could not be asked."""

    outputs_digest: str
    repeatable: bool
    inputs_matter: bool | None
    weights_matter: bool | None
    seen: Sketches = field(default_factory=dict)  # the outputs of the case's inputs
    others: Sketches | None = None  # of other inputs; None where they cannot vary
    stepped: Sketches | None = None  # what timed steps of those left; None where none is told

    @property
    def ok(self) -> bool:
        """Whether nothing shows that the model is not real."""
        return self.inputs_matter is not False and self.weights_matter is not False

    @property
    def verdict(self) -> str:
        """The value of the column self_check."""
        if not (self.ok and self.repeatable):
            return "failed"
        judged = self.inputs_matter or self.weights_matter
        return "ok" if judged else "not_done"

    @property
    def columns(self) -> dict[str, Any]:
        """What the conductor gets."""
        return {"verdict": self.verdict, "outputs_digest": self.outputs_digest}

    def warnings(self) -> list[str]:
        if self.repeatable:
            return []
        return ["The same seeded inputs gave other outputs the second time."]

    def refuse(self, model: str) -> None:
        """Raise CaseError if the model is not real."""
        ignored = [
            what
            for what, matters in (("inputs", self.inputs_matter), ("weights", self.weights_matter))
            if matters is False
        ]
        if ignored:
            raise NOT_REAL.error(model=model, ignored=" and ".join(ignored))


def right_seed(seed: int) -> int:
    """Return the seed of inputs that are compared with a reference."""
    return seed ^ _RIGHT_SEED


def other_seed(seed: int) -> int:
    """Return a seed that draws other inputs than the job's."""
    return seed ^ _OTHER_SEED


def prepare_other(session: Session, case: Case, seed: int) -> Any:
    """Prepare inputs of another seed; if a case has its own, inputs like them if possible."""
    if not case.model.inputs and isinstance(session, SimilarInputs):
        similar = session.similar_inputs(seed)
        if similar is not None:
            return similar
    return session.prepare(case, seed)


def self_check(
    session: Session,
    case: Case,
    seed: int = 0,
    steps: Callable[[Any], Sketches] | None = None,
    left: Sketches | None = None,
) -> SelfCheck:
    """Run a case's seeded inputs twice, other inputs once, and other weights once.

    `steps` times steps of new inputs and returns what the last one left; `left` is what a step of
    the seeded inputs left, which saves the second run if it is the outputs to the last bit.
    """
    inputs = session.prepare(case)
    first = seen(session, case, inputs)
    doubted = None
    if isinstance(session, WeightPerturbable) and _has_telling_weights(case, first):
        with session.other_weights():
            doubted = seen(session, case, inputs)
    second = first
    if not _same_bits(left or {}, first.sketches):
        second = seen(session, case, session.prepare(case))
    other, stepped = None, None
    if _inputs_vary(case):
        unseen = session.prepare(case, seed=other_seed(seed))
        stepped = None if steps is None else steps(unseen)
        other = seen(session, case, unseen)
    repeatable = not _differ(first, second)
    inputs_matter = None if other is None else _matters(first, second, other)
    weights_matter = None if doubted is None else _matters(first, second, doubted)
    if not repeatable and False in (inputs_matter, weights_matter):
        # What it draws may change more than they do.
        exactly = _of_same_draws(session, case, seed)
        inputs_matter, weights_matter = inputs_matter or exactly[0], weights_matter or exactly[1]
    return SelfCheck(
        outputs_digest=first.digest or outputs_digest(first.outputs),
        repeatable=repeatable,
        inputs_matter=inputs_matter,
        weights_matter=weights_matter,
        seen=first.sketches,
        others=None if other is None else other.sketches,
        stepped=stepped,
    )


def _of_same_draws(session: Session, case: Case, seed: int) -> tuple[bool | None, bool | None]:
    """Return whether inputs and weights matter if each run draws the same; None if not known."""
    # A model whose inputs change less than what it draws, such as one that masks most of them by
    # chance, is as real as any.
    if not isinstance(session, DrawRepeatable):
        return None, None
    with session.same_draws():
        inputs = session.prepare(case)
        first, again = (seen(session, case, inputs) for _ in range(2))
        if _differ(first, again):
            return None, None
        doubted = None
        if isinstance(session, WeightPerturbable):
            with session.other_weights():
                doubted = seen(session, case, inputs)
        other = None
        if _inputs_vary(case):
            other = seen(session, case, session.prepare(case, other_seed(seed)))
    inputs_matter = None if other is None else _matters(first, again, other)
    return inputs_matter, None if doubted is None else _matters(first, again, doubted)


def _wide(values: Any) -> Any:
    array = np.asarray(values)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _same_bits(left: Sketches, right: Sketches) -> bool:
    return bool(left) and all(
        name in left
        and left[name].shape == sketch.shape
        and left[name].values.tobytes() == sketch.values.tobytes()
        for name, sketch in right.items()
    )


def _matters(first: StepOutputs, again: StepOutputs, changed: StepOutputs) -> bool | None:
    """Return whether a change changed the outputs; None if they cannot show it."""
    if not any(np.size(values) for values in first.outputs.values()) and not first.digest:
        return None  # a callable that returns nothing
    if not _differ(first, changed):
        return None if any(_is_nan(values) for values in first.outputs.values()) else False
    if not _differ(first, again):
        return True
    # Outputs that are drawn anew each time would pass for a model's otherwise.
    base, same, other = first.outputs, again.outputs, changed.outputs
    return any(
        _distance(base[name], other[name]) > _BEYOND_CHANCE * _distance(base[name], same[name])
        for name in base
    )


def _is_nan(values: Any) -> bool:
    """Return whether every value is NaN: a real model's too, if its numbers overflow."""
    array = np.asarray(values)
    return is_number(array) and array.size > 0 and bool(np.isnan(array).all())


def _distance(output: Any, other: Any) -> float:
    """Return the mean distance of two outputs; infinite if only one is a number."""
    if np.shape(output) != np.shape(other):
        return float("inf")
    apart = far_apart(_wide(output), _wide(other))
    return float(apart.mean()) if apart.size else 0.0


def _differ(first: StepOutputs, second: StepOutputs) -> bool:
    """Return whether any value differs; NaNs are equal unless bits are compared."""
    if first.digest:
        return first.digest != second.digest
    base, other = first.outputs, second.outputs
    return any(
        not np.array_equal(base[name], other[name], equal_nan=is_number(np.asarray(base[name])))
        for name in base
    )


def _has_telling_weights(case: Case, first: StepOutputs) -> bool:
    """Return whether other weights must give other outputs."""
    # A user's module may have none, or pick the same class with others.
    if not case.model.is_own:
        return True
    floats = any(np.asarray(values).dtype.kind in "fc" for values in first.outputs.values())
    return case.model.parameters > 0 and floats


def _inputs_vary(case: Case) -> bool:
    """Return whether another seed draws other inputs; labels are for the loss, not the model."""
    how = case.model.training if case.mode is Mode.TRAINING else None
    labels = {label.name for label in how.labels} if how else set()
    return any(
        tensor.constant is None and tensor.row is None and tensor.name not in labels
        for tensor in tensors(case.model, case.shapes, case.mode)
    )

"""A model compared with itself: same seed, same outputs; other inputs or weights, other outputs.

A model that ignores its inputs or weights is not real, and its time is worthless. The check runs
after everything of a case is measured, once a worker, at the smallest batch. Weights are changed in
engines that hold them (`WeightPerturbable`). For engines that open a file verification shows it:
outputs of other weights are 0.93 or more off for every tiny model, where fp32 may be 0.0002 and
int8 0.5.

Refuse what is remembered: first steps with new inputs are compared with steps of used inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelbench.core.abilities import DrawRepeatable, SimilarInputs, WeightPerturbable
from accelbench.core.case import Case
from accelbench.core.protocols import Block, Session
from accelbench.core.vocabulary import Mode, Timing
from accelbench.engines.shared.sketches import outputs_digest
from accelbench.measure.block_validation import sample_times
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.inputs import tensors
from accelbench.run.messages import CACHED, CACHED_PHASE, NOT_REAL
from accelbench.run.verify.agreement import far_apart, is_number
from accelbench.run.verify.block_lengths import SingleStep
from accelbench.run.verify.timed_steps import RandomSource, Sketches, StepOutputs, seen

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
        return self.inputs_matter is not False and self.weights_matter is not False

    @property
    def verdict(self) -> str:
        if not (self.ok and self.repeatable):
            return "failed"
        judged = self.inputs_matter or self.weights_matter
        return "ok" if judged else "not_done"

    @property
    def columns(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "outputs_digest": self.outputs_digest}

    def warnings(self) -> list[str]:
        if self.repeatable:
            return []
        return ["The same seeded inputs gave other outputs the second time."]

    def refuse(self, model: str) -> None:
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
    if not case.model.is_user_model:
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


#: With four processes a core beside it, PyTorch's steps of 1 ms took 20 ms at the median and
#: up to a second; in 22 of 40 tries a first step took four times its successor, and then the
#: shortest was a fraction of the usual all the same.
_TRIES = 16
#: A first step with new inputs takes 1.0 to 1.1 times as long as the next ones with ONNX Runtime;
#: after an idle moment up to six times, so a step with other inputs comes before it.
TIMES_FASTER, _SAVED_NS = 1.5, 0.05e6
#: Seeds of new inputs are drawn: a cache on a disk knows those of the launch before.
LAST_SEED = 2**62
#: Steps in which new inputs may be computed, of which the slowest counts.
_MOST_FIRST = 3
#: Bytes a second at which new inputs are read that are in no cache of the processor.
_READ_PER_S = 8e9
#: What a question about new inputs may take beside, in this process: as in `timed_steps.py`.
_BESIDE_FIRST_NS = 1e6
#: Bytes a second at which inputs are brought to where they are read, at least.
_FETCHED_PER_S = 0.2e9


def refuse_cached(
    checked: CheckedSession,
    case: Case,
    chance: RandomSource,
    single: SingleStep,
    used: Any = None,
    steady: Any = None,
) -> Any:
    """Raise CaseError if the quickest first step with new inputs is slower than steps with used
    inputs.

    `used` are inputs that were used before, `steady` those of the steady state: a cache may hold
    only what was asked for many times. Return inputs that were used.
    """
    # Steps with used inputs are taken between the first steps, and as few at once: another process
    # may have changed the speed since the steady state, and pipelined steps take less among many
    # (block_lengths.py compares those with single steps). Time of a question about new inputs that
    # no step explains counts as part of its first step, less what other questions leave and what it
    # takes to bring the inputs there. Compilation that is reported each time counts as well.
    trials = CacheTrials(checked, case, chance, single, used, steady)
    # Sixteen trials are over within one bad moment of a machine: sixteen more, in turns with others
    # that begin as they do.
    alike: list[float] = []
    for number in range(2 * _TRIES):
        # In turns with the others each first step is a single one, as theirs are.
        repeats = trials.time_first_step(1 if number >= _TRIES else _MOST_FIRST)
        # A quick one: where every other step is left out, the median may be of neither kind. A
        # repeat that was struck is no excuse for a first that was not.
        if not trials.saves(_quick(repeats)):
            return trials.inputs
        if number >= _TRIES:
            alike.append(trials.time_control_step())
    if not trials.saves(usual := sorted(alike)[1]):
        return trials.inputs
    raise CACHED.error(tries=2 * _TRIES, first_ms=min(trials.firsts) / 1e6, usual_ms=usual / 1e6)


def _quick(times: Sequence[float]) -> float:
    return sorted(times)[(len(times) - 1) // 4]  # if half of them are quick, the quickest of four


class CacheTrials:
    """First steps with new inputs, and steps with inputs that were used before."""

    def __init__(
        self,
        checked: CheckedSession,
        case: Case,
        chance: RandomSource,
        single: SingleStep,
        used: Any,
        steady: Any,
    ) -> None:
        self.firsts: list[float] = []
        self.inputs = used
        self._steady = steady
        self._checked, self._case, self._chance, self._single = checked, case, chance, single
        self._brought = _BESIDE_FIRST_NS + _input_bytes(case) / _FETCHED_PER_S * 1e9
        self._cold = cold_ns(case)
        self._repeats: list[float] = []

    def time_first_step(self, most: int) -> Sequence[float]:
        """Take up to `most` first steps with new inputs; return all times with used inputs."""
        checked, single = self._checked, self._single
        used = self.inputs if self._steady is None else self._steady
        self.inputs = self._made()
        if used is not None:  # threads that were idle while inputs were made are awake then
            self._repeats.append(single.step(used))
        # Two after the first: if every other step is left out, one of them is.
        steps = self._chance.randint(1, most)
        block = checked.sample_some(self.inputs, steps, steps + self._chance.randint(0, 7))
        hidden, times = checked.unexplained_ns, sample_times(block)
        first = max(times) + single.wait_ns()  # any of them may be the one that computed
        self._repeats += sorted(times)[:-1]
        usually_hidden = []
        for _ in range(max(1, 3 - len(times))):
            self._repeats.append(single.step(self.inputs))
            usually_hidden.append(checked.unexplained_ns)
        self.firsts.append(first + max(0.0, hidden - self._brought - max(usually_hidden)))
        return self._repeats

    def time_control_step(self) -> float:
        """Return the time of a step with used inputs under the conditions of a first step."""
        # To make inputs is work: on a machine with nine processes a core, ONNX Runtime's process
        # had by then used its turn, and each of 16 first steps took 5.4 ms instead of 1.1 ms.
        self._made()
        used = self.inputs if self._steady is None else self._steady
        self._single.step(self.inputs)
        if self._chance.randint(0, 1):  # if every other step is left out, perhaps this one is
            self._single.step(used)
        step = self._single.step(used)
        return step + max(0.0, self._checked.unexplained_ns - self._brought)

    def saves(self, usual: float) -> bool:
        """Return whether first steps take so much longer that the others cannot be doing their
        work."""
        return min(self.firsts) >= max(usual * TIMES_FASTER, usual + self._cold)

    def _made(self) -> Any:
        checked, seed = self._checked, self._chance.randint(0, LAST_SEED)
        if isinstance(checked.wrapped, SimilarInputs) and not self._case.model.inputs:
            return prepare_other(checked.wrapped, self._case, seed)
        return checked.session.prepare(self._case, seed=seed)


def refuse_cached_phases(checked: CheckedSession, case: Case, chance: RandomSource) -> None:
    """Raise CaseError if a phase, such as the prefill, is remembered from the step before.

    `case` is a short step of what was measured.
    """
    # A phase may be so short a part of the step that the step's own time hides it.
    session, cold = checked.session, cold_ns(case)
    used = session.prepare(case)  # as in the steady state
    new_ns: dict[str, list[float]] = {}
    used_ns: dict[str, list[float]] = {}
    for _ in range(2 * _TRIES):
        inputs = session.prepare(case, seed=chance.randint(0, LAST_SEED))
        session.sample(used, 1, Timing.EACH)  # threads that were idle are awake then
        _note_phases(session.sample(inputs, 1, Timing.PHASES), new_ns)
        _note_phases(session.sample(used, 1, Timing.PHASES), used_ns)
        cached = [
            name
            for name, times in new_ns.items()
            if min(times) >= max(TIMES_FASTER * (usual := _quick(used_ns[name])), usual + cold)
        ]
        if not cached:
            return
    name = cached[0]
    raise CACHED_PHASE.error(
        phase=name, first_ms=min(new_ns[name]) / 1e6, usual_ms=_quick(used_ns[name]) / 1e6
    )


def _note_phases(block: Block, times: dict[str, list[float]]) -> None:
    for name, (ns,) in block.phase_ns.items():
        times.setdefault(name, []).append(float(ns))


def cold_ns(case: Case) -> float:
    """Return what a step with new inputs may take more: they are in no cache of the processor."""
    return _SAVED_NS + _input_bytes(case) / _READ_PER_S * 1e9


def _input_bytes(case: Case) -> int:
    from accelbench.models.inputs import input_bytes

    return input_bytes(case.model, case.shapes, mode=case.mode)

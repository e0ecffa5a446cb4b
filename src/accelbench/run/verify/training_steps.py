"""Check that each timed training step trains on the whole batch.

    between blocks       every trainable weight has changed since the last check
    after the last one   random single steps report the loss of the whole batch, and change the
                         weights as the session predicts; the session undoes its prediction
    blocks of steps      a step takes no less time in a block than alone (block_lengths.py); single
                         steps are known to train

No check changes a sample: weights are read between blocks, when no time is measured. All checks
take at most a hundredth of the time. The losses of ten untimed steps are verified in
convergence.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelbench.core.abilities import StepPreview, TrainingProbe
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.precision import narrow_type
from accelbench.core.protocols import Block, Device, Session
from accelbench.measure.block_validation import sample_times
from accelbench.measure.loop import BlockRequest
from accelbench.measure.losses import LEARNED
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.messages import UNTRAINED
from accelbench.run.verify.block_lengths import refuse_late_waits, refuse_thinned, single_steps
from accelbench.run.verify.convergence import are_frozen
from accelbench.run.verify.timed_steps import CHANCE
from accelbench.run.verify.timing_plausibility import LONGEST_STEP_NS

#: Values that are read of each weight. AdamW moves every value with every step.
_VALUES = 16
#: Reading weights takes at most this share of the time. Once takes 0.4 ms for BERT's tiny size.
_SHARE = 0.01
#: Single steps that are checked: two if they are short, which reveals an engine that skips every
#: second step; and so many more if one is wrong.
_SINGLE, _AGAIN = 2, 2
_ANNOUNCED = (1, 5)
#: The share of weights whose change may differ from the prediction. Weights whose gradients are
#: only rounding, such as a key's bias, change by chance on an accelerator.
_MOST_OTHER = 0.25
#: A weight that has not changed for so many steps no longer learns.
_STEPS_STILL = 10

Values = Mapping[str, Any]


@dataclass(frozen=True)
class _Limits:
    """The largest differences of a step from its prediction."""

    loss: float  # of the loss, relative to itself
    of_first: float  # of the loss, relative to the first loss, because small losses are rounded
    move: float  # of a weight's change, relative to the change


#: Half of a batch changed the loss by 1 % and more. AdamW and momentum make a single gradient a
#: tenth of a step: gradients of zero changed a weight's change by 0.1, half of the batch by 0.02
#: to 0.1.
_NARROW, _FP32 = _Limits(1e-2, 1e-4, 0.01), _Limits(1e-3, 1e-4, 0.01)
#: On a CPU tiny models of the catalogue repeated fp32 steps exactly, on PyTorch and on JAX. bf16
#: changed the loss by 1e-6 to 4e-2, and most weights' changes by 1e-4 to 0.2, never both by so
#: little.
_FP32_REPEATED = _Limits(1e-5, 1e-5, 5e-4)


def _limits(precision: str, device: Device) -> _Limits:
    if precision != "fp32":
        return _NARROW
    return _FP32_REPEATED if _repeats(device) else _FP32


@dataclass(frozen=True)
class TrainingVerdict:
    """Whether a case's training steps are verified, and what could not be checked."""

    verified: bool
    warnings: tuple[str, ...] = ()


class TrainingSteps:
    """Checks of one case's training steps; they raise CaseError if the steps do not train."""

    def __init__(self, session: Session, case: Case, wall: Clock) -> None:
        """Store what the checks need. The session has to be a TrainingProbe, and must not own
        `wall`."""
        assert isinstance(session, TrainingProbe)
        self._session = session
        self._probe: TrainingProbe = session
        self._case = case
        self._wall = wall
        self._draw = CHANCE.randint(0, 2**31)
        self._start_ns: int | None = None
        self._spent_ns = 0
        self._steps = self._looked_at = 0
        self._losses: list[float] = []
        self._values: Values | None = None
        self._moved_at: dict[str, int] = {}  # by weight: the last step after which it had moved
        self._skipped = 0
        self._at_rest = False
        self.inputs: Any = None

    def idle(self, moved: Sequence[str]) -> list[str]:
        """Return the weights that no timed step changed, or none if too few steps were timed."""
        enough = self._steps > _STEPS_STILL and not self._case.options.get("pure")
        return [name for name in moved if name not in self._moved_at] if enough else []

    def note(self, block: Block) -> None:
        """Count a block's steps, and read the weights unless that has taken too long already."""
        now = self._wall.now_ns()
        self._start_ns = now if self._start_ns is None else self._start_ns
        self._steps += block.steps
        self._losses += block.losses
        if self._spent_ns <= _SHARE * (now - self._start_ns):
            self.look()

    def look(self) -> None:
        """Read the weights; raise CaseError if the steps since the last reading changed none."""
        start = self._wall.now_ns()
        values = read_weights(self._probe, self._draw)
        self._spent_ns += self._wall.now_ns() - start
        before, since = self._values, self._steps - self._looked_at
        self._values, self._looked_at = values, self._steps
        if before is None or not since:
            return
        moved = moved_weights(before, values)
        self._moved_at |= dict.fromkeys(moved, self._steps)
        if not moved:
            self._refuse_still(since)

    def check(
        self, clock: Clock, device: Device, question: BlockRequest | None, said_ns: float
    ) -> TrainingVerdict:
        """Check single steps, starting from the weights after the measurement.

        `question` is the largest request for steps, `said_ns` the reported time of a step.
        """
        if not self._losses or self.inputs is None:
            return TrainingVerdict(False, (_NO_LOSSES,))
        self.look()
        checked = CheckedSession(self._session, clock, self._wall)
        alone: list[float] = []
        known = self._refuse_other_steps(checked, device, alone, said_ns)
        self._refuse_frozen()
        slower: tuple[str, ...] = ()
        if question is not None and not question.is_single_step and said_ns <= LONGEST_STEP_NS:
            if question.last_is_longer:
                refuse_late_waits(checked, self.inputs, CHANCE)
            single = single_steps(checked, device, clock, question.timing, alone)
            slower = refuse_thinned(single, self.inputs, question, said_ns)
        warnings = () if known else (_NO_PREVIEW,)
        if self._at_rest:
            warnings = (*warnings, _REST)
        return TrainingVerdict(not warnings and not slower, (*warnings, *slower))

    # -- weights

    def _refuse_still(self, steps: int) -> None:
        if self._case.options.get("pure"):
            return  # a half type loses what is less than its last place
        loss = self._losses[-1] if self._losses else 0.0
        if abs(loss) <= LEARNED * abs(self._losses[0] if self._losses else 0.0):
            return  # nothing is left to learn
        if self._explained_by_overflow(steps):
            return
        is_decayed = str(self._case.options.get("optimizer", "adamw")) == "adamw"
        if not is_decayed and (not self._moved_at or self._case.model.is_user_model):
            # SGD moves nothing if there is no gradient, as in a model whose units are all at rest.
            self._at_rest = True
            return
        which = f"step {self._steps}" if steps == 1 else f"the last {steps} of {self._steps} steps"
        raise UNTRAINED.error(f"no weight changed in {which}, although the loss is {loss:.4g}")

    def _explained_by_overflow(self, steps: int) -> bool:
        """Return whether fp16's scaler has skipped as many steps since the last look."""
        if narrow_type(self._case.precision) != "fp16":
            return False
        training = self._session.evidence().details.get("training", {})
        skipped = training.get("skipped_steps") or 0
        new, self._skipped = skipped - self._skipped, skipped
        return bool(new >= steps)

    def _refuse_frozen(self) -> None:
        if self._case.options.get("pure") or self._steps <= _STEPS_STILL:
            return
        late = self._steps - _STEPS_STILL
        still = {name for name, at in self._moved_at.items() if at <= late}
        if are_frozen(self._moved_at, still):
            raise UNTRAINED.error(
                f"{len(still)} of {len(self._moved_at)} weights no longer change, such as"
                f" {min(still)}"
            )

    # -- single steps

    def _refuse_other_steps(
        self, checked: CheckedSession, device: Device, alone: list[float], said_ns: float
    ) -> bool:
        """Take single steps; return whether each one matched its prediction."""
        wanted = _SINGLE if said_ns <= LONGEST_STEP_NS else 1
        wrong: list[str] = []
        tries = 0
        while tries < wanted + (_AGAIN if wrong else 0):
            tries += 1
            foreseen = self._probe.preview_step(self.inputs, _VALUES, self._draw)
            before = self._values or {}
            # Announced as one of several, so that the step does not look like the last of a block.
            block = checked.sample_some(self.inputs, 1, CHANCE.randint(*_ANNOUNCED))
            alone += map(float, sample_times(block))
            self._steps += block.steps
            self._losses += block.losses
            self.look()
            if foreseen is None or not block.losses or block.steps > 1:
                return False
            left = block.losses[0], self._values or {}
            why = self._differs(foreseen, *left, before, _limits(self._case.precision, device))
            wrong += [why] if why else []
        # A user's model may draw random numbers from a state that a preview does not restore.
        least = 2 if _repeats(device) else tries // 2 + 1
        if len(wrong) >= least and not self._case.model.is_user_model:
            raise UNTRAINED.error(wrong[-1])
        return not wrong

    def _differs(
        self, foreseen: StepPreview, loss: float, after: Values, before: Values, most: _Limits
    ) -> str:
        """Return how a step differs from its prediction; empty if it does not."""
        allowed = max(most.loss * abs(foreseen.loss), most.of_first * abs(self._losses[0]))
        if not abs(loss - foreseen.loss) <= allowed:
            return (
                f"a step reported a loss of {loss:.8g}; the loss of the whole batch at the same"
                f" weights is {foreseen.loss:.8g}"
            )
        if foreseen.weights is None or self._case.options.get("pure"):
            return ""
        should, other = other_moves(before, after, foreseen.weights, most.move)
        if not should or other <= _MOST_OTHER * should:
            return ""
        return f"{other} of {should} weights did not change as their gradients require"


def _repeats(device: Device) -> bool:
    """Return whether engines compute the same bits twice: on a CPU all did."""
    return "cpu" in (device.hardware, device.unit)


def read_weights(probe: TrainingProbe, draw: int) -> Values:
    """Return some values of each trained weight."""
    return probe.weight_values(_VALUES, draw)


def moved_weights(before: Values, after: Values) -> frozenset[str]:
    """Return the names of the weights of which a value has changed."""
    return frozenset(
        name
        for name, values in after.items()
        if name not in before or not np.array_equal(before[name], values)
    )


class WeightMoves:
    """The weights that a training changes; empty for a session that does not show its weights."""

    def __init__(self, session: Session, draw: int) -> None:
        """Read the weights of a session prepared for training; `draw` chooses the values."""
        self._probe = session if isinstance(session, TrainingProbe) else None
        self._draw = draw
        self._before = read_weights(self._probe, draw) if self._probe is not None else {}

    def end(self) -> tuple[list[str], list[str]]:
        """Return the names of the weights that have changed since, and of those that have not."""
        if self._probe is None:
            return [], []
        moved = moved_weights(self._before, read_weights(self._probe, self._draw))
        return sorted(moved), sorted(set(self._before) - moved)


def other_moves(
    before: Values, after: Values, foreseen: Values, most: float = _FP32.move
) -> tuple[int, int]:
    """Return how many weights a step should change, and how many it did not change so."""
    should = other = 0
    for name, values in foreseen.items():
        if name not in before or name not in after:
            continue
        wanted = values - before[name]
        size = float(np.linalg.norm(wanted))
        should += size > 0
        other += float(np.linalg.norm(after[name] - values)) > most * size > 0
    return should, other


#: The warning for an engine that shows neither its weights nor the effect of a step.
NO_PROBE = "Timed training steps are not verified: the engine does not show its weights."
_NO_LOSSES = "Timed training steps are not verified: the engine reports no losses."
_NO_PREVIEW = (
    "Timed training steps are not verified to use the whole batch: the engine cannot predict a"
    " step, or some steps differ from the prediction."
)
_REST = "No timed step changed a weight: the model learned nothing."

"""Check that a request decodes all of its tokens, and an image all of its passes.

Outputs are compared by short steps (catalog/short_steps.py), which do not show the end of a long
one:

    tokens   what a timed request left has as many tokens as were asked for, and its first ones were
             chosen by the logits that `outputs` gives of the same inputs
    time     a long step takes as long as its tokens or passes require, judged by two short steps of
             different lengths: t(b) + (n - b) * (t(b) - t(a)) / (b - a)

A later token reads a longer cache, so it takes no less time than an early one. Reported times are
also compared with steps of new inputs: an engine may leave out steps by chance, or for inputs it
has seen often. A step with new inputs cannot be quick and leave right outputs. Most tries have to
show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, cast

import numpy as np

from accelbench.core.abilities import LastStepOutputs
from accelbench.core.case import Case
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.sketches import DECODE_LOGITS, MOST_VALUES, TOKENS, places
from accelbench.measure.block_validation import samples_of
from accelbench.measure.loop import Question
from accelbench.measure.validated_session import CheckedSession
from accelbench.models.short_steps import SHORT_PASSES, SHORT_TOKENS
from accelbench.run.messages import QUICKER_THAN_NEW, REQUESTS_DECODE_OTHERS, UNFINISHED
from accelbench.run.verify.agreement import far_apart
from accelbench.run.verify.block_lengths import (
    TRIES,
    SingleStep,
    ask_again,
    steps_ns,
    warn_of_slower_steps,
)
from accelbench.run.verify.cached_outputs import LAST_SEED, TIMES_FASTER, cold_ns
from accelbench.run.verify.timed_steps import (
    CHANCE,
    LONG_NS,
    Sketches,
    UnseenSteps,
    refuse_other,
    seen,
)
from accelbench.run.verify.verdicts import tolerance_of

#: Tries take about so long together, but are at least so many.
_TRIES_NS, _FRESH_STEPS_FEW_TRIES = 50e6, 3
_MOST_MORE = 7


@dataclass
class FreshSteps:
    """Single steps with new inputs, whose outputs are compared with verified ones."""

    checked: CheckedSession
    case: Case
    single: SingleStep  # waits for outputs
    other: Sketches  # outputs of other inputs
    used: Any = None  # inputs that were used before; prepared if there are none

    def take(self) -> float:
        """Return the time of a step with new inputs; raise CaseError if its outputs are wrong."""
        session = self.checked.session
        if self.used is None:
            self.used = session.prepare(self.case)
        inputs = session.prepare(self.case, seed=CHANCE.randint(0, LAST_SEED))
        session.sample(self.used, 1, Timing.EACH)  # threads are awake then
        block = self.checked.sample_some(inputs, 1, 1 + CHANCE.randint(0, _MOST_MORE))
        took = max(samples_of(block)) + self.single.wait_ns()
        left = cast("LastStepOutputs", self.checked.behind).stepped(MOST_VALUES)
        right = seen(self.checked.behind, self.case, inputs).sketches
        refuse_other(self.case, left, right, self.other)
        return float(took)


def refuse_quicker_than_fresh(
    fresh: FreshSteps, question: Question, said_ns: float, known_ns: float
) -> tuple[str, ...]:
    """Raise CaseError if reported steps are too quick for steps with new inputs.

    `known_ns` is the time of such a step that left right outputs. Return a warning if steps take
    much longer now than in the measurement.
    """
    slack = fresh.single.slack_ns + cold_ns(fresh.case)

    def explains(took_ns: float, step_ns: float) -> bool:
        return took_ns <= TIMES_FASTER * step_ns + slack

    if explains(known_ns, said_ns):
        return ()
    for _ in range(_tries(said_ns)):
        known_ns = min(known_ns, fresh.take())
        if explains(known_ns, said_ns):
            return ()
    again: list[float] = []
    explained, tries = 0, _tries(known_ns)
    while max(explained, len(again) - explained) * 2 <= tries:
        took_ns = min(fresh.take() for _ in range(3))
        again.append(ask_again(fresh.checked.session, fresh.used, question))
        explained += explains(took_ns, again[-1])
    if 2 * explained > tries:
        return warn_of_slower_steps(min(again), said_ns, slack)
    raise QUICKER_THAN_NEW.error(
        count=question.steps * question.blocks, many_ms=median(again) / 1e6, new_ms=known_ns / 1e6
    )


def _tries(step_ns: float) -> int:
    return min(TRIES, max(_FRESH_STEPS_FEW_TRIES, math.ceil(_TRIES_NS / step_ns)))


#: Gives what a timed step left, and outputs of the same inputs.
Look = Callable[[], tuple[Sketches, Sketches]]

#: The share of a request's items whose first tokens have to be decoded as for outputs. Two logits
#: that are nearly equal may be decided either way, and other tokens follow then.
_SAME = 0.75
#: The least time of a long step, as a share of the time that its units require.
_LEAST_SHARE = 0.8
#: Tries before a long step is asked for again, and of long steps afterwards.
_FEW_TRIES = 3


def request_fault(case: Case, left: Sketches, right: Sketches) -> str:
    """Return what shows that a timed request did not decode its tokens; empty if nothing does.

    `left` is what a timed step left, `right` the outputs of the same inputs, of the first tokens
    only.
    """
    if TOKENS in left and TOKENS in right:
        wanted = (right[TOKENS].shape[0], case.shapes.new_tokens)
        if left[TOKENS].shape != wanted:
            return f"they left tokens of the shape {left[TOKENS].shape}, not {wanted}"
    if DECODE_LOGITS not in left or DECODE_LOGITS not in right:
        return ""
    found, known = left[DECODE_LOGITS], right[DECODE_LOGITS]
    if found.shape != known.shape:
        return f"they left logits of the shape {found.shape}, not {known.shape}"
    total = math.prod(known.shape)
    rows = places(total, MOST_VALUES) // (total // known.shape[0])
    off = np.square(far_apart(found.values, known.values))
    size = np.square(np.nan_to_num(known.values.astype(np.float64)))
    counts = np.maximum(np.bincount(rows), 1)
    errors = np.bincount(rows, off) / counts
    allowed = tolerance_of(case.precision).least ** 2 * np.bincount(rows, size) / counts
    same = float(np.mean(errors <= allowed))
    return "" if same >= _SAME else f"{1 - same:.0%} of their items were decoded otherwise"


def refuse_other_tokens(tries: Sequence[Look], case: Case) -> None:
    """Raise CaseError if no try shows that timed requests decode their tokens; two logits may
    tie."""
    for look in tries:
        fault = request_fault(case, *look())
        if not fault:
            return
    raise REQUESTS_DECODE_OTHERS.error(fault)


def refuse_other_requests(
    session: Session, case: Case, asked: Case, steps: UnseenSteps, steady: tuple[Sketches, Sketches]
) -> None:
    """Raise CaseError if requests of the steady state or of new inputs do not decode their tokens.

    `asked` is the case, or a short request if it takes too long. `steady` is what the last step of
    the steady state left, and the outputs of its inputs.
    """

    def again() -> tuple[Sketches, Sketches]:
        inputs = session.prepare(asked, CHANCE.randint(0, LAST_SEED))
        return steps.left(inputs), seen(session, asked, inputs).sketches

    refuse_other_tokens([lambda: steady, *[again] * (_FEW_TRIES - 1)], case)
    refuse_other_tokens([again] * _FEW_TRIES, asked)


@dataclass
class ShortSteps:
    """Steps of two lengths, with new inputs and right outputs, that are shorter than the case's."""

    fresh: FreshSteps  # of the case
    took_ns: dict[int, list[float]] = field(default_factory=dict)  # by length

    def __post_init__(self) -> None:
        """Choose the two lengths."""
        shapes = self.fresh.case.shapes
        self.units = shapes.new_tokens or shapes.steps or 1
        longer = min(SHORT_TOKENS if shapes.new_tokens else SHORT_PASSES, self.units)
        self.lengths = (max(1, longer // 2), longer)
        self._short = {length: self._of_length(length) for length in self.lengths}

    def _of_length(self, length: int) -> FreshSteps:
        case = self.fresh.case
        makes_tokens = bool(case.shapes.new_tokens)
        shapes = (
            replace(case.shapes, new_tokens=length)
            if makes_tokens
            else replace(case.shapes, steps=length)
        )
        return replace(self.fresh, case=replace(case, shapes=shapes), used=None)

    def take(self) -> float:
        """Take one of each length; return the time that a step of the case requires, judged by
        all."""
        # The quickest ones count: noise makes steps longer, never shorter.
        for length, fresh in self._short.items():
            self.took_ns.setdefault(length, []).append(fresh.take())
        shorter, longer = self.lengths
        few, more = min(self.took_ns[shorter]), min(self.took_ns[longer])
        each = max(0.0, more - few) / max(1, longer - shorter)
        return more + (self.units - longer) * each


def refuse_unfinished(fresh: FreshSteps, said_ns: float) -> tuple[str, ...]:
    """Raise CaseError if a long step takes less than its tokens or passes require.

    Return a warning if steps take much longer now than in the measurement.
    """
    short, slack_ns = ShortSteps(fresh), fresh.single.slack_ns
    for _ in range(_FEW_TRIES):
        if _explains(short.take(), said_ns, slack_ns):
            return ()
    # The machine may be slower now: ask for the long step again, in turns with short ones.
    session, case = fresh.checked.session, fresh.case
    short, again = ShortSteps(fresh), list[float]()
    for _ in range(TRIES if said_ns <= LONG_NS else _FEW_TRIES):
        inputs = session.prepare(case)
        session.sample(inputs, 1, Timing.EACH)
        again += steps_ns(session, inputs, 1)
        required_ns = short.take()
        if _explains(required_ns, min(again), slack_ns):
            return warn_of_slower_steps(min(again), said_ns, slack_ns)
    raise UNFINISHED.error(
        units=short.units, took_ms=median(again) / 1e6, required_ms=required_ns / 1e6
    )


def _explains(required_ns: float, took_ns: float, slack_ns: float) -> bool:
    return _LEAST_SHARE * required_ns <= took_ns + slack_ns

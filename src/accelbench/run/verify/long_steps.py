"""Check that a request decodes all of its tokens, and an image all of its passes.

Outputs are compared by short steps (catalog/short_steps.py). Such a comparison does not show
whether a long step goes on to its end:

    tokens   what a timed request left has as many tokens as were asked for, and its first ones were
             chosen by the logits that `outputs` gives of the same inputs
    time     a long step takes as long as its tokens or passes require, judged by two short steps of
             different lengths: t(b) + (n - b) * (t(b) - t(a)) / (b - a)

A later token reads a longer cache, so it takes no less time than an early one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from accelbench.catalog.short_steps import SHORT_PASSES, SHORT_TOKENS
from accelbench.core.case import Case
from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing
from accelbench.run.verify.agreement import far_apart
from accelbench.run.verify.block_lengths import TRIES, steps_ns, warn_of_slower_steps
from accelbench.run.verify.cached_outputs import LAST_SEED
from accelbench.run.verify.fresh_steps import FreshSteps
from accelbench.run.verify.timed_steps import (
    CHANCE,
    LONG_NS,
    WRONG_STEPS,
    Sketches,
    UnseenSteps,
    seen,
)
from accelbench.run.verify.tolerances import tolerance_of
from accelbench.runtimes.shared.sketches import DECODE_LOGITS, MOST_VALUES, TOKENS, places

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
    """Return what shows that a timed request did not decode its tokens; "" if nothing does.

    Args:
        case: what was timed.
        left: what a timed step left.
        right: outputs of the same inputs, of the first tokens only.
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
    """Raise CaseError if no try shows that timed requests decode their tokens.

    Args:
        tries: steps, of which the first may have been wrong by a tie of two logits.
        case: what was timed.
    """
    for look in tries:
        fault = request_fault(case, *look())
        if not fault:
            return
    raise CaseError(
        WRONG_STEPS,
        f"timed requests did not decode the tokens of their outputs: {fault}",
        f"Every request has to decode all of its tokens. {RUNTIMES_FAULT}",
    )


def refuse_other_requests(
    session: Session, case: Case, asked: Case, steps: UnseenSteps, steady: tuple[Sketches, Sketches]
) -> None:
    """Raise CaseError if requests of the steady state or of new inputs do not decode their tokens.

    Args:
        session: the open model.
        case: what was measured.
        asked: the case, or a short request if the case takes too long to be repeated.
        steps: takes steps of new inputs.
        steady: what the last step of the steady state left, and outputs of its inputs.
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
        """Take one of each length; return the time that a step of the case requires, judged by all.

        The quickest ones count: noise makes steps longer, never shorter.
        """
        for length, fresh in self._short.items():
            self.took_ns.setdefault(length, []).append(fresh.take())
        shorter, longer = self.lengths
        few, more = min(self.took_ns[shorter]), min(self.took_ns[longer])
        each = max(0.0, more - few) / max(1, longer - shorter)
        return more + (self.units - longer) * each


def refuse_unfinished(fresh: FreshSteps, said_ns: float) -> tuple[str, ...]:
    """Raise CaseError if a long step takes less than its tokens or passes require.

    Args:
        fresh: takes steps of the case, which are longer than those whose outputs are compared.
        said_ns: the reported time of a step.

    Returns:
        A warning if steps take much longer now than in the measurement.
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
    raise CaseError(
        "work_skipped",
        f"a step of {short.units} tokens or passes took {median(again) / 1e6:.3g} ms; by its short"
        f" steps it requires {required_ns / 1e6:.3g} ms: not all of them are done",
        f"Every step has to do all of its tokens or passes. {RUNTIMES_FAULT}",
    )


def _explains(required_ns: float, took_ns: float, slack_ns: float) -> bool:
    return _LEAST_SHARE * required_ns <= took_ns + slack_ns

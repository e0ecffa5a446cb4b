"""Compare reported times with steps whose inputs are new and whose outputs are right.

A runtime may leave out steps by chance, or once it has seen inputs often enough: then its single
steps are quick as well, and their outputs are right. A step with new inputs cannot be quick and
leave right outputs. As with the other checks, most tries have to show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from accelbench.core.abilities import LastStepOutputs
from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import samples_of
from accelbench.measure.loop import Question
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.block_lengths import TRIES, SingleStep, ask_again, warn_of_slower_steps
from accelbench.run.verify.cached_outputs import LAST_SEED, TIMES_FASTER, cold_ns
from accelbench.run.verify.timed_steps import CHANCE, Sketches, refuse_other, seen
from accelbench.runtimes.shared.sketches import MOST_VALUES

#: Tries take about so long together, but are at least so many.
_TRIES_NS, _FEW_TRIES = 50e6, 3
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
        left = cast(LastStepOutputs, self.checked.behind).stepped(MOST_VALUES)
        right = seen(self.checked.behind, self.case, inputs).sketches
        refuse_other(self.case, left, right, self.other)
        return float(took)


def refuse_quicker_than_fresh(
    fresh: FreshSteps, question: Question, said_ns: float, known_ns: float
) -> tuple[str, ...]:
    """Raise CaseError if reported steps are too quick for steps with new inputs.

    Args:
        fresh: takes such steps.
        question: the most steps that were asked for at once in the steady state.
        said_ns: the reported time of a step.
        known_ns: the time of a step with new inputs that left right outputs.

    Returns:
        A warning if steps take much longer now than in the measurement.
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
    raise CaseError(
        "work_skipped",
        f"of {question.steps * question.blocks} steps at once each took"
        f" {median(again) / 1e6:.3g} ms, and one with new inputs {known_ns / 1e6:.3g} ms or more:"
        " not all of them are done",
        "Look for outputs that the runtime keeps, and for steps that it leaves out.",
    )


def _tries(step_ns: float) -> int:
    return min(TRIES, max(_FEW_TRIES, math.ceil(_TRIES_NS / step_ns)))

"""What a worker checks of a case when everything of it is measured, in the order of what it costs.

the model against itself     `self_check`, once a worker: what holds at the smallest batch holds
                             for the model
steps against outputs        `timed_steps`, every case with steps that are short enough
time against work            `timing_plausibility`, where there is something to compare it with
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.abilities import LastStepOutputs
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Device, Session
from accelbench.core.vocabulary import Mode, Timing
from accelbench.measure.loop import Question
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.block_lengths import refuse_thinned, single_steps
from accelbench.run.verify.self_check import SelfCheck, other_seed, self_check
from accelbench.run.verify.timed_steps import (
    CHANCE,
    WRONG_STEPS,
    Sketches,
    UnseenSteps,
    compared_whole,
    refuse_other,
    refuse_short,
    seen,
    tells,
)
from accelbench.run.verify.timing_plausibility import LONGEST_STEP_NS, TimingWatch
from accelbench.runtimes.shared.sketches import MOST_VALUES

OK, NOT_DONE = "ok", "not_done"
#: A detail of the evidence: calls changed what they were given.
CHANGED = "inputs_changed"


@dataclass(frozen=True)
class CheckedCase:
    """What was found of a case that stands."""

    self_check: Mapping[str, Any] | None  # None: an earlier case of the worker had it
    warnings: tuple[str, ...]
    steps_verified: str


class CaseChecks:
    """One opened model's; each raises CaseError where a case cannot stand."""

    def __init__(
        self, session: Session, device: Device, seed: int, clock: Clock, wall: Clock | None
    ) -> None:
        """Nothing is asked yet.

        Args:
            session: the open model.
            device: where it is.
            seed: the job's.
            clock: the one that blocks are timed by.
            wall: one that the session does not own; None where time is a script's, and nobody's.
        """
        self.wall = wall
        self._session = session
        self._seed = seed
        self._clock = clock
        self._watch = TimingWatch(device, seed, clock, wall) if wall is not None else None
        self._done = False
        self._repeatable = True
        self._left: Sketches = {}
        self._asked: Question | None = None

    def steady_state_over(self, question: Question | None = None) -> None:
        """Keep what the last block left, before the session is asked anything else.

        Args:
            question: how the most steps were asked for at once.
        """
        self._asked = question
        if isinstance(self._session, LastStepOutputs):
            self._left = self._session.stepped(MOST_VALUES)

    def of(self, case: Case, said_ns: float, alone: bool) -> CheckedCase:
        """Check a case.

        Args:
            case: it was measured.
            said_ns: what a step is said to take.
            alone: whether no other batch will be measured that this one could be compared with.
        """
        try:
            if self._done:
                checked, steps, unseen = None, self._again(case, said_ns), None
            else:
                checked, steps, unseen = self._first(case, said_ns)
                self._done = True
        except CaseError as error:
            if error.reason == WRONG_STEPS and self._session.evidence().details.get(CHANGED):
                raise _changes_inputs(case) from error
            raise
        self._refuse_thinned(case, said_ns, unseen)
        if self._watch is not None:
            self._watch.look(self._session, case, said_ns, alone, self._asked)
        if checked is None:
            return CheckedCase(None, (), steps)
        return CheckedCase(checked.columns, (*checked.warnings(), *self._unseen_steps(case)), steps)

    def _refuse_thinned(self, case: Case, said_ns: float, unseen: UnseenSteps | None) -> None:
        """Where time is not compared with work, what a step takes alone is asked all the same.

        Args:
            case: what was measured.
            said_ns: what a step is said to take.
            unseen: steps of it of which some may have been alone.
        """
        watch, question = self._watch, self._asked
        if watch is None or question is None or question.alone or case.mode is Mode.TRAINING:
            return
        known = unseen.alone if unseen is not None else []
        if watch.wants(case, said_ns) or (not known and said_ns > LONGEST_STEP_NS):
            return
        checked = CheckedSession(self._session, self._clock, self.wall)
        if unseen is not None and known:
            inputs = unseen.inputs
        else:
            inputs = checked.session.prepare(case)
            checked.session.sample(inputs, 1, Timing.EACH)  # brings them
        single = single_steps(checked, watch.device, self._clock, question.timing, known)
        refuse_thinned(single, inputs, question, said_ns)

    def _unseen_steps(self, case: Case) -> list[str]:
        """What a reader should know of a runtime that keeps nothing of its steps."""
        keeps = isinstance(self._session, LastStepOutputs) or case.mode is Mode.TRAINING
        if keeps or self._watch is None:
            return []
        text = (
            "Whether the steps that were timed computed the outputs that are verified is not"
            " known: the runtime keeps nothing of what they leave."
        )
        return [text]

    def _keeps(self, case: Case) -> bool:
        """Whether what timed steps left can be compared with outputs."""
        keeps = self._watch is not None and isinstance(self._session, LastStepOutputs)
        return keeps and case.mode is Mode.INFERENCE and self._repeatable

    def _again(self, case: Case, said_ns: float) -> str:
        session = self._session
        if not self._keeps(case) or not compared_whole(case) or said_ns > LONGEST_STEP_NS:
            return NOT_DONE
        right = seen(session, case, session.prepare(case)).sketches
        unseen = session.prepare(case, other_seed(self._seed))
        refuse_other(case, self._left, right, seen(session, case, unseen).sketches)
        return OK if tells(right) else NOT_DONE

    def _first(self, case: Case, said_ns: float) -> tuple[SelfCheck, str, UnseenSteps | None]:
        session, whole = self._session, compared_whole(case)
        unseen = None
        if self._keeps(case):
            unseen = UnseenSteps(session, self._clock, self.wall, said_ns, CHANCE)
        steps = unseen.left if unseen is not None and whole else None
        checked = self_check(session, case, self._seed, steps, self._left if whole else None)
        checked.refuse(case.model.id)
        self._repeatable = checked.repeatable
        if unseen is None or not checked.repeatable:
            return checked, NOT_DONE, None
        if not whole:
            # The self-check has had the first of the other seeds.
            refuse_short(session, case, other_seed(self._seed) + 1, unseen)
            return checked, OK, None
        refuse_other(case, self._left, checked.seen, checked.others)
        if checked.others is not None and checked.stepped is not None:
            refuse_other(case, checked.stepped, checked.others, checked.seen)
            unseen.refuse_recomputed(checked.others)
        return checked, OK if tells(checked.seen) else NOT_DONE, unseen


def _changes_inputs(case: Case) -> CaseError:
    """Of steps whose outputs are others each time, as each finds what the one before left."""
    return CaseError(
        CHANGED,
        f"each call of {case.model.id} changes what it is called with, and the next makes something"
        " else of that",
        "Let it copy what it changes, so that every call that is timed does the same.",
    )

"""Whether a block of steps does all of them: a step of many takes about what one does alone.

A runtime that does a part of a block's steps, or a part of the work of all but the last, and gives
each its share of the time, is told by what a step takes that is alone. Most tries have to show it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, cast

from accelbench.core.abilities import ContinuousBlocks, OutOfProcess
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Device, Session
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import samples_of
from accelbench.measure.loop import Question
from accelbench.measure.timer_resolution import choose_timing
from accelbench.measure.validated_session import CheckedSession

TRIES = 16

#: Of quick steps many are tried alone, of long ones few.
_MANY_TRIES, _FEW_TRIES, _QUICK_NS, _LONG_NS = 100, 3, 1e6, 50e6

#: Blocks of many steps against blocks of so many times fewer, and how much longer they take at
#: least, where a third of the shorter one is a block's own.
_TIMES_FEWER, _GROWN = 4, 2.0

#: What a step is said to take at least, of what one takes that is asked for alone: of every three
#: that seem to be done, two are.
_LEAST_SHARE = 0.6

#: What a step that is asked for alone may take beside: caches are cold, and an accelerator that is
#: waited for after each step is not kept busy. Of steps of 0.5 ms with WebNN, timed as a whole, one
#: alone took 0.5 ms more; with other engines, on two busy cores, the quickest of forty no more.
_HERE_NS, _AWAY_NS, _NOT_KEPT_BUSY_NS = 20e3, 100e3, 1e6
_TICKS = 3


def refuse_fewer(session: Session, case: Case, clock: Clock, said_ns: float) -> None:
    """Of steps too short to be timed each, four times as many take more than twice as long."""
    many = choose_timing(said_ns, clock.tick_ns()).steps_per_sample
    few = many // _TIMES_FEWER
    if not few:
        return
    inputs = session.prepare(case)
    grown = 0.0
    for _ in range(TRIES):
        short, long = (
            samples_of(session.sample(inputs, steps, Timing.WHOLE))[0] for steps in (few, many)
        )
        grown = max(grown, long / short)
        if grown >= _GROWN:
            return
    raise CaseError(
        "work_skipped",
        f"blocks of {many} steps took {grown:.2g} times as long as blocks of {few}, or less:"
        " not all of them are done",
        "Look at how the runtime runs many steps at once.",
    )


@dataclass
class SingleStep:
    """What is asked for alone: one step, of which none can be left out; of many blocks, one.

    A step's outputs are among those that are looked at (timed_steps.py), so that it is a whole one.
    """

    session: Session
    slack_ns: float
    took_ns: list[float] = field(default_factory=list)  # a step each
    steps: int = 1  # more: of a block that is timed as a whole

    def step(self, inputs: Any) -> float:
        """What one takes, of inputs seen before."""
        if self.steps == 1:
            (took,) = steps_ns(self.session, inputs, 1)
        else:
            took = _block_ns(self.session.sample(inputs, self.steps, Timing.WHOLE))
        self.took_ns.append(took)
        return took

    def explains(self, said_ns: float) -> bool:
        """Whether the quickest took no longer than a step that takes so long may alone."""
        return min(self.took_ns) <= said_ns / _LEAST_SHARE + self.slack_ns


def single_steps(
    checked: CheckedSession,
    device: Device,
    clock: Clock,
    timing: Timing,
    known: list[float] | None = None,
) -> SingleStep:
    """Single steps of a session.

    Args:
        checked: stands before it.
        device: where it is.
        clock: the one that its blocks are timed by.
        timing: how they were timed when they were measured.
        known: what some took alone.
    """
    on_a_cpu = device.hardware == "cpu" or device.unit == "cpu"
    here = on_a_cpu and not isinstance(checked.behind, OutOfProcess)
    beside = _HERE_NS if here else _NOT_KEPT_BUSY_NS if timing is Timing.WHOLE else _AWAY_NS
    return SingleStep(checked.session, beside + _TICKS * clock.tick_ns(), known or [])


def refuse_thinned(single: SingleStep, inputs: Any, question: Question, said_ns: float) -> None:
    """Steps as they were asked for when they were measured, against those that are alone.

    Args:
        single: some are known already; more are asked for where those took too long.
        inputs: seen before.
        question: the most steps at once that it was measured by.
        said_ns: what a step is said to take.
    """
    if question.steps * question.blocks == single.steps:
        return
    for _ in range(_MANY_TRIES if said_ns <= _QUICK_NS else _FEW_TRIES):
        if single.took_ns and single.explains(said_ns):
            return
        single.step(inputs)
    # They may have become slower since: the same question again, beside them. That shows in most
    # tries; a block that is done in full now and then is no excuse for the others.
    tries = TRIES if said_ns <= _LONG_NS else _FEW_TRIES
    often: list[float] = []
    explained = 0
    while len(often) < tries:
        single.took_ns.clear()
        for _ in range(3):
            single.step(inputs)
        often.append(_asked_again(single.session, inputs, question))
        explained += single.explains(often[-1])
        if 2 * explained > tries:
            return
        if 2 * (len(often) - explained) >= tries:
            break
    raise CaseError(
        "work_skipped",
        f"of {question.steps * question.blocks} steps at once each took "
        f"{median(often) / 1e6:.3g} ms, and one alone {min(single.took_ns) / 1e6:.3g} ms or more: "
        "not all of them are done",
        "Look at how the runtime runs many steps at once.",
    )


def _asked_again(session: Session, inputs: Any, question: Question) -> float:
    """What a step is said to take of as many at once as when they were measured."""
    if question.timing is Timing.EACH:
        return fmean(steps_ns(session, inputs, question.steps))
    if question.blocks == 1:
        return _block_ns(session.sample(inputs, question.steps, Timing.WHOLE))
    far = cast(ContinuousBlocks, session)
    return fmean(map(_block_ns, far.unbroken_blocks(inputs, question.steps, question.blocks)))


def steps_ns(session: Session, inputs: object, n: int) -> list[float]:
    """What n steps are said to have taken each, without what was compiled meanwhile."""
    block = session.sample(inputs, n, Timing.EACH)
    steps = zip(*block.phase_ns.values(), strict=True)
    return [float(sum(step)) - block.compile_ns / n for step in steps]


def _block_ns(block: Block) -> float:
    """What a step of a block took that was timed as a whole."""
    return samples_of(block)[0] / block.steps

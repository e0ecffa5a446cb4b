"""Compare steps of long blocks with single steps: a block has to do all of its work in its time.

An engine may run a part of a block's steps, or do less in all but the last, or wait for its device
only at the end. Then a step of a block takes less than a step that is asked for alone and whose
outputs are there at its end. Most tries have to show it before a case is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, cast

from accelbench.core.abilities import ContinuousBlocks, LastStepOutputs, OutOfProcess
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.protocols import Block, Device, Session
from accelbench.core.vocabulary import Timing
from accelbench.engines.shared.sketches import MOST_VALUES
from accelbench.measure.block_validation import (
    FEWEST_COMPARED,
    LAST_IS_LONGER,
    is_last_longer,
    sample_times,
)
from accelbench.measure.loop import BlockRequest
from accelbench.measure.summary import choose_timing
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.messages import (
    BLOCKS_DO_NOT_GROW,
    CHEAPER_INPUTS,
    LATE_WAITS,
    QUICKER_IN_BLOCKS,
)
from accelbench.run.verify.timed_steps import RandomSource

TRIES = 16

#: Many quick single steps are tried, and few long ones; others for so long together.
_MANY_TRIES, _FEW_TRIES, _QUICK_NS, _LONG_NS = 100, 3, 1e6, 50e6
_SINGLES_NS = 50e6

#: Blocks of many steps against blocks of so many times fewer, and how much longer they take at
#: least, where a third of the shorter one is a block's own.
_TIMES_FEWER, _GROWN = 4, 2.0

#: The least time of a step in a block, as a share of the quickest single step: a step may leave out
#: a fifth of its work before it is refused.
_LEAST_SHARE = 0.8

#: What a single step may take more: caches are cold, and an accelerator that is waited for after
#: each step is not kept busy. With WebNN a single step of 0.5 ms took 0.5 ms more than a step of a
#: block that is timed as a whole; with other engines the quickest of forty took no more.
_HERE_NS, _AWAY_NS, _NOT_KEPT_BUSY_NS = 20e3, 100e3, 1e6
_TICKS = 3

#: From this factor on a reader is warned that steps take longer after the measurement.
_BECAME_SLOWER = 1.5

#: Steps of the blocks whose last steps are compared with the others. Of blocks of four and more
#: steps, chance alone makes the last one the longest in each of 16 once in 4**16.
_LAST_STEPS = (FEWEST_COMPARED, 9)


def refuse_fewer(session: Session, case: Case, clock: Clock, said_ns: float) -> None:
    """Raise CaseError unless four times as many short steps take more than twice as long."""
    many = choose_timing(said_ns, clock.tick_ns()).steps_per_sample
    few = many // _TIMES_FEWER
    if not few:
        return
    inputs = session.prepare(case)
    grown = 0.0
    for _ in range(TRIES):
        short, long = (
            sample_times(session.sample(inputs, steps, Timing.WHOLE))[0] for steps in (few, many)
        )
        grown = max(grown, long / short)
        if grown >= _GROWN:
            return
    raise BLOCKS_DO_NOT_GROW.error(many=many, grown=grown, few=few)


@dataclass
class SingleStep:
    """Single steps, none of which can be left out; or single blocks, of many that follow.

    A step's time lasts until its outputs are there, if the session keeps them; timed_steps.py
    compares them.
    """

    session: Session
    slack_ns: float
    took_ns: list[float] = field(default_factory=list)  # a step each
    steps: int = 1  # more: of a block that is timed as a whole
    clock: Clock | None = None  # None: the session keeps no outputs of its steps

    def step(self, inputs: Any) -> float:
        if self.steps == 1:
            (took,) = steps_ns(self.session, inputs, 1)
            took += self.wait_ns()
        else:
            took = _block_ns(self.session.sample(inputs, self.steps, Timing.WHOLE))
        self.took_ns.append(took)
        return took

    def wait_ns(self) -> float:
        """Return how long the outputs of the last step are waited for, less what fetching takes."""
        if self.clock is None:
            return 0.0
        kept = cast("LastStepOutputs", self.session)
        start = self.clock.now_ns()
        kept.stepped(MOST_VALUES)
        there = self.clock.now_ns()
        kept.stepped(MOST_VALUES)
        return float(max(0, there - start - (self.clock.now_ns() - there)))

    def explains(self, said_ns: float) -> bool:
        """Return whether the quickest took no longer than a step of a block with such a time
        may."""
        return min(self.took_ns) <= said_ns / _LEAST_SHARE + self.slack_ns


def single_steps(
    checked: CheckedSession,
    device: Device,
    clock: Clock,
    timing: Timing,
    known: list[float] | None = None,
) -> SingleStep:
    """Return the single steps of a session, beginning with those whose times are known."""
    on_a_cpu = device.hardware == "cpu" or device.unit == "cpu"
    here = on_a_cpu and not isinstance(checked.wrapped, OutOfProcess)
    beside = _HERE_NS if here else _NOT_KEPT_BUSY_NS if timing is Timing.WHOLE else _AWAY_NS
    kept = clock if isinstance(checked.wrapped, LastStepOutputs) else None
    slack = beside + _TICKS * clock.tick_ns()
    return SingleStep(checked.session, slack, known or [], clock=kept)


def refuse_thinned(
    single: SingleStep,
    inputs: Any,
    question: BlockRequest,
    said_ns: float,
    steady: Callable[[], Any] | None = None,
) -> tuple[str, ...]:
    """Raise CaseError if steps as they were measured take less than single ones.

    `inputs` were used before; `steady` gives those of the steady state, if they are others. Return
    a warning if steps take much longer now than in the measurement.
    """
    if question.steps * question.blocks == single.steps:
        return ()
    tries = _MANY_TRIES if said_ns <= _QUICK_NS else math.ceil(_SINGLES_NS / said_ns)
    for _ in range(max(tries, _FEW_TRIES)):
        if single.took_ns and single.explains(said_ns):
            return ()
        single.step(inputs)
    # The machine may be slower now: ask the same question again, in turns with single steps. Most
    # tries have to fail; a block that now and then is complete does not excuse the others. Where
    # other processes wait for the same cores, a step alone may start late in most tries; then the
    # quickest of all single steps decides.
    tries = TRIES if said_ns <= _LONG_NS else _FEW_TRIES
    often: list[float] = []
    alone: list[float] = []
    explained = 0
    while 2 * explained <= tries and 2 * (len(often) - explained) < tries:
        single.took_ns.clear()
        for _ in range(3):
            single.step(inputs)
        alone += single.took_ns
        often.append(ask_again(single.session, inputs, question))
        explained += single.explains(often[-1])
    single.took_ns[:] = alone
    if 2 * explained > tries or single.explains(median(often)):
        if steady is not None:
            refuse_cheaper(single, inputs, steady(), question)
        return warn_of_slower_steps(min(often), said_ns, single.slack_ns)
    raise QUICKER_IN_BLOCKS.error(
        count=question.steps * question.blocks,
        many_ms=median(often) / 1e6,
        alone_ms=min(single.took_ns) / 1e6,
    )


def refuse_cheaper(single: SingleStep, others: Any, steady: Any, question: BlockRequest) -> None:
    """Raise CaseError if the inputs that were measured make steps quicker than others do."""
    explained = 0
    for _ in range(TRIES):
        other_ns = ask_again(single.session, others, question)
        own_ns = ask_again(single.session, steady, question)
        explained += own_ns + single.slack_ns >= _LEAST_SHARE * other_ns
        if explained * 4 > TRIES:
            return
    raise CHEAPER_INPUTS.error(own_ms=own_ns / 1e6, other_ms=other_ns / 1e6)


def warn_of_slower_steps(now_ns: float, said_ns: float, slack_ns: float) -> tuple[str, ...]:
    """Return a warning if the quickest step of later blocks takes much longer than reported."""
    if now_ns <= _BECAME_SLOWER * said_ns + slack_ns:
        return ()
    text = (
        f"Steps took {now_ns / said_ns:.3g} times as long when they were asked for once more after"
        " the measurement: the machine became slower, or the measured steps did less."
    )
    return (text,)


def refuse_late_waits(checked: CheckedSession, inputs: Any, chance: RandomSource) -> None:
    """Raise CaseError if the last step of each block takes longer than the others."""
    # The steps before it returned before their work was done, so that their median is too small.
    for _ in range(TRIES):
        times = steps_ns(checked.session, inputs, chance.randint(*_LAST_STEPS))
        if not is_last_longer(times):
            return
    raise LATE_WAITS.error(tries=TRIES, times=LAST_IS_LONGER)


def ask_again(session: Session, inputs: Any, question: BlockRequest) -> float:
    """Return the reported time of a step, asked for as in the steady state."""
    if question.timing is Timing.EACH:
        times = steps_ns(session, inputs, question.steps)
        return min(median(times), fmean(times))
    if question.blocks == 1:
        return _block_ns(session.sample(inputs, question.steps, Timing.WHOLE))
    far = cast("ContinuousBlocks", session)
    return fmean(map(_block_ns, far.unbroken_blocks(inputs, question.steps, question.blocks)))


def steps_ns(session: Session, inputs: object, n: int) -> list[float]:
    """Return the times of n steps, without what was compiled meanwhile."""
    block = session.sample(inputs, n, Timing.EACH)
    steps = zip(*block.phase_ns.values(), strict=True)
    return [float(sum(step)) - block.compile_ns / n for step in steps]


def _block_ns(block: Block) -> float:
    return sample_times(block)[0] / block.steps

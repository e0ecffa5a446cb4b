"""Whether a block of steps does all of them: a step of a long block takes what one of a short does.

A runtime that does a part of a block's steps, and divides the time by all, is told by how long its
steps seem to be in blocks of other lengths. As in honesty.py, one try that shows nothing acquits.
"""

from __future__ import annotations

from statistics import fmean
from typing import cast

from accelbench.core.abilities import Unbroken
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, Session
from accelbench.core.words import Timing
from accelbench.measure.blocks import samples_of
from accelbench.measure.loop import Question
from accelbench.measure.resolution import choose_timing
from accelbench.run.steps import Chance

TRIES = 16

#: Blocks of many steps against blocks of so many times fewer, and how much longer they take at
#: least, where a third of the shorter one is a block's own.
_TIMES_FEWER, _GROWN = 4, 2.0

#: Steps of a short block. The first is not counted: after a pause it may take six times as long.
_SHORT = (3, 6)

#: What a step of a long block takes at least, of one of a short block: of every three that seem to
#: be done, two are.
_LEAST_SHARE = 0.6


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


def refuse_thinned(
    session: Session,
    case: Case,
    asked: Question,
    said_ns: float,
    short_ns: list[float],
    chance: Chance,
) -> None:
    """Steps as they were asked for when they were measured, against steps of short blocks.

    Args:
        session: the open model.
        case: what was measured.
        asked: the most steps at once that it was measured by.
        said_ns: what a step is said to take.
        short_ns: what steps of short blocks were said to take since.
        chance: decides how short a block is.
    """
    each = asked.timing is Timing.EACH
    if asked.steps <= 2 * max(_SHORT) if each else asked.blocks == 1:
        return
    if each and short_ns and min(short_ns) * _LEAST_SHARE <= said_ns:
        return
    inputs = session.prepare(case)
    share = 0.0
    for _ in range(TRIES):
        if each:
            steps = chance.randint(*_SHORT)
            short = fmean(steps_ns(session, inputs, steps)[1:])
            long = fmean(steps_ns(session, inputs, asked.steps))
        else:
            short = _block_ns(session.sample(inputs, asked.steps, Timing.WHOLE))
            if short * _LEAST_SHARE <= said_ns:
                return
            far = cast(Unbroken, session)
            long = fmean(map(_block_ns, far.unbroken_blocks(inputs, asked.steps, asked.blocks)))
        share = max(share, long / max(short, 1.0))
        if share >= _LEAST_SHARE:
            return
    raise CaseError(
        "work_skipped",
        f"of {asked.steps * asked.blocks} steps at once, each took {share:.2g} times as long as a"
        " step of a few, or less: not all of them are done",
        "Look at how the runtime runs many steps at once.",
    )


def steps_ns(session: Session, inputs: object, n: int) -> list[float]:
    """What n steps are said to have taken each, without what was compiled meanwhile."""
    block = session.sample(inputs, n, Timing.EACH)
    steps = zip(*block.phase_ns.values(), strict=True)
    return [float(sum(step)) - block.compile_ns / n for step in steps]


def _block_ns(block: Block) -> float:
    """What a step of a block took that was timed as a whole."""
    return samples_of(block)[0] / block.steps

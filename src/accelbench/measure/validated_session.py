"""Stands before a session: every block is valid, and its times agree with a clock of our own.

A session times its steps where they happen, which may be another process, and by a clock of its
own. Nothing here looks at single steps. It looks at each question as a whole: was it answered as
it was asked, and can it have taken what its answer says?

What looks wrong once may have been struck: the process was stopped between two samples. So too
little is only believed after some more blocks of which too many do not explain their time. Too much
needs no second look: no strike makes samples longer than the time in which they were taken.

How much of the time between a question and its answer the samples in the answer explain.

    |question ······ sample │ sample │ sample ······ answer|
    |<------------- by a clock of our own ---------------->|

Samples are timed by the runtime. They have to fit between the two, or they are not of this time;
and they have to be most of it, or something was done that they leave out. What lies between them
and the bracket is known: a block's setting up, and for what is asked in another process, the way
there and back. Measured shares are in docs/measuring.md.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from accelbench.core.abilities import ContinuousBlocks, OutOfProcess
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import ENGINE_FAULT_ADVICE, CaseError
from accelbench.core.protocols import Block, Session, stopping_after
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import (
    copied,
    refuse_bad_block,
    refuse_bad_time,
    samples_of,
)


@dataclass(frozen=True)
class TimeAllowance:
    """What samples may leave unexplained."""

    share: float  # of the time between question and answer
    question_ns: int  # and of each question so much: setting up a block, the way there and back
    again_ns: int  # how long a block is that is asked for again, at least
    struck: int  # so many of them may leave more, of MOST_AGAIN

    def hidden_ns(self, wall_ns: int, said_ns: int) -> float:
        """What of one question is left beyond that."""
        return max(0.0, (1 - self.share) * wall_ns - said_ns - self.question_ns)


#: Seen on two cores with four other processes on each: 0.01 to 0.5 % in the worker's own process,
#: 0.2 to 13 % in a browser, whose page does other things between two steps.
#: With five processes a core the way to a page and back took 25 ms, and of blocks of a quarter of a
#: second every third or so left more.
HERE = TimeAllowance(0.10, 200_000, 1_600_000, struck=2)
AFAR = TimeAllowance(0.30, 10_000_000, 250_000_000, struck=4)
#: How many blocks are asked for again.
MOST_AGAIN = 8

#: By how much samples may exceed the bracket: the two clocks are read one after another, and one
#: that is coarse rounds each of its samples.
_CLOCKS_APART = 1e-3


@dataclass(frozen=True)
class TimeBudget:
    """Questions so far: how long they took, and what of it their samples say."""

    wall_ns: int = 0
    said_ns: int = 0
    questions: int = 0

    def and_one(self, wall_ns: int, said_ns: int) -> TimeBudget:
        return self + TimeBudget(wall_ns, said_ns, 1)

    def __add__(self, other: TimeBudget) -> TimeBudget:
        return TimeBudget(
            self.wall_ns + other.wall_ns,
            self.said_ns + other.said_ns,
            self.questions + other.questions,
        )

    @property
    def unexplained_share(self) -> float | None:
        """Of the time, what is in no sample; None before any question."""
        return max(0.0, 1 - self.said_ns / self.wall_ns) if self.wall_ns else None

    def hides_most(self, allowed: TimeAllowance) -> bool:
        """Whether more than half of the time is unexplained: of strikes or lies, nobody can say."""
        left = self.wall_ns - self.said_ns - allowed.question_ns * self.questions
        return left > self.wall_ns / 2

    def is_doubtful(self, allowed: TimeAllowance) -> bool:
        """Return whether more is unexplained than there is a reason for."""
        most = allowed.share * self.wall_ns + allowed.question_ns * self.questions
        return self.wall_ns - self.said_ns > most


def fits(said_ns: int, wall_ns: int, samples: int, tick_ns: float) -> bool:
    """Return whether samples can have been taken within the time that their question took."""
    return said_ns <= wall_ns * (1 + _CLOCKS_APART) + (samples + 1) * tick_ns


#: Blocks that are asked for again are fewer where they take so long.
_LEAST_AGAIN, _LONG_NS = 3, 5e9
#: Each about as long as the one that was doubted, or it would be easy to tell from those that are
#: measured; but of more steps than one, and long enough that a question's own cost does not count.
_MORE, _LONGER = (0, 3), 8
#: A block that was doubted because the machine was busy makes steps look long; asked for again
#: they are over too soon to be judged, of which so many are only learned from. In a page beside
#: other work five of 100 ms, where a quarter of a second was meant, made one of 510 honest launches
#: a lie.
_MOST_SHORT = 2


class CheckedSession:
    """A session whose blocks can be used."""

    def __init__(
        self,
        session: Session,
        clock: Clock,
        wall: Clock | None,
        note: Callable[[Block], None] = lambda _: None,
    ) -> None:
        """Wrap a session, whose blocks are timed by `clock`. `wall` is a clock of our own; None
        for a script's."""
        self._session = session
        self._wall = wall
        self._tick_ns = clock.tick_ns()
        self._note = note
        self._fresh = True
        self._doubts, self._doubted_steps = TimeBudget(), 0  # since they were last laid to rest
        self.explained = TimeBudget()
        self.beside_ns = 0  # of the latest question, what was in no sample
        self.hidden_ns = 0.0  # and of that, what no reason explains
        self.fastest_ns: float | None = None  # of all steps but the first with fresh inputs
        self.compiling_ns: int | None = None  # by our clock
        self._allowed = AFAR if isinstance(session, OutOfProcess) else HERE

    @property
    def session(self) -> Session:
        """What to ask instead of the session itself."""
        return cast("Session", self)

    @property
    def hides_most(self) -> bool:
        """Whether most of the time of all questions is in no sample, for no known reason."""
        return self.explained.hides_most(self._allowed)

    @property
    def behind(self) -> Session:
        """The session itself: what it can do beside is asked of it."""
        return self._session

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        inputs = self._session.prepare(case, seed)
        self._fresh = True
        return inputs

    def compile(self, inputs: Any) -> int | None:
        start = self._now()
        ns = self._session.compile(inputs)
        if ns is not None:
            refuse_bad_time("compiling", ns)
            self.compiling_ns = self._now() - start
            self._refuse_too_long(ns, self.compiling_ns, 1)
        return ns

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """As the session's own; raises CaseError if it cannot be so."""
        block, took = self._sampled(inputs, n, timing)
        self._held(inputs, [block], took, timing)
        return block

    def sample_some(self, inputs: Any, steps: int, announced: int) -> Block:
        """Time single steps of a block that is announced as longer than it is."""
        # A session whose blocks are not timed by `LocalSampler` runs all steps that were announced.
        start = self._now()
        with stopping_after(steps):
            given = self._session.sample(inputs, announced, Timing.EACH)
        took = self._now() - start
        block: Block = copied(given)
        ran = getattr(block, "steps", None)
        self._refuse_bad(block, steps if ran == steps else announced, Timing.EACH)
        self._held(inputs, [block], took, Timing.EACH)
        return block

    def _sampled(self, inputs: Any, n: int, timing: Timing) -> tuple[Block, int]:
        start = self._now()
        given = self._session.sample(inputs, n, timing)
        took = self._now() - start
        block: Block = copied(given)
        self._refuse_bad(block, n, timing)
        return block, took

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> Sequence[Block]:
        start = self._now()
        given = cast("ContinuousBlocks", self._session).unbroken_blocks(inputs, steps, samples)
        took = self._now() - start
        blocks: list[Block] = [copied(block) for block in given]
        if len(blocks) != samples:
            message = f"the runtime reports {len(blocks)} blocks where {samples} were asked for"
            raise CaseError("bad_block", message, ENGINE_FAULT_ADVICE)
        for block in blocks:
            self._refuse_bad(block, steps, Timing.WHOLE)
        self._held(inputs, blocks, took, Timing.WHOLE)
        return blocks

    def _refuse_bad(self, block: Block, n: int, timing: Timing) -> None:
        refuse_bad_block(block, n, timing, self._session.phases, self._tick_ns)
        self._note(block)

    def _now(self) -> int:
        return 0 if self._wall is None else self._wall.now_ns()

    # -- the times against our clock

    def _held(self, inputs: Any, blocks: Sequence[Block], took: int, timing: Timing) -> None:
        if self._wall is None:
            return
        samples = [ns for block in blocks for ns in samples_of(block)]
        self._refuse_too_long(sum(samples), took, len(samples))
        if timing is Timing.DEVICE:
            return  # a device has not worked for all of the time
        self.beside_ns = took - sum(samples)
        self.hidden_ns = self._allowed.hidden_ns(took, sum(samples))
        first, self._fresh = self._fresh, False
        if first:  # inputs are brought to where they are read, and what is used first is imported
            return
        if timing in (Timing.EACH, Timing.WHOLE):
            self._note_fastest(samples, blocks[0].steps if timing is Timing.WHOLE else 1)
        self.explained = self.explained.and_one(took, sum(samples))
        self._doubts = self._doubts.and_one(took, sum(samples))
        self._doubted_steps += sum(block.steps for block in blocks)
        if self._doubts.is_doubtful(self._allowed):
            self._refuse_unexplained(inputs, blocks[-1].steps, timing)
            self._doubts, self._doubted_steps = TimeBudget(), 0

    def _note_fastest(self, samples: Sequence[int], steps_a_sample: int) -> None:
        step_ns = min(samples) / steps_a_sample
        self.fastest_ns = step_ns if self.fastest_ns is None else min(step_ns, self.fastest_ns)

    def _refuse_too_long(self, said_ns: int, took_ns: int, samples: int) -> None:
        if self._wall is not None and not fits(said_ns, took_ns, samples, self._tick_ns):
            raise CaseError(
                "wrong_clock",
                f"the runtime reports steps of {said_ns / 1e6:.4g} ms together, and by the worker's"
                f" own clock {took_ns / 1e6:.4g} ms passed",
                f"Its unit of time may be wrong, or steps are counted twice. {ENGINE_FAULT_ADVICE}",
            )

    def _refuse_unexplained(self, inputs: Any, doubted: int, timing: Timing) -> None:
        """Ask again, some more steps at once; who explains most of them is believed."""
        total, steps = self._doubts, max(self._doubted_steps, 1)
        few = random.Random(total.wall_ns)  # noqa: S311 - not to be foreseen, but no secret
        least = max(doubted, self._steps_for(total, steps), 2)
        again, explained, doubtful, short = TimeBudget(), 0, 0, 0
        struck, looked = self._allowed.struck, total.said_ns / steps
        while doubtful <= struck and explained < MOST_AGAIN - struck:
            if explained + doubtful >= _LEAST_AGAIN and again.wall_ns > _LONG_NS:
                break
            steps = least + few.randint(*_MORE)
            block, took = self._sampled(inputs, steps, timing)
            once = TimeBudget(took, sum(samples_of(block)), 1)
            again += once
            too_soon = took < self._allowed.again_ns and 2 * once.said_ns < looked * steps
            if too_soon and short < _MOST_SHORT:
                least = max(least, self._steps_for(once, steps))
                short += 1
            elif once.is_doubtful(self._allowed):
                doubtful += 1
            else:
                explained += 1
        if doubtful * MOST_AGAIN < (struck + 1) * (explained + doubtful):
            return
        total += again
        raise CaseError(
            "wrong_clock",
            f"the runtime says that steps took {total.said_ns / 1e6:.4g} ms of"
            f" {total.wall_ns / 1e6:.4g} ms between questions and answers: the rest is in no step",
            "Look at its unit, and at what it leaves out.",
        )

    def _steps_for(self, seen: TimeBudget, steps: int) -> int:
        """Return how many steps are long enough for a second look, by how long so many were seen
        to be."""
        # As long as they are said to be, without a question's own cost; but one that reports too
        # little is not asked for ever.
        again_ns = self._allowed.again_ns
        by_said = again_ns * steps / max(seen.said_ns, 1)
        return math.ceil(min(by_said, _LONGER * again_ns * steps / max(seen.wall_ns, 1)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

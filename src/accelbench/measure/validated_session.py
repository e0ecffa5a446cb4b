"""Session whose blocks are valid, and whose times agree with a clock of our own.

A session times its steps in the process that runs them, by a clock of its own. Single steps are not
checked here. Each request is checked as a whole: the answer must match the request, and must be
possible in the time that passed.

    |request ······· sample │ sample │ sample ······ answer|
    |<------------- by a clock of our own ---------------->|

Samples must fit between request and answer, and must cover most of that time: otherwise the engine
did work that they leave out. The known rest is the preparation of a block, and for another process
the transfer of request and answer. Measured shares are in docs/measuring.md.

One suspicious block may be an accident, because the process was stopped between two samples. Too
little time is therefore refused only if too many further blocks leave time unexplained. Too much
time is refused at once: no interruption makes samples longer than the time in which they were
taken.
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
    copy_block,
    refuse_bad_block,
    refuse_bad_time,
    sample_times,
)


@dataclass(frozen=True)
class TimeAllowance:
    """Time that samples may leave unexplained."""

    share: float  # of the time between request and answer
    request_ns: int  # and of each request: preparation of a block, transfer
    again_ns: int  # least duration of a repeated block
    interrupted: int  # how many of MAX_REPEATS may leave more

    def unexplained_ns(self, wall_ns: int, reported_ns: int) -> float:
        """Return the time of one request beyond the allowance."""
        return max(0.0, (1 - self.share) * wall_ns - reported_ns - self.request_ns)


#: Measured on two cores with four other processes on each: 0.01 to 0.5 % in the worker's own
#: process, 0.2 to 13 % in a browser, whose page does other work between two steps. With five
#: processes per core the transfer to a page and back took 25 ms, and about every third block of a
#: quarter of a second left more.
LOCAL = TimeAllowance(0.10, 200_000, 1_600_000, interrupted=2)
REMOTE = TimeAllowance(0.30, 10_000_000, 250_000_000, interrupted=4)
#: How many blocks are repeated.
MAX_REPEATS = 8

#: Share by which samples may exceed the measured time: the two clocks are read one after the other.
_CLOCK_DIFFERENCE = 1e-3


@dataclass(frozen=True)
class TimeBudget:
    """Duration of the requests so far, and the part that their samples report."""

    wall_ns: int = 0
    reported_ns: int = 0
    requests: int = 0

    def add_request(self, wall_ns: int, reported_ns: int) -> TimeBudget:
        return self + TimeBudget(wall_ns, reported_ns, 1)

    def __add__(self, other: TimeBudget) -> TimeBudget:
        return TimeBudget(
            self.wall_ns + other.wall_ns,
            self.reported_ns + other.reported_ns,
            self.requests + other.requests,
        )

    @property
    def unexplained_share(self) -> float | None:
        """Share of the time that is in no sample; None before any request."""
        return max(0.0, 1 - self.reported_ns / self.wall_ns) if self.wall_ns else None

    def is_mostly_unexplained(self, allowed: TimeAllowance) -> bool:
        """Return whether more than half of the time is unexplained."""
        left = self.wall_ns - self.reported_ns - allowed.request_ns * self.requests
        return left > self.wall_ns / 2

    def is_doubtful(self, allowed: TimeAllowance) -> bool:
        """Return whether more is unexplained than is allowed."""
        most = allowed.share * self.wall_ns + allowed.request_ns * self.requests
        return self.wall_ns - self.reported_ns > most


def can_fit(reported_ns: int, wall_ns: int, samples: int, tick_ns: float) -> bool:
    """Return whether samples can have been taken within the time of their request."""
    return reported_ns <= wall_ns * (1 + _CLOCK_DIFFERENCE) + (samples + 1) * tick_ns


#: Fewest repeated blocks, and their total duration beyond which the fewest suffice.
_LEAST_AGAIN, _LONG_NS = 3, 5e9
#: A repeated block is about as long as the doubted one, so that an engine cannot distinguish it. It
#: has a few steps more, and is long enough that the cost of a request does not matter.
_MORE, _LONGER = (0, 3), 8
#: Most repeated blocks that only adjust the length. If the machine was busy, steps looked long, and
#: repeated blocks end too soon to be judged. Without this, five blocks of 100 ms instead of 250 ms
#: in a page beside other work condemned one of 510 honest launches.
_MAX_SHORT = 2


class CheckedSession:
    """Session whose blocks are checked."""

    def __init__(
        self,
        session: Session,
        clock: Clock,
        wall: Clock | None,
        note: Callable[[Block], None] = lambda _: None,
    ) -> None:
        """Wrap a session that times by `clock`.

        `wall` is a clock of our own, None for a scripted session.
        """
        self._session = session
        self._wall = wall
        self._tick_ns = clock.tick_ns()
        self._note = note
        self._fresh = True
        self._doubts, self._doubted_steps = TimeBudget(), 0  # since the last resolved doubt
        self.budget = TimeBudget()
        self.outside_ns = 0  # time of the latest request in no sample
        self.unexplained_ns = 0.0  # and the part of it beyond the allowance
        self.fastest_ns: float | None = None  # of all steps except the first with new inputs
        self.compiling_ns: int | None = None  # by our clock
        self._allowed = REMOTE if isinstance(session, OutOfProcess) else LOCAL

    @property
    def session(self) -> Session:
        """This session, typed as the protocol."""
        return cast("Session", self)

    @property
    def is_mostly_unexplained(self) -> bool:
        """Whether most of the time of all requests is in no sample, without a known reason."""
        return self.budget.is_mostly_unexplained(self._allowed)

    @property
    def wrapped(self) -> Session:
        """The wrapped session, for its optional abilities."""
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
        """Return the session's block; raise CaseError if it is impossible."""
        block, took = self._sample_checked(inputs, n, timing)
        self._check_time(inputs, [block], took, timing)
        return block

    def sample_some(self, inputs: Any, steps: int, announced: int) -> Block:
        """Return a block that ends before its announced length."""
        # A session that does not use `LocalSampler` runs all announced steps.
        start = self._now()
        with stopping_after(steps):
            given = self._session.sample(inputs, announced, Timing.EACH)
        took = self._now() - start
        block: Block = copy_block(given)
        ran = getattr(block, "steps", None)
        self._refuse_bad(block, steps if ran == steps else announced, Timing.EACH)
        self._check_time(inputs, [block], took, Timing.EACH)
        return block

    def _sample_checked(self, inputs: Any, n: int, timing: Timing) -> tuple[Block, int]:
        start = self._now()
        given = self._session.sample(inputs, n, timing)
        took = self._now() - start
        block: Block = copy_block(given)
        self._refuse_bad(block, n, timing)
        return block, took

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> Sequence[Block]:
        start = self._now()
        given = cast("ContinuousBlocks", self._session).unbroken_blocks(inputs, steps, samples)
        took = self._now() - start
        blocks: list[Block] = [copy_block(block) for block in given]
        if len(blocks) != samples:
            message = f"the engine reports {len(blocks)} blocks, and {samples} were requested"
            raise CaseError("bad_block", message, ENGINE_FAULT_ADVICE)
        for block in blocks:
            self._refuse_bad(block, steps, Timing.WHOLE)
        self._check_time(inputs, blocks, took, Timing.WHOLE)
        return blocks

    def _refuse_bad(self, block: Block, n: int, timing: Timing) -> None:
        refuse_bad_block(block, n, timing, self._session.phases, self._tick_ns)
        self._note(block)

    def _now(self) -> int:
        return 0 if self._wall is None else self._wall.now_ns()

    # -- comparison with our clock

    def _check_time(self, inputs: Any, blocks: Sequence[Block], took: int, timing: Timing) -> None:
        if self._wall is None:
            return
        samples = [ns for block in blocks for ns in sample_times(block)]
        self._refuse_too_long(sum(samples), took, len(samples))
        if timing is Timing.DEVICE:
            return  # a device does not work all of the time
        self.outside_ns = took - sum(samples)
        self.unexplained_ns = self._allowed.unexplained_ns(took, sum(samples))
        first, self._fresh = self._fresh, False
        if first:  # the first request also moves inputs and imports modules
            return
        if timing in (Timing.EACH, Timing.WHOLE):
            self._note_fastest(samples, blocks[0].steps if timing is Timing.WHOLE else 1)
        self.budget = self.budget.add_request(took, sum(samples))
        self._doubts = self._doubts.add_request(took, sum(samples))
        self._doubted_steps += sum(block.steps for block in blocks)
        if self._doubts.is_doubtful(self._allowed):
            self._refuse_unexplained(inputs, blocks[-1].steps, timing)
            self._doubts, self._doubted_steps = TimeBudget(), 0

    def _note_fastest(self, samples: Sequence[int], steps_a_sample: int) -> None:
        step_ns = min(samples) / steps_a_sample
        self.fastest_ns = step_ns if self.fastest_ns is None else min(step_ns, self.fastest_ns)

    def _refuse_too_long(self, reported_ns: int, took_ns: int, samples: int) -> None:
        if self._wall is not None and not can_fit(reported_ns, took_ns, samples, self._tick_ns):
            raise CaseError(
                "wrong_clock",
                f"the engine reports steps of {reported_ns / 1e6:.4g} ms in total, but by the"
                " worker's"
                f" clock only {took_ns / 1e6:.4g} ms passed",
                f"Its unit of time may be wrong, or steps are counted twice. {ENGINE_FAULT_ADVICE}",
            )

    def _refuse_unexplained(self, inputs: Any, doubted: int, timing: Timing) -> None:
        """Repeat the request with more steps; raise CaseError if most repeats stay unexplained."""
        total, steps = self._doubts, max(self._doubted_steps, 1)
        generator = random.Random(total.wall_ns)  # noqa: S311 - unpredictable, but not secret
        least = max(doubted, self._steps_for(total, steps), 2)
        again, explained, doubtful, short = TimeBudget(), 0, 0, 0
        interrupted, step_ns = self._allowed.interrupted, total.reported_ns / steps
        while doubtful <= interrupted and explained < MAX_REPEATS - interrupted:
            if explained + doubtful >= _LEAST_AGAIN and again.wall_ns > _LONG_NS:
                break
            steps = least + generator.randint(*_MORE)
            block, took = self._sample_checked(inputs, steps, timing)
            once = TimeBudget(took, sum(sample_times(block)), 1)
            again += once
            too_soon = took < self._allowed.again_ns and 2 * once.reported_ns < step_ns * steps
            if too_soon and short < _MAX_SHORT:
                least = max(least, self._steps_for(once, steps))
                short += 1
            elif once.is_doubtful(self._allowed):
                doubtful += 1
            else:
                explained += 1
        if doubtful * MAX_REPEATS < (interrupted + 1) * (explained + doubtful):
            return
        total += again
        raise CaseError(
            "wrong_clock",
            f"the engine reports steps of {total.reported_ns / 1e6:.4g} ms within"
            f" {total.wall_ns / 1e6:.4g} ms between requests and answers: the rest is in no step",
            "Check its unit of time, and the work that it leaves out.",
        )

    def _steps_for(self, seen: TimeBudget, steps: int) -> int:
        """Return the steps of a repeated block, from the duration of those before."""
        # By the reported time, without the cost of a request, but limited: an engine that reports
        # too little must not run forever.
        again_ns = self._allowed.again_ns
        by_report = again_ns * steps / max(seen.reported_ns, 1)
        return math.ceil(min(by_report, _LONGER * again_ns * steps / max(seen.wall_ns, 1)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

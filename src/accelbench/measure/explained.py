"""How much of the time between a question and its answer the samples in the answer explain.

    |question ······ sample │ sample │ sample ······ answer|
    |<------------- by a clock of our own ---------------->|

Samples are timed by the runtime. They have to fit between the two, or they are not of this time;
and they have to be most of it, or something was done that they leave out. What lies between them
and the bracket is known: a block's setting up, and for what is asked in another process, the way
there and back. Measured shares are in docs/measuring.md.
"""

from __future__ import annotations

from dataclasses import dataclass


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
        """With one question more."""
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
        """Whether more is unexplained than there is a reason for."""
        most = allowed.share * self.wall_ns + allowed.question_ns * self.questions
        return self.wall_ns - self.said_ns > most


def fits(said_ns: int, wall_ns: int, samples: int, tick_ns: float) -> bool:
    """Whether samples can have been taken within the time that their question took."""
    return said_ns <= wall_ns * (1 + _CLOCKS_APART) + (samples + 1) * tick_ns

"""How many times as fast one platform is as another, on the questions both have answered. Pure.

The geometric mean over the shared questions: it gives a ratio and its inverse the same
weight, so that which platform is called the base does not change which one is ahead
(Fleming & Wallace, "How not to lie with statistics", CACM 29(3), 1986).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from accelbench.analysis.attempts import Attempt, Question

#: A ratio whose ends are further apart than this factor rates nothing where they are of two levels.
SURE = 1.5

Timed = Mapping[Question, Attempt]


@dataclass(frozen=True)
class PlatformRatio:
    """Throughput of one in parts of the other's."""

    value: float
    batches: tuple[int, ...]  # of the shared questions
    reach: float = 0.0  # how far it may be off, as a logarithm, either way

    @property
    def ends(self) -> tuple[float, float]:
        """Between which it lies."""
        return self.value / math.exp(self.reach), self.value * math.exp(self.reach)

    @property
    def sure(self) -> bool:
        """Whether its ends are no further apart than levels can bear."""
        return math.exp(2.0 * self.reach) <= SURE


def fastest(attempts: list[Attempt]) -> dict[Question, Attempt]:
    """For each question the attempt with the highest throughput."""
    best: dict[Question, Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: (str(a.way), a.way.device, a.way.precision)):
        other = best.get(attempt.question)
        if attempt.throughput and (other is None or attempt.throughput > (other.throughput or 0.0)):
            best[attempt.question] = attempt
    return best


def ratio(mine: Timed, theirs: Timed) -> PlatformRatio | None:
    """None where no question was answered by both."""
    shared = [q for q in mine if q in theirs]
    logs = [math.log(_rate(mine[q])) - math.log(_rate(theirs[q])) for q in shared]
    if not logs:
        return None
    # fsum: the same to the last bit in whatever order the questions come.
    # Twelve digits: 80 against 100 is 0.8, on the level's own side of its edge.
    value = float(f"{math.exp(math.fsum(logs) / len(logs)):.12g}")
    # One figure against itself is 1 for certain; of several questions the errors average out.
    others = [(mine[q], theirs[q]) for q in shared if mine[q] is not theirs[q]]
    reach = math.hypot(*(attempt.reach for pair in others for attempt in pair)) / len(logs)
    return PlatformRatio(value, tuple(sorted({mine[q].batch for q in shared})), reach)


def _rate(attempt: Attempt) -> float:
    assert attempt.throughput
    return attempt.throughput

"""One place against another over everything that both have answered: ratios and their middle. Pure.

Each ratio is made where all are (`ratios`), of launches that ran as alike as both sides allow
(`matching`). The middle is the median over configurations: one that is a hundred times as fast
moves it no more than one that is twice.

How many times as fast one platform is as another, on the questions both have answered. Pure.

The geometric mean over the shared questions: it gives a ratio and its inverse the same
weight, so that which platform is called the base does not change which one is ahead
(Fleming & Wallace, "How not to lie with statistics", CACM 29(3), 1986).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from accelbench.core.rows import Row, text
from accelbench.evidence.launches import launches_of
from accelbench.judge.attempts import Attempt, Question
from accelbench.judge.comparison import Compared, compared_side
from accelbench.judge.questions import ComparisonAxis, Key
from accelbench.judge.ratios import Faster
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import sides


@dataclass(frozen=True)
class SpeedUps:
    """What one place is against another, a line a configuration that both have answered.

    Attributes:
        lines: the ratios, the slowest first; then what is not compared with each other.
    """

    lines: Sequence[Compared]

    @cached_property
    def told(self) -> list[Compared]:
        """Those whose ratio is known well enough to be told."""
        return [line for line in self.lines if line.ratio is not None and line.ratio.told]

    @property
    def median(self) -> float | None:
        """The middle ratio of those that are told; of two in the middle their geometric mean.

        Of 4.03 and 0.134 the arithmetic one is 2.08, and the other way round 3.85: each would be
        faster than the other.
        """
        known = [math.log(line.ratio.value) for line in self.told if line.ratio is not None]
        return math.exp(median(known)) if known else None

    @property
    def models(self) -> int:
        """Of how many models the told ones are."""
        return len({text(line.side.row, "model") for line in self.told})

    def of(self, *found: str) -> list[Compared]:
        """Those of which this was found (`verdict`), the slowest first."""
        return [line for line in self.lines if verdict(line) in found]


FASTER, SLOWER, UNSURE = Faster.FASTER.value, Faster.SLOWER.value, Faster.UNSURE.value
REFUSED = "not compared"
#: By single figures, of which nobody knows how far another would differ.
FASTER_ALONE, SLOWER_ALONE = "faster, no interval", "slower, no interval"


def verdict(line: Compared) -> str:
    """Which side is faster, as far as the interval says."""
    speedup = line.ratio
    if speedup is None:
        return REFUSED
    if speedup.low is None or speedup.high is None:
        return SLOWER_ALONE if speedup.value < 1.0 else FASTER_ALONE
    return speedup.direction.value


def other_versions(line: Compared) -> list[str]:
    """Which versions are not alike of what both sides ran: a word and its two values each.

    Two engines have versions of their own; what packages both name is of either.
    """
    base = line.baseline
    one_engine = base is not None and base.row.get("runtime") == line.side.row.get("runtime")
    return [
        said
        for said in line.differs
        if said.startswith("packages.") or (one_engine and said.startswith("engine "))
    ]


def speed_ups(
    rows: Iterable[Row], axis: ComparisonAxis, base: Key, other: Key, known: Histories
) -> SpeedUps:
    """What is at one place of an axis beside what is at another.

    Args:
        rows: of both.
        axis: on which the places lie.
        base: the place that stands for once.
        other: the one that is compared with it.
        known: the older runs of these.
    """
    both = {base, other}
    here = [row for row in launches_of(rows) if axis.value(row) in both]
    pairs = sides(here, axis, lambda places: base if base in places else None, fewest=2)
    lines = [
        compared_side(places[other], places[base], axis, (), known)
        for places in pairs
        if both <= places.keys()
    ]
    return SpeedUps(sorted(lines, key=_order))


def _order(line: Compared) -> tuple[object, ...]:
    row, ratio = line.side.row, line.ratio
    value = float("inf") if ratio is None else ratio.value
    return ratio is None, value, text(row, "model"), str(row.get("batch_size"))


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

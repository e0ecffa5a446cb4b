"""Is the first of the candidates clearly the first? Pure.

The question is put to the scores: with the second's time as short, relative to the first's, as what
is known of both allows, would it be the first? What two launches and more a side say of their ratio
counts; else a single one counts with the interval of its samples, where it has one, and an estimate
with its bounds. Nothing is known any nearer than 3 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import quantiles

from accelbench.analysis.run_noise import Histories, between_rows
from accelbench.measure.launches import LEAST_EFFECT, differ
from accelbench.measure.unpaired import unpaired_interval
from accelbench.select.estimate.figures import Figure
from accelbench.select.evidence.cells import FEWEST_FITTED
from accelbench.select.rank.scoring import Encode, ScoredCandidate, scored


def no_clear_winner_between(
    ranked: Sequence[ScoredCandidate], weights: dict[str, float], order: Encode, known: Histories
) -> list[str]:
    """Return the names of those that may be first, the first included; none if it is clear.

    Without any figure, those that the rules rate as high as the first may be first too.

    Args:
        ranked: the candidates in order.
        weights: of the criteria.
        order: of equals.
        known: the older runs of what was measured: by how much runs of it differ.
    """
    figured = [candidate for candidate in ranked if candidate.figure is not None]
    if not figured:
        tied = [entry.name for entry in ranked if entry.is_rated_as(ranked[0])]
        return tied if len(tied) > 1 else []
    first, *rest = figured
    close = [
        rival.name
        for rival in rest
        if not _is_same(rival, first)
        and scored([*_without(figured, rival), _at_its_best(rival, first, known)], weights, order)
        .ranked[0].name == rival.name
    ]  # fmt: skip
    return [first.name, *close] if close else []


def _is_same(rival: ScoredCandidate, first: ScoredCandidate) -> bool:
    """Whether a device stands beside its own platform: it is one figure under two names."""
    assert rival.figure is not None
    assert first.figure is not None
    return rival.figure.measured and rival.figure.cell is first.figure.cell


def _without(many: Sequence[ScoredCandidate], rival: ScoredCandidate) -> list[ScoredCandidate]:
    return [other for other in many if other is not rival]


def _at_its_best(
    rival: ScoredCandidate, first: ScoredCandidate, known: Histories
) -> ScoredCandidate:
    """One with the shortest time, as against the first's, that is still believable."""
    assert rival.figure is not None
    assert first.figure is not None
    by = _least_ratio(rival.figure, first.figure, known)
    shorter = rival.figure.latency / first.figure.latency / by
    figure = replace(
        rival.figure,
        latency=rival.figure.latency / shorter,
        throughput=rival.figure.throughput * shorter,
        high=rival.figure.latency / shorter,
    )
    # Half the time for each item is half the price.
    cost = None if rival.cost is None else rival.cost / shorter
    return replace(rival, figure=figure, cost=cost)


def _least_ratio(mine: Figure, first: Figure, known: Histories) -> float:
    """The smallest share of the first's time that this one may take."""
    ratio = mine.latency / first.latency
    return min(_by_what_is_known(mine, first, ratio, known), ratio / (1 + LEAST_EFFECT))


def _by_what_is_known(mine: Figure, first: Figure, ratio: float, known: Histories) -> float:
    if mine.measured and first.measured:
        runs = between_rows(first.cell.row, mine.cell.row, known)
        sides = first.cell.latencies, mine.cell.latencies
        interval = unpaired_interval(*sides, runs=runs) if differ(*sides) else None
        return interval.low if interval else ratio / _together(_down(mine), _up(first))
    shared = [mine.scaled[key] / first.scaled[key] for key in mine.scaled if key in first.scaled]
    if len(shared) >= FEWEST_FITTED:  # how the two compare for each of the models they are from
        return quantiles(shared, n=20, method="inclusive")[0]
    down, up = math.log(mine.latency / mine.low), math.log(first.high / first.latency)
    if mine.predicted or first.predicted:  # told apart only where their bands do not meet
        return ratio / math.exp(down + up)
    return ratio / _together(down, up)


def _together(down: float, up: float) -> float:
    """Bounds of two are not reached at once."""
    return math.exp(math.hypot(down, up))


def _down(mine: Figure) -> float:
    """How far below what was measured it may lie, as a logarithm; 0 where nobody knows."""
    known = mine.cell.interval
    return math.log(mine.cell.latency / known[0]) if known else 0.0


def _up(first: Figure) -> float:
    known = first.cell.interval
    return math.log(known[1] / first.cell.latency) if known else 0.0

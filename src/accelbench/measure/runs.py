"""By how much one run of a thing differs from the next, where nothing was changed.

Launches of one run say nothing of it. What does is the history of the series on its machine: the
spread of its runs' means, less what their launches explain. Where a level changed for good the
program changed, and both sides of the step count apart; what came back is the machine.

Until there is a history a prior stands in its place, worth three degrees of freedom: runs differ by
2 %. Student's t with so few reaches far — a change between two runs then counts from 17 % on, which
false alarms at 1 % allow for runs that differ by up to 4.5 %. Two thousand launches of one thing
on our machine, cut into runs of twenty, differed by 3.5 % from run to run, where their
launches alone explained 1.5 %. Neighbours of the series — others of the same engine on the same
device — are added to the prior, each as one observation however long its history, for one series
can be quieter than the next. The series' own runs then count for what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from accelbench.measure.launches import (
    LEAST_EFFECT,
    Noise,
    logs_of,
    pooled,
    pooled_noise,
    spread,
)

#: Nothing is known of the machine.
PRIOR = Noise(0.02, 3.0)
#: Of memory, which does not depend on time.
PRIOR_OF_MEMORY = Noise(0.01, 3.0)
#: Neighbours that are listened to.
MOST_NEIGHBOURS = 8
#: Of fewer runs nobody knows whether they came to levels; of a neighbour they are no observation.
FEWEST_RUNS = 4

#: Launches of each run of a series, oldest run first.
Runs = Sequence[Sequence[float]]


def noise_between(
    own: Runs,
    neighbours: Iterable[Runs] = (),
    prior: Noise = PRIOR,
    judged: int | None = None,
) -> Noise:
    """The standard deviation from run to run of a series, from all that is known of it.

    Args:
        own: its runs.
        neighbours: of series that ran alike, the nearest first.
        prior: where there is no history.
        judged: which of its runs is judged by it: a change would be part of the noise that it is
            compared with. Where levels begin it tells with the others.
    """
    beside = [noise for runs in neighbours if len(runs) >= FEWEST_RUNS and (noise := _seen(runs))]
    parts = [prior, *(Noise(neighbour.value, 1.0) for neighbour in beside[:MOST_NEIGHBOURS])]
    mine = _seen(own, judged)
    estimate = pooled(parts if mine is None else [*parts, mine])
    assert estimate is not None
    return estimate


def noise_of_levels(levels: Iterable[Sequence[float]], prior: Noise = PRIOR) -> Noise:
    """The same of a figure a run, where it is known already which runs are of one level.

    Args:
        levels: logarithms of the runs' figures.
        prior: where there is no history.
    """
    known = [level for level in levels if len(level) > 1]
    estimate = pooled([prior, *(Noise(spread(level), len(level) - 1.0) for level in known)])
    assert estimate is not None
    return estimate


def _seen(runs: Runs, judged: int | None = None) -> Noise | None:
    """What the means of runs differ by beyond what their launches explain; None below two runs."""
    known = [launches for launches in runs if launches]
    means = [math.fsum(logs_of(launches)) / len(launches) for launches in known]
    levels = _levels(means)
    if judged is not None:
        levels = [[at for at in level if at != judged] for level in levels]
        known = [launches for at, launches in enumerate(known) if at != judged]
    if len(known) < 2:
        return None
    squares, freedom = 0.0, 0
    for level in (piece for piece in levels if piece):
        middle = math.fsum(means[at] for at in level) / len(level)
        squares += math.fsum((means[at] - middle) ** 2 for at in level)
        freedom += len(level) - 1
    if not freedom:
        return None
    within = pooled_noise(known)
    of_launches = 0.0
    if within is not None:
        of_launches = within.value**2 * math.fsum(1.0 / len(run) for run in known) / len(known)
    return Noise(math.sqrt(max(squares / freedom - of_launches, 0.0)), float(freedom))


def _levels(means: Sequence[float]) -> list[Sequence[int]]:
    """The pieces between steps that stayed; a step has to be larger than the least effect."""
    from accelbench.measure.changes import course  # brings numpy

    every = range(len(means))
    if len(means) < FEWEST_RUNS:
        return [every]
    steps = course([math.exp(mean) for mean in means], LEAST_EFFECT).steps
    edges = [0, *(step.at for step in steps), len(means)]
    return [every[a:b] for a, b in pairwise(edges)]

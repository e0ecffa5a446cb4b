"""The deviation from run to run of a series, if nothing was changed.

The launches of one run cannot show it. The history of the series on its machine can: it is the
spread of the runs' means, less the part that their launches explain. A step that stayed is a
change of the program, so both sides of it count separately. A spike is noise of the machine.

Without a history a prior of 2 % applies. Two thousand launches of one model on our machine, cut
into runs of twenty, differed by 3.5 % from run to run, and their launches alone explained 1.5 %.
Neighbours are other series of the same engine on the same device. Each counts as one
observation, however long its history is, because one series can be quieter than the next.

Two functions use this. `noise_between` estimates the deviation for the interval of a comparison:
the prior has three degrees of freedom there, so that the interval is wide without a history.
`find_gate_noise` chooses the deviation that a check takes as known. A check with the wide
interval found a change of 10 % in 1 % of cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import NormalDist

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
#: From so many runs of its own on, a series is judged by them alone.
MANY_RUNS = 30
#: How unlikely a history must be under the prior to replace it. An alarm on a noisy machine is
#: worse than a change that is missed, so it takes less to show that a machine is noisy.
_NOISIER, _QUIETER = 0.05, 0.01

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
    estimate = pooled([prior, *_observed(own, neighbours, judged)])
    assert estimate is not None
    return estimate


def find_gate_noise(
    own: Runs,
    neighbours: Iterable[Runs] = (),
    prior: Noise = PRIOR,
    judged: int | None = None,
) -> Noise:
    """Return the standard deviation from run to run that a check uses.

    From 30 runs on it is that of the series, with its degrees of freedom. With fewer the prior
    applies and is taken as known: it has infinitely many degrees of freedom. If the runs and the
    neighbours contradict the prior (chi-square at 5 % if they are noisier, at 1 % if they are
    quieter), the estimate of `noise_between` replaces it.

    Args:
        own: the runs of the series.
        neighbours: the runs of similar series, the nearest first.
        prior: the deviation without a history.
        judged: the index of the run that is judged, which does not count.
    """
    mine = _seen(own, judged)
    count = sum(1 for launches in own if launches) - (judged is not None)
    if mine is not None and count >= MANY_RUNS:
        return mine
    observed = _observed(own, neighbours, judged)
    learned = pooled(observed)
    if learned is None or not _contradicts(learned, prior):
        return Noise(prior.value, math.inf)
    estimate = pooled([prior, *observed])
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


def _observed(own: Runs, neighbours: Iterable[Runs], judged: int | None) -> list[Noise]:
    """Return the deviation of the series' own runs and of each neighbour, if known."""
    beside = [noise for runs in neighbours if len(runs) >= FEWEST_RUNS and (noise := _seen(runs))]
    parts = [Noise(neighbour.value, 1.0) for neighbour in beside[:MOST_NEIGHBOURS]]
    mine = _seen(own, judged)
    return parts if mine is None else [*parts, mine]


def _contradicts(learned: Noise, prior: Noise) -> bool:
    squares = learned.freedom * (learned.value / prior.value) ** 2
    if squares > _chi_square(1.0 - _NOISIER, learned.freedom):
        return True
    enough = learned.freedom >= FEWEST_RUNS - 1
    return enough and squares < _chi_square(_QUIETER, learned.freedom)


def _chi_square(p: float, freedom: float) -> float:
    """Return the quantile by Wilson and Hilferty: within 3 % above, too low below."""
    part = 2.0 / (9.0 * freedom)
    return freedom * float((1.0 - part + NormalDist().inv_cdf(p) * math.sqrt(part)) ** 3)


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

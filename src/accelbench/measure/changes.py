"""Where a series changed for good: steps, told apart from single points that came back, and drift.

Steps are found by optimal partitioning (`measure.partition`). What its price lets through has then
to compare with its neighbours on either side: significant at 0.1 %, and larger than a floor. The
weakest that does not is taken out, until all do.

All is done on logarithms: a step is a share of what was before. Noise is estimated from the
differences of neighbours, which know nothing of steps, by their median, which knows nothing of
points that stand alone.

A series cut into level pieces, by optimal partitioning.

Of all ways to cut it, the one with the least squared distance from the levels plus a price for each
cut, exactly, by dynamic programming (Jackson et al. 2005, "An algorithm for optimal partitioning of
data on an interval").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.launch_verdicts import LEAST_EFFECT
from accelbench.measure.student import t_cdf, t_quantile

#: Two points make a level: of one, nobody knows whether it will come back.
SHORTEST = 2
#: What a cut costs, in units of the noise's variance, times the logarithm of the series' length.
PRICE = 3.0

Values = NDArray[np.float64]


def cuts_of(logs: Values, noise: float) -> list[int]:
    """Where the cheapest partition cuts: the first points of its pieces but for the very first."""
    n = len(logs)
    if n < 2 * SHORTEST:
        return []
    price = PRICE * math.log(n)
    # Of the spread within pieces, the sum of all squares is the same wherever they end: left out.
    off = (logs - logs.mean()) / noise
    sums = np.concatenate([[0.0], np.cumsum(off)])
    shares = 1.0 / np.arange(n, 0, -1)
    before = np.full(n + 1, np.inf)  # the cheapest up to here
    before[0] = -price
    start = np.zeros(n + 1, dtype=np.int64)
    for end in range(SHORTEST, n + 1):
        count = end - SHORTEST + 1
        cost = sums[:count] - sums[end]
        cost *= cost
        cost *= shares[n - end : n - end + count]
        np.subtract(before[:count], cost, out=cost)
        start[end] = first = int(cost.argmin())
        before[end] = cost[first] + price
    return _back(start, n)


def cuts_of_many(off: Values) -> list[list[int]]:
    """`cuts_of` each row: of series of one length, in units of their noise, around their means."""
    many, n = off.shape
    price = PRICE * math.log(n)
    sums = np.concatenate([np.zeros((many, 1)), np.cumsum(off, axis=1)], axis=1)
    before = np.full((many, n + 1), np.inf)
    before[:, 0] = -price
    start = np.zeros((many, n + 1), dtype=np.int64)
    # In the very steps of `cuts_of`: of two that cost the same, rounding decides.
    shares = 1.0 / np.arange(n, 0, -1)
    for end in range(SHORTEST, n + 1):
        count = end - SHORTEST + 1
        apart = sums[:, :count] - sums[:, end : end + 1]
        cost = before[:, :count] - apart * apart * shares[n - end : n - end + count]
        start[:, end] = first = cost.argmin(axis=1)
        before[:, end] = cost[np.arange(many), first] + price
    return [_back(row, n) if row[n] else [] for row in start.tolist()]


def _back(start: Sequence[int] | NDArray[np.int64], end: int) -> list[int]:
    """The first points of the pieces but for the very first, from where each piece begins."""
    cuts = []
    while start[end] > 0:
        end = int(start[end])
        cuts.append(end)
    return cuts[::-1]


#: How often a cut may be taken for a step where there is none.
_ALPHA = 0.001
#: A point so many times the noise away from both its neighbours stands alone.
_ALONE = 5.0
#: The median of absolute differences of neighbours, of noise of 1.
_OF_NOISE = math.sqrt(2.0) * 0.6744897501960817
#: Figures are rounded: below that no noise is believed.
_QUIETEST = 1e-3
#: How many points a series has for each lag at which it is looked at.
_PER_LAG = 12
_LONGEST_LAG = 6
#: Medians of a few differences differ by so much where there is nothing to see.
_BY_CHANCE = 1.25
#: No level wanders by more: what looks like it is made of steps.
_WANDERS = 16.0
#: Of fewer points each is looked at: that is quicker than to choose them.
_SHORT = 32
#: Fewer points say nothing of a drift.
_DRIFTING = 8


@dataclass(frozen=True)
class Step:
    """From one level to another, for good. Shares: 0.05 is 5 % more."""

    at: int  # the first point of the new level
    share: float
    low: float  # the 99.9 % interval
    high: float
    p_value: float


@dataclass(frozen=True)
class Spike:
    """A point that is off, and whose neighbours are not."""

    at: int
    share: float


@dataclass(frozen=True)
class Drift:
    """What crept in over points of one level, too slowly for a step."""

    since: int
    share: float  # from the first of them to the last
    p_value: float


@dataclass(frozen=True)
class Course:
    """What became of a series."""

    steps: tuple[Step, ...]
    spikes: tuple[Spike, ...]
    drift: Drift | None
    unconfirmed: Spike | None  # the last point is off: a spike, or the first of a new level
    noise: float  # from point to point, as a share


def course(values: Sequence[float], least: float = LEAST_EFFECT) -> Course:
    """Return the changes in a series of positive values, one a run, oldest first.

    A change has to exceed `least`, as a share.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    noise = _noise(logs)
    alone = _alone(logs, noise, least)
    kept = np.array([i for i in range(len(logs)) if i not in alone], dtype=np.int64)
    of_levels = noise * math.sqrt(_alike(logs[kept]))
    steps = _held(logs[kept], cuts_of(logs[kept], of_levels), of_levels, least)
    run_steps = tuple(Step(int(kept[s.at]), s.share, s.low, s.high, s.p_value) for s in steps)
    since = steps[-1].at if steps else 0
    last = len(logs) - 1
    return Course(
        run_steps,
        tuple(Spike(i, math.expm1(off)) for i, off in sorted(alone.items()) if i != last),
        _drift(logs[kept][since:], kept[since:], least),
        Spike(last, math.expm1(alone[last])) if last in alone else None,
        math.expm1(noise),
    )


def courses(several: Sequence[Sequence[float]], least: float = LEAST_EFFECT) -> list[Course]:
    """Return `course` of each series."""
    # Of thousands of short series those of one length are cut together, which takes a tenth of the
    # time; a series with a point that is off is judged by itself.
    batch_courses: list[Course | None] = [None] * len(several)
    by_length: dict[int, list[int]] = {}
    for place, values in enumerate(several):
        by_length.setdefault(len(values), []).append(place)
    for n, places in by_length.items():
        # From so many points on neighbours may be alike, which asks for more than a partition.
        if 2 * SHORTEST <= n < 2 * _PER_LAG and len(places) > 1:
            logs = np.log(np.array([several[i] for i in places], dtype=np.float64))
            for place, series_course in zip(places, _together(logs, least), strict=True):
                batch_courses[place] = series_course
    return [
        course(values, least) if batch_course is None else batch_course
        for values, batch_course in zip(several, batch_courses, strict=True)
    ]


def _together(logs: Values, least: float) -> Iterable[Course | None]:
    """Return the course of each row; None if a point may stand alone."""
    n = logs.shape[1]
    noise = np.median(np.abs(np.diff(logs, axis=1)), axis=1) / _OF_NOISE
    noise = np.maximum(noise, _QUIETEST)
    off = logs - logs.mean(axis=1, keepdims=True)
    far = np.maximum(math.log1p(least), _ALONE * noise)
    alone = logs.max(axis=1) - logs.min(axis=1) > far
    x = np.arange(n) - (n - 1) / 2.0
    drifts = np.abs(off @ x / (x @ x)) * (n - 1) > math.log1p(least)
    where = np.arange(n)
    cut = cuts_of_many(off / noise[:, None])
    for row, cuts, of_it, maybe, drift in zip(
        logs, cut, noise.tolist(), alone.tolist(), drifts.tolist(), strict=True
    ):
        if maybe and _alone(row, of_it, least):
            yield None
            continue
        steps = _held(row, cuts, of_it, least)
        since = steps[-1].at if steps else 0
        crept = _drift(row[since:], where[since:], least) if drift or steps else None
        yield Course(tuple(steps), (), crept, None, math.expm1(of_it))


def _noise(logs: Values) -> float:
    if len(logs) < 2:
        return _QUIETEST
    return max(_apart(logs, 1), _QUIETEST)


def _alike(logs: Values) -> float:
    """Return by how much more a level wanders than independent points would: 1 and more."""
    # A machine is tomorrow as it is today: points a few apart differ by more than neighbours do.
    # From how much more follows the correlation of neighbours, and what it makes of a mean's
    # variance. A step is between points far apart more often than between neighbours: lags stay
    # short.
    lags = range(2, min(len(logs) // _PER_LAG, _LONGEST_LAG) + 1)
    near = _apart(logs, 1) if lags else 0.0
    far = max((_apart(logs, lag) for lag in lags), default=0.0)
    if near <= 0.0 or far <= near * _BY_CHANCE:
        return 1.0
    # Neighbours correlated by r differ by 1 - r of what points far apart do.
    r = 1.0 - (near / far) ** 2
    return min((1.0 + r) / (1.0 - r) * (far / near) ** 2, _WANDERS)


def _apart(logs: Values, lag: int) -> float:
    """What points so far apart differ by, as noise."""
    return _middle(np.abs(logs[lag:] - logs[:-lag])) / _OF_NOISE


def _middle(values: Values) -> float:
    """Return the median. Numpy's own takes ten times as long for a dozen values, sorting aside."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0)


def _alone(logs: Values, noise: float, least: float) -> dict[int, float]:
    """Return points far from their neighbours, which are near each other, with the distances."""
    # The neighbours of the last point are the ones before it: it is not known to be one.
    far = max(math.log1p(least), _ALONE * noise)
    spikes: dict[int, float] = {}
    if len(logs) < 3 or float(logs.max() - logs.min()) <= far:
        return spikes
    places = _off_by(logs, far)
    known, n = logs.tolist(), len(logs)
    for i in places:
        off = known[i] - median([known[j] for j in (i - 2, i - 1, i + 1, i + 2) if 0 <= j < n])
        if abs(off) <= far or i - 1 in spikes:
            continue
        near = [known[j] for j in (i - 1, i + 1) if 0 <= j < n]
        if i == n - 1:
            near = [known[i - 2], known[i - 1]]
        elif i == 0:
            near = [known[1], known[2]]
        if max(near) - min(near) < abs(off) / 2:
            spikes[i] = off
    return spikes


def _off_by(logs: Values, far: float) -> list[int]:
    """Points that lie so far from the middle of their four neighbours; and the ends, unseen."""
    n = len(logs)
    if n < _SHORT:
        return list(range(n))
    around = np.stack([logs[:-4], logs[1:-3], logs[3:-1], logs[4:]])
    off = np.abs(logs[2:-2] - np.median(around, axis=0)) >= far
    return [0, 1, *(np.flatnonzero(off) + 2).tolist(), n - 2, n - 1]


def _held(logs: Values, cuts: list[int], noise: float, least: float) -> list[Step]:
    """Return the cuts that are steps: the weakest goes until each is sure, and large enough."""
    while cuts:
        steps = _steps(logs, cuts, noise)
        weakest = max(steps, key=lambda step: step.p_value)
        small = min(steps, key=lambda step: abs(math.log1p(step.share)))
        if weakest.p_value > _ALPHA:
            cuts = [cut for cut in cuts if cut != weakest.at]
        elif abs(math.log1p(small.share)) <= math.log1p(least):
            cuts = [cut for cut in cuts if cut != small.at]
        else:
            return steps
    return []


def _steps(logs: Values, cuts: Sequence[int], noise: float) -> list[Step]:
    """Cuts as steps between their neighbours' levels, by the spread within all pieces."""
    pieces = [logs[a:b] for a, b in pairwise([0, *cuts, len(logs)])]
    levels = [float(piece.sum()) / len(piece) for piece in pieces]
    freedom = max(len(logs) - len(pieces), 1)
    rest = [piece - level for piece, level in zip(pieces, levels, strict=True)]
    within = max(math.sqrt(sum(float(residual @ residual) for residual in rest) / freedom), noise)
    beyond = t_quantile(1.0 - _ALPHA / 2.0, freedom)
    steps = []
    for number, at in enumerate(cuts):
        before, after = len(pieces[number]), len(pieces[number + 1])
        error = within * math.sqrt(1.0 / before + 1.0 / after)
        effect = levels[number + 1] - levels[number]
        p_value = 2.0 * t_cdf(-abs(effect) / error, freedom)
        reach = beyond * error
        low, high = math.expm1(effect - reach), math.expm1(effect + reach)
        steps.append(Step(at, math.expm1(effect), low, high, p_value))
    return steps


def _drift(logs: Values, where: NDArray[np.int64], least: float) -> Drift | None:
    """Return a line through the last level, where it rises or falls surely and by enough."""
    n = len(logs)
    if n < _DRIFTING:
        return None
    x = np.arange(n, dtype=np.float64)
    x -= x.mean()
    slope = float(x @ logs / (x @ x))
    rest = logs - logs.mean() - slope * x
    error = math.sqrt(float(rest @ rest) / (n - 2) / float(x @ x))
    share = slope * (n - 1)
    p_value = 2.0 * t_cdf(-abs(slope) / error, n - 2) if error > 0.0 else float(slope == 0.0)
    if p_value > _ALPHA or abs(share) <= math.log1p(least):
        return None
    return Drift(int(where[0]), math.expm1(share), p_value)

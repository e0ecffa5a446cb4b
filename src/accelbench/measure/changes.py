"""Where a series changed for good: steps, told apart from single points that came back, and drift.

Steps are found by optimal partitioning: of all ways to cut the series into level pieces, the one
with the least squared distance from the levels plus a price for each cut, exactly, by dynamic
programming (Jackson et al. 2005, "An algorithm for optimal partitioning of data on an interval").
What the price lets through has then to hold against its neighbours on either side: significant
at 0.1 %, and larger than a floor. The weakest that does not is taken out, until all do.

All is done on logarithms: a step is a share of what was before. Noise is estimated from the
differences of neighbours, which know nothing of steps, by their median, which knows nothing of
points that stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from accelbench.measure.launches import LEAST_EFFECT
from accelbench.measure.student import t_cdf, t_quantile

#: How often a cut may be taken for a step where there is none.
_ALPHA = 0.001
#: Two points make a level: of one, nobody knows whether it will come back.
_SHORTEST = 2
#: What a cut costs, in units of the noise's variance, times the logarithm of the series' length.
_PRICE = 3.0
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
#: Fewer points say nothing of a drift.
_DRIFTING = 8

Values = NDArray[np.float64]


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
    """What happened in a series of positive values, oldest first.

    Args:
        values: one a run: launches of one run are one point.
        least: what a change has to exceed, as a share.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    noise = _noise(logs)
    alone = _alone(logs, noise, least)
    kept = np.array([i for i in range(len(logs)) if i not in alone], dtype=np.int64)
    of_levels = noise * math.sqrt(_alike(logs[kept]))
    cuts = _held(logs[kept], _cuts(logs[kept], of_levels), of_levels, least)
    steps = [_step(logs[kept], cuts, number, of_levels) for number in range(len(cuts))]
    found = tuple(Step(int(kept[s.at]), s.share, s.low, s.high, s.p_value) for s in steps)
    since = cuts[-1] if cuts else 0
    last = len(logs) - 1
    return Course(
        found,
        tuple(Spike(i, math.expm1(off)) for i, off in sorted(alone.items()) if i != last),
        _drift(logs[kept][since:], kept[since:], least),
        Spike(last, math.expm1(alone[last])) if last in alone else None,
        math.expm1(noise),
    )


def _noise(logs: Values) -> float:
    if len(logs) < 2:
        return _QUIETEST
    return max(_apart(logs, 1), _QUIETEST)


def _alike(logs: Values) -> float:
    """By how much more a level wanders than points that know nothing of each other: 1 and more.

    What a machine is like today it is tomorrow: points a few apart differ by more than neighbours
    do. From how much more, the correlation of neighbours, and what it makes of a mean's variance.
    """
    # A step is between points far apart more often than between neighbours: lags stay short.
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
    return float(np.median(np.abs(logs[lag:] - logs[:-lag]))) / _OF_NOISE


def _alone(logs: Values, noise: float, least: float) -> dict[int, float]:
    """Points far from their neighbours, which are near each other, with how far.

    Of the last point the neighbours are the ones before it: it is not known to be one.
    """
    far = max(math.log1p(least), _ALONE * noise)
    found: dict[int, float] = {}
    for i in _off_by(logs, far):
        around = [logs[j] for j in (i - 2, i - 1, i + 1, i + 2) if 0 <= j < len(logs)]
        if len(around) < 2:
            continue
        off = float(logs[i] - median(around))
        near = [logs[j] for j in (i - 1, i + 1) if 0 <= j < len(logs)]
        if i == len(logs) - 1:
            near = [logs[i - 2], logs[i - 1]]
        elif i == 0:
            near = [logs[1], logs[2]]
        apart = max(near) - min(near)
        if abs(off) > far and apart < abs(off) / 2 and i - 1 not in found:
            found[i] = off
    return found


def _off_by(logs: Values, far: float) -> list[int]:
    """Points that lie so far from the middle of their four neighbours; and the ends, unseen."""
    n = len(logs)
    if n < 5:
        return list(range(n))
    around = np.stack([logs[:-4], logs[1:-3], logs[3:-1], logs[4:]])
    off = np.abs(logs[2:-2] - np.median(around, axis=0)) >= far
    return [0, 1, *(np.flatnonzero(off) + 2).tolist(), n - 2, n - 1]


def _cuts(logs: Values, noise: float) -> list[int]:
    """Where the cheapest partition cuts: the first points of its pieces but for the very first."""
    n = len(logs)
    if n < 2 * _SHORTEST:
        return []
    price = _PRICE * math.log(n)
    # Of the spread within pieces, the sum of all squares is the same wherever they end: left out.
    off = (logs - logs.mean()) / noise
    sums = np.concatenate([[0.0], np.cumsum(off)])
    shares = 1.0 / np.arange(n, 0, -1)
    before = np.full(n + 1, np.inf)  # the cheapest up to here
    before[0] = -price
    start = np.zeros(n + 1, dtype=np.int64)
    for end in range(_SHORTEST, n + 1):
        count = end - _SHORTEST + 1
        cost = sums[:count] - sums[end]
        cost *= cost
        cost *= shares[n - end : n - end + count]
        np.subtract(before[:count], cost, out=cost)
        start[end] = first = int(cost.argmin())
        before[end] = cost[first] + price
    cuts = []
    end = n
    while start[end] > 0:
        end = int(start[end])
        cuts.append(end)
    return cuts[::-1]


def _held(logs: Values, cuts: list[int], noise: float, least: float) -> list[int]:
    """The cuts that are steps: the weakest goes until each is sure, and large enough."""
    while cuts:
        steps = [_step(logs, cuts, number, noise) for number in range(len(cuts))]
        weakest = max(range(len(cuts)), key=lambda number: steps[number].p_value)
        small = min(range(len(cuts)), key=lambda number: abs(math.log1p(steps[number].share)))
        if steps[weakest].p_value > _ALPHA:
            cuts = [cut for cut in cuts if cut != cuts[weakest]]
        elif abs(math.log1p(steps[small].share)) <= math.log1p(least):
            cuts = [cut for cut in cuts if cut != cuts[small]]
        else:
            break
    return cuts


def _step(logs: Values, cuts: Sequence[int], number: int, noise: float) -> Step:
    """A cut as a step between its neighbours' levels, by the spread within all pieces."""
    edges = [0, *cuts, len(logs)]
    pieces = [logs[a:b] for a, b in pairwise(edges)]
    before, after = pieces[number], pieces[number + 1]
    freedom = len(logs) - len(pieces)
    within = math.sqrt(sum(float(((p - p.mean()) ** 2).sum()) for p in pieces) / max(freedom, 1))
    error = max(within, noise) * math.sqrt(1.0 / len(before) + 1.0 / len(after))
    effect = float(after.mean() - before.mean())
    p_value = 2.0 * t_cdf(-abs(effect) / error, max(freedom, 1))
    reach = t_quantile(1.0 - _ALPHA / 2.0, max(freedom, 1)) * error
    return Step(
        cuts[number],
        math.expm1(effect),
        math.expm1(effect - reach),
        math.expm1(effect + reach),
        p_value,
    )


def _drift(logs: Values, where: NDArray[np.int64], least: float) -> Drift | None:
    """A line through the last level, where it rises or falls surely and by enough."""
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

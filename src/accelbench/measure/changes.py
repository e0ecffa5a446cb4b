"""Lasting changes of a series: steps and drift, as opposed to single points.

Steps are found by optimal partitioning. Each must then differ from its neighbours significantly at
0.1 % and by more than a minimum. The weakest one that does not is removed, until all do.

Calculations use logarithms, so a step is a share of the value before it. The noise is the median
difference of neighbours: steps hardly affect the differences, and single points hardly affect the
median.

The partition minimises the squared distance from the levels plus a price for each cut, exactly, by
dynamic programming (Jackson et al. 2005, "An algorithm for optimal partitioning of data on an
interval").
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

#: Fewest points of a level: a single point may be a spike.
MIN_LEVEL_POINTS = 2
#: Price of a cut, in units of the noise's variance times the logarithm of the series' length.
CUT_PRICE = 3.0

Values = NDArray[np.float64]


def find_cuts(logs: Values, noise: float) -> list[int]:
    """Return the cuts of the cheapest partition: the first point of each piece after the first."""
    n = len(logs)
    if n < 2 * MIN_LEVEL_POINTS:
        return []
    price = CUT_PRICE * math.log(n)
    # The sum of all squares is the same for every partition, so it is left out.
    off = (logs - logs.mean()) / noise
    sums = np.concatenate([[0.0], np.cumsum(off)])
    shares = 1.0 / np.arange(n, 0, -1)
    before = np.full(n + 1, np.inf)  # price of the cheapest partition up to each point
    before[0] = -price
    start = np.zeros(n + 1, dtype=np.int64)
    for end in range(MIN_LEVEL_POINTS, n + 1):
        count = end - MIN_LEVEL_POINTS + 1
        cost = sums[:count] - sums[end]
        cost *= cost
        cost *= shares[n - end : n - end + count]
        np.subtract(before[:count], cost, out=cost)
        start[end] = first = int(cost.argmin())
        before[end] = cost[first] + price
    return _trace_cuts(start, n)


def find_cuts_in_rows(off: Values) -> list[list[int]]:
    """Return `find_cuts` of each row of series around their means, in units of their noise."""
    count_rows, n = off.shape
    price = CUT_PRICE * math.log(n)
    sums = np.concatenate([np.zeros((count_rows, 1)), np.cumsum(off, axis=1)], axis=1)
    before = np.full((count_rows, n + 1), np.inf)
    before[:, 0] = -price
    start = np.zeros((count_rows, n + 1), dtype=np.int64)
    # The same calculation as in `find_cuts`: rounding decides between equal prices.
    shares = 1.0 / np.arange(n, 0, -1)
    for end in range(MIN_LEVEL_POINTS, n + 1):
        count = end - MIN_LEVEL_POINTS + 1
        difference = sums[:, :count] - sums[:, end : end + 1]
        cost = before[:, :count] - difference * difference * shares[n - end : n - end + count]
        start[:, end] = first = cost.argmin(axis=1)
        before[:, end] = cost[np.arange(count_rows), first] + price
    return [_trace_cuts(row, n) if row[n] else [] for row in start.tolist()]


def _trace_cuts(start: Sequence[int] | NDArray[np.int64], end: int) -> list[int]:
    """Return the cuts, from the start of the piece that ends at each point."""
    cuts = []
    while start[end] > 0:
        end = int(start[end])
        cuts.append(end)
    return cuts[::-1]


#: Probability of a false step.
_ALPHA = 0.001
#: Distance of a spike from both its neighbours, in units of the noise.
_SPIKE_DISTANCE = 5.0
#: Median absolute difference of neighbours for noise of 1.
_NOISE_SCALE = math.sqrt(2.0) * 0.6744897501960817
#: Least noise, because values are rounded.
_MIN_NOISE = 1e-3
#: Points of a series for each lag that is examined, and the longest lag.
_PER_LAG = 12
_LONGEST_LAG = 6
#: Ratio of medians of a few differences that occurs by chance.
_BY_CHANCE = 1.25
#: Largest wander of a level; more comes from steps.
_MAX_WANDER = 16.0
#: With fewer points all are examined, which is faster than choosing candidates.
_SHORT = 32
#: Fewest points of a drift.
_MIN_DRIFT_POINTS = 8


@dataclass(frozen=True)
class Step:
    """Lasting change from one level to another. Shares: 0.05 is 5 % more."""

    at: int  # the first point of the new level
    share: float
    low: float  # the 99.9 % interval
    high: float
    p_value: float


@dataclass(frozen=True)
class Spike:
    """Single point that differs from both its neighbours."""

    at: int
    share: float


@dataclass(frozen=True)
class Drift:
    """Gradual change within one level, too slow for a step."""

    since: int
    share: float  # from the first of them to the last
    p_value: float


@dataclass(frozen=True)
class SeriesChanges:
    """Changes of a series."""

    steps: tuple[Step, ...]
    spikes: tuple[Spike, ...]
    drift: Drift | None
    unconfirmed: Spike | None  # the last point differs: a spike, or the start of a new level
    noise: float  # from point to point, as a share


def find_changes(values: Sequence[float], least: float = LEAST_EFFECT) -> SeriesChanges:
    """Return the changes in a series of positive values, one per run, oldest first.

    A change must exceed `least`, as a share.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    noise = _estimate_noise(logs)
    spikes = _find_spikes(logs, noise, least)
    kept = np.array([i for i in range(len(logs)) if i not in spikes], dtype=np.int64)
    level_noise = noise * math.sqrt(_wander_factor(logs[kept]))
    steps = _keep_significant(logs[kept], find_cuts(logs[kept], level_noise), level_noise, least)
    run_steps = tuple(Step(int(kept[s.at]), s.share, s.low, s.high, s.p_value) for s in steps)
    since = steps[-1].at if steps else 0
    last = len(logs) - 1
    return SeriesChanges(
        run_steps,
        tuple(Spike(i, math.expm1(off)) for i, off in sorted(spikes.items()) if i != last),
        _find_drift(logs[kept][since:], kept[since:], least),
        Spike(last, math.expm1(spikes[last])) if last in spikes else None,
        math.expm1(noise),
    )


def find_changes_in_all(
    several: Sequence[Sequence[float]], least: float = LEAST_EFFECT
) -> list[SeriesChanges]:
    """Return `find_changes` of each series."""
    # Short series of one length are cut together, which takes a tenth of the time for thousands of
    # them. A series with a possible spike is processed separately.
    batch_courses: list[SeriesChanges | None] = [None] * len(several)
    by_length: dict[int, list[int]] = {}
    for place, values in enumerate(several):
        by_length.setdefault(len(values), []).append(place)
    for n, places in by_length.items():
        # Longer series may have correlated neighbours, which needs more than a partition.
        if 2 * MIN_LEVEL_POINTS <= n < 2 * _PER_LAG and len(places) > 1:
            logs = np.log(np.array([several[i] for i in places], dtype=np.float64))
            for place, series_course in zip(
                places, _find_changes_in_rows(logs, least), strict=True
            ):
                batch_courses[place] = series_course
    return [
        find_changes(values, least) if batch_course is None else batch_course
        for values, batch_course in zip(several, batch_courses, strict=True)
    ]


def _find_changes_in_rows(logs: Values, least: float) -> Iterable[SeriesChanges | None]:
    """Return the changes of each row; None if it may have a spike."""
    n = logs.shape[1]
    noise = np.median(np.abs(np.diff(logs, axis=1)), axis=1) / _NOISE_SCALE
    noise = np.maximum(noise, _MIN_NOISE)
    off = logs - logs.mean(axis=1, keepdims=True)
    far = np.maximum(math.log1p(least), _SPIKE_DISTANCE * noise)
    maybe_spikes = logs.max(axis=1) - logs.min(axis=1) > far
    x = np.arange(n) - (n - 1) / 2.0
    drifts = np.abs(off @ x / (x @ x)) * (n - 1) > math.log1p(least)
    where = np.arange(n)
    cut = find_cuts_in_rows(off / noise[:, None])
    for row, cuts, row_noise, maybe, drift in zip(
        logs, cut, noise.tolist(), maybe_spikes.tolist(), drifts.tolist(), strict=True
    ):
        if maybe and _find_spikes(row, row_noise, least):
            yield None
            continue
        steps = _keep_significant(row, cuts, row_noise, least)
        since = steps[-1].at if steps else 0
        found_drift = _find_drift(row[since:], where[since:], least) if drift or steps else None
        yield SeriesChanges(tuple(steps), (), found_drift, None, math.expm1(row_noise))


def _estimate_noise(logs: Values) -> float:
    if len(logs) < 2:
        return _MIN_NOISE
    return max(_lag_noise(logs, 1), _MIN_NOISE)


def _wander_factor(logs: Values) -> float:
    """Return how much more a level wanders than independent points: 1 or more."""
    # Neighbouring runs are correlated, so points a few apart differ by more than neighbours do. The
    # ratio gives the correlation of neighbours and the variance of a mean. Lags stay short, because
    # a step lies more often between distant points.
    lags = range(2, min(len(logs) // _PER_LAG, _LONGEST_LAG) + 1)
    near = _lag_noise(logs, 1) if lags else 0.0
    far = max((_lag_noise(logs, lag) for lag in lags), default=0.0)
    if near <= 0.0 or far <= near * _BY_CHANCE:
        return 1.0
    # Neighbours with correlation r differ by 1 - r of the difference of distant points.
    r = 1.0 - (near / far) ** 2
    return min((1.0 + r) / (1.0 - r) * (far / near) ** 2, _MAX_WANDER)


def _lag_noise(logs: Values, lag: int) -> float:
    """Return the noise that the differences at a lag imply."""
    return _fast_median(np.abs(logs[lag:] - logs[:-lag])) / _NOISE_SCALE


def _fast_median(values: Values) -> float:
    """Return the median of a dozen values in a tenth of NumPy's time."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0)


def _find_spikes(logs: Values, noise: float, least: float) -> dict[int, float]:
    """Return the distances of points that are far from their neighbours, which are close."""
    # The last point is compared with the two points before it, and is not confirmed as a spike.
    far = max(math.log1p(least), _SPIKE_DISTANCE * noise)
    spikes: dict[int, float] = {}
    if len(logs) < 3 or float(logs.max() - logs.min()) <= far:
        return spikes
    places = _candidate_spikes(logs, far)
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


def _candidate_spikes(logs: Values, far: float) -> list[int]:
    """Return both ends, and points far from the median of their four neighbours."""
    n = len(logs)
    if n < _SHORT:
        return list(range(n))
    around = np.stack([logs[:-4], logs[1:-3], logs[3:-1], logs[4:]])
    off = np.abs(logs[2:-2] - np.median(around, axis=0)) >= far
    return [0, 1, *(np.flatnonzero(off) + 2).tolist(), n - 2, n - 1]


def _keep_significant(logs: Values, cuts: list[int], noise: float, least: float) -> list[Step]:
    """Return significant steps: the weakest cut is removed until each is sure and large enough."""
    while cuts:
        steps = _measure_steps(logs, cuts, noise)
        weakest = max(steps, key=lambda step: step.p_value)
        small = min(steps, key=lambda step: abs(math.log1p(step.share)))
        if weakest.p_value > _ALPHA:
            cuts = [cut for cut in cuts if cut != weakest.at]
        elif abs(math.log1p(small.share)) <= math.log1p(least):
            cuts = [cut for cut in cuts if cut != small.at]
        else:
            return steps
    return []


def _measure_steps(logs: Values, cuts: Sequence[int], noise: float) -> list[Step]:
    """Return cuts as steps between neighbouring levels, by the spread within all pieces."""
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


def _find_drift(logs: Values, where: NDArray[np.int64], least: float) -> Drift | None:
    """Return the slope of the last level, if it is significant and large enough."""
    n = len(logs)
    if n < _MIN_DRIFT_POINTS:
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

"""The probability that each of several configurations is the best, by joint samples.

The times of configurations are drawn together. Predictions of one predictor share most of their
error, so that the ratio of two is known better than either. The seed is fixed: the same data have
the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accelbench.recommend.figures import Bounds, Figure

if TYPE_CHECKING:
    from accelbench.predict.signatures import Floats

#: Drawn in pairs of opposite signs. A probability of 50 % is exact to 0.6 points.
SAMPLES = 8192
#: The standard normal quantile of the ends of a 90 % interval.
_ENDS = 1.645
#: Probabilities are compared in whole percent, values with this relative precision.
_PERCENT, _EQUAL = 2, 1e-6
#: Each of them has its own uncertainty next to time.
_TIME, _MEMORY = 0, 1


@dataclass(frozen=True)
class RankedOption:
    """A configuration as the ranking sees it.

    Attributes:
        figure: its time and memory.
        log_merit: the logarithm of what the objective minimises, at the middle of its time; it
            changes with the logarithm of time.
        room: the megabytes of its device; None if they are unknown.
        limits: values with their limits: the value at the middle of its time or memory, the most
            that it may be, and whether it changes with time.
        is_possible: whether a limit of a value without a band is kept.
    """

    figure: Figure
    log_merit: float
    room: float | None = None
    limits: Sequence[Limited] = ()
    is_possible: bool = True


@dataclass(frozen=True)
class Limited:
    """A value that must not exceed a limit and is proportional to time, or to memory."""

    name: str
    middle: float
    most: float
    of_memory: bool = False


@dataclass(frozen=True)
class Probabilities:
    """The probabilities of each option, in their order.

    Attributes:
        best: of being the best of those that fit and keep the limits.
        fits: of fitting the device and keeping every limit.
        kept: of keeping a limit, by its name.
    """

    best: list[float]
    fits: list[float]
    kept: list[dict[str, float]] = field(default_factory=list)


def probabilities(
    options: Sequence[RankedOption], correlation: Floats | None = None, samples: int = SAMPLES
) -> Probabilities:
    """Return the probability that each option is the best and that it fits."""
    import numpy as np

    if not options:
        return Probabilities([], [])
    noise, memory_noise = _noise(options, correlation, samples)
    merit = noise + np.array([option.log_merit for option in options])
    able = np.ones(noise.shape, dtype=bool)
    kept: list[dict[str, float]] = []
    for column, option in enumerate(options):
        shares: dict[str, float] = {}
        for limit in _limits(option):
            drawn = memory_noise[:, column] if limit.of_memory else noise[:, column]
            keeps = math.log(limit.middle) + drawn <= math.log(limit.most) + _EQUAL
            shares[limit.name] = float(keeps.mean())
            able[:, column] &= keeps
        if not option.is_possible:
            able[:, column] = False
        kept.append(shares)
    merit = np.where(able, merit, np.inf)
    least = merit.min(axis=1, keepdims=True)
    wins = (merit <= least + 1e-12) & np.isfinite(merit)
    share = wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)
    best = _equal_alike(options, share.mean(axis=0))
    return Probabilities(best, [float(value) for value in able.mean(axis=0)], kept)


def _limits(option: RankedOption) -> Sequence[Limited]:
    memory = option.figure.memory
    if option.room is None or memory is None or option.figure.measured:
        return option.limits
    return (*option.limits, Limited("room", memory.middle, option.room, of_memory=True))


def _noise(
    options: Sequence[RankedOption], correlation: Floats | None, samples: int
) -> tuple[Floats, Floats]:
    """Return the drawn deviations of logarithms of time and of memory, a column each."""
    import numpy as np

    figures = [option.figure for option in options]
    # Numbers belong to configurations, not to places: the order of rows changes no answer.
    order = sorted(range(len(figures)), key=lambda at: _key(figures[at]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    half = np.random.default_rng(0).standard_normal((samples // 2, 2, len(options)))
    drawn = np.concatenate([half, -half])[:, :, place]
    times = drawn[:, _TIME]
    rows = [(at, f.number) for at, f in enumerate(figures) if f.number is not None]
    if correlation is not None and len(rows) > 1:
        places, numbers = [at for at, _ in rows], [number for _, number in rows]
        times[:, places] = times[:, places] @ _root(correlation[np.ix_(numbers, numbers)])
    down, up = np.array([figure.deviations for figure in figures]).T
    spread = [_spread(figure.memory) for figure in figures]
    memory_down, memory_up = np.array(spread).T
    memory = drawn[:, _MEMORY]
    return (
        times * np.where(times < 0, down, up),
        memory * np.where(memory < 0, memory_down, memory_up),
    )


def _root(correlation: Floats) -> Floats:
    """Return the symmetric root of a correlation, which does not depend on the order."""
    import numpy as np

    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _spread(bounds: Bounds | None) -> tuple[float, float]:
    if bounds is None or bounds.middle <= 0.0:
        return 0.0, 0.0
    low, high = min(bounds.low, bounds.middle), max(bounds.high, bounds.middle)
    down = math.log(bounds.middle / low) / _ENDS if low > 0.0 else 0.0
    return down, math.log(high / bounds.middle) / _ENDS


def _key(figure: Figure) -> tuple[str, ...]:
    return (*figure.cell.way, str(figure.batch), repr(figure.latency))


def _equal_alike(options: Sequence[RankedOption], shares: Floats) -> list[float]:
    """Return the shares, those of options with equal distributions as their mean."""
    import numpy as np

    groups: dict[tuple[object, ...], list[int]] = {}
    for place, option in enumerate(options):
        deviations = (round(value, 6) for value in option.figure.deviations)
        key = (round(option.log_merit, 6), *deviations, option.is_possible, option.room)
        groups.setdefault(key, []).append(place)
    equal = np.array(shares, dtype=np.float64)
    for places in groups.values():
        equal[places] = equal[places].mean()
    return [float(value) for value in equal]


def place_of(probability: float, log_merit: float) -> tuple[float, float]:
    """Return the sort key of an option; options with the same one have the same rank."""
    return -round(probability, _PERCENT), round(log_merit, 6)


def percent(share: float) -> str:
    """Return a probability in whole percent; a share that is not certain is neither 0 nor 100."""
    if 0.0 < share < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 <= share < 1.0 else f"{share:.0%}".replace("%", " %")

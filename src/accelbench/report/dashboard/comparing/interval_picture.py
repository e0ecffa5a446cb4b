"""A picture of intervals: where each ratio lies on one axis, once as fast marked on it. Pure.

Steps of it multiply: half and twice as fast are as far from once. Places are per cent of its width,
so that it fits a phone without smaller letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from accelbench.report.charts.axes import decades

#: Of an interval of which one end is nearly nothing so much is drawn, unless a ratio is beyond.
_FURTHEST = 64.0
#: Room beside the outermost mark, as a part of the axis.
_ROOM = 0.06
_FEWEST, _MOST = 3, 7
#: Ticks nearer to each other than this part of the axis would touch on a phone.
_APART = 0.065
#: Round ratios for an axis that goes not as far as 1, 2 and 5 are apart.
_STEPS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class IntervalMark:
    """One ratio on the axis, in per cent of its width.

    Attributes:
        at: where the ratio is; None where none is told.
        low: where its interval begins, and `high` where it ends.
    """

    at: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class IntervalPicture:
    """The marks in their order, and the axis.

    Attributes:
        ticks: places and what stands there.
        one: where once as fast is.
    """

    marks: Sequence[IntervalMark]
    ticks: Sequence[tuple[float, str]]
    one: float


def picture_of(
    ratios: Sequence[tuple[float, float | None, float | None] | None],
) -> IntervalPicture | None:
    """Ratios with their intervals as a picture; None where none is known beside the base.

    Args:
        ratios: each its value, and the ends of its interval where they are known; None of what is
            not compared.
    """
    told = [ratio[0] for ratio in ratios if ratio]
    least, most = min(told, default=1.0), max(told, default=1.0)
    bounds = min(1.0 / _FURTHEST, least), max(_FURTHEST, most)
    clipped = [ratio and tuple(_within(end, *bounds) for end in ratio) for ratio in ratios]
    ends = [end for ratio in clipped if ratio for end in ratio if end is not None]
    if not ends:
        return None
    low, high = min(1.0, *ends), max(1.0, *ends)
    reach = max(log(high / low), log(1.02))
    start, span = log(low) - _ROOM * reach, reach * (1.0 + 2.0 * _ROOM)

    def place(ratio: float | None) -> float | None:
        return None if ratio is None else round(100.0 * (log(ratio) - start) / span, 2)

    marks = [
        IntervalMark(None) if ratio is None else IntervalMark(*(place(end) for end in ratio))
        for ratio in clipped
    ]
    ticks = [(place(tick) or 0.0, f"{tick:g}×") for tick in _ticks(low, high)]
    return IntervalPicture(marks, ticks, place(1.0) or 0.0)


def _within(end: float | None, least: float, most: float) -> float | None:
    return None if end is None else min(max(end, least), most)


def _ticks(low: float, high: float) -> list[float]:
    known = [tick for tick in decades(low, high) if low <= tick <= high]
    if len(known) < _FEWEST:
        for step in _STEPS:
            first, last = int(low / step + 0.999999), int(high / step + 1e-6)
            known = [round(n * step, 4) for n in range(first, last + 1)]
            if len(known) >= _FEWEST:
                break
    while len(known) > _MOST:
        known = [tick for n, tick in enumerate(known) if tick == 1.0 or n % 2 == 0]
    known = sorted({*known, 1.0})
    return sorted({*known, *_beyond(known, low, high)})


def _beyond(known: Sequence[float], low: float, high: float) -> Iterator[float]:
    """A round ratio towards an end that a mark reaches and no tick does: 1.3× of one at 1.33."""
    apart = _APART * log(high / low)
    for step in _STEPS:
        tick = round(int(high / step + 1e-6) * step, 4)
        if log(tick / known[-1]) >= apart:
            yield tick
            break
    for step in _STEPS:
        tick = round(int(low / step + 0.999999) * step, 4)
        if log(known[0] / tick) >= apart:
            yield tick
            break

"""Limits of a test, compared with the launches of a case: kept, missed, or not known. Pure.

A limit is kept where the whole 95 % interval keeps it and missed where none of it does. In between
nobody knows, as with `recommend`, whose limits these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from accelbench.core.errors import UsageError
from accelbench.core.result_statistics import Spread, Statistic, rate_of, step_of
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import why_unusable
from accelbench.evidence.measurements import merge_launches
from accelbench.judge.ratios import interval_within
from accelbench.measure.launch_verdicts import geometric_mean, interval_of, spread_of
from accelbench.recommend.constraints.limits import LimitReason, Limits, kept
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.evidence.cells import SINGLE, EvidenceRow, counted, unit_of
from accelbench.recommend.figures import MEASURED, Bounds

#: The names of a test's limits, each with that of `recommend`.
NAMES = {
    "max_latency_ms": "max_latency_ms",
    "max_memory_mb": "memory_mb",
    "min_throughput": "min_throughput",
}
_UNKNOWN = "so few samples of one launch have no interval: leave out iterations, or take launches=5"


def limits_of(asked: Mapping[str, Any]) -> Limits:
    """The limits among the arguments of a test.

    Raises:
        UsageError: one is no number above 0.
    """
    try:
        return Limits(**{theirs: asked.get(ours) for ours, theirs in NAMES.items()})
    except UsageError as error:
        # Of memory the other commands say it by another name.
        message = error.message.replace("memory_mb", "max_memory_mb")
        raise UsageError(message, error.advice) from error


@dataclass(frozen=True)
class CaseFigures:
    """What the launches of a case come to: middles, with the interval of each where one is known.

    Attributes:
        statistic: which figure its latency is: the median, as `check` judges it, else the mean.
        latency_spread: the ends that are shown of the latency.
        rate: items a second.
        memory: its high end is of the launch that took most.
    """

    rows: Sequence[Row]
    is_usable: bool
    statistic: Statistic
    latency: Bounds | None
    latency_spread: Spread | None
    rate: Bounds | None
    memory: Bounds | None

    @property
    def unit(self) -> str:
        """What its rate counts, in the plural."""
        return unit_of(self.rows[0])


def figures_of(rows: Sequence[Row]) -> CaseFigures:
    """The figures of the launches of a case, all of which ran."""
    measurement = merge_launches(rows)
    counting = measurement.rows
    medians = all(step_of(row, Statistic.MEDIAN) for row in counting)
    statistic = Statistic.MEDIAN if medians else Statistic.MEAN
    first = counting[0]
    mean, within = step_of(first, Statistic.MEAN), _within(first, Statistic.MEAN)
    rate = rate_of(first)
    rates = (rate * mean / within[1], rate * mean / within[0]) if rate and mean and within else None
    steps = [step for row in counting if (step := step_of(row, statistic))]
    memory = [float(mb) for row in rows if (mb := number(row, "memory_peak_mb"))]
    middle = geometric_mean(memory) if memory else 0.0
    return CaseFigures(
        measurement.launches,
        measurement.is_usable,
        statistic,
        _bounds(steps, _within(first, statistic)),
        spread_of(steps, _within(first, statistic)),
        _bounds([rate_of(row) for row in counting], rates),
        Bounds(middle, middle, max(memory)) if memory else None,
    )


def _within(row: Row, statistic: Statistic) -> tuple[float, float] | None:
    """The interval of a launch by its samples; of steps no longer than a tick of the clock none."""
    known = interval_within(row, statistic)
    return None if known is None or known[0] <= 0.0 else known


def _bounds(figures: Sequence[float | None], within: tuple[float, float] | None) -> Bounds | None:
    """The middle of launches and its interval; of one launch what its samples say, and no less
    than launches usually differ by. Ends that are the middle stand for no interval at all.
    """
    values = [float(value) for value in figures if value]
    if not values:
        return None
    middle = geometric_mean(values)
    if len(values) == 1 and within is None:
        return Bounds.exact(middle)
    known = interval_of(values) if len(values) > 1 else None
    if known is not None:
        return Bounds(middle, *known)
    low, high = within if within is not None and len(values) == 1 else (middle, middle)
    return Bounds(middle, min(low, middle / (1 + SINGLE)), max(high, middle * (1 + SINGLE)))


def missed(figures: CaseFigures, limits: Limits) -> tuple[LimitReason, ...]:
    """Every limit that a case is not known to keep; what may keep it all the same is open."""
    unknown = dict(_unknown(figures, limits))
    row = cast("EvidenceRow", figures.rows[0])
    nothing = Bounds.exact(0.0)
    option = Option(
        hardware=str(row.get("hardware")),
        batch_size=int(number(row, "batch_size") or 1),
        basis=MEASURED,
        latency=figures.latency or nothing,
        rate=figures.rate or nothing,
        unit=figures.unit,
        statistic=figures.statistic,
        memory=figures.memory,
        memory_basis=MEASURED if figures.memory else None,
        row=row,
    )
    known = replace(limits, **dict.fromkeys(unknown))
    return (
        *(LimitReason(name, text, open=True) for name, text in unknown.items()),
        *kept(option, known, counted(figures.unit), any_error=True),
    )


def _unknown(figures: CaseFigures, limits: Limits) -> Iterator[tuple[str, str]]:
    """The limits of times that nothing can be compared with, and why."""
    for name, bounds in (("max_latency_ms", figures.latency), ("min_throughput", figures.rate)):
        if name not in limits.given:
            continue
        if bounds is None:
            yield name, f"its {name.split('_')[1]} was not measured"
        elif not figures.is_usable:
            yield name, f"its times are unusable: {why_unusable(figures.rows)}"
        elif bounds.low == bounds.high:
            yield name, _UNKNOWN

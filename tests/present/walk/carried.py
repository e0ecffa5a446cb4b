"""Which figures the rows of a source carry, by kind, and what is made of them by stated rules."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from accelbench.measure.launch_verdicts import geometric_mean, interval_of

#: Beyond so many items of a model its pairs come to any ratio.
_MOST_ITEMS = 700


class Kind(StrEnum):
    """What a figure is of."""

    TIME = "ms"
    ITEM = "ms an item"
    RATE = "a second"
    MEMORY = "MB"
    RATIO = "times"
    UNKNOWN = "of no known kind"  # which no row carries


@dataclass(frozen=True)
class SourceRow:
    """The figures of one row of a table, as whoever made it wrote them.

    Attributes:
        question: rows of one question at one place; their figures may be averaged.
        batch: items of a step; None where it is unknown, and a time then is nobody's item's.
        times: milliseconds, by statistic: mean, p50, p90 …
        rate: of items a second.
        ends: other milliseconds: fastest, slowest, ends of intervals.
        series: what the questions of several runs have in common, where there are several.
    """

    model: str
    question: Hashable
    batch: int | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    rate: float | None = None
    memory: float | None = None
    ends: Sequence[float] = ()
    series: Hashable = None

    @property
    def items(self) -> dict[str, float]:
        """Milliseconds an item, by statistic."""
        if not self.batch:
            return {}
        found = {name: ms / self.batch for name, ms in self.times.items()}
        if self.rate and "mean" in found:
            found["rate"] = 1e3 / self.rate
        return found

    @property
    def rates(self) -> list[float]:
        made = 1e3 * self.batch / self.times["mean"] if self.batch and "mean" in self.times else 0
        return [one for one in (self.rate, made) if one]


class Carried:
    """The figures of some rows."""

    def __init__(self, rows: Iterable[SourceRow]) -> None:
        self.rows = list(rows)
        asked: dict[Hashable, list[SourceRow]] = {}
        for row in self.rows:
            asked.setdefault((row.model, row.question), []).append(row)
        found: dict[Kind, set[float]] = {kind: set() for kind in Kind}
        by_statistic: dict[str, list[float]] = {}
        for several in asked.values():
            for row in several:
                found[Kind.TIME].update(row.times.values(), row.ends)
                found[Kind.ITEM].update(row.items.values())
                found[Kind.RATE].update(row.rates)
                found[Kind.MEMORY].update(filter(None, [row.memory]))
                _pair(by_statistic, row)
            if len(several) > 1:
                _average(found, by_statistic, several)
        for runs in _runs_of_series(self.rows):
            _level(found, runs)
        self._sorted = {kind: sorted(values) for kind, values in found.items()}
        self._by_statistic = by_statistic

    def has(self, kind: Kind, value: float, reach: float) -> bool:
        """Whether a row carries it, within what was rounded away."""
        if kind is Kind.RATIO:
            return self.is_ratio(value, reach)
        return _near(self._sorted[kind], value, reach)

    def is_ratio(self, value: float, reach: float) -> bool:
        """Whether two figures of one statistic come to it."""
        for values in self._by_statistic.values():
            if len(values) > _MOST_ITEMS:
                continue
            ordered = sorted(values)
            for one in ordered:
                low, high = (value - reach) * one, (value + reach) * one
                at = bisect_left(ordered, low * (1 - 1e-9))
                if at < len(ordered) and ordered[at] <= high * (1 + 1e-9):
                    return True
        return False

    @property
    def dense(self) -> bool:
        """Whether there are so many rows that their ratios say nothing."""
        return any(len(values) > _MOST_ITEMS for values in self._by_statistic.values())


def _near(ordered: Sequence[float], value: float, reach: float) -> bool:
    reach = max(reach, abs(value) * 1e-9)
    at = bisect_left(ordered, value - reach)
    return at < len(ordered) and ordered[at] <= value + reach


def _pair(by_statistic: dict[str, list[float]], row: SourceRow) -> None:
    """What ratios may be of: items by the same statistic, steps, rates, memory."""
    for name, ms in row.items.items():
        by_statistic.setdefault("mean" if name == "rate" else name, []).append(ms)
    for name, ms in row.times.items():
        by_statistic.setdefault(f"step {name}", []).append(ms)
    for rate in row.rates:
        by_statistic.setdefault("rate", []).append(rate)
    if row.memory:
        by_statistic.setdefault("memory", []).append(row.memory)


def _average(
    found: dict[Kind, set[float]], by_statistic: dict[str, list[float]], rows: Sequence[SourceRow]
) -> None:
    """What is said of several launches: their geometric mean, their median, and its interval."""
    for name in {name for row in rows for name in row.times}:
        steps = [row.times[name] for row in rows if name in row.times]
        found[Kind.TIME].update(_middles(steps))
        by_statistic.setdefault(f"step {name}", []).append(geometric_mean(steps))
        items = [row.items[name] for row in rows if name in row.items]
        if items:
            found[Kind.ITEM].update(_middles(items))
            by_statistic.setdefault(name, []).append(geometric_mean(items))
    for kind, values in (
        (Kind.RATE, [row.rates[0] for row in rows if row.rates]),
        (Kind.RATE, [row.rates[-1] for row in rows if row.rates]),
        (Kind.MEMORY, [row.memory for row in rows if row.memory]),
        (Kind.ITEM, [row.items["rate"] for row in rows if "rate" in row.items]),
    ):
        if values:
            found[kind].update(_middles(values))
            by_statistic.setdefault(
                {Kind.RATE: "rate", Kind.ITEM: "mean"}.get(kind, "memory"), []
            ).append(geometric_mean(values))


def _runs_of_series(rows: Iterable[SourceRow]) -> list[list[list[SourceRow]]]:
    """Of each series its runs, each as its rows."""
    series: dict[Hashable, dict[Hashable, list[SourceRow]]] = {}
    for row in rows:
        if row.series is not None:
            runs = series.setdefault((row.model, row.series), {})
            runs.setdefault(row.question, []).append(row)
    return [list(runs.values()) for runs in series.values() if len(runs) > 1]


def _level(found: dict[Kind, set[float]], runs: Sequence[Sequence[SourceRow]]) -> None:
    """What a history says of several runs, each by the median over its launches."""
    for name in {name for rows in runs for row in rows for name in row.times}:
        times = [[row.times[name] for row in rows if name in row.times] for rows in runs]
        found[Kind.TIME].update(_middles([median(some) for some in times if some]))
    for kind, figures in (
        (Kind.RATE, [[row.rates[0] for row in rows if row.rates] for rows in runs]),
        (Kind.MEMORY, [[row.memory for row in rows if row.memory] for rows in runs]),
    ):
        of_runs = [median(some) for some in figures if some]
        if of_runs:
            found[kind].update(_middles(of_runs))


def _middles(values: Sequence[float]) -> list[float]:
    return [geometric_mean(values), median(values), *(interval_of(values) or ())]

"""Monotone predictions: a larger batch takes no less time than a smaller one. Pure numpy.

A process of residuals could predict that a batch of 16 is quicker than one of 8; a knee would then
be noise. Isotonic regression of the logarithms pools such neighbours.

Pooled over the batches that happened to be asked, one case had 60 MB by itself and 72 next to
others. Each series, the cases that differ only in their batch, is therefore always predicted at the
same batches, its nodes: powers of two, and what was measured. Values between two nodes lie on the
line between their logarithms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from accelbench.core.case import Shapes
from accelbench.core.device_facts import facts_of
from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.cases import (
    LATENCY,
    ON_CPUS,
    SIZES_WITHOUT_BATCH,
    CaseConfiguration,
    MeasuredCase,
    PredictedCase,
    numbers_of_places,
)
from accelbench.predict.signatures import Floats, Ints
from accelbench.predict.terms import TracedCase

#: How many times the weight of all else that of a measured figure is, which is not to move.
_CERTAIN = 1e6
#: Nothing is known any nearer than a single measured figure, of which runs differ by 3 %.
SINGLE = 1.03


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The rising sequence that is nearest to values, by weighted squares: adjacent are pooled."""
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, count = value, weight, 1
        while means and means[-1] > mean:
            before, held = means.pop(), masses.pop()
            mean = (before * held + mean * mass) / (held + mass)
            mass, count = mass + held, count + counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return np.repeat(means, counts)


def held_by_measured(
    predictions: CasePredictions,
    cases: Sequence[PredictedCase],
    known: Collection[MeasuredCase],
    target: str,
) -> CasePredictions:
    """Predictions no less than a smaller batch of the same was measured at, nor more than a larger.

    Where the measured ones fall themselves, what lies between such two stays as it is.
    """
    there = [entry.case for entry in known]
    places = numbers_of_places([*cases, *there])
    measured: dict[tuple[object, ...], list[tuple[int, float]]] = {}
    for entry, place in zip(known, places[len(cases) :], strict=True):
        if value := entry.value(target):
            line = measured.setdefault(series_key(entry.case, place), [])
            line.append((entry.case.shapes.batch, value))
    models = {str(key[0]) for key in measured}
    ends = np.stack([predictions.value, predictions.low, predictions.high])
    for row, case in enumerate(cases):
        line = measured.get(series_key(case, places[row]), []) if case.model in models else []
        batch = case.shapes.batch
        least = max((value for size, value in line if size < batch), default=0.0)
        most = min((value for size, value in line if size > batch), default=np.inf)
        if any(size == batch for size, _ in line):  # what was measured is not moved
            least, most = min(least, ends[0, row]), max(most, ends[0, row])
        if line and least <= most:
            _hold(ends[:, row], least, most)
    value, low, high = ends
    return replace(predictions, value=value, low=low, high=high)


def _hold(ends: Floats, least: float, most: float) -> None:
    """A value and its ends between two figures, and as wide about it as a measured one is."""
    value, low, high = ends
    held = min(max(value, least), most)
    low, high = (min(max(end * held / value, least), most) for end in (low, high))
    ends[:] = held, min(low, held / SINGLE), max(high, held * SINGLE)


def series_key(case: PredictedCase, place: int) -> tuple[object, ...]:
    """What cases that differ in their batch alone have in common; place is its configuration's."""
    return case.model, case.part, place, SIZES_WITHOUT_BATCH(case.shapes)


@dataclass(frozen=True)
class BatchSeries:
    """The cases of one question, those that differ in their batch alone beside each other.

    Attributes:
        order: of the cases: by series, and within each by batch.
        number: of each case's series, in that order.
    """

    order: Ints
    number: Ints

    @classmethod
    def of(cls, cases: Sequence[PredictedCase]) -> BatchSeries:
        """The series of cases in any order."""
        numbers: dict[tuple[object, ...], int] = {}
        keys = (
            series_key(case, place)
            for case, place in zip(cases, numbers_of_places(cases), strict=True)
        )
        series = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        batches = np.array([case.shapes.batch for case in cases], dtype=np.int64)
        order = np.lexsort((batches, series))
        return cls(order, series[order])

    def rising(self, predictions: CasePredictions) -> CasePredictions:
        """The same predictions, rising with the batch within each series.

        Values and both ends of the intervals are pooled alike, each with the weight of how surely
        it is known. The same weights for all three leave each value between its ends. What was
        measured stays as it is, and others are pooled towards it.
        """
        logs = np.log(np.stack([predictions.value, predictions.low, predictions.high]))
        falls = (np.diff(logs[:, self.order], axis=1) < 0).any(axis=0)
        falling = np.unique(self.number[1:][falls & (np.diff(self.number) == 0)])
        if not len(falling):
            return predictions
        weights = 1.0 / np.maximum(logs[2] - logs[1], 1e-6) ** 2
        certain = np.zeros(len(weights), dtype=bool)
        certain[predictions.measured] = True
        starts = np.searchsorted(self.number, falling)
        ends = np.searchsorted(self.number, falling, side="right")
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            rows = self.order[start:end]
            # Of its own series alone: what else is asked is not to decide how far one moves.
            weights[rows[certain[rows]]] = _CERTAIN * weights[rows].max()
            for figures in logs:
                figures[rows] = isotonic(figures[rows], weights[rows])
        value, low, high = np.exp(logs)
        rows, pooled = predictions.measured, replace(predictions, value=value, low=low, high=high)
        return pooled.with_values(rows, predictions.value[rows]) if len(rows) else pooled


_FP32 = "fp32"
_RANKS = {basis: rank for rank, basis in enumerate(Basis)}
_FROM_DIGITS = re.compile(r"\d.*")


def takes_no_less(some: CaseConfiguration, other: CaseConfiguration) -> bool:
    """Return whether documents say that a configuration takes no less time than another.

    They do of a card of the same line that exceeds the other's in no limit, and of fp32 beside a
    narrow type.
    """
    if some.precision not in (_FP32, other.precision):
        return False
    lesser, greater = (facts_of(one.device, one.hardware) for one in (some, other))
    if some.device == other.device or lesser is None or greater is None:
        return some.device == other.device
    if _FROM_DIGITS.sub("", lesser.name) != _FROM_DIGITS.sub("", greater.name):
        return False
    shared = set(lesser.teraops) & set(greater.teraops)
    is_below = all(lesser.teraops[name] <= greater.teraops[name] for name in shared)
    return is_below and lesser.bandwidth <= greater.bandwidth


def ordered_configurations(
    place: CaseConfiguration, measured: Collection[CaseConfiguration]
) -> list[CaseConfiguration]:
    """Return a configuration and those that documents order it with, the slowest first.

    One that was measured is ordered with others that were.
    """

    def has_units(one: CaseConfiguration) -> bool:
        facts = facts_of(one.device, one.hardware)
        rates = facts.teraops if facts is not None and facts.bandwidth else {}
        narrow = rates.get(one.precision.removeprefix("amp-"), 0.0)
        return one.precision == _FP32 in rates or narrow > rates.get(_FP32, narrow)

    if place.hardware in ON_CPUS or not has_units(place):
        return [place]
    here = [one for one in measured if one.hardware == place.hardware]
    line = [replace(place, device=name) for name in {one.device for one in here} | {place.device}]
    line = [one for one in line if takes_no_less(one, place) or takes_no_less(place, one)]
    types = {one.precision for one in here} | {place.precision, _FP32}
    every = (replace(one, precision=precision) for one in line for precision in types)
    some = [one for one in every if has_units(one) and (place not in measured or one in measured)]
    return sorted(
        some, key=lambda one: (-sum(takes_no_less(one, other) for other in some), str(one))
    )


class _Numbers(dict[object, int]):
    """Numbers of things, in the order in which they are first asked for."""

    def __missing__(self, thing: object) -> int:
        self[thing] = len(self)
        return self[thing]


def _settled(places: Sequence[CaseConfiguration], times: Floats, ranks: Ints) -> Floats:
    """Return times in the order of limits; a row a case, a column a configuration.

    Those of a lower rank are settled first, and then bound the others.
    """
    less = np.array([[takes_no_less(one, other) for other in places] for one in places])
    settled = times.copy()
    for rank, rows in zip(*_alike_rows(ranks), strict=True):
        done = np.zeros(len(places), dtype=bool)
        for column in np.argsort(rank, kind="stable").tolist():
            if rank[column] > _RANKS[Basis.OTHER_SIZES]:
                below, above = done & less[column], done & less[:, column]
                some = settled[rows]
                time = np.maximum(some[:, column], some[:, below].max(axis=1, initial=0.0))
                settled[rows, column] = np.minimum(time, some[:, above].min(axis=1, initial=np.inf))
            done[column] = True
    return settled


def _alike_rows(ranks: Ints) -> tuple[Ints, list[Ints]]:
    """Return the different rows of a table, and the numbers of the rows that equal each."""
    different, numbers = np.unique(ranks, axis=0, return_inverse=True)
    return different, [np.flatnonzero(numbers.ravel() == one) for one in range(len(different))]


def in_order_of_limits(
    made: CasePredictions,
    entries: Sequence[TracedCase],
    known: Collection[MeasuredCase],
    predict: Callable[[Sequence[TracedCase]], CasePredictions],
) -> CasePredictions:
    """Return predictions of time in the order of what vendors document of configurations.

    Those that rest on more are settled first, and others between them: what no result determines of
    a card is that of another. From results of three devices an RTX 4090 was predicted slower than
    an RTX 3090 in 131 of 360 cases. A model that was measured in a configuration is not moved
    there.
    """
    measured = frozenset(entry.case.configuration for entry in known)
    of_place = cache(partial(ordered_configurations, measured=measured))
    # A matrix has a hundred thousand cases in a few configurations: each is hashed once.
    work, places = _Numbers(), _Numbers()
    of_work = [work[e.case.model, e.case.part, e.case.shapes] for e in entries]
    place_of = [entry.case.configuration for entry in entries]
    number = {(of_work[row], places[place]): row for row, place in enumerate(place_of)}
    by_place: dict[CaseConfiguration, list[int]] = {}
    for row, (entry, basis) in enumerate(zip(entries, made.basis, strict=True)):
        if _RANKS[basis] > _RANKS[Basis.OTHER_SIZES] and entry.case.has_operators:
            by_place.setdefault(place_of[row], []).append(row)
    by_place = {place: rows for place, rows in by_place.items() if len(of_place(place)) > 1}
    if not by_place:
        return made
    more: list[TracedCase] = []
    at: dict[CaseConfiguration, Ints] = {}
    for place, rows in by_place.items():
        at[place] = np.empty((len(rows), len(of_place(place))), dtype=np.int64)
        for column, other in enumerate(of_place(place)):
            for line, row in enumerate(rows):
                key = of_work[row], places[other]
                if key not in number:
                    number[key] = len(entries) + len(more)
                    case = replace(entries[row].case, configuration=other)
                    more.append(TracedCase(case, entries[row].passes))
                at[place][line, column] = number[key]
    others = BatchSeries.of([entry.case for entry in more]).rising(predict(more))
    value = np.concatenate([made.value, others.value])
    ranks = np.array([_RANKS[basis] for basis in (*made.basis, *others.basis)])
    for place, rows in by_place.items():
        settled = _settled(of_place(place), value[at[place]], ranks[at[place]])
        made.value[rows] = settled[:, of_place(place).index(place)]
    low, high = (
        np.minimum(made.low, made.value / SINGLE),
        np.maximum(made.high, made.value * SINGLE),
    )
    return replace(made, low=low, high=high)


#: The largest node of each series in which nothing larger was measured.
_LARGEST = 1024


@dataclass
class NodeRows:
    """The rows of a series, by batch.

    Attributes:
        settled: nodes that the store alone decides.
        beyond: larger ones, up to what is asked.
        between: batches that are asked beside them, and their rows.
        again: rows of cases that are asked twice, and the first row of each.
    """

    settled: dict[int, int] = field(default_factory=dict)
    beyond: dict[int, int] = field(default_factory=dict)
    between: list[tuple[int, int]] = field(default_factory=list)
    again: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class NodeCases:
    """Cases that are asked, and behind them the nodes of their series.

    Attributes:
        asked: how many of the entries are asked.
        series: the rows of each series.
    """

    entries: Sequence[TracedCase]
    asked: int
    series: Sequence[NodeRows]


def rising_with_batch(
    nodes: NodeCases,
    known: Collection[MeasuredCase],
    target: str,
    predict: Callable[[Sequence[TracedCase]], CasePredictions],
) -> CasePredictions:
    """Predictions of cases, no larger batch of a series below a smaller one.

    What was measured of other batches bounds nodes before they are pooled, and what is read off
    between them. A measured node leaves its neighbours no surer than that: read off between two as
    narrow as a single figure, three of nine cases of an H200 lay inside, and five lie so.
    """
    entries, series = nodes.entries, nodes.series
    if not entries:
        return predict(entries)
    cases = [entry.case for entry in entries]
    by_case = {entry.case: entry for entry in known}
    made = held_by_measured(predict(entries), cases, known, target)
    made = made.as_measured(cases, by_case, target)
    ends = np.stack([made.value, made.low, made.high])
    settled = np.array([row for rows in series for row in rows.settled.values()], dtype=np.int64)
    risen = BatchSeries.of([cases[row] for row in settled]).rising(made.at(settled))
    if target == LATENCY:  # the smaller of two rising series rises too
        risen = in_order_of_limits(risen, [entries[row] for row in settled], known, predict)
    ends[:, settled] = risen.value, risen.low, risen.high
    for rows in series:
        _go_on(ends, rows)
    value, low, high = ends
    asked = replace(made, value=value, low=low, high=high).at(np.arange(nodes.asked))
    return held_by_measured(asked, cases[: nodes.asked], known, target)


def with_nodes(traced: Sequence[TracedCase], known: Collection[MeasuredCase]) -> NodeCases:
    """Return what is asked, and behind it every node that is not."""
    entries = list(traced)
    cases = [entry.case for entry in traced]
    models = {case.model for case in cases}
    there = [entry.case for entry in known if entry.case.model in models]
    places = numbers_of_places([*cases, *there])
    measured: dict[tuple[object, ...], set[int]] = {}
    for case, place in zip(there, places[len(cases) :], strict=True):
        measured.setdefault(series_key(case, place), set()).add(case.shapes.batch)
    asked: dict[tuple[object, ...], dict[int, list[int]]] = {}
    for row, (case, place) in enumerate(zip(cases, places[: len(cases)], strict=True)):
        asked.setdefault(series_key(case, place), {}).setdefault(case.shapes.batch, []).append(row)
    series = []
    shapes: dict[tuple[object, int], Shapes] = {}
    for key, rows_of in asked.items():
        batches = measured.get(key, set())
        largest = max([_LARGEST, *batches])
        rows = NodeRows()
        first = traced[next(iter(rows_of.values()))[0]]
        powers = _powers(max([largest, *rows_of])) if first.case.has_operators else rows_of
        for batch in sorted({*powers, *batches}):
            if batch not in rows_of:
                size = key[-1], batch
                if size not in shapes:
                    shapes[size] = replace(first.case.shapes, batch=batch)
                case = first.case
                node = PredictedCase(
                    case.model, case.family, shapes[size], case.configuration, case.part
                )
                entries.append(TracedCase(node, first.passes))
            row = rows_of[batch][0] if batch in rows_of else len(entries) - 1
            (rows.settled if batch <= _up(largest) else rows.beyond)[batch] = row
        for batch, several in rows_of.items():
            if batch in rows.settled or batch in rows.beyond:
                rows.again += [(row, several[0]) for row in several[1:]]
            else:
                rows.between += [(batch, row) for row in several]
        series.append(rows)
    return NodeCases(entries, len(traced), series)


def _go_on(ends: Floats, rows: NodeRows) -> None:
    """Beyond what the store decides nothing falls; between two nodes all is on their line."""
    nodes = [*rows.settled.values()]
    for row in rows.beyond.values():
        ends[:, row] = np.maximum(ends[:, row], ends[:, nodes[-1]])
        nodes.append(row)
    for row, twin in rows.again:
        ends[:, row] = ends[:, twin]
    if rows.between:
        batches = np.log([*rows.settled, *rows.beyond])
        logs = np.log(np.maximum.accumulate(ends[:, nodes], axis=1))
        for batch, row in rows.between:
            ends[:, row] = [np.exp(np.interp(np.log(batch), batches, line)) for line in logs]


def _up(batch: int) -> int:
    """The least power of two that is no less."""
    return 1 << (batch - 1).bit_length()


def _powers(largest: int) -> list[int]:
    return [1 << power for power in range(_up(largest).bit_length())]

"""Predictions that rise with the batch and depend on nothing else that is asked. Pure numpy.

Pooled over the batches that happened to be asked, one case had 60 MB by itself and 72 beside
others. Each series, the cases that differ in their batch alone, is therefore predicted at the same
batches always, which are its nodes: powers of two, and what was measured. Those are made to rise.
What lies between two of them is read off the line between their logarithms, and so rises as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from accelbench.predict.case_predictions import CasePredictions
from accelbench.predict.cases import MeasuredCase, PredictedCase, numbers_of_places
from accelbench.predict.graphs import Floats
from accelbench.predict.monotone import BatchSeries, held_by_measured, series_key
from accelbench.predict.terms import TracedCase

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


def rising_with_batch(
    traced: Sequence[TracedCase],
    known: Collection[MeasuredCase],
    target: str,
    predict: Callable[[Sequence[TracedCase]], CasePredictions],
) -> CasePredictions:
    """Predictions of cases, no larger batch of a series below a smaller one.

    What was measured of other batches bounds nodes before they are pooled, and what is read off
    between them. A measured node leaves its neighbours no surer than that: read off between two as
    narrow as a single figure, three of nine cases of an H200 lay inside, and five lie so.

    Args:
        traced: what is asked.
        known: what was measured.
        target: latency or memory.
        predict: the predictions of any cases, each by itself.
    """
    if not traced:
        return predict(traced)
    entries, series = _with_nodes(traced, known)
    cases = [entry.case for entry in entries]
    by_case = {entry.case: entry for entry in known}
    made = held_by_measured(predict(entries), cases, known, target)
    made = made.as_measured(cases, by_case, target)
    ends = np.stack([made.value, made.low, made.high])
    settled = np.array([row for rows in series for row in rows.settled.values()], dtype=np.int64)
    risen = BatchSeries.of([cases[row] for row in settled]).rising(made.at(settled))
    ends[:, settled] = risen.value, risen.low, risen.high
    for rows in series:
        _go_on(ends, rows)
    value, low, high = ends
    asked = replace(made, value=value, low=low, high=high).at(np.arange(len(traced)))
    return held_by_measured(asked, cases[: len(traced)], known, target)


def _with_nodes(
    traced: Sequence[TracedCase], known: Collection[MeasuredCase]
) -> tuple[list[TracedCase], list[NodeRows]]:
    """What is asked and behind it every node that is not, with the rows of each series."""
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
    for key, rows_of in asked.items():
        batches = measured.get(key, set())
        largest = max([_LARGEST, *batches])
        rows = NodeRows()
        first = traced[next(iter(rows_of.values()))[0]]
        for batch in sorted({*_powers(max([largest, *rows_of])), *batches}):
            if batch not in rows_of:
                entries.append(replace(first, case=_at(first.case, batch)))
            row = rows_of[batch][0] if batch in rows_of else len(entries) - 1
            (rows.settled if batch <= _up(largest) else rows.beyond)[batch] = row
        for batch, several in rows_of.items():
            if batch in rows.settled or batch in rows.beyond:
                rows.again += [(row, several[0]) for row in several[1:]]
            else:
                rows.between += [(batch, row) for row in several]
        series.append(rows)
    return entries, series


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


def _at(case: PredictedCase, batch: int) -> PredictedCase:
    return replace(case, shapes=replace(case.shapes, batch=batch))


def _up(batch: int) -> int:
    """The least power of two that is no less."""
    return 1 << (batch - 1).bit_length()


def _powers(largest: int) -> list[int]:
    return [1 << power for power in range(_up(largest).bit_length())]

"""How much wider intervals are beyond what was measured. Pure numpy.

A process of residuals knows nothing of a batch of a million where eight was the largest, and says
so by no more than the variance that it began with. Half an interval therefore grows, as a
logarithm, by so much for each doubling between a case and the nearest that was measured in its
configuration: along batch, work and length, of which the farthest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.graphs import Floats, Ints
from accelbench.predict.intervals import LEVEL

#: Work, batch and length among the sizes of the kernel, and what makes doublings of them.
_COLUMNS = (0, 1, 3)
_DOUBLINGS = np.array([2.0 / np.log(2.0), 2.0, 2.0 / np.log(2.0)])
#: Within twice a size that was measured nothing is added.
_NEAR = 1.0
#: A doubling where too few larger batches were measured to count errors, and at least.
USUAL_WIDENING = 0.1
_LEAST_WIDENING = 0.05
_FEWEST_ERRORS = 20


def doublings_beyond(
    cases: Sequence[PredictedCase],
    sizes: Floats,
    known: Sequence[PredictedCase],
    known_sizes: Floats,
) -> Floats:
    """How many doublings beyond twice what was measured in its configuration each case lies.

    Where nothing was measured in a configuration, it is compared with all of them; without any it
    is 0, as peaks alone are as far off at any size.

    Args:
        cases: the cases.
        sizes: theirs, as the kernel has them.
        known: the measured cases.
        known_sizes: theirs.
    """
    apart = np.zeros(len(cases))
    if not len(known):
        return apart
    measured = _rows(known)
    for place, rows in _rows(cases).items():
        others = known_sizes[measured[place]] if place in measured else known_sizes
        for column, scale in zip(_COLUMNS, _DOUBLINGS, strict=True):
            nearest = _nearest(sizes[rows, column], others[:, column]) * scale
            apart[rows] = np.maximum(apart[rows], nearest)
    return np.maximum(apart - _NEAR, 0.0)


def _nearest(values: Floats, known: Floats) -> Floats:
    """How far each value is from the nearest known one."""
    ordered = np.unique(known)
    after = np.searchsorted(ordered, values).clip(0, len(ordered) - 1)
    before = (after - 1).clip(0)
    return np.asarray(np.minimum(np.abs(values - ordered[after]), np.abs(values - ordered[before])))


def larger_batches(cases: Sequence[PredictedCase]) -> Iterator[tuple[Ints, Floats]]:
    """Cases to leave out together: those above each batch that their configuration has.

    With each how many doublings it lies beyond twice the largest batch that is left.
    """
    batches = np.array([case.shapes.batch for case in cases], dtype=np.float64)
    rows = _rows(cases)
    for batch in np.unique(batches)[:-1].tolist():
        groups, beyond = np.full(len(cases), -1, dtype=np.int64), np.zeros(len(cases))
        for number, places in enumerate(rows.values()):
            if not (batches[places] <= batch).any():
                continue
            left = batches[places][batches[places] <= batch].max()
            larger = places[batches[places] > batch]
            groups[larger] = number
            beyond[larger] = np.log2(batches[larger] / left) - _NEAR
        if (beyond > 0.0).any():
            yield groups, np.maximum(beyond, 0.0)


def widening(excess: Floats, beyond: Floats) -> float:
    """What half an interval grows by for each doubling.

    Args:
        excess: by how much errors of left-out larger batches exceed their half intervals.
        beyond: how many doublings each lies beyond.
    """
    if len(excess) < _FEWEST_ERRORS:
        return USUAL_WIDENING
    each = np.sort(np.maximum(excess, 0.0) / beyond)
    rank = min(int(np.ceil((len(each) + 1) * LEVEL)), len(each)) - 1
    return max(float(each[rank]), _LEAST_WIDENING)


def _rows(cases: Sequence[PredictedCase]) -> dict[CaseConfiguration, Ints]:
    rows: dict[CaseConfiguration, list[int]] = {}
    for row, case in enumerate(cases):
        rows.setdefault(case.configuration, []).append(row)
    return {place: np.array(places, dtype=np.int64) for place, places in rows.items()}

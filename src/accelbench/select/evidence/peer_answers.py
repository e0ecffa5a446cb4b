"""The best answers of models at a place, each worked out once however many are like it.

A ranking of 1,300 models asks at eight platforms what the two hundred models most like each came
to there. Looked for anew among all of their cells that took two thirds of a minute.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import nsmallest

from accelbench.select.evidence.cells import EvidenceCell, EvidencePlace

#: A size, and the name of what has it.
Sized = tuple[float, str]
#: The cells of one model by platform and mode.
_ByWay = dict[tuple[str, str], list[EvidenceCell]]


class PeerAnswers:
    """What models came to, for as long as a store stays as it is.

    Args:
        cells_of: the cells of a model that anything may be chosen by.
    """

    def __init__(self, cells_of: Callable[[str], Iterable[EvidenceCell]]) -> None:
        self._cells_of = cells_of
        self._ways: dict[str, _ByWay] = {}
        self._best: dict[EvidencePlace, dict[str, list[EvidenceCell]]] = {}

    def of(self, models: Sequence[str], place: EvidencePlace) -> list[EvidenceCell]:
        """The best answer of each model to each question that was asked there, by batch."""
        asked = replace(place, family="", precisions=tuple(place.precisions))
        there, way = self._best.setdefault(asked, {}), (place.hardware, place.mode)
        for model in models:
            if model not in there:
                there[model] = place.best_of_each(self._by_way(model).get(way, ()))
        found = [cell for model in models for cell in there[model]]
        return sorted(found, key=lambda cell: (cell.batch, cell.order))

    def _by_way(self, model: str) -> _ByWay:
        if model not in self._ways:
            ways: _ByWay = {}
            for cell in self._cells_of(model):
                ways.setdefault((cell.hardware, cell.mode), []).append(cell)
            self._ways[model] = ways
        return self._ways[model]


def nearest_names(ordered: Sequence[Sized], size: float, most: int) -> list[str]:
    """The names whose sizes are nearest to one, the nearest first, of equals by name.

    Args:
        ordered: all of them, in their order.
        size: what they are to be near.
        most: how many.
    """
    middle = bisect_left(ordered, (size, ""))
    first = max(0, middle - most)
    if first:  # of one size those of the first names count
        first = bisect_left(ordered, (ordered[first][0], ""))
    near = ordered[first : middle + most]
    return [name for _, name in nsmallest(most, ((abs(one - size), name) for one, name in near))]

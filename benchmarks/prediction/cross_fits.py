"""A predictor of all cells, and others that never saw a share of the families, fitted together.

Fits run side by side where there are two cores, each in one thread: several threads in one fit
wait for each other longer than they work, since a step is a matrix of two thousand rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from accelbench.predict.signatures import Ints
from prediction.graph_predictor import Cells, GraphPredictor, GraphTable
from prediction.network_training import single_thread

FOLDS = 3
#: Fits for the errors alone take fewer epochs and trees.
FOLD_EPOCHS, FOLD_TREES = 20, 100
_SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Fold:
    """A predictor, and the rows whose families it never saw: None where it saw all."""

    unseen: Ints | None
    predictor: GraphPredictor

    def rows(self, cells: Cells) -> Ints:
        """The rows to judge it by."""
        return np.arange(len(cells)) if self.unseen is None else self.unseen


def fit_together(
    table: GraphTable, cells: Cells, *, folds: int = 0, seed: int = 0
) -> tuple[GraphPredictor, Sequence[Fold]]:
    """The predictor of all cells, and those of the folds of families."""
    whole = GraphPredictor(table, cells)
    parts = folds_of(table, cells, folds, seed)
    workers = max(1, min(_SIDE_BY_SIDE, len(parts) + 1, _cores()))
    with single_thread(), ThreadPoolExecutor(workers) as pool:
        fits = [pool.submit(whole.fit, seed=seed)]
        for fold in parts:
            fit = fold.predictor.fit
            fits.append(pool.submit(fit, seed=seed, epochs=FOLD_EPOCHS, trees=FOLD_TREES))
        for running in fits:
            running.result()
    return whole, parts


def folds_of(table: GraphTable, cells: Cells, folds: int, seed: int) -> list[Fold]:
    """Predictors that are not fitted yet, each without one share of the families."""
    names = sorted(set(cells.families))
    if not folds or len(names) < folds:
        return []
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[place]: n % folds for n, place in enumerate(order)}
    fold = np.array([fold_of[name] for name in cells.families])
    return [
        Fold(np.flatnonzero(fold == n), GraphPredictor(table, cells.only(fold != n)))
        for n in range(folds)
    ]


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

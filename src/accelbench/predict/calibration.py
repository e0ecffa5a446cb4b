"""How far predictions are off: errors on families, configurations and devices held out of training.

Families are held out by cross-fitting. Devices are held out by letting every measurement on one be
predicted from the others' configurations alone; the network has seen its times, but only through
weights that all configurations share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from accelbench.predict.anchors import ResidualInputs, choose_anchors, condition
from accelbench.predict.graph_predictor import Cells, GraphPredictor, GraphTable
from accelbench.predict.graphs import Floats, Ints
from accelbench.predict.intervals import LEVEL, family_weights, half_width, weighted_quantile
from accelbench.predict.operator_network import GraphBatches
from accelbench.predict.transfer import (
    BOTH_NEW,
    MEASURED,
    NEW_HARDWARE,
    NEW_MODEL,
    SAME_HARDWARE,
    TransferPredictor,
    distance,
)

FOLDS = 3
#: Fitting for the errors alone takes fewer epochs and trees: 3 % more error in the median.
_FOLD_EPOCHS, _FOLD_TREES = 30, 150
#: The logarithm by which a whole new device is off, beside what the devices at hand show: with two
#: or three of them, their own differences say little. Of GPUs 4–15 % was seen.
_DEVICE_SHIFT = {"cuda": 0.07, "cpu": 0.3}
#: Where nothing could be held out.
_PRIOR = {MEASURED: 0.05, SAME_HARDWARE: 0.15, NEW_MODEL: 0.35, NEW_HARDWARE: 0.3, BOTH_NEW: 0.5}
_NORMAL = 1.645  # nine in ten of a normal distribution
_HEAVY = 1.9  # of residuals on new devices, where none could be held out


@dataclass(frozen=True)
class HeldOut:
    """Errors of one kind of prediction: predicted less measured, in logarithms."""

    rows: Ints
    errors: Floats


@dataclass
class Calibration:
    """Half widths of intervals by basis, and what multiplies a process's deviation."""

    widths: dict[str, float] = field(default_factory=dict)
    anchored: float = _HEAVY

    def half_width(self, basis: str) -> float:
        return self.widths.get(basis, _PRIOR[basis])


def residual_inputs(
    table: GraphTable, graphs: Ints, configuration: Ints, noise: Floats
) -> ResidualInputs:
    """What the process of residuals sees of some rows."""
    pooled = table.pooled
    names = ("macs", "moved", "intensity", "weights", "moved_an_operator")
    columns = [pooled.names.index(name) for name in names]
    values = pooled.values[:, columns]
    smooth = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)
    return ResidualInputs(pooled.shares[graphs], smooth[graphs], configuration, noise)


def noise_of(basis: tuple[str, ...]) -> Floats:
    """What no neighbour explains of a row's residual: more where the model itself is predicted."""
    return np.array([0.12 if one in {NEW_MODEL, BOTH_NEW} else 0.08 for one in basis])


def calibrate(predictor: GraphPredictor, anchors: int = 0, *, seed: int = 0) -> Calibration:
    """Intervals for each basis, from whatever of the cells can be held out."""
    found = Calibration()
    kind = predictor.cells.configurations[0].kind
    folds = list(cross_fitted(predictor.table, predictor.cells, seed=seed))
    pieces: dict[str, list[HeldOut]] = {}
    for rows, fold in folds:
        pieces.setdefault(NEW_MODEL, []).append(_of_families(predictor.cells, rows, fold))
    pieces[SAME_HARDWARE] = list(_of_configurations(predictor))
    ratios: list[Floats] = []
    weights: list[Floats] = []
    for device in _devices(predictor.cells):
        pairs: list[tuple[Ints | None, GraphPredictor]] = [(None, predictor), *folds]
        for unseen, one in pairs:
            held = _of_device(one, device, predictor.cells, unseen)
            if held is None:
                continue
            basis = NEW_HARDWARE if unseen is None else BOTH_NEW
            pieces.setdefault(basis, []).append(held)
            if anchors:
                ratio = _anchored_ratio(predictor, held, basis, anchors, seed)
                ratios.append(ratio)
                weights.append(np.full(len(ratio), 1 / len(pairs)))
    for basis, several in pieces.items():
        if sum(len(one.rows) for one in several):
            found.widths[basis] = _width(predictor.cells, several, basis, kind)
    if ratios:
        found.anchored = weighted_quantile(np.concatenate(ratios), np.concatenate(weights), LEVEL)
    return found


def cross_fitted(
    table: GraphTable, cells: Cells, *, seed: int = 0, folds: int = FOLDS
) -> Iterator[tuple[Ints, GraphPredictor]]:
    """Each share of the families with a predictor that never saw them."""
    names = sorted(set(cells.families))
    if len(names) < folds:
        return
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[place]: n % folds for n, place in enumerate(order)}
    fold = np.array([fold_of[name] for name in cells.families])
    for one in range(folds):
        fitted = GraphPredictor(table, cells.only(fold != one))
        fitted.fit(seed=seed, epochs=_FOLD_EPOCHS, trees=_FOLD_TREES)
        yield np.flatnonzero(fold == one), fitted


def _of_families(cells: Cells, rows: Ints, fold: GraphPredictor) -> HeldOut:
    pairs = GraphBatches(cells.graph[rows], cells.batch[rows])
    return HeldOut(rows, fold.predict(pairs, cells.configuration[rows]) - cells.log_ms[rows])


def _devices(cells: Cells) -> list[str]:
    return list(dict.fromkeys(one.hardware for one in cells.configurations))


def _of_configurations(predictor: GraphPredictor) -> Iterator[HeldOut]:
    """Each configuration from the others on its hardware."""
    cells = predictor.cells
    for number, one in enumerate(cells.configurations):
        sources = [
            n
            for n, other in enumerate(cells.configurations)
            if n != number and other.hardware == one.hardware and distance(other, one) < 100
        ]
        if sources:
            rows = np.flatnonzero(cells.configuration == number)
            held = _errors(predictor, sources, cells, rows, own_times=True)
            kept = np.array([basis == SAME_HARDWARE for basis in held[1]], dtype=bool)
            yield HeldOut(rows[kept], held[0][kept])


def _of_device(
    predictor: GraphPredictor, device: str, cells: Cells, rows: Ints | None
) -> HeldOut | None:
    """Cells on a device from all other devices; the rows of a fold without their own times."""
    known = cells.configurations
    sources = [n for n, one in enumerate(known) if one.hardware != device]
    like = {
        number
        for number, one in enumerate(known)
        if one.hardware == device and any(distance(known[n], one) < 100 for n in sources)
    }
    mine = np.array([c in like for c in cells.configuration], dtype=bool)
    wanted = np.flatnonzero(mine) if rows is None else rows[mine[rows]]
    if not len(wanted):
        return None
    errors, basis = _errors(predictor, sources, cells, wanted, own_times=rows is None)
    kept = np.array([one == (NEW_HARDWARE if rows is None else BOTH_NEW) for one in basis])
    return HeldOut(wanted[kept], errors[kept]) if kept.any() else None


def _errors(
    predictor: GraphPredictor, sources: list[int], cells: Cells, rows: Ints, *, own_times: bool
) -> tuple[Floats, tuple[str, ...]]:
    transfer = TransferPredictor(predictor, sources, own_times=own_times)
    pairs = GraphBatches(cells.graph[rows], cells.batch[rows])
    found = transfer.predict(pairs, [cells.configurations[n] for n in cells.configuration[rows]])
    return found.log_ms - cells.log_ms[rows], found.basis


def _anchored_ratio(
    predictor: GraphPredictor, held: HeldOut, basis: str, anchors: int, seed: int
) -> Floats:
    """Errors after conditioning on anchors, in the process's standard deviations."""
    cells, rows = predictor.cells, held.rows
    inputs = residual_inputs(
        predictor.table, cells.graph[rows], cells.configuration[rows],
        noise_of((basis,) * len(rows)),
    )  # fmt: skip
    chosen = choose_anchors(inputs, anchors, seed)
    mean, deviation = condition(inputs, chosen, -held.errors[chosen])
    rest = np.setdiff1d(np.arange(len(rows)), chosen)
    return np.asarray(np.abs(held.errors + mean)[rest] / deviation[rest])


def _width(cells: Cells, several: list[HeldOut], basis: str, kind: str) -> float:
    errors = np.concatenate([one.errors for one in several])
    families = [cells.families[row] for one in several for row in one.rows]
    width = half_width(errors, families)
    if basis not in {NEW_HARDWARE, BOTH_NEW}:
        return width
    middle = abs(weighted_quantile(errors, family_weights(families), 0.5))
    shift = max(_NORMAL * _DEVICE_SHIFT.get(kind, 0.1) - middle, 0)
    return float(np.hypot(width, shift))

"""How far predictions are off: errors on families, configurations and devices held out of training.

Families are held out by cross-fitting. Devices are held out by letting every measurement on one be
predicted from the others' configurations alone; the network has seen its times, but only through
weights that all configurations share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.signatures import Floats, Ints
from prediction.anchors import ResidualInputs, choose_anchors, condition
from prediction.cross_fits import Fold
from prediction.graph_predictor import Cells, GraphPredictor, GraphTable
from prediction.intervals import family_weights, half_width, weighted_quantile
from prediction.measurements import TableConfiguration
from prediction.operator_network import GraphBatches
from prediction.transfer import (
    BOTH_NEW,
    MEASURED,
    NEW_HARDWARE,
    NEW_MODEL,
    SAME_HARDWARE,
    SHARES,
    TransferPredictor,
    software_distance,
)

#: The logarithm by which a whole new device is off, beside what the devices at hand show: with two
#: or three of them, their own differences say little. Of GPUs 4–15 % was seen.
_DEVICE_SHIFT = {"cuda": 0.07, "cpu": 0.3}
#: Where nothing could be held out: of one card from another 0.16 held nine in ten; of a CPU from
#: another 27 % of error in the median was seen elsewhere.
_PRIOR = {MEASURED: 0.05, SAME_HARDWARE: 0.15, NEW_MODEL: 0.35, NEW_HARDWARE: 0.22}
_PRIOR_OF_CPUS = {**_PRIOR, NEW_HARDWARE: 0.6}
#: Nine in ten errors after anchors, in the process's standard deviations, of cards each way.
_ANCHORED = {NEW_HARDWARE: 1.1, BOTH_NEW: 1.9}
_ANCHORED_OF_CPUS = {NEW_HARDWARE: 2.5, BOTH_NEW: 3.0}  # as of errors twice as large
#: Versions of a framework are alike below this: 1.13 is 7 from 2.4.
_LIKE, _ANY = 5.0, 100.0
#: Fits for the errors alone see two thirds of the families and are off by more than the fit of all.
_LESS_TRAINED = 0.93
_NOISE, _NEW_NOISE = 0.09, 0.1  # what no anchor explains of a row's residual
_NORMAL = 1.645  # nine in ten of a normal distribution


@dataclass(frozen=True)
class HeldOut:
    """Errors of one kind of prediction: predicted less measured, in logarithms."""

    rows: Ints
    errors: Floats
    shares: Floats  # of the time, by operator class


@dataclass
class Calibration:
    """Half widths of intervals by basis, and what multiplies a process's deviation."""

    kind: str
    widths: dict[str, float] = field(default_factory=dict)
    anchored: dict[str, float] = field(default_factory=dict)

    def half_width(self, basis: str) -> float:
        """Half an interval without anchors."""
        if basis in self.widths:
            return self.widths[basis]
        if basis == BOTH_NEW:
            return float(np.hypot(self.half_width(NEW_MODEL), self.half_width(NEW_HARDWARE)))
        return (_PRIOR_OF_CPUS if self.kind == "cpu" else _PRIOR)[basis]

    def deviations(self, basis: str) -> float:
        """Half an interval with anchors, in standard deviations."""
        assumed = _ANCHORED_OF_CPUS if self.kind == "cpu" else _ANCHORED
        return self.anchored.get(basis, assumed.get(basis, assumed[NEW_HARDWARE]))


def residual_inputs(
    table: GraphTable, graphs: Ints, shares: Floats, configuration: Ints, basis: tuple[str, ...]
) -> ResidualInputs:
    """What the process of residuals sees of some rows."""
    pooled = table.pooled
    names = ("macs", "moved", "intensity", "weights", "moved_an_operator")
    values = pooled.values[:, [pooled.names.index(name) for name in names]]
    sizes = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)
    noise = np.array([_NEW_NOISE if name in {NEW_MODEL, BOTH_NEW} else _NOISE for name in basis])
    return ResidualInputs(shares, sizes[graphs], configuration, noise)


def calibrate(
    predictor: GraphPredictor,
    folds: Sequence[Fold],
    wanted: Sequence[TableConfiguration] = (),
    anchors: int = 0,
    *,
    seed: int = 0,
) -> Calibration:
    """Intervals for each basis, from whatever of the cells can be held out."""
    cells = predictor.cells
    calibration = Calibration(cells.configurations[0].kind)
    pieces: dict[str, list[HeldOut]] = {SAME_HARDWARE: list(_of_configurations(predictor))}
    for fold in folds:
        pieces.setdefault(NEW_MODEL, []).append(_of_families(cells, fold))
    ratios: dict[str, list[Floats]] = {}
    reach = _reach(cells, wanted)
    for device in dict.fromkeys(known.hardware for known in cells.configurations):
        for fold in (Fold(None, predictor), *folds):
            held = _of_device(fold, device, cells, reach)
            if held is None:
                continue
            basis = NEW_HARDWARE if fold.unseen is None else BOTH_NEW
            pieces.setdefault(basis, []).append(held)
            if anchors:
                ratio = _anchored_ratio(predictor, held, basis, anchors, seed)
                ratios.setdefault(basis, []).append(ratio)
    for basis, several in pieces.items():
        if sum(len(held.rows) for held in several):
            calibration.widths[basis] = _width(cells, several, basis)
    for basis, some in ratios.items():
        calibration.anchored[basis] = float(np.quantile(np.concatenate(some), LEVEL))
    return calibration


def _reach(cells: Cells, wanted: Sequence[TableConfiguration]) -> float:
    """How unlike the software of a device that is held out may be to that of its sources.

    Where the new device runs what known ones run, errors between torch 1.10 and 2.4 say nothing
    of it: they are three times as large.
    """
    known = cells.configurations
    names = {configuration.hardware for configuration in known}
    new = [configuration for configuration in wanted if configuration.hardware not in names]
    nearest = [
        min(software_distance(source, configuration) for source in known) for configuration in new
    ]
    return _LIKE if max(nearest, default=0) < _LIKE else _ANY


def _of_families(cells: Cells, fold: Fold) -> HeldOut:
    rows = fold.rows(cells)
    pairs = GraphBatches(cells.graph[rows], cells.batch[rows])
    predicted = fold.predictor.predict(pairs, cells.configuration[rows])
    return HeldOut(rows, predicted - cells.log_ms[rows], np.zeros((len(rows), SHARES)))


def _of_configurations(predictor: GraphPredictor) -> Iterator[HeldOut]:
    """Each configuration from the others on its hardware."""
    cells = predictor.cells
    for number, wanted in enumerate(cells.configurations):
        sources = [
            n
            for n, other in enumerate(cells.configurations)
            if n != number
            and other.hardware == wanted.hardware
            and software_distance(other, wanted) < _ANY
        ]
        if sources:
            rows = np.flatnonzero(cells.configuration == number)
            yield _held_out(predictor, sources, cells, rows, SAME_HARDWARE)


def _of_device(fold: Fold, device: str, cells: Cells, reach: float) -> HeldOut | None:
    """Cells on a device from all other devices; the rows of a fold without their own times."""
    known = cells.configurations
    sources = [n for n, configuration in enumerate(known) if configuration.hardware != device]
    like = [
        configuration.hardware == device
        and any(software_distance(known[n], configuration) < reach for n in sources)
        for configuration in known
    ]
    rows = fold.rows(cells)
    wanted = rows[np.array(like)[cells.configuration[rows]]]
    if not len(wanted):
        return None
    basis = NEW_HARDWARE if fold.unseen is None else BOTH_NEW
    held = _held_out(fold.predictor, sources, cells, wanted, basis)
    return held if len(held.rows) else None


def _held_out(
    predictor: GraphPredictor, sources: list[int], cells: Cells, rows: Ints, basis: str
) -> HeldOut:
    """The errors of those rows that come about in one way."""
    transfer = TransferPredictor(predictor, sources, own_times=basis != BOTH_NEW)
    pairs = GraphBatches(cells.graph[rows], cells.batch[rows])
    times = transfer.predict(pairs, [cells.configurations[n] for n in cells.configuration[rows]])
    kept = np.array([name == basis for name in times.basis], dtype=bool)
    errors = times.log_ms - cells.log_ms[rows]
    return HeldOut(rows[kept], errors[kept], times.shares[kept])


def _anchored_ratio(
    predictor: GraphPredictor, held: HeldOut, basis: str, anchors: int, seed: int
) -> Floats:
    """Errors after conditioning on anchors, in the process's standard deviations."""
    cells, rows = predictor.cells, held.rows
    inputs = residual_inputs(
        predictor.table, cells.graph[rows], held.shares, cells.configuration[rows],
        (basis,) * len(rows),
    )  # fmt: skip
    chosen = choose_anchors(inputs, anchors, seed)
    mean, deviation = condition(inputs, chosen, -held.errors[chosen])
    rest = np.setdiff1d(np.arange(len(rows)), chosen)
    return np.asarray(np.abs(held.errors + mean)[rest] / deviation[rest])


def _width(cells: Cells, several: list[HeldOut], basis: str) -> float:
    errors = np.concatenate([held.errors for held in several])
    families = [cells.families[row] for held in several for row in held.rows]
    width = half_width(errors, families)
    if basis in {NEW_MODEL, BOTH_NEW}:
        width *= _LESS_TRAINED
    if basis not in {NEW_HARDWARE, BOTH_NEW}:
        return width
    middle = abs(weighted_quantile(errors, family_weights(families), 0.5))
    kind = cells.configurations[0].kind
    shift = max(_NORMAL * _DEVICE_SHIFT.get(kind, 0.1) - middle, 0)
    return float(np.hypot(width, shift))

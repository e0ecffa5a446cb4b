"""Predictions of a test table without operator graphs: empty cells of known devices, new devices.

Intervals are calibrated by treating devices of the training table as the test's are: as new ones
with as many anchors, or as known ones some of whose models are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accelbench.predict.device_limits import LEVEL
from accelbench.predict.scoring import Predictions
from accelbench.predict.signatures import Floats, Ints
from prediction.boosting import sklearn_is_here
from prediction.cells import METHOD as CELLS_METHOD
from prediction.cells import predict_cells
from prediction.device_grid import DeviceGrid, DeviceProcess, item_of
from prediction.intervals import weighted_quantile
from prediction.measurements import TableMeasurement
from prediction.repeats import MeasuredCells
from prediction.transfer import MEASURED, NEW_HARDWARE, SAME_HARDWARE

METHOD = "device vectors"
GRID_METHODS = (METHOD, CELLS_METHOD)
#: With fewer, their vectors say nothing of another device.
LEAST_DEVICES = 4
_MOST_KNOWN = 1500  # rows of one device that are conditioned on
_TRIED = 10  # devices of the training table by which intervals are calibrated
_LEFT_OUT = 0.2  # of the rows of a known device
_HEAVY = 1.9


def grid_rows(
    train: Sequence[TableMeasurement], test: Sequence[TableMeasurement], rows: Ints
) -> Ints:
    """The rows whose model, runtime and precision were measured on enough devices' kind."""
    if len({m.configuration.hardware for m in train}) < LEAST_DEVICES:
        return np.zeros(0, dtype=np.int64)
    items = {item_of(m) for m in train}
    return np.array([n for n in rows if item_of(test[int(n)]) in items], dtype=np.int64)


def predict_by_grid(
    train: Sequence[TableMeasurement],
    test: Sequence[TableMeasurement],
    rows: Ints,
    anchors: int,
    seed: int,
) -> tuple[Predictions, str]:
    """Predictions of rows whose items are known, all of one kind of hardware, and the method."""
    chosen = [test[int(n)] for n in rows]
    number = len(rows)
    predictions = Predictions(
        np.zeros(number), np.zeros(number), (NEW_HARDWARE,) * number, np.zeros(number, dtype=bool)
    )
    known = {m.configuration.hardware for m in train}
    measured = MeasuredCells(train)
    repeated = np.array([measured.has(m) for m in chosen])
    is_known = np.array([m.configuration.hardware in known for m in chosen])
    empty, method = np.flatnonzero(is_known & ~repeated), METHOD
    if len(empty):
        some, method = _predict_empty(train, [chosen[int(n)] for n in empty], seed)
        _fill(predictions, empty, some)
    if repeated.any():
        log_value = np.array([measured.log_value(chosen[int(n)]) for n in np.flatnonzero(repeated)])
        _fill(predictions, np.flatnonzero(repeated), (log_value, np.asarray(measured.half_width)))
    if not is_known.all():
        _predict_new(predictions, train, chosen, np.flatnonzero(~is_known), anchors, seed)
    basis = np.where(repeated, MEASURED, np.where(is_known, SAME_HARDWARE, NEW_HARDWARE))
    names = tuple(map(str, basis))
    return replace(predictions, basis=names), method


def _fill(predictions: Predictions, rows: Ints, some: tuple[Floats, Floats]) -> None:
    predictions.log_value[rows], predictions.half_width[rows] = some


def _predict_empty(
    train: Sequence[TableMeasurement], wanted: Sequence[TableMeasurement], seed: int
) -> tuple[tuple[Floats, Floats], str]:
    """Cells of known devices: by their neighbours or by device vectors, and by which.

    On phones boosting on neighbours was off by 3.7 % and vectors by 6.0, on boards with settings
    of threads by 7.0 and 5.6: held-out cells of the table itself decide.
    """
    known = _by_hardware(train)
    rng = np.random.default_rng(seed)
    held = _off_as_empty(train, known, rng)
    if sklearn_is_here():
        cells = predict_cells(train, wanted, seed)
        if not held or cells.error <= float(np.median(np.concatenate([pair[0] for pair in held]))):
            return (cells.log_value, cells.half_width), CELLS_METHOD
    grid = DeviceGrid.of(train)
    log_value, deviation = np.zeros(len(wanted)), np.zeros(len(wanted))
    hardware = np.array([m.configuration.hardware for m in wanted])
    for device in dict.fromkeys(hardware):
        mine = [int(n) for n in np.flatnonzero(hardware == device)]
        mean, spread, _ = _on_device(
            grid.without(device), known[device], [wanted[int(n)] for n in mine], 0, rng
        )
        log_value[mine], deviation[mine] = mean, spread
    return (log_value, deviation * _quantile([pair[1] for pair in held])), METHOD


def _predict_new(
    predictions: Predictions,
    train: Sequence[TableMeasurement],
    chosen: Sequence[TableMeasurement],
    rows: Ints,
    anchors: int,
    seed: int,
) -> None:
    """Devices that training does not know, by their anchors."""
    rng = np.random.default_rng(seed)
    grid = DeviceGrid.of(train)
    held = _off_as_new(train, anchors, rng)
    ratio = _quantile([pair[1] for pair in held])
    hardware = np.array([chosen[n].configuration.hardware for n in rows])
    for device in dict.fromkeys(hardware):
        mine = rows[hardware == device]
        mean, spread, picked = _on_device(grid, [], [chosen[int(n)] for n in mine], anchors, rng)
        _fill(predictions, mine, (mean, spread * ratio))
        predictions.anchor[mine[picked]] = True


def _by_hardware(train: Sequence[TableMeasurement]) -> dict[str, list[TableMeasurement]]:
    known: dict[str, list[TableMeasurement]] = {}
    for m in train:
        known.setdefault(m.configuration.hardware, []).append(m)
    return known


def _on_device(
    grid: DeviceGrid,
    own: Sequence[TableMeasurement],
    wanted: Sequence[TableMeasurement],
    anchors: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Ints]:
    """Means and deviations of the wanted rows on one device, and which of them are anchors."""
    if len(own) > _MOST_KNOWN:
        own = [own[n] for n in sorted(rng.choice(len(own), _MOST_KNOWN, replace=False))]
    rows = [*own, *wanted]
    process = DeviceProcess(grid, rows)
    places = np.arange(len(own), len(rows))
    given = np.arange(len(own))
    picked = np.zeros(0, dtype=np.int64)
    if anchors:
        picked = process.choose(places, anchors)
        given = np.concatenate([given, picked])
    truth = np.log([rows[int(n)].value for n in given]) if len(given) else np.zeros(0)
    mean, deviation = process.condition(given, truth, places)
    return mean, deviation, picked - len(own)


def _tried(
    known: dict[str, list[TableMeasurement]], fewest: int, rng: np.random.Generator
) -> list[str]:
    """Devices of the training table that stand for others: those with rows enough."""
    names = rng.permutation(sorted(known))[:_TRIED]
    return [str(name) for name in names if len(known[name]) >= fewest]


def _off_as_new(
    train: Sequence[TableMeasurement], anchors: int, rng: np.random.Generator
) -> list[Floats]:
    """Errors, and errors in deviations, of devices that are treated as new ones."""
    known = _by_hardware(train)
    errors: list[Floats] = []
    for name in _tried(known, 2 * anchors + 4, rng):
        grid = DeviceGrid.of([m for m in train if m.configuration.hardware != name])
        errors.append(_off(grid, [], _of_known_items(grid, known[name]), anchors, rng))
    return errors


def _off_as_empty(
    train: Sequence[TableMeasurement],
    known: dict[str, list[TableMeasurement]],
    rng: np.random.Generator,
) -> list[Floats]:
    """The same of cells that are treated as empty ones."""
    errors: list[Floats] = []
    for name in _tried(known, 4, rng):
        rows = known[name]
        others = [m for m in train if m.configuration.hardware != name]
        out = rng.random(len(rows)) < _LEFT_OUT
        kept = [m for m, is_out in zip(rows, out, strict=True) if not is_out]
        left = [m for m, is_out in zip(rows, out, strict=True) if is_out]
        grid = DeviceGrid.of([*others, *kept])
        errors.append(_off(grid.without(name), kept, _of_known_items(grid, left), 0, rng))
    return errors


def _quantile(several: list[Floats]) -> float:
    """Nine in ten of the ratios, each device counting alike."""
    several = [errors for errors in several if len(errors)]
    if not several:
        return _HEAVY
    weights = np.concatenate([np.full(len(errors), 1 / len(errors)) for errors in several])
    return weighted_quantile(np.concatenate(several), weights, LEVEL)


def _of_known_items(grid: DeviceGrid, rows: Sequence[TableMeasurement]) -> list[TableMeasurement]:
    return [m for m in rows if item_of(m) in grid.items]


def _off(
    grid: DeviceGrid,
    own: Sequence[TableMeasurement],
    wanted: Sequence[TableMeasurement],
    anchors: int,
    rng: np.random.Generator,
) -> Floats:
    """Errors of one device's rows, and errors in deviations."""
    if not wanted:
        return np.zeros((2, 0))
    mean, deviation, picked = _on_device(grid, own, wanted, anchors, rng)
    rest = np.setdiff1d(np.arange(len(wanted)), picked)
    truth = np.log([wanted[int(n)].value for n in rest])
    error = np.abs(mean[rest] - truth)
    return np.stack([error, error / deviation[rest]])

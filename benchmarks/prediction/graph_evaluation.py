"""Predictions of a test table whose operator graphs are known, trained on another table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.scoring import Predictions
from accelbench.predict.signatures import Ints
from prediction.anchors import choose_anchors, condition
from prediction.calibration import Calibration, calibrate, residual_inputs
from prediction.cross_fits import FOLDS, fit_together
from prediction.graph_predictor import Cells, GraphTable, cells_of
from prediction.measurements import TableMeasurement
from prediction.operator_network import GraphBatches
from prediction.transfer import TransferPredictor, TransferredTimes


@dataclass(frozen=True)
class GraphTask:
    """Predictions of rows, and what made them."""

    rows: Ints
    predictions: Predictions
    method: str


def predict_by_graph(
    train: Sequence[TableMeasurement],
    test: Sequence[TableMeasurement],
    rows: Ints,
    table: GraphTable,
    anchors: int,
    *,
    seed: int = 0,
) -> GraphTask | None:
    """Predictions of those rows of the test table, all of one kind of hardware, that have a graph.

    None where the training table has no measurement of the kind with a graph.
    """
    kind = test[int(rows[0])].configuration.kind
    cells = cells_of([m for m in train if m.configuration.kind == kind], table)
    with_graph = [n for n in rows if table.number(test[int(n)]) is not None]
    if not len(cells) or not with_graph:
        return None
    rows = np.array(with_graph, dtype=np.int64)
    chosen = [test[int(n)] for n in rows]
    graphs = np.array([table.graphs.index[m.graph] for m in chosen], dtype=np.int64)
    folds = FOLDS if _any_new(cells, graphs, chosen) else 0
    predictor, cross_fits = fit_together(table, cells, folds=folds, seed=seed)
    transfer = TransferPredictor(predictor, range(len(cells.configurations)))
    batch = np.array([m.batch for m in chosen], dtype=np.float64)
    times = transfer.predict(GraphBatches(graphs, batch), [m.configuration for m in chosen])
    configurations = list(dict.fromkeys(m.configuration for m in chosen))
    calibration = calibrate(predictor, cross_fits, configurations, anchors, seed=seed)
    widths = np.array([calibration.half_width(basis) for basis in times.basis])
    plain = Predictions(
        times.log_ms + np.log(batch), widths, times.basis, np.zeros(len(rows), dtype=bool)
    )
    if anchors:
        plain = _with_anchors(plain, chosen, graphs, times, table, calibration, anchors, seed)
    return GraphTask(rows, plain, predictor.basis)


def _any_new(cells: Cells, graphs: Ints, chosen: Sequence[TableMeasurement]) -> bool:
    """Whether a graph is to be predicted in a mode in which it was never measured."""
    modes = [configuration.mode for configuration in cells.configurations]
    known = {(int(g), modes[c]) for g, c in zip(cells.graph, cells.configuration, strict=True)}
    return any(
        (int(g), m.configuration.mode) not in known for g, m in zip(graphs, chosen, strict=True)
    )


def _with_anchors(
    plain: Predictions,
    measured: Sequence[TableMeasurement],
    graphs: Ints,
    times: TransferredTimes,
    table: GraphTable,
    calibration: Calibration,
    anchors: int,
    seed: int,
) -> Predictions:
    """The same, corrected on each device by as many of its own measurements."""
    log_value, half_width = plain.log_value.copy(), plain.half_width.copy()
    anchor = plain.anchor.copy()
    numbers = {m.configuration: n for n, m in enumerate(measured)}
    configuration = np.array([numbers[m.configuration] for m in measured], dtype=np.int64)
    hardware = np.array([m.configuration.hardware for m in measured])
    for device in dict.fromkeys(hardware):
        mine = np.flatnonzero(hardware == device)
        basis = tuple(plain.basis[int(n)] for n in mine)
        inputs = residual_inputs(
            table, graphs[mine], times.shares[mine], configuration[mine], basis
        )
        chosen = choose_anchors(inputs, anchors, seed)
        truth = np.log([measured[int(mine[n])].value for n in chosen])
        mean, deviation = condition(inputs, chosen, truth - log_value[mine[chosen]])
        log_value[mine] += mean
        half_width[mine] = deviation * [calibration.deviations(name) for name in basis]
        anchor[mine[chosen]] = True
    return Predictions(log_value, half_width, plain.basis, anchor)

"""The predictor of models whose operators are known, in configurations that were measured.

A prediction is 0.6 of the operator network and 0.4 of boosting on the residual of a roofline,
both as logarithms of milliseconds a sample. What is missing of torch and scikit-learn leaves the
other alone, and ridge regression takes the place of boosting; `basis` says which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from accelbench.core.device_facts import DeviceFacts, facts_of
from accelbench.predict.signatures import CLASSES, Floats, Ints
from accelbench.predict.traces import torch_is_here
from prediction.boosting import (
    BOOSTING,
    RIDGE,
    Regression,
    fit_regression,
    sklearn_is_here,
)
from prediction.graphs import OperatorGraphs
from prediction.measurements import TableConfiguration, TableMeasurement
from prediction.network_training import NetworkTargets, train_network
from prediction.operator_features import (
    PooledFeatures,
    operator_features,
    pooled_features,
)
from prediction.operator_network import (
    ClassTimes,
    ConfigurationLimits,
    GraphBatches,
    OperatorNetwork,
    summed_by_class,
)

NETWORK = "operator network"
_NETWORK_SHARE = 0.6
_LAUNCH_MS = 0.004  # of a kernel in eager mode, on every GPU of the tables within a factor of two
#: Of a device whose facts are not known: a middle one of its kind. Fitted efficiencies take up
#: the difference where it was measured.
_MIDDLE = {
    "cpu": DeviceFacts("a CPU", {"fp32": 1.5}, 80, "assumed"),
    "cuda": DeviceFacts("a GPU", {"fp32": 30, "fp16": 100}, 900, "assumed"),
}


def limits_of(configuration: TableConfiguration) -> DeviceFacts:
    """The facts of a configuration's device, or those of a middle one of its kind."""
    facts = facts_of(configuration.hardware)
    return facts or _MIDDLE.get(configuration.kind, _MIDDLE["cuda"])


def element_bytes(configuration: TableConfiguration) -> float:
    """Bytes of a value as it is moved; under autocast some tensors stay in fp32."""
    return 4.0 if configuration.precision in {"fp32", "float32"} else 2.0


def group_of(configuration: TableConfiguration) -> tuple[str, bool]:
    """What has a head of the network of its own: backward passes, and fused kernels."""
    return configuration.mode, configuration.compiled


@dataclass(frozen=True)
class GraphTable:
    """Operator graphs with what both learners see of them."""

    graphs: OperatorGraphs
    operators: Floats
    pooled: PooledFeatures

    @classmethod
    def of(cls, graphs: OperatorGraphs) -> GraphTable:
        return cls(graphs, operator_features(graphs), pooled_features(graphs))

    def number(self, measurement: TableMeasurement) -> int | None:
        """The graph of a measurement."""
        return self.graphs.index.get(measurement.graph)


@dataclass(frozen=True)
class Cells:
    """What was measured: a graph in a configuration, with the logarithm of ms a sample."""

    configurations: tuple[TableConfiguration, ...]
    graph: Ints
    configuration: Ints
    batch: Floats
    log_ms: Floats
    families: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.graph)

    def only(self, keep: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Cells:
        """Some of the cells; configurations keep their numbers."""
        families = tuple(f for f, kept in zip(self.families, keep, strict=True) if kept)
        return Cells(
            self.configurations, self.graph[keep], self.configuration[keep], self.batch[keep],
            self.log_ms[keep], families,
        )  # fmt: skip


def cells_of(measurements: Sequence[TableMeasurement], table: GraphTable) -> Cells:
    """The cells of measurements whose graph is known; several of one cell are averaged."""
    configurations = tuple(dict.fromkeys(m.configuration for m in measurements))
    number = {entry: n for n, entry in enumerate(configurations)}
    by_cell: dict[tuple[int, int], list[TableMeasurement]] = {}
    for m in measurements:
        if (graph := table.number(m)) is not None:
            by_cell.setdefault((graph, number[m.configuration]), []).append(m)
    logs = [np.mean([np.log(m.value / m.batch) for m in ms]) for ms in by_cell.values()]
    return Cells(
        configurations,
        np.array([graph for graph, _ in by_cell], dtype=np.int64),
        np.array([configuration for _, configuration in by_cell], dtype=np.int64),
        np.array([ms[-1].batch for ms in by_cell.values()], dtype=np.float64),
        np.array(logs, dtype=np.float64),
        tuple(ms[0].family for ms in by_cell.values()),
    )


@dataclass
class GraphPredictor:
    """Fitted to cells: predicts graphs in the same configurations."""

    table: GraphTable
    cells: Cells
    network: OperatorNetwork | None = None
    regression: Regression | None = None
    basis: str = ""
    _hidden: Floats | None = field(default=None, repr=False)

    def fit(self, *, seed: int = 0, epochs: int = 50, trees: int = 150) -> GraphPredictor:
        """Train on the cells, with whatever is installed."""
        learner = BOOSTING if sklearn_is_here() else RIDGE
        self.basis = learner
        if torch_is_here():
            self.network = train_network(
                self.table.graphs, self.table.operators, self._targets(), self._limits(),
                seed=seed, epochs=epochs,
            )  # fmt: skip
            self.basis = f"{NETWORK} and {learner}"
        pairs = GraphBatches(self.cells.graph, self.cells.batch)
        rows = self._rows(pairs, self.cells.configuration)
        target = self.cells.log_ms - self._roofline(pairs, self.cells.configuration)
        self.regression = fit_regression(
            rows,
            target,
            trees=trees,
            seed=seed,
            categories=(rows.shape[1] - 1,),
            rate=0.1,
            bins=63,  # two thirds of the time, and as good
        )
        return self

    def predict(self, pairs: GraphBatches, configuration: Ints) -> Floats:
        """Logarithms of milliseconds a sample of graphs, each in its configuration."""
        assert self.regression is not None
        if not len(configuration):
            return np.zeros(0)
        boosted = self.regression(self._rows(pairs, configuration))
        boosted = boosted + self._roofline(pairs, configuration)
        if self.network is None:
            return np.asarray(boosted)
        network = np.log(self.times(pairs, configuration).total)
        return np.asarray(_NETWORK_SHARE * network + (1 - _NETWORK_SHARE) * boosted)

    def times(self, pairs: GraphBatches, configuration: Ints) -> ClassTimes:
        """The times by operator class of graphs; a roofline's without a network."""
        size, classes = len(configuration), len(CLASSES)
        all_times = ClassTimes(np.zeros((size, classes)), np.zeros((size, classes)), np.zeros(size))
        for number in np.unique(configuration):
            mine = np.flatnonzero(configuration == number)
            times = self._times(GraphBatches(pairs.chosen[mine], pairs.batch[mine]), int(number))
            all_times.compute[mine], all_times.memory[mine] = times.compute, times.memory
            all_times.launch[mine] = times.launch
        return all_times

    def _times(self, pairs: GraphBatches, configuration: int) -> ClassTimes:
        if self.network is None:
            return self._bounds(pairs, configuration)
        if self._hidden is None:  # once for all operators: each is asked for many times
            self._hidden = self.network.hidden(self.table.operators)
        return self.network.times(self.table.graphs, self._hidden, pairs, configuration)

    def _targets(self) -> NetworkTargets:
        cells = self.cells
        chosen, row = np.unique(cells.graph, return_inverse=True)
        shape = (len(chosen), len(cells.configurations))
        log_ms, batch = np.full(shape, np.nan), np.full(shape, np.nan)
        log_ms[row, cells.configuration] = cells.log_ms
        batch[row, cells.configuration] = cells.batch
        typical = np.nanmedian(batch, axis=1, keepdims=True)
        return NetworkTargets(chosen, log_ms, np.where(np.isnan(batch), typical, batch))

    def _limits(self) -> ConfigurationLimits:
        facts = [limits_of(entry) for entry in self.cells.configurations]
        groups = list(dict.fromkeys(group_of(entry) for entry in self.cells.configurations))
        both = zip(facts, self.cells.configurations, strict=True)
        return ConfigurationLimits(
            np.array([fact.peak(entry.precision) for fact, entry in both]),
            np.array([fact.bandwidth for fact in facts]),
            np.array([element_bytes(entry) for entry in self.cells.configurations]),
            np.array([groups.index(group_of(entry)) for entry in self.cells.configurations]),
        )

    def _bounds(self, pairs: GraphBatches, configuration: int) -> ClassTimes:
        """Times of a roofline whose operators do not overlap."""
        table, wanted = self.table, self.cells.configurations[configuration]
        facts, f = limits_of(wanted), table.graphs.figures
        ops = table.graphs.operators(pairs.chosen)
        batch = np.repeat(pairs.batch, np.diff(table.graphs.start)[pairs.chosen])
        compute = 2 * f["macs"][ops] / 1e9 / facts.peak(wanted.precision)
        moved = (f["input_elements"] + f["output_elements"])[ops]
        moved = moved + f["weight_elements"][ops] / batch
        memory = moved * element_bytes(wanted) / 1e6 / facts.bandwidth
        count, bound = f["count"][ops], compute > memory
        return summed_by_class(
            table.graphs, pairs.chosen, count * compute * bound, count * memory * ~bound,
            count * _LAUNCH_MS / batch,
        )  # fmt: skip

    def _roofline(self, pairs: GraphBatches, configuration: Ints) -> Floats:
        values = np.zeros(len(configuration))
        for entry in np.unique(configuration):
            mine = np.flatnonzero(configuration == entry)
            some = GraphBatches(pairs.chosen[mine], pairs.batch[mine])
            values[mine] = np.log(self._bounds(some, int(entry)).total + 1e-9)
        return values

    def _rows(self, pairs: GraphBatches, configuration: Ints) -> Floats:
        """The features of boosting; the last one is the configuration's number."""
        of = np.array([
            [
                np.log(limits_of(entry).peak(entry.precision)), np.log(limits_of(entry).bandwidth),
                entry.compiled, entry.channels_last, entry.version, entry.mode == "training",
            ]
            for entry in self.cells.configurations
        ], dtype=np.float64)  # fmt: skip
        roofline = self._roofline(pairs, configuration)
        return np.column_stack([
            self.table.pooled.values[pairs.chosen], np.log2(pairs.batch), roofline,
            of[configuration], configuration,
        ])  # fmt: skip

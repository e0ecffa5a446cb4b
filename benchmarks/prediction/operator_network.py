"""The operator network: a model's time as the sum of its operators' times.

    time of an operator = count × (operations ÷ (peak × e_c) + bytes ÷ (bandwidth × e_m)
                                   + launch ÷ batch)

A small perceptron gives the logarithms of the efficiencies e_c and e_m from an operator's
features: a head that all configurations share, and deviations of each configuration that training
holds close to zero. Weights of a model are read once a batch. Here it is evaluated, with numpy;
`network_training` fits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accelbench.predict.signatures import CLASSES, Floats, Ints
from prediction.graphs import OperatorGraphs

HIDDEN = 48


@dataclass(frozen=True)
class ConfigurationLimits:
    """The limits of each configuration: one value of each a configuration."""

    peak: Floats  # 1e12 operations a second
    bandwidth: Floats  # 1e9 bytes a second
    element_bytes: Floats
    group: Ints  # configurations of one number share a head

    def __len__(self) -> int:
        return len(self.peak)


@dataclass(frozen=True)
class GraphBatches:
    """Graphs by number, each with the batch it runs at."""

    chosen: Ints
    batch: Floats


@dataclass(frozen=True)
class ClassTimes:
    """Milliseconds a sample of each graph, a column a class of operators."""

    compute: Floats
    memory: Floats
    launch: Floats  # of all classes together

    @property
    def total(self) -> Floats:
        """The whole time of each graph."""
        return np.asarray(self.compute.sum(axis=1) + self.memory.sum(axis=1) + self.launch)

    @property
    def shares(self) -> Floats:
        """Of the whole time: computing by class, memory by class, launches."""
        columns = np.column_stack([self.compute, self.memory, self.launch])
        return np.asarray(columns / (columns.sum(axis=1, keepdims=True) + 1e-12))

    def scaled(self, faster: float, wider: float) -> ClassTimes:
        """The same where computing and memory are that much faster."""
        return ClassTimes(self.compute / faster, self.memory / wider, self.launch)

    def rows(self, chosen: Ints) -> ClassTimes:
        """Those of some graphs."""
        return ClassTimes(self.compute[chosen], self.memory[chosen], self.launch[chosen])


def summed_by_class(
    graphs: OperatorGraphs, chosen: Ints, compute: Floats, memory: Floats, launch: Floats
) -> ClassTimes:
    """Class times of graphs from the times of their operators, in the graphs' order."""
    owner = np.repeat(np.arange(len(chosen)), np.diff(graphs.start)[chosen])
    cell = owner * len(CLASSES) + graphs.op_class[graphs.operators(chosen)]
    shape = (len(chosen), len(CLASSES))
    size = len(chosen) * len(CLASSES)
    return ClassTimes(
        _sums(cell, compute, size).reshape(shape), _sums(cell, memory, size).reshape(shape),
        _sums(owner, launch, len(chosen)),
    )  # fmt: skip


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(place, weights=values, minlength=size).astype(np.float64)


@dataclass(frozen=True)
class OperatorNetwork:
    """Trained weights as plain arrays, and the limits they were trained with."""

    weights: Mapping[str, Floats]
    limits: ConfigurationLimits

    def hidden(self, features: Floats) -> Floats:
        """What the perceptron makes of operators, alike in all configurations."""
        w = self.weights
        hidden = _silu(_silu(features @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"])
        return np.column_stack([hidden, features])

    def times(
        self, graphs: OperatorGraphs, hidden: Floats, pairs: GraphBatches, configuration: int
    ) -> ClassTimes:
        """The times of graphs in a configuration, by what is hidden of all operators."""
        ops = graphs.operators(pairs.chosen)
        batch = np.repeat(pairs.batch, np.diff(graphs.start)[pairs.chosen])
        f = {name: values[ops] for name, values in graphs.figures.items()}
        limits, count = self.limits, f["count"]
        own_peak, own_bandwidth = self._efficiencies(hidden[ops], configuration)
        compute = 2 * f["macs"] / 1e9 / limits.peak[configuration] * np.exp(-own_peak)
        moved = f["input_elements"] + f["output_elements"] + f["weight_elements"] / batch
        moved_ms = moved * limits.element_bytes[configuration] / 1e6
        memory = moved_ms / limits.bandwidth[configuration] * np.exp(-own_bandwidth)
        launch = np.exp(self.weights["launch"][configuration]) / batch
        return summed_by_class(
            graphs, pairs.chosen, count * compute, count * memory, count * launch
        )

    def _efficiencies(self, hidden: Floats, configuration: int) -> tuple[Floats, Floats]:
        """The logarithms of e_c and e_m of each operator."""
        w, mine = self.weights, slice(2 * configuration, 2 * configuration + 2)
        first = 2 * int(self.limits.group[configuration])
        shared = slice(first, first + 2)
        own = w["w3"][:, shared] + w["own_hidden"][:, mine]
        head = np.vstack([own, w["own_features"][:, mine]])
        both = hidden @ head + w["b3"][shared] + w["own_bias"][mine]
        return both[:, 0], both[:, 1]


def _silu(values: Floats) -> Floats:
    return np.asarray(values / (1 + np.exp(-np.clip(values, -60, 60))))

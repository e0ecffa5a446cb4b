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

from accelbench.predict.graphs import Floats, Ints, OperatorGraphs

HIDDEN = 48


@dataclass(frozen=True)
class ConfigurationLimits:
    """The limits of each configuration: one value of each a configuration."""

    peak: Floats  # 1e12 operations a second
    bandwidth: Floats  # 1e9 bytes a second
    element_bytes: Floats

    def __len__(self) -> int:
        return len(self.peak)


@dataclass(frozen=True)
class GraphBatches:
    """Graphs by number, each with the batch it runs at."""

    chosen: Ints
    batch: Floats


@dataclass(frozen=True)
class OperatorNetwork:
    """Trained weights as plain arrays, and the limits they were trained with."""

    weights: Mapping[str, Floats]
    limits: ConfigurationLimits

    def parts(
        self, graphs: OperatorGraphs, features: Floats, pairs: GraphBatches, configuration: int
    ) -> tuple[Floats, Floats, Floats]:
        """Milliseconds a sample in a configuration: compute, memory, launches of each graph."""
        ops = graphs.operators(pairs.chosen)
        owner = np.repeat(np.arange(len(pairs.chosen)), np.diff(graphs.start)[pairs.chosen])
        f = {name: values[ops] for name, values in graphs.figures.items()}
        limits, count, batch = self.limits, f["count"], pairs.batch[owner]
        own_peak, own_bandwidth = self._efficiencies(features[ops], configuration)
        compute = 2 * f["macs"] / 1e9 / limits.peak[configuration] * np.exp(-own_peak)
        moved = f["input_elements"] + f["output_elements"] + f["weight_elements"] / batch
        moved_ms = moved * limits.element_bytes[configuration] / 1e6
        memory = moved_ms / limits.bandwidth[configuration] * np.exp(-own_bandwidth)
        launch = np.exp(self.weights["launch"][configuration]) / batch
        compute, memory, launch = (
            np.bincount(owner, weights=count * one, minlength=len(pairs.chosen)).astype(np.float64)
            for one in (compute, memory, launch)
        )
        return compute, memory, launch

    def _efficiencies(self, features: Floats, configuration: int) -> tuple[Floats, Floats]:
        """The logarithms of e_c and e_m of each operator."""
        w, mine = self.weights, slice(2 * configuration, 2 * configuration + 2)
        hidden = _silu(_silu(features @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"])
        both = hidden @ (w["w3"] + w["own_hidden"][:, mine]) + w["b3"] + w["own_bias"][mine]
        both = both + features @ w["own_features"][:, mine]
        return both[:, 0], both[:, 1]


def _silu(values: Floats) -> Floats:
    return np.asarray(values / (1 + np.exp(-np.clip(values, -60, 60))))

"""Features of operators and of whole graphs, for the network and for boosting. Pure.

Sizes enter as logarithms: efficiencies change with the order of magnitude of M, N and K, and with
whether they are multiples of 8 and 64, in which matrix units work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accelbench.predict.signatures import CLASSES, MULTIPLYING, Floats, Ints
from prediction.graphs import OperatorGraphs

_INTENSITY_EDGES = (0, 4, 16, 48, 128, 384, np.inf)
_RIDGES = (30, 75, 160, 400)  # operations a byte at which rooflines bend, GPUs of five years


@dataclass(frozen=True)
class PooledFeatures:
    """One row a graph."""

    names: tuple[str, ...]
    values: Floats  # graphs × features
    shares: Floats  # graphs × classes: of the time on a typical roofline


def operator_features(graphs: OperatorGraphs) -> Floats:
    """What the operator network sees of each operator."""
    f, kind = graphs.figures, graphs.op_class
    multiplies = kind < MULTIPLYING
    moved = f["input_elements"] + f["output_elements"]
    width = np.maximum(f["k"] / np.maximum(f["kernel"], 1), 1)
    per_graph = _totals(graphs.graph_of, f["count"], len(graphs))
    columns = [
        np.eye(len(CLASSES))[kind],
        _log(f["macs"]) / 10 - 1.5,
        _log(f["input_elements"]) / 5 - 2.5,
        _log(f["weight_elements"]) / 5 - 2,
        _log(f["output_elements"]) / 5 - 2.5,
        (_log(f["macs"]) - _log(moved)) / 3 * multiplies,
        *(_log(f[name]) / 4 - 1 for name in ("m", "n", "k")),
        _log(f["groups"]) / 4,
        _log(f["kernel"]) / 3,
        f["stride"] > 1,
        *((f[name] % step != 0) & multiplies for step in (8, 64) for name in ("k", "n")),
        _log(width) / 4 * (kind == CLASSES.index("grp")),
        f["input_elements"] > 1.5 * f["output_elements"],
        _log(per_graph[graphs.graph_of]) / 5 - 1,
    ]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def pooled_features(graphs: OperatorGraphs) -> PooledFeatures:
    """Sums and shares over the operators of each graph."""
    pool = _Pool(graphs)
    pool.totals_by_class()
    pool.intensities()
    pool.widths()
    pool.kinds_of_convolution()
    pool.rooflines()
    names = tuple(pool.columns)
    values = np.column_stack([pool.columns[name] for name in names])
    return PooledFeatures(names, values, _shares(graphs, pool))


def _totals(owner: Ints, values: Floats, number: int) -> Floats:
    return np.bincount(owner, weights=values, minlength=number).astype(np.float64)


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, 1)))


class _Pool:
    """Collects features by name."""

    def __init__(self, graphs: OperatorGraphs) -> None:
        self.graphs, self.f, self.kind = graphs, graphs.figures, graphs.op_class
        self.owner = graphs.graph_of
        self.count = self.f["count"]
        self.multiplies = self.kind < MULTIPLYING
        self.macs = self.f["macs"] * self.count
        self.moved = (self.f["input_elements"] + self.f["output_elements"]) * self.count
        self.all_macs = self.sum(self.macs) + 1
        self.all_moved = self.sum(self.moved) + 1
        self.columns: dict[str, Floats] = {}

    def sum(self, values: Floats) -> Floats:
        return _totals(self.owner, values, len(self.graphs))

    def totals_by_class(self) -> None:
        out = self.f["output_elements"] * self.count
        for number, name in enumerate(CLASSES):
            mine = self.kind == number
            self.columns[f"count_{name}"] = np.log1p(self.sum(self.count * mine))
            moved = self.sum(self.moved * mine)
            self.columns[f"moved_{name}"] = np.log1p(moved)
            self.columns[f"moved_share_{name}"] = moved / self.all_moved
            self.columns[f"out_share_{name}"] = self.sum(out * mine) / self.all_moved
            if number < MULTIPLYING:
                macs = self.sum(self.macs * mine)
                self.columns[f"macs_{name}"] = np.log1p(macs)
                self.columns[f"macs_share_{name}"] = macs / self.all_macs
        self.columns["macs"] = np.log(self.all_macs)
        self.columns["moved"] = np.log(self.all_moved)
        self.columns["weights"] = np.log1p(self.sum(self.f["weight_elements"] * self.count))
        self.columns["operators"] = np.log1p(self.sum(self.count))
        self.columns["moved_an_operator"] = self.columns["moved"] - self.columns["operators"]
        self.columns["intensity"] = self.columns["macs"] - self.columns["moved"]
        largest = np.zeros(len(self.graphs))
        np.maximum.at(largest, self.owner, self.f["output_elements"])
        self.columns["largest_output"] = np.log1p(largest)
        sdpa = self.kind == CLASSES.index("sdpa")
        scores = self.f["groups"] * self.f["m"] * self.f["n"] * self.count * sdpa
        self.columns["attention_scores"] = np.log1p(self.sum(scores))
        masked = self.count * (sdpa & (self.f["kernel"] > 0))
        self.columns["masked_attention"] = np.log1p(self.sum(masked))

    def intensities(self) -> None:
        moved = self.f["input_elements"] + self.f["output_elements"]
        intensity = self.f["macs"] / np.maximum(moved, 1)
        for low, high in pairwise(_INTENSITY_EDGES):
            mine = self.multiplies & (intensity >= low) & (intensity < high)
            self._both(f"intensity_{low}", mine)

    def widths(self) -> None:
        for name in ("m", "n", "k"):
            weighted = self.macs * np.log2(np.maximum(self.f[name], 1)) * self.multiplies
            self.columns[f"mean_{name}"] = self.sum(weighted) / self.all_macs
        for name in ("n", "k"):
            for step in (8, 64):
                odd = self.multiplies & (self.f[name] % step != 0)
                self.columns[f"{name}_off_{step}"] = self.sum(self.macs * odd) / self.all_macs
            small = self.multiplies & (self.f[name] < 64)
            self.columns[f"{name}_below_64"] = self.sum(self.macs * small) / self.all_macs

    def kinds_of_convolution(self) -> None:
        kernel, stride = self.f["kernel"], self.f["stride"]
        width = np.maximum(self.f["k"] / np.maximum(kernel, 1), 1)
        conv, dw, grp = (self.kind == CLASSES.index(name) for name in ("conv", "dw", "grp"))
        kinds = {
            "grouped_8": grp & (width <= 8),
            "grouped_16": grp & (width > 8) & (width <= 16),
            "grouped_32": grp & (width > 16) & (width <= 32),
            "grouped_wide": grp & (width > 32),
            "depthwise_3": dw & (kernel <= 9),
            "depthwise_5": dw & (kernel > 9) & (kernel <= 25),
            "depthwise_7": dw & (kernel > 25) & (kernel <= 49),
            "depthwise_large": dw & (kernel > 49),
            "depthwise_strided": dw & (stride > 1),
            "conv_3": conv & (kernel == 9),
            "conv_large": conv & (kernel > 9),
            "conv_strided": conv & (stride > 1),
            "stem": conv & (width <= 4),
        }
        for name, mine in kinds.items():
            self._both(name, mine)

    def rooflines(self) -> None:
        for ridge in _RIDGES:
            compute, memory = 2 * self.macs / ridge, 2 * self.moved
            time = np.maximum(compute, memory)
            total = self.sum(time) + 1
            self.columns[f"roofline_{ridge}"] = np.log(total)
            bound = self.sum(time * (compute > memory))
            self.columns[f"compute_bound_{ridge}"] = bound / total
        fused = self.sum(self.moved * self.multiplies)
        self.columns["moved_if_fused"] = np.log1p(fused)
        self.columns["fused_share"] = fused / self.all_moved

    def _both(self, name: str, mine: NDBools) -> None:
        self.columns[f"{name}_macs"] = self.sum(self.macs * mine) / self.all_macs
        self.columns[f"{name}_moved"] = self.sum(self.moved * mine) / self.all_moved


NDBools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def _shares(graphs: OperatorGraphs, pool: _Pool) -> Floats:
    """Each class's share of the time where 75 operations take as long as a byte."""
    time = np.maximum(2 * pool.macs / _RIDGES[1], 2 * pool.moved)
    by_class = np.zeros((len(graphs), len(CLASSES)))
    np.add.at(by_class, (pool.owner, graphs.op_class), time)
    return np.asarray(by_class / (by_class.sum(axis=1, keepdims=True) + 1e-9))

"""Fitting the operator network with torch, all configurations at once.

Smooth L1 on the logarithm of whole models' times, AdamW with one cycle of the learning rate. The
deviations of configurations decay a hundred times as strongly as the shared weights: without that,
a configuration of few models remembers them (measured: 0.5 points more error on unseen families).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelbench.core.errors import MissingExtraError
from accelbench.predict.signatures import Floats, Ints
from accelbench.predict.traces import torch_is_here
from prediction.graphs import OperatorGraphs
from prediction.operator_network import HIDDEN, ConfigurationLimits, OperatorNetwork

_BETA = 0.08  # of smooth L1: residuals below 8 % count squared
_RATE = 4e-3
_DECAY = 1e-4
_OWN = ("own_hidden", "own_bias", "own_features")


@dataclass(frozen=True)
class NetworkTargets:
    """What is fitted: a row a graph, a column a configuration; NaN where nothing was measured."""

    chosen: Ints  # the graphs
    log_ms: Floats  # milliseconds a sample
    batch: Floats


@contextmanager
def single_thread() -> Iterator[None]:
    """torch with one thread to an operation, where it is installed."""
    if not torch_is_here():
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_network(
    graphs: OperatorGraphs,
    features: Floats,
    targets: NetworkTargets,
    limits: ConfigurationLimits,
    *,
    seed: int = 0,
    epochs: int = 50,
    graphs_a_step: int = 32,
) -> OperatorNetwork:
    """A network fitted to the targets.

    Raises:
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "Training an operator network") from error
    fit = _Fit(torch, graphs, features, targets, limits, seed)
    rng = np.random.default_rng(seed)
    number = len(targets.chosen)
    steps = epochs * -(-number // graphs_a_step)
    fit.begin(steps)
    for _ in range(epochs):
        order = rng.permutation(number)
        for first in range(0, number, graphs_a_step):
            fit.step(order[first : first + graphs_a_step])
    weights = {name: value.detach().double().numpy() for name, value in fit.weights.items()}
    return OperatorNetwork(weights, limits)


class _Fit:
    """The tensors of one fit, and a step of it."""

    def __init__(
        self,
        torch: Any,
        graphs: OperatorGraphs,
        features: Floats,
        targets: NetworkTargets,
        limits: ConfigurationLimits,
        seed: int,
    ) -> None:
        self.torch = torch
        ops = graphs.operators(targets.chosen)
        self.sizes = np.diff(graphs.start)[targets.chosen]
        self.start = np.r_[0, np.cumsum(self.sizes)]
        f = graphs.figures
        each = (f["input_elements"] + f["output_elements"])[ops]
        count = f["count"][ops]
        self.features = self._tensor(features[ops])
        self.operations = self._tensor(count * 2 * f["macs"][ops] / 1e9)
        self.moved = self._tensor(count * each)
        self.weight_elements = self._tensor(count * f["weight_elements"][ops])
        self.count = self._tensor(count)
        self.known = torch.tensor(~np.isnan(targets.log_ms))
        self.log_ms = self._tensor(np.nan_to_num(targets.log_ms))
        self.batch = self._tensor(targets.batch)
        self.seconds = self._tensor(1 / limits.peak)
        self.byte_ms = self._tensor(limits.element_bytes / 1e6 / limits.bandwidth)
        self.shared = torch.from_numpy((2 * limits.group[:, None] + np.arange(2)).ravel())
        self.weights = self._initial(features.shape[1], len(limits), int(limits.group.max()), seed)

    def _tensor(self, values: Floats) -> Any:
        return self.torch.tensor(np.ascontiguousarray(values), dtype=self.torch.float32)

    def _initial(
        self, inputs: int, configurations: int, last_group: int, seed: int
    ) -> dict[str, Any]:
        rng = np.random.default_rng(seed)

        def uniform(*shape: int, fan: int) -> Floats:
            return np.asarray(rng.uniform(-1, 1, shape) / np.sqrt(fan))

        arrays = {
            "w1": uniform(inputs, HIDDEN, fan=inputs),
            "b1": uniform(HIDDEN, fan=inputs),
            "w2": uniform(HIDDEN, HIDDEN, fan=HIDDEN),
            "b2": uniform(HIDDEN, fan=HIDDEN),
            "w3": np.tile(uniform(HIDDEN, 2, fan=HIDDEN), last_group + 1),
            # Half the peak, two thirds of the bandwidth.
            "b3": np.tile([-0.7, -0.4], last_group + 1),
            "own_hidden": np.zeros((HIDDEN, 2 * configurations)),
            "own_bias": np.zeros(2 * configurations),
            "own_features": np.zeros((inputs, 2 * configurations)),
            "launch": np.full(configurations, -5.0),  # 7 microseconds
        }
        return {name: self._tensor(array).requires_grad_() for name, array in arrays.items()}

    def begin(self, steps: int) -> None:
        """Make the optimiser."""
        own = [value for name, value in self.weights.items() if name in _OWN]
        shared = [value for name, value in self.weights.items() if name not in _OWN]
        groups = [
            {"params": own, "weight_decay": _DECAY * 100},
            {"params": shared, "weight_decay": _DECAY},
        ]
        self.optimizer = self.torch.optim.AdamW(groups, lr=_RATE, fused=True)
        self.schedule = self.torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, _RATE, total_steps=steps, pct_start=0.15
        )

    def step(self, rows: Ints) -> None:
        """Fit one handful of graphs."""
        torch = self.torch
        known = self.known[rows]
        residual = (self._log_ms(rows) - self.log_ms[rows])[known]
        loss = torch.nn.functional.smooth_l1_loss(residual, torch.zeros_like(residual), beta=_BETA)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self.optimizer.step()
        self.schedule.step()

    def _log_ms(self, rows: Ints) -> Any:
        torch, w = self.torch, self.weights
        ops = np.concatenate([np.arange(self.start[r], self.start[r + 1]) for r in rows])
        owner = torch.from_numpy(np.repeat(np.arange(len(rows)), self.sizes[rows]))
        ops = torch.from_numpy(ops)
        features, an_image = self.features[ops], 1 / self.batch[rows]
        number = len(self.seconds)
        silu, affine = torch.nn.functional.silu, torch.addmm
        hidden = silu(affine(w["b1"], features, w["w1"]))
        hidden = silu(affine(w["b2"], hidden, w["w2"]))
        # One product for the shared head and the deviations of all configurations: a third faster.
        head = torch.cat([w["own_hidden"] + w["w3"][:, self.shared], w["own_features"]])
        bias = w["own_bias"] + w["b3"][self.shared]
        slowness = torch.exp(-affine(bias, torch.cat([hidden, features], 1), head))
        slowness = slowness.view(len(ops), number, 2)
        moved = self.moved[ops][:, None] + self.weight_elements[ops][:, None] * an_image[owner]
        time = slowness[:, :, 0] * self.operations[ops][:, None] * self.seconds
        time = time + slowness[:, :, 1] * (moved * self.byte_ms)
        total = torch.zeros(len(rows), number).index_add(0, owner, time)
        launches = torch.zeros(len(rows)).index_add(0, owner, self.count[ops])[:, None]
        return torch.log(total + torch.exp(w["launch"]) * an_image * launches + 1e-9)

"""AdamW and SGD as torch has them, as pure functions on weights by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accelbench.runtimes.jax.lowering import Arrays
from accelbench.runtimes.pytorch.procedures.train import MOMENTUM

#: By what it keeps: an array for each weight, and the number of steps.
State = dict[str, Any]
Update = Callable[[Arrays, Arrays, State, float], tuple[Arrays, State]]

# torch.optim.AdamW's defaults.
_BETAS, _EPSILON, _DECAY = (0.9, 0.999), 1e-8, 1e-2


def start(optimizer: str, weights: Arrays, device: Any) -> State:
    """Before the first step: all zeros."""
    kept = ("first", "second") if optimizer == "adamw" else ("first",)
    # Made on the host: of so many shapes, each would be a program of its own to compile.
    zeros: State = {name: jax.tree.map(_zeros, weights) for name in kept}
    return {**zeros, "count": jax.device_put(np.zeros((), np.int32), device)}


def _zeros(weight: Any) -> Any:
    return jnp.array(np.zeros(weight.shape, weight.dtype), device=weight.device)


def adamw(weights: Arrays, gradients: Arrays, state: State, rate: float) -> tuple[Arrays, State]:
    """The step of torch.optim.AdamW."""
    count = state["count"] + 1
    beta1, two = _BETAS
    first = _mixed(beta1, state["first"], gradients)
    second = _mixed(two, state["second"], jax.tree.map(jnp.square, gradients))
    steps = count.astype(jnp.float32)
    step, root = rate / (1 - beta1**steps), jnp.sqrt(1 - two**steps)

    def moved(weight: Any, m: Any, v: Any) -> Any:
        new_weight = weight * (1 - rate * _DECAY) - step * m / (jnp.sqrt(v) / root + _EPSILON)
        return new_weight.astype(weight.dtype)

    weights = jax.tree.map(moved, weights, first, second)
    return weights, {"first": first, "second": second, "count": count}


def sgd(weights: Arrays, gradients: Arrays, state: State, rate: float) -> tuple[Arrays, State]:
    """The step of torch.optim.SGD with momentum.

    torch begins with the first gradients where zeros are here, which is the same.
    """
    first = jax.tree.map(lambda m, g: MOMENTUM * m + g, state["first"], gradients)
    weights = jax.tree.map(lambda w, m: w - rate * m, weights, first)
    return weights, {"first": first, "count": state["count"] + 1}


def _mixed(share: float, old: Arrays, new: Arrays) -> Arrays:
    mixed: Arrays = jax.tree.map(lambda o, n: share * o + (1 - share) * n, old, new)
    return mixed


UPDATES: dict[str, Update] = {"adamw": adamw, "sgd": sgd}

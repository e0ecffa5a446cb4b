"""Where a model's arrays lie: on one device, or over several that make each step together.

    ddp    each device has all weights and a part of the batch
    fsdp   each device has a part of each weight, of its gradient and of its moments, and of the
           batch; a step gathers each weight once, and scatters its gradient

The step is one program of the whole batch, as of one device; XLA splits it by where its arguments
lie, and puts the collectives where they are needed. Where weights are in parts it is told that
products read them whole: by itself it may exchange results in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_AXIS = "devices"
#: Axes of a weight that is split at least: biases and the like are small, and each would be
#: gathered by a collective of its own.
_SPLIT_FROM = 2


@dataclass(frozen=True)
class Layout:
    """Devices or shardings, as `device=` of jax.numpy takes either."""

    whole: Any  # of what each device has all of
    batch: Any  # of what has the batch as its first axis
    mesh: Mesh | None = None  # None: of one device
    splits: bool = False  # whether weights are in parts

    @classmethod
    def on(cls, device: Any) -> Layout:
        """Everything on one device."""
        return cls(device, device)

    @classmethod
    def over(cls, devices: Sequence[Any], strategy: str) -> Layout:
        """The batch over several devices, and the weights as well where the strategy has it so."""
        mesh = Mesh(np.asarray(devices), (_AXIS,))
        return cls(
            NamedSharding(mesh, PartitionSpec()),
            NamedSharding(mesh, PartitionSpec(_AXIS)),
            mesh,
            strategy == "fsdp",
        )

    @property
    def devices(self) -> int:
        return 1 if self.mesh is None else self.mesh.size

    def of_weight(self, shape: Sequence[int]) -> Any:
        """Of a weight: in parts along its longest axis that comes out even, or whole."""
        even = [axis for axis, size in enumerate(shape) if size and size % self.devices == 0]
        if self.mesh is None or not self.splits or len(shape) < _SPLIT_FROM or not even:
            return self.whole
        longest = max(even, key=lambda axis: shape[axis])
        parts = [_AXIS if axis == longest else None for axis in range(len(shape))]
        return NamedSharding(self.mesh, PartitionSpec(*parts))

    def gathered(self, weights: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Weights as a forward pass reads them, whole; their gradients come back in parts."""
        if self.mesh is None or not self.splits:
            return weights
        return {
            name: _gathered(weight, self.whole, self.of_weight(weight.shape))
            for name, weight in weights.items()
        }

    def kept(self, arrays: Any) -> Any:
        """Where a step's results have to lie so that the next step takes them; None on one device.

        Args:
            arrays: a tree of what the step was given in their place.
        """
        if self.mesh is None:
            return None
        return jax.tree.map(lambda array: array.sharding, arrays)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _gathered(weight: jax.Array, whole: NamedSharding, _part: NamedSharding) -> jax.Array:
    return jax.lax.with_sharding_constraint(weight, whole)


def _forward(
    weight: jax.Array, whole: NamedSharding, part: NamedSharding
) -> tuple[jax.Array, None]:
    return _gathered(weight, whole, part), None


def _backward(
    _whole: NamedSharding, part: NamedSharding, _: None, gradient: jax.Array
) -> tuple[jax.Array]:
    return (jax.lax.with_sharding_constraint(gradient, part),)


_gathered.defvjp(_forward, _backward)

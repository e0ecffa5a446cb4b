"""What a procedure is: the one thing that a step of a case does, compiled before it is stepped."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import torch

from accelbench.core.protocols import Job
from accelbench.runtimes.jax.layout import Layout
from accelbench.runtimes.jax.lowering import Arrays, Names, array, weights_of
from accelbench.runtimes.jax.programs import Program, Programs

Inputs = Mapping[str, jax.Array]


class Model:
    """A torch module that gives graphs, and its weights in JAX.

    Attributes:
        module: on the host; it has shapes and buffers, its weights have been handed over.
        weights: as they are now.
        layout: where they lie, and what they are fed with.
        trained: whether they are other than in the beginning.
    """

    def __init__(self, module: torch.nn.Module, rebuild: Any, layout: Layout) -> None:
        self.module = module
        self.names = Names.of(module)
        self.layout = layout
        self.trained = False
        self._rebuild: Callable[[], torch.nn.Module] = rebuild
        self.weights: Arrays = weights_of(module, self.names, layout.of_weight)

    def start_anew(self) -> None:
        if self.trained:
            self.weights = {}  # before others come: there may be no room for both
            self.weights = weights_of(self._rebuild(), self.names, self.layout.of_weight)
            self.trained = False

    def double(self) -> Arrays:
        """Double every weight, which is exact; gives those that it is not, as they were."""
        kept = {}
        for name, weight in self.weights.items():
            if not jnp.issubdtype(weight.dtype, jnp.inexact):
                continue
            if not _can_double(weight):
                kept[name] = weight  # it would be infinite, as a mask may be
            self.weights[name] = weight * 2
        return kept

    def halve(self, kept: Arrays) -> None:
        for name, weight in self.weights.items():
            if jnp.issubdtype(weight.dtype, jnp.inexact):
                self.weights[name] = kept.get(name, weight * 0.5)


def _can_double(weight: jax.Array) -> bool:
    """Whether no value would be beyond its type; on the host: on a device it would be compiled."""
    values = np.asarray(weight)
    if not values.size:
        return True
    if values.dtype.kind == "c":
        values = np.abs(values)
    return max(-float(values.min()), float(values.max())) <= float(jnp.finfo(values.dtype).max) / 2


@dataclass
class Opened:
    """A model on its device, as procedures are given it."""

    job: Job
    model: Model
    programs: Programs
    drops: bool = True  # whether training drops by chance


@dataclass(frozen=True)
class Example:
    """What graphs are written down with: the shapes of a case's inputs."""

    tensors: Mapping[str, torch.Tensor]  # nobody reads their values
    constants: Mapping[str, Any] = field(default_factory=dict)  # inputs that the model fixes
    batched: frozenset[str] = frozenset()  # tensors whose first axis is the batch

    @property
    def fed(self) -> dict[str, Any]:
        return {**self.tensors, **self.constants}

    @property
    def key(self) -> Hashable:
        """Equal where the shapes are."""
        shapes = tuple((name, tuple(t.shape), t.dtype) for name, t in self.tensors.items())
        return shapes, tuple((name, str(value)) for name, value in self.constants.items())

    def arrays(self, layout: Layout, values: Mapping[str, torch.Tensor] | None = None) -> Arrays:
        """Arrays of these shapes where they lie: to compile for, or of values to be fed with."""
        return {
            name: array(tensor, layout.batch if name in self.batched else layout.whole)
            for name, tensor in (values or self.tensors).items()
        }


class Procedure(Protocol):
    """One step of a case; made anew whenever a case is prepared."""

    #: XLA fuses across what would be phases: there is one.
    phases: tuple[str, ...]

    def compile(self) -> Program:
        """What a step runs, made where it is missing."""

    def step(self, inputs: Inputs) -> Any:
        """Start one step; gives what is there when the device has done it."""

    def outputs(self, inputs: Inputs) -> Mapping[str, jax.Array]:
        """Named outputs of these inputs, for comparing.

        They depend on inputs and weights alone; what a step changes, this leaves.
        """

    def look(self, inputs: Inputs) -> Mapping[str, jax.Array]:
        """What one step leaves where it lies, for the evidence."""

    def named(self, left: Any) -> Mapping[str, jax.Array]:
        """What a step returned, by the names that `outputs` has; empty where they have no part."""

    def drain(self) -> Mapping[str, Any]:
        """What the steps since the last call noted beside their times, as fields of a Block."""


@runtime_checkable
class Telling(Protocol):
    """A procedure that has something to say beside its figures."""

    def facts(self) -> Mapping[str, Any]:
        """For the evidence, as JSON holds it."""


Within = Callable[[], AbstractContextManager[None]]

"""One forward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from accelbench.catalog.inputs import named_tensors
from accelbench.core.case import Case
from accelbench.runtimes.jax.lowering import Arrays, Lowered, Wrapped, lower
from accelbench.runtimes.jax.procedures.base import Example, Inputs, Opened
from accelbench.runtimes.jax.programs import Program


class Pass:
    """The model in evaluation mode, compiled for an example's shapes."""

    def __init__(self, opened: Opened, example: Example) -> None:
        self._opened = opened
        self._example = example
        self._made: tuple[Program, Lowered] | None = None

    def made(self) -> tuple[Program, Lowered]:
        if self._made is None:
            model = self._opened.model
            self._made = self._opened.programs.get(
                ("forward", self._example.key), self._lowered, _function,
                lambda low: (model.weights, low.buffers, self._example.arrays(model.layout)),
            )  # fmt: skip
        return self._made

    def _lowered(self) -> Lowered:
        return lowered(self._opened, self._example)

    def __call__(self, inputs: Inputs, buffers: Arrays | None = None) -> dict[str, jax.Array]:
        """Named outputs; `buffers` are those that differ from the beginning."""
        program, low = self.made()
        held = low.buffers
        if buffers:
            held = {name: buffers.get(name, value) for name, value in held.items()}
        outputs: dict[str, jax.Array] = program.run(self._opened.model.weights, held, inputs)
        return outputs


def lowered(opened: Opened, example: Example) -> Lowered:
    """The graph of a forward pass that gives tensors by name."""
    model = opened.model
    wrapped = Wrapped(model.module, lambda output, _: named_tensors(output))
    return lower(wrapped, example.fed, model.names, device=model.layout.whole)


def _function(low: Lowered) -> Callable[..., Any]:
    return lambda weights, buffers, inputs: low(weights, buffers, inputs)[0]


class Forward:
    """The model, called once."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        self._pass = Pass(opened, example)

    def compile(self) -> Program:
        return self._pass.made()[0]

    def step(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self._pass(inputs)

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self._pass(inputs)

    def look(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self._pass(inputs)

    def named(self, left: Mapping[str, jax.Array]) -> Mapping[str, jax.Array]:
        return left

    def drain(self) -> Mapping[str, Any]:
        return {}

"""One training step — forward, loss, backward, optimizer — as one program.

XLA fuses across these parts, so there are no phases to be told apart: split into
programs of their own they would keep in memory what the fused step recomputes or
never writes, and be another step than the one that is timed. The step writes over
the weights and the optimizer's state. Losses stay on the device until they are
drained, so the host waits for it nowhere.

A procedure is a fresh start: the initial weights, a new optimizer, and dropout
drawn from the seed and the number of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accelbench.catalog.losses import of_module
from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.runtimes.jax.lowering import Lowered, Wrapped, lower
from accelbench.runtimes.jax.optimizers import UPDATES, start
from accelbench.runtimes.jax.procedures.base import Example, Inputs, Opened
from accelbench.runtimes.jax.procedures.forward import Pass
from accelbench.runtimes.jax.programs import Program
from accelbench.runtimes.pytorch.procedures.chance import dropped_nothing
from accelbench.runtimes.pytorch.procedures.train import CONTRASTIVE_RATES, LEARNING_RATES
from accelbench.runtimes.shared.sketches import drawn_places

#: Copying weights and moments takes 20 us each and a second a GiB; of more nothing is copied.
_MOST_COPIED = 2**28


class Train:
    """A model in training mode with its loss and its optimizer."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        how = case.model.training
        assert how is not None  # the runtime's card has refused it otherwise
        self._opened = opened
        self._example = example
        self._loss = how.loss
        self._labels = frozenset(label.name for label in how.labels)
        self._optimizer = str(case.options.get("optimizer", "adamw"))
        rates = CONTRASTIVE_RATES if how.loss == "contrastive" else LEARNING_RATES
        self._rate = rates[self._optimizer]
        self._drops = opened.drops
        self._losses: list[jax.Array] = []
        self._state: dict[str, Any] | None = None  # until the first step
        self._buffers: dict[str, Any] = {}
        given = {n: t for n, t in example.tensors.items() if n not in self._labels}
        self._evaluation = Pass(opened, replace(example, tensors=given))
        opened.model.start_anew()
        key = jax.random.key(opened.job.settings.seed)
        self._key = jax.device_put(key, opened.model.layout.whole)

    def _made(self) -> tuple[Program, Lowered]:
        programs, key = self._opened.programs, ("train", self._optimizer, self._example.key)
        entry = programs.known((*key, True))
        if entry is not None and not entry[1].draws:
            return entry  # without dropout it is the same
        return programs.get(
            (*key, self._drops),
            self._lowered,
            self._step_of,
            self._arguments,
            donated=(0, 1, 2),
            left=self._left,
        )

    def _lowered(self) -> Lowered:
        model = self._opened.model
        loss = of_module(self._loss, model.module)
        wrapped = Wrapped(model.module, loss, self._labels)
        with _training(model.module), self._chances():
            return lower(wrapped, self._example.fed, model.names, device=model.layout.whole)

    def _chances(self) -> Any:
        return nullcontext() if self._drops else dropped_nothing(self._opened.model.module)

    def _step_of(self, low: Lowered) -> Callable[..., Any]:
        update, rate, drops = UPDATES[self._optimizer], self._rate, self._drops
        layout = self._opened.model.layout

        def step(
            weights: Any, state: Any, buffers: Any, frozen: Any, inputs: Any, key: Any
        ) -> tuple[Any, ...]:
            own = jax.random.fold_in(key, state["count"]) if drops else None

            def loss_of(trained: Any) -> Any:
                return low({**frozen, **layout.gathered(trained)}, buffers, inputs, own)

            (loss, renewed), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
            weights, state = update(weights, gradients, state, rate)
            return weights, state, renewed, loss

        return step

    def _arguments(self, low: Lowered) -> tuple[Any, ...]:
        weights, frozen = self._parted(low)
        state, buffers = self._begun(low)
        inputs = self._example.arrays(self._opened.model.layout)
        return weights, state, buffers, frozen, inputs, self._key

    def _left(self, arguments: tuple[Any, ...]) -> Any:
        """Where weights, state, buffers and loss of a step have to lie."""
        layout = self._opened.model.layout
        written = layout.kept(arguments[:3])
        return None if written is None else (*written, layout.whole)

    def _begun(self, low: Lowered) -> tuple[dict[str, Any], dict[str, Any]]:
        """The optimizer's state and the buffers: as they are now, made before the first step."""
        if self._state is None:
            whole = self._opened.model.layout.whole
            self._state = start(self._optimizer, self._parted(low)[0], whole)
            # Copies: a step writes over them, and the next start needs the first ones.
            self._buffers = {name: jnp.copy(buffer) for name, buffer in low.buffers.items()}
        return self._state, self._buffers

    def _parted(self, low: Lowered) -> tuple[dict[str, Any], dict[str, Any]]:
        """Weights that learn, and those that the graph reads as they are."""
        model = self._opened.model
        learn = [name for name in low.used if name in model.names.trained]
        rest = [name for name in low.used if name not in model.names.trained]
        return {n: model.weights[n] for n in learn}, {n: model.weights[n] for n in rest}

    def compile(self) -> Program:
        program, low = self._made()
        self._begun(low)
        return program

    def step(self, inputs: Inputs) -> Any:
        program, low = self._made()
        weights, frozen = self._parted(low)
        state, buffers = self._begun(low)
        model = self._opened.model
        model.trained = True
        weights, self._state, self._buffers, loss = program.run(
            weights, state, buffers, frozen, inputs, self._key
        )
        model.weights.update(weights)
        self._losses.append(loss)
        return loss, weights

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        """A forward pass in evaluation mode, as the weights are now; a program of its own."""
        given = {name: array for name, array in inputs.items() if name not in self._labels}
        kept = {name for name, _ in self._opened.model.module.named_buffers()}
        return self._evaluation(given, {n: b for n, b in self._buffers.items() if n in kept})

    def look(self, inputs: Inputs) -> dict[str, jax.Array]:
        """A step more, whose loss is nobody's, and the weights that it leaves.

        Not a forward pass: compiling one here would be part of the memory that is read.
        """
        loss, weights = self.step(inputs)
        self._losses.pop()
        return {"loss": loss, **weights}

    def named(self, left: Any) -> Mapping[str, jax.Array]:
        return {}  # a step leaves other weights; its loss is told apart

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        model = self._opened.model
        trained = {n: w for n, w in model.weights.items() if n in model.names.trained}
        return {name: _values(weight, most, draw) for name, weight in trained.items()}

    def preview_step(self, inputs: Inputs, most: int, draw: int) -> StepPreview | None:
        """Run the step's program on copies of what it writes over.

        The copies are made on the host: of so many shapes, each would be a program to compile.
        """
        program, low = self._made()
        weights, frozen = self._parted(low)
        written = (weights, *self._begun(low))
        if sum(leaf.nbytes for leaf in jax.tree.leaves(written)) > _MOST_COPIED:
            return None
        copies = jax.tree.map(_copied, written)
        new, *_, loss = program.run(*copies, frozen, inputs, self._key)
        values = {name: _values(weight, most, draw) for name, weight in new.items()}
        return StepPreview(float(loss), values)

    def drain(self) -> Mapping[str, Any]:
        losses, self._losses = self._losses, []
        return {"losses": [float(loss) for loss in jax.device_get(losses)]}

    def facts(self) -> dict[str, Any]:
        model = self._opened.model
        trained = [w.size for name, w in model.weights.items() if name in model.names.trained]
        return {
            "training": {
                "loss": self._loss,
                "optimizer": {"adamw": "AdamW", "sgd": "SGD"}[self._optimizer],
                "learning_rate": self._rate,
                "optimizer_kernels": "part of the compiled step",
                "one_program": True,
                "trained_parameters": sum(trained),
            }
        }


def _values(weight: jax.Array, most: int, draw: int) -> Any:
    """Return some values of an array; on a CPU without copying it or keeping a view of it.

    `np.asarray` keeps its view: the next step could not write over the array, and would copy it.
    """
    try:
        whole = np.from_dlpack(weight)
    except Exception:  # split over devices, on another device, or bf16
        whole = np.asarray(weight)
    return whole.reshape(-1)[drawn_places(whole.size, most, draw)].astype(np.float32)


def _copied(value: jax.Array) -> jax.Array:
    return jax.device_put(np.array(value), value.sharding)


@contextmanager
def _training(module: Any) -> Iterator[None]:
    module.train()
    try:
        yield
    finally:
        module.eval()

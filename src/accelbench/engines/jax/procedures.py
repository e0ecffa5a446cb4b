"""What a step of a case is in JAX: a forward pass, a batch of images or a training step.

A step is one program, compiled before it is stepped. Phases in programs of their own would keep in
memory what the fused step recomputes or never writes, and be another step than the timed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from accelbench.core.abilities import StepPreview
from accelbench.core.case import Case
from accelbench.core.protocols import Job
from accelbench.engines.jax.lowering import (
    Arrays,
    Lowered,
    Names,
    Wrapped,
    array,
    lower,
    weights_of,
)
from accelbench.engines.jax.platforms import Layout
from accelbench.engines.jax.programs import Program, Programs
from accelbench.engines.pytorch.procedures.base import dropped_nothing
from accelbench.engines.pytorch.procedures.train import CONTRASTIVE_RATES, LEARNING_RATES, MOMENTUM
from accelbench.engines.shared.sketches import drawn_places
from accelbench.models.denoising import Schedule
from accelbench.models.inputs import named_tensors
from accelbench.models.losses import loss_of_module
from accelbench.models.short_steps import SHORT_PASSES

Inputs = Mapping[str, jax.Array]

#: Copying weights and moments takes 20 us each and a second a GiB; of more nothing is copied.
_MOST_COPIED = 2**28


class Model:
    """A torch module that gives graphs, and its weights in JAX."""

    def __init__(self, module: torch.nn.Module, rebuild: Any, layout: Layout) -> None:
        self.module = module  # on the host: shapes and buffers; its weights are handed over
        self.names = Names.of(module)
        self.layout = layout  # where the weights lie, and what they are fed with
        self.trained = False  # whether they are other than in the beginning
        self._rebuild: Callable[[], torch.nn.Module] = rebuild
        self.weights: Arrays = weights_of(module, self.names, layout.of_weight)

    def start_anew(self) -> None:
        if self.trained:
            self.weights = {}  # before others come: there may be no room for both
            self.weights = weights_of(self._rebuild(), self.names, self.layout.of_weight)
            self.trained = False

    def double(self) -> Arrays:
        """Double every weight, which is exact, and return those that it is not for, as they were.

        A value whose double is beyond its type would be infinite, as a mask may be.
        """
        kept = {}
        for name, weight in self.weights.items():
            if jnp.issubdtype(weight.dtype, jnp.inexact):
                if not _can_double(weight):
                    kept[name] = weight
                self.weights[name] = weight * 2
        return kept

    def halve(self, kept: Arrays) -> None:
        for name, weight in self.weights.items():
            if jnp.issubdtype(weight.dtype, jnp.inexact):
                self.weights[name] = kept.get(name, weight * 0.5)


def _can_double(weight: jax.Array) -> bool:
    values = np.asarray(weight)  # on the host: on a device it would be compiled
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
    """The shapes of a case's inputs, with which graphs are written down."""

    tensors: Mapping[str, torch.Tensor]  # nobody reads their values
    constants: Mapping[str, Any] = field(default_factory=dict)  # inputs that the model fixes
    batched: frozenset[str] = frozenset()  # tensors whose first axis is the batch

    @property
    def fed(self) -> dict[str, Any]:
        return {**self.tensors, **self.constants}

    @property
    def key(self) -> Hashable:
        shapes = tuple((name, tuple(t.shape), t.dtype) for name, t in self.tensors.items())
        return shapes, tuple((name, str(value)) for name, value in self.constants.items())

    def arrays(self, layout: Layout, values: Mapping[str, torch.Tensor] | None = None) -> Arrays:
        return {
            name: array(tensor, layout.batch if name in self.batched else layout.whole)
            for name, tensor in (values or self.tensors).items()
        }


class Procedure(ABC):
    """One step of a case; made anew whenever a case is prepared."""

    phases: tuple[str, ...] = ("step",)

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        self._opened = opened
        self._example = example

    def compile(self) -> Program:
        return self._made()[0]

    @abstractmethod
    def _made(self) -> tuple[Program, Lowered]: ...

    @abstractmethod
    def step(self, inputs: Inputs) -> Any:
        """Start one step; return what is there when the device has done it."""

    @abstractmethod
    def outputs(self, inputs: Inputs) -> Mapping[str, jax.Array]:
        """Return the named outputs of these inputs, for comparing.

        They depend on inputs and weights alone; what a step changes, this leaves.
        """

    def look(self, inputs: Inputs) -> Mapping[str, jax.Array]:
        """Return what one step leaves where it lies, for the evidence."""
        return self.outputs(inputs)

    def named(self, left: Any) -> Mapping[str, jax.Array]:
        """Return a step's result by the names of `outputs`; empty if they have no part in it."""
        return left  # type: ignore[no-any-return]

    def drain(self) -> Mapping[str, Any]:
        """Return what the steps since the last call noted, as fields of a Block."""
        return {}

    def facts(self) -> dict[str, Any]:
        return {}

    def _lowered(self) -> Lowered:
        model = self._opened.model
        wrapped = Wrapped(model.module, lambda output, _: named_tensors(output))
        return lower(wrapped, self._example.fed, model.names, device=model.layout.whole)


class Forward(Procedure):
    """The model in evaluation mode, called once."""

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        super().__init__(case, opened, example)
        self._entry: tuple[Program, Lowered] | None = None

    def _made(self) -> tuple[Program, Lowered]:
        if self._entry is None:
            model = self._opened.model
            self._entry = self._opened.programs.get(
                ("forward", self._example.key),
                self._lowered,
                lambda low: lambda weights, buffers, inputs: low(weights, buffers, inputs)[0],
                lambda low: (model.weights, low.buffers, self._example.arrays(model.layout)),
            )
        return self._entry

    def step(self, inputs: Inputs, buffers: Arrays | None = None) -> dict[str, jax.Array]:
        """Return named outputs; `buffers` are those that differ from the beginning."""
        program, low = self._made()
        held = low.buffers
        if buffers:
            held = {name: buffers.get(name, value) for name, value in held.items()}
        outputs: dict[str, jax.Array] = program.run(self._opened.model.weights, held, inputs)
        return outputs

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        return self.step(inputs)


class Denoise(Procedure):
    """Every pass of a batch of images. DDIM: no noise is added, so nothing is drawn.

    One pass and the scheduler's arithmetic after it are one program, which a step calls for each of
    the scheduler's times. What it reckons with goes in as numbers, so that the same program serves
    every pass, and nothing waits for the device between them.
    """

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        super().__init__(case, opened, example)
        schedule = Schedule(case.shapes.steps or case.model.steps or 1)
        # DDIM's step is a sum of sample and noise, each times a number: its result for a bare one.
        unit, none = np.ones(1, np.float32), np.zeros(1, np.float32)
        times = (
            (np.int32(time), schedule.step(none, time, unit)[0], schedule.step(unit, time, none)[0])
            for time in schedule.times
        )
        device = opened.model.layout.whole
        self._times = [tuple(jax.device_put(number, device) for number in step) for step in times]

    def _made(self) -> tuple[Program, Lowered]:
        model = self._opened.model

        def arguments(low: Lowered) -> tuple[Any, ...]:
            inputs = self._example.arrays(model.layout)
            return model.weights, low.buffers, inputs, inputs["sample"], *self._times[0]

        key = ("denoise", self._example.key)
        return self._opened.programs.get(key, self._lowered, _pass, arguments)

    def step(self, inputs: Inputs) -> jax.Array:
        return self._denoised(inputs, len(self._times))

    def _denoised(self, inputs: Inputs, passes: int) -> jax.Array:
        program, low = self._made()
        weights, sample = self._opened.model.weights, inputs["sample"]
        for time in self._times[:passes]:
            sample = program.run(weights, low.buffers, inputs, sample, *time)
        return sample

    def outputs(self, inputs: Inputs) -> dict[str, jax.Array]:
        return {"sample": self._denoised(inputs, SHORT_PASSES)}

    def named(self, left: jax.Array) -> Mapping[str, jax.Array]:
        return {"sample": left}


def _pass(low: Lowered) -> Callable[..., Any]:
    def run(
        weights: Any, buffers: Any, inputs: Any, sample: Any, time: Any, keep: Any, take: Any
    ) -> Any:
        times = jnp.broadcast_to(time, inputs["timestep"].shape)
        fed = {**inputs, "sample": sample, "timestep": times.astype(inputs["timestep"].dtype)}
        noise = low(weights, buffers, fed)[0]["sample"]
        return (keep * sample + take * noise.astype(jnp.float32)).astype(sample.dtype)

    return run


class Train(Procedure):
    """A training step: forward, loss, backward and optimizer as one program.

    The step writes over the weights and the optimizer's state. Losses stay on the device until they
    are drained, so the host waits for it nowhere. A procedure is a fresh start: the initial
    weights, a new optimizer, and dropout drawn from the seed and the number of the step.
    """

    def __init__(self, case: Case, opened: Opened, example: Example) -> None:
        super().__init__(case, opened, example)
        how = case.model.training
        assert how is not None  # the engine's card has refused it otherwise
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
        self._evaluation = Forward(case, opened, replace(example, tensors=given))
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
        loss = loss_of_module(self._loss, model.module)
        wrapped = Wrapped(model.module, loss, self._labels)
        chances = nullcontext() if self._drops else dropped_nothing(model.module)
        with _training(model.module), chances:
            return lower(wrapped, self._example.fed, model.names, device=model.layout.whole)

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
        layout = self._opened.model.layout
        written = layout.kept(arguments[:3])
        return None if written is None else (*written, layout.whole)

    def _begun(self, low: Lowered) -> tuple[dict[str, Any], dict[str, Any]]:
        if self._state is None:
            whole = self._opened.model.layout.whole
            self._state = start(self._optimizer, self._parted(low)[0], whole)
            # Copies: a step writes over them, and the next start needs the first ones.
            self._buffers = {name: jnp.copy(buffer) for name, buffer in low.buffers.items()}
        return self._state, self._buffers

    def _parted(self, low: Lowered) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the weights that learn, and those that the graph reads as they are."""
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
        """Return a forward pass in evaluation mode with the weights as they are now."""
        given = {name: value for name, value in inputs.items() if name not in self._labels}
        kept = {name for name, _ in self._opened.model.module.named_buffers()}
        buffers = {name: buffer for name, buffer in self._buffers.items() if name in kept}
        return self._evaluation.step(given, buffers)

    def look(self, inputs: Inputs) -> dict[str, jax.Array]:
        """Make a step more, whose loss is nobody's; return that and the weights that it leaves.

        Not a forward pass: compiling one here would be part of the memory that is read.
        """
        loss, weights = self.step(inputs)
        self._losses.pop()
        return {"loss": loss, **weights}

    def named(self, left: Any) -> Mapping[str, jax.Array]:
        return {}  # a step leaves other weights; its loss is told apart

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        return {name: _values(weight, most, draw) for name, weight in self._trained().items()}

    def _trained(self) -> dict[str, jax.Array]:
        model = self._opened.model
        return {name: w for name, w in model.weights.items() if name in model.names.trained}

    def preview_step(self, inputs: Inputs, most: int, draw: int) -> StepPreview | None:
        """Run the step's program on copies of what it writes over; None if that is too much.

        The copies are made on the host: of so many shapes, each would be a program to compile.
        """
        program, low = self._made()
        weights, frozen = self._parted(low)
        written = (weights, *self._begun(low))
        if sum(leaf.nbytes for leaf in jax.tree.leaves(written)) > _MOST_COPIED:
            return None
        copies = jax.tree.map(lambda leaf: jax.device_put(np.array(leaf), leaf.sharding), written)
        new, *_, loss = program.run(*copies, frozen, inputs, self._key)
        values = {name: _values(weight, most, draw) for name, weight in new.items()}
        return StepPreview(float(loss), values)

    def drain(self) -> Mapping[str, Any]:
        losses, self._losses = self._losses, []
        return {"losses": [float(loss) for loss in jax.device_get(losses)]}

    def facts(self) -> dict[str, Any]:
        return {
            "training": {
                "loss": self._loss,
                "optimizer": {"adamw": "AdamW", "sgd": "SGD"}[self._optimizer],
                "learning_rate": self._rate,
                "optimizer_kernels": "part of the compiled step",
                "one_program": True,
                "trained_parameters": sum(weight.size for weight in self._trained().values()),
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


@contextmanager
def _training(module: Any) -> Iterator[None]:
    module.train()
    try:
        yield
    finally:
        module.eval()


def make(case: Case, opened: Opened, example: Example) -> Procedure:
    """Return the procedure of a case."""
    makers: dict[str, Callable[[Case, Opened, Example], Procedure]] = {
        "forward": Forward,
        "denoise": Denoise,
        "rag": Forward,  # one pass over passages and question; the card refuses answers
        "train": Train,
    }
    return makers[case.procedure](case, opened, example)


# -- torch's optimizers as pure functions on weights by name

#: By what it keeps: an array for each weight, and the number of steps.
State = dict[str, Any]
Update = Callable[[Arrays, Arrays, State, float], tuple[Arrays, State]]

# torch.optim.AdamW's defaults.
_BETAS, _EPSILON, _DECAY = (0.9, 0.999), 1e-8, 1e-2


def start(optimizer: str, weights: Arrays, device: Any) -> State:
    """Return an optimizer's state before the first step: zeros."""
    kept = ("first", "second") if optimizer == "adamw" else ("first",)

    # Made on the host: of so many shapes, each would be a program of its own to compile.
    def zeros(weight: Any) -> Any:
        return jnp.array(np.zeros(weight.shape, weight.dtype), device=weight.device)

    state: State = {name: jax.tree.map(zeros, weights) for name in kept}
    return {**state, "count": jax.device_put(np.zeros((), np.int32), device)}


def adamw(weights: Arrays, gradients: Arrays, state: State, rate: float) -> tuple[Arrays, State]:
    """Take the step of torch.optim.AdamW."""
    count = state["count"] + 1
    beta1, beta2 = _BETAS
    first = _mixed(beta1, state["first"], gradients)
    second = _mixed(beta2, state["second"], jax.tree.map(jnp.square, gradients))
    steps = count.astype(jnp.float32)
    step, root = rate / (1 - beta1**steps), jnp.sqrt(1 - beta2**steps)

    def moved(weight: Any, m: Any, v: Any) -> Any:
        new_weight = weight * (1 - rate * _DECAY) - step * m / (jnp.sqrt(v) / root + _EPSILON)
        return new_weight.astype(weight.dtype)

    weights = jax.tree.map(moved, weights, first, second)
    return weights, {"first": first, "second": second, "count": count}


def sgd(weights: Arrays, gradients: Arrays, state: State, rate: float) -> tuple[Arrays, State]:
    """Take the step of torch.optim.SGD with momentum; from zeros, as torch from first gradients."""
    first = jax.tree.map(lambda m, g: MOMENTUM * m + g, state["first"], gradients)
    weights = jax.tree.map(lambda w, m: w - rate * m, weights, first)
    return weights, {"first": first, "count": state["count"] + 1}


def _mixed(share: float, old: Arrays, new: Arrays) -> Arrays:
    mixed: Arrays = jax.tree.map(lambda o, n: share * o + (1 - share) * n, old, new)
    return mixed


UPDATES: dict[str, Update] = {"adamw": adamw, "sgd": sgd}

"""A training session that may lie in its timed steps, and what becomes of it.

Time is virtual. The forward and the backward pass of the model advance it. Dropout moves its
losses, so that a loss that moves proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from lying import CPU, WORLD, Here, Lie, ask_bench, bench_of, runtime_of
from torch import nn

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.serial import case_to_json, device_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode
from accelbench.engines.pytorch.procedures.train import Train, unmarked

BATCH = 8
ITEM_NS = 500_000


class Work(torch.autograd.Function):
    """Takes time: so much an item forward, twice as much backward."""

    @staticmethod
    def forward(_context: Any, values: torch.Tensor) -> torch.Tensor:
        WORLD.clock.advance(len(values) * ITEM_NS)
        return values.clone()

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:
        WORLD.clock.advance(2 * len(gradient) * ITEM_NS)
        return gradient


class TrainedNet(nn.Module):
    def __init__(self, drop: float = 0.1) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(16, 32), nn.Linear(32, 24), nn.Linear(24, 5)
        self.dropout = nn.Dropout(drop)

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = Work.apply(self.first(features).tanh())
        return {"logits": self.third(self.second(self.dropout(hidden)).tanh())}


MODEL = ModelSpec(
    id="trained-net", family=Family.VISION, architecture=Architecture.VISION,
    modalities=("vision",), task="test", size="tiny", builder=f"{__name__}:TrainedNet",
    parameters=1461, inputs=(InputSpec("features", ("batch", 16)),), config={},
    training=Training("classification", (InputSpec("labels", ("batch",), "int64", 0, 5),)),
)  # fmt: skip


class Trainer(Here):
    """The pytorch runtime's own session; each part of a step takes a microsecond more."""

    def _use(self, procedure: Any) -> None:
        super()._use(procedure)

        def split(inputs: Any, mark: Callable[[str], None]) -> Any:
            def marked(phase: str) -> None:
                WORLD.clock.advance(1000)
                mark(phase)

            return procedure.split(inputs, marked)

        self._sampler.split = split


Step = Callable[[Mapping[str, Any]], Any]
Lazy = Callable[[Train, Mapping[str, Any]], None]


def case_of(precision: str = "fp32", **options: Any) -> Case:
    target = Target("liar", "cpu")
    return Case(MODEL, target, precision, Shapes(BATCH), Mode.TRAINING, options=options)


def measured(
    lie: Lie, case: Case | None = None, iterations: int = 60, kind: type[Here] = Trainer
) -> dict[str, Any]:
    """Return what becomes of a training case: its reason if it fails, else its columns."""
    WORLD.__init__()
    case = case or case_of()
    runtime = runtime_of("pytorch", lie)
    runtime.open = lambda job: kind(job, lie)
    bench = bench_of(runtime)
    job = {"case": case_to_json(case), "device": device_to_json(CPU), "seed": 0, "threads": 1}
    rules = {"iterations": iterations, "warmup": 5, "seconds": 10}
    try:
        more = {"weights": "random", "trust_remote_code": False}
        ask_bench(bench, {"do": "open", "job": {**job, **more}})
        request = {"do": "measure", "case": job["case"], "rules": rules, "alone": True}
        found = ask_bench(bench, request)
    except CaseError as error:
        return {"reason": error.reason, "message": error.message}
    return {"reason": "ok", **found["metrics"], "warnings": found["warnings"]}


# -- what a step may leave out


def forward_only(train: Train, inputs: Mapping[str, Any]) -> None:
    """A loss, and nothing is learned from it."""
    train._losses.append(train._loss_of(inputs, unmarked).detach())


def no_optimizer(train: Train, inputs: Mapping[str, Any]) -> None:
    train._gradients(inputs, unmarked)
    train._optimizer.zero_grad(set_to_none=True)


def no_backward(train: Train, inputs: Mapping[str, Any]) -> None:
    """The optimizer steps by gradients of zero, and by what it remembers of others."""
    forward_only(train, inputs)
    for weight in train._weights:
        weight.grad = torch.zeros_like(weight)
    train._optimizer.step()
    train._optimizer.zero_grad(set_to_none=True)


def half_of_the_batch(train: Train, inputs: Mapping[str, Any]) -> None:
    train.step({name: values[: len(values) // 2] for name, values in inputs.items()})


def first_item(train: Train, inputs: Mapping[str, Any]) -> None:
    train.step({name: values[:1] for name, values in inputs.items()})


def half_of_the_gradients(train: Train, inputs: Mapping[str, Any]) -> None:
    """The loss of the whole batch; gradients of half of it."""
    forward_only(train, inputs)
    half_of_the_batch(train, inputs)
    train._losses.pop()


def last_layer(train: Train, inputs: Mapping[str, Any]) -> None:
    """Gradients of the last layer alone."""
    train._gradients(inputs, unmarked)
    for weight in train._weights[:-2]:
        weight.grad = None
    train._optimizer.step()
    train._optimizer.zero_grad(set_to_none=True)


def first_layer(train: Train, inputs: Mapping[str, Any]) -> None:
    """Gradients of the first layer alone."""
    train._gradients(inputs, unmarked)
    for weight in train._weights[2:]:
        weight.grad = None
    train._optimizer.step()
    train._optimizer.zero_grad(set_to_none=True)


def frozen_first_layer(train: Train, inputs: Mapping[str, Any]) -> None:
    train._gradients(inputs, unmarked)
    for weight in train._weights[:2]:
        weight.grad = None
    train._optimizer.step()
    train._optimizer.zero_grad(set_to_none=True)


def no_biases(train: Train, inputs: Mapping[str, Any]) -> None:
    train._gradients(inputs, unmarked)
    for weight in train._weights:
        if weight.ndim == 1:
            weight.grad = None
    train._optimizer.step()
    train._optimizer.zero_grad(set_to_none=True)


def weight_decay(train: Train, inputs: Mapping[str, Any]) -> None:
    """The loss of the whole batch; weights only shrink."""
    forward_only(train, inputs)
    with torch.no_grad():
        for weight in train._weights:
            weight.mul_(1 - 1e-5)


LAZY: Mapping[str, Lazy] = {
    lazy.__name__: lazy
    for lazy in (
        forward_only, no_optimizer, no_backward, half_of_the_batch, first_item,
        half_of_the_gradients, last_layer,
    )
}  # fmt: skip


MORE: Mapping[str, Lazy] = {
    lazy.__name__: lazy for lazy in (first_layer, frozen_first_layer, no_biases, weight_decay)
}


def stepping(lazy: Lazy, when: Callable[[int], bool]) -> Lie:
    """Steps of some numbers are lazy; the first has number 1."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        if not when(lie.kept["steps"]):
            return honest(inputs)
        lazy(honest.__self__, inputs)
        return None

    lie.step = step
    return lie

"""Training sessions that lie in the steps that are timed, each in a few lines; none is ok.

Time is virtual. The model's work is told by its forward and its backward pass. Dropout moves its
losses, so that a loss that moves proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from lying import CPU, WORLD, Here, Lie, Silent, runtime_of, uncounted
from torch import nn

from accelbench.core.abilities import TrainingProbe
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings
from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.protocols import Block, Job
from accelbench.core.serial import case_to_json, device_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode, Timing
from accelbench.run.verify.training_steps import NO_PROBE
from accelbench.run.worker.worker import CaseBench
from accelbench.runtimes.pytorch.procedures.train import Train, unmarked

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
    WORLD.__init__()  # type: ignore[misc]
    case = case or case_of()
    runtime = runtime_of("pytorch", lie)
    runtime.open = lambda job: kind(job, lie)
    bench = CaseBench(runtime, Silent(), WORLD.clock, uncounted)  # type: ignore[arg-type]
    job = {"case": case_to_json(case), "device": device_to_json(CPU), "seed": 0, "threads": 1}
    rules = {"iterations": iterations, "warmup": 5, "seconds": 10}
    try:
        bench.answer(
            {"do": "open", "job": {**job, "weights": "random", "trust_remote_code": False}}
        )
        request = {"do": "measure", "case": job["case"], "rules": rules, "alone": True}
        found: dict[str, Any] = json.loads(json.dumps(bench.answer(request), allow_nan=False))
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
        lazy(honest.__self__, inputs)  # type: ignore[attr-defined]
        return None

    lie.step = step
    return lie


def in_blocks(lazy: Lazy) -> Lie:
    """After step 12 the last step of each block alone trains."""
    lie = Lie()

    def sample(honest: Callable[..., Block], inputs: Any, n: int, timing: Timing) -> Block:
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        lie.kept["left"] -= 1
        if lie.kept["left"] <= 0 or lie.kept["steps"] <= 12:
            return honest(inputs)
        lazy(honest.__self__, inputs)  # type: ignore[attr-defined]
        return None

    lie.sample, lie.step = sample, step
    return lie


def replayed() -> Lie:
    """A curve is learned by heart before anything is timed; after step 12 it is read out."""
    lie = Lie()

    def sample(honest: Callable[..., Block], inputs: Any, n: int, timing: Timing) -> Block:
        start = lie.kept.setdefault("steps", 0)
        lie.kept["steps"] += n
        if start < 12:
            return honest(inputs, n, timing)
        curve = [1.5 * 0.99 ** (start + i) for i in range(n)]
        WORLD.clock.advance(n * 1_000_000)
        return Block(n, timing, {"step": [1_000_000] * n}, losses=curve)

    lie.sample = sample
    return lie


# -- what becomes of it


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}, {"pure": True}], ids=str)
def test_an_honest_training_is_verified(precision: str, options: dict[str, Any]) -> None:
    if precision == "fp16" and options.get("pure"):
        return  # AdamW gives NaN from the second step on
    found = measured(Lie(), case_of(precision, **options))
    assert found["reason"] == "ok", found
    assert (found["reason"], found["steps_verified"]) == ("ok", "ok")


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}], ids=str)
@pytest.mark.parametrize("name", LAZY)
def test_steps_that_leave_out_a_part_after_a_while(name: str, options: dict[str, Any]) -> None:
    last_honest = 50 if options else 12
    lie = stepping(LAZY[name], lambda number: number > last_honest)
    assert measured(lie, case_of(**options))["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", MORE)
def test_steps_that_train_a_part_of_the_weights(name: str) -> None:
    assert measured(stepping(MORE[name], lambda number: number > 12))["reason"] == "wrong_steps"


def alternating_halves() -> Lie:
    """Each step trains on half of the batch, in turns."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        if lie.kept["steps"] <= 12:
            return honest(inputs)
        half = slice(0, BATCH // 2) if lie.kept["steps"] % 2 else slice(BATCH // 2, None)
        return honest({name: values[half] for name, values in inputs.items()})

    lie.step = step
    return lie


def gradients_of_the_step_before() -> Lie:
    """Every second step reports its loss and uses older gradients."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        train = honest.__self__  # type: ignore[attr-defined]
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        if lie.kept["steps"] <= 12 or lie.kept["steps"] % 2:
            train._gradients(inputs, unmarked)
            lie.kept["gradients"] = [weight.grad.clone() for weight in train._weights]
        else:
            forward_only(train, inputs)
            for weight, gradient in zip(train._weights, lie.kept["gradients"], strict=True):
                weight.grad = gradient.clone()
        train._optimizer.step()
        train._optimizer.zero_grad(set_to_none=True)

    lie.step = step
    return lie


@pytest.mark.parametrize("lie", [alternating_halves, gradients_of_the_step_before])
def test_steps_in_turns(lie: Callable[[], Lie]) -> None:
    found = measured(lie())
    assert found["reason"] == "wrong_steps" or found["steps_verified"] == "not_done"


@pytest.mark.parametrize("name", ["no_backward", "half_of_the_batch"])
def test_training_that_is_honest_only_after_the_measurement_is_named(name: str) -> None:
    """It cannot be told from a machine that became slower."""
    found = measured(stepping(LAZY[name], lambda number: 5 < number <= 64))
    assert (found["reason"], found["steps_verified"]) == ("ok", "not_done")
    assert any("asked for once more" in warning for warning in found["warnings"])


@pytest.mark.parametrize("name", LAZY)
def test_steps_that_leave_out_a_part_from_the_start(name: str) -> None:
    assert measured(stepping(LAZY[name], lambda _: True))["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("odd", [0, 1])
def test_every_second_step(name: str, odd: int) -> None:
    found = measured(stepping(LAZY[name], lambda number: number > 12 and number % 2 == odd))
    assert found["reason"] == "wrong_steps" or found["steps_verified"] == "not_done"
    if name in ("forward_only", "no_optimizer"):
        assert found["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", ["forward_only", "no_backward", "half_of_the_batch"])
def test_all_steps_of_a_block_but_the_last(name: str) -> None:
    assert measured(in_blocks(LAZY[name]))["reason"] in {
        "work_skipped",
        "wrong_steps",
        "unsynchronised",
    }


def test_a_curve_that_was_learned_by_heart() -> None:
    assert measured(replayed())["reason"] == "wrong_steps"


def test_the_loss_of_another_step_than_the_one_that_trained() -> None:
    def halved(block: Block) -> Block:
        return replace(block, losses=[loss / 2 for loss in block.losses])

    lie = Lie(sample=lambda honest, inputs, n, timing: halved(honest(inputs, n, timing)))
    assert measured(lie)["reason"] == "wrong_steps"


# -- what may be honest


class Closed(Trainer):
    """A session of another package: it trains, and shows nothing of it."""

    weight_values = preview_step = None  # type: ignore[assignment]


def test_a_session_that_shows_no_weights_is_labelled() -> None:
    found = measured(Lie(), kind=Closed)
    assert (found["reason"], found["steps_verified"]) == ("ok", "not_done")
    assert NO_PROBE in found["warnings"]


def test_steps_that_overflow_change_nothing_and_are_no_lie() -> None:
    """fp16's scaler leaves out a step whose gradients are infinite, and counts it."""
    lie = Lie()

    def step(honest: Step, inputs: Mapping[str, Any]) -> Any:
        train = honest.__self__  # type: ignore[attr-defined]
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        if lie.kept["steps"] == 1:
            with torch.no_grad():
                train._scaler._lazy_init_scale_growth_tracker(torch.device("cpu"))
                train._scaler._scale.fill_(train._scaler.get_scale() * 2.0**30)
                train._settled = train._scaler.get_scale()
        return honest(inputs)

    lie.step = step
    found = measured(lie, case_of("fp16"), iterations=20)
    assert found["reason"] == "ok"


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_preview_changes_nothing(precision: str) -> None:
    case = case_of(precision)
    curves, weights = [], []
    for looks in (False, True):
        WORLD.__init__()  # type: ignore[misc]
        session = Here(Job(case, CPU, JobSettings(seed=3, threads=1)), Lie())
        assert isinstance(session, TrainingProbe)
        inputs = session.prepare(case)
        losses: list[float] = []
        for _ in range(5):
            foreseen = session.preview_step(inputs, 16, 1) if looks else None
            losses += session.sample(inputs, 1, Timing.EACH).losses
            if foreseen is not None:
                assert foreseen.loss == pytest.approx(losses[-1], rel=1e-6)
                after = session.weight_values(16, 1)
                for name, values in (foreseen.weights or {}).items():
                    np.testing.assert_allclose(values, after[name], rtol=1e-6)
        curves.append(losses)
        weights.append(session.weight_values(64, 2))
    assert curves[0] == curves[1]
    for name, values in weights[0].items():
        np.testing.assert_array_equal(values, weights[1][name])


def test_of_a_large_model_the_loss_alone_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelbench.runtimes.pytorch.procedures import train

    monkeypatch.setattr(train, "_MOST_COPIED", 0)
    found = measured(Lie())
    assert (found["reason"], found["steps_verified"]) == ("ok", "ok")
    lie = stepping(half_of_the_batch, lambda number: number > 12)
    assert measured(lie)["reason"] == "wrong_steps"


def test_looking_at_weights_takes_a_hundredth_of_the_time() -> None:
    asked: list[int] = []

    class Slow(Trainer):
        def weight_values(self, most: int, draw: int) -> Any:
            asked.append(WORLD.clock.time_ns)
            WORLD.clock.advance(50_000_000)
            return super().weight_values(most, draw)

    found = measured(Lie(), iterations=300, kind=Slow)
    assert found["steps_verified"] == "ok"
    assert len(asked) < 12

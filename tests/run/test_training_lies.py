"""Training sessions that lie in the steps that are timed, each in a few lines; none is ok."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lying import CPU, WORLD, Here, Lie
from lying_training import (
    BATCH,
    LAZY,
    MORE,
    Trainer,
    case_of,
    forward_only,
    half_of_the_batch,
    measured,
    stepping,
)

from accelbench.core.abilities import TrainingProbe
from accelbench.core.protocols import Block, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.procedures.train import unmarked
from accelbench.run.verify.training_steps import NO_PROBE


def in_blocks(lazy):
    """After step 12 the last step of each block alone trains."""
    lie = Lie()

    def sample(honest, inputs, n, timing):
        lie.kept["left"] = n
        return honest(inputs, n, timing)

    def step(honest, inputs):
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        lie.kept["left"] -= 1
        if lie.kept["left"] <= 0 or lie.kept["steps"] <= 12:
            return honest(inputs)
        lazy(honest.__self__, inputs)
        return None

    lie.sample, lie.step = sample, step
    return lie


def replayed():
    """A curve is learned by heart before anything is timed; after step 12 it is read out."""
    lie = Lie()

    def sample(honest, inputs, n, timing):
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
def test_an_honest_training_is_verified(precision, options):
    if precision == "fp16" and options.get("pure"):
        return  # AdamW gives NaN from the second step on
    found = measured(Lie(), case_of(precision, **options))
    assert found["reason"] == "ok", found
    assert (found["reason"], found["steps_verified"]) == ("ok", "ok")


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}], ids=str)
@pytest.mark.parametrize("name", LAZY)
def test_steps_that_leave_out_a_part_after_a_while(name, options):
    last_honest = 50 if options else 12
    lie = stepping(LAZY[name], lambda number: number > last_honest)
    assert measured(lie, case_of(**options))["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", MORE)
def test_steps_that_train_a_part_of_the_weights(name):
    assert measured(stepping(MORE[name], lambda number: number > 12))["reason"] == "wrong_steps"


def alternating_halves():
    """Each step trains on half of the batch, in turns."""
    lie = Lie()

    def step(honest, inputs):
        lie.kept["steps"] = lie.kept.get("steps", 0) + 1
        if lie.kept["steps"] <= 12:
            return honest(inputs)
        half = slice(0, BATCH // 2) if lie.kept["steps"] % 2 else slice(BATCH // 2, None)
        return honest({name: values[half] for name, values in inputs.items()})

    lie.step = step
    return lie


def gradients_of_the_step_before():
    """Every second step reports its loss and uses older gradients."""
    lie = Lie()

    def step(honest, inputs):
        train = honest.__self__
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
def test_steps_in_turns(lie):
    found = measured(lie())
    assert found["reason"] == "wrong_steps" or found["steps_verified"] == "not_done"


@pytest.mark.parametrize("name", ["no_backward", "half_of_the_batch"])
def test_training_that_is_honest_only_after_the_measurement_is_named(name):
    """It cannot be told from a machine that became slower."""
    found = measured(stepping(LAZY[name], lambda number: 5 < number <= 64))
    assert (found["reason"], found["steps_verified"]) == ("ok", "not_done")
    assert any("asked for once more" in warning for warning in found["warnings"])


@pytest.mark.parametrize("name", LAZY)
def test_steps_that_leave_out_a_part_from_the_start(name):
    assert measured(stepping(LAZY[name], lambda _: True))["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("odd", [0, 1])
def test_every_second_step(name, odd):
    found = measured(stepping(LAZY[name], lambda number: number > 12 and number % 2 == odd))
    assert found["reason"] == "wrong_steps" or found["steps_verified"] == "not_done"
    if name in ("forward_only", "no_optimizer"):
        assert found["reason"] == "wrong_steps"


@pytest.mark.parametrize("name", ["forward_only", "no_backward", "half_of_the_batch"])
def test_all_steps_of_a_block_but_the_last(name):
    assert measured(in_blocks(LAZY[name]))["reason"] in {
        "work_skipped",
        "wrong_steps",
        "unsynchronised",
    }


def test_losses_and_batches_of_other_steps():
    assert measured(replayed())["reason"] == "wrong_steps"

    def halved(block):
        return replace(block, losses=[loss / 2 for loss in block.losses])

    lie = Lie(sample=lambda honest, inputs, n, timing: halved(honest(inputs, n, timing)))
    assert measured(lie)["reason"] == "wrong_steps"

    assert measured(Lie(), kind=OneBatch)["reason"] == "not_real"


class OneBatch(Trainer):
    """Its loader gives the batch of seed 0 for every seed."""

    def prepare(self, case, seed=None):
        return super().prepare(case, 0)


# -- what may be honest


class Closed(Trainer):
    """A session of another package: it trains, and shows nothing of it."""

    weight_values = preview_step = None


def test_a_session_that_shows_no_weights_is_labelled():
    found = measured(Lie(), kind=Closed)
    assert (found["reason"], found["steps_verified"]) == ("ok", "not_done")
    assert NO_PROBE in found["warnings"]


def test_steps_that_overflow_change_nothing_and_are_no_lie():
    """fp16's scaler leaves out a step whose gradients are infinite, and counts it."""
    lie = Lie()

    def step(honest, inputs):
        train = honest.__self__
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
def test_a_preview_changes_nothing(precision):
    case = case_of(precision)
    curves, weights = [], []
    for looks in (False, True):
        WORLD.__init__()
        session = Here(Job(case, CPU, JobSettings(seed=3, threads=1)), Lie())
        assert isinstance(session, TrainingProbe)
        inputs = session.prepare(case)
        losses = []
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


def test_of_a_large_model_the_loss_alone_is_foreseen(monkeypatch):
    from accelbench.engines.pytorch.procedures import train

    monkeypatch.setattr(train, "_MOST_COPIED", 0)
    found = measured(Lie())
    assert (found["reason"], found["steps_verified"]) == ("ok", "ok")
    lie = stepping(half_of_the_batch, lambda number: number > 12)
    assert measured(lie)["reason"] == "wrong_steps"


def test_looking_at_weights_takes_a_hundredth_of_the_time():
    asked = []

    class Slow(Trainer):
        def weight_values(self, most, draw):
            asked.append(WORLD.clock.time_ns)
            WORLD.clock.advance(50_000_000)
            return super().weight_values(most, draw)

    found = measured(Lie(), iterations=300, kind=Slow)
    assert found["steps_verified"] == "ok"
    assert len(asked) < 12


def cast_to_bf16(honest, inputs):
    with torch.autocast("cpu", torch.bfloat16):
        return honest(inputs)


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd"}], ids=str)
def test_products_in_bf16_in_timed_steps_are_not_fp32(options):
    assert measured(Lie(step=cast_to_bf16), case_of(**options))["reason"] == "wrong_steps"

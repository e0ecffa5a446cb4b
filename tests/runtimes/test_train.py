"""Training on the pytorch runtime: a step, its phases, its losses, and its fresh start."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from made_up import THREE_CLASSES, made_up
from torch import nn

from accelbench.catalog.find import choose
from accelbench.catalog.inputs import settle
from accelbench.catalog.models import MODELS
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.protocols import Device, Doubtable, Job
from accelbench.core.words import Mode, Timing
from accelbench.measure.losses import LossLog
from accelbench.runtimes.pytorch import PytorchRuntime
from accelbench.runtimes.pytorch.procedures import train
from accelbench.runtimes.pytorch.procedures.chance import dropped_nothing
from accelbench.runtimes.pytorch.session import PytorchSession
from accelbench.runtimes.refusals import OPTIMIZERS

CPU = Device("cpu", "a processor")
SMALL = [m for m in MODELS if "small" in m.sets and m.training is not None]

#: A part of a layer whose results are worth recomputing.
LAYERS = {
    "bert-tiny": "bert.encoder.layer.0.attention",
    "vit-tiny": "vit.layers.0.attention",
    "unet-tiny": "down_blocks.0.resnets.0",
}
PHASES = {"forward", "loss", "backward", "optimizer"}


class Chancy(nn.Module):
    """Draws from every source that models draw from, in training alone."""

    def __init__(self, width: int = 8, explode: bool = False, steep: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.second = nn.Linear(width, 3)
        self.explode = explode
        self.steep = steep

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.norm(self.first(features))
        if self.training:
            hidden = nn.functional.dropout(hidden, 0.1)
            hidden = hidden * float(0.9 + 0.2 * np.random.random())
            hidden = hidden * (0.9 + 0.2 * random.random())
        else:
            torch.rand(1)  # one that evaluation draws must not be missed by the next step
            np.random.random()
            random.random()
        logits = self.second(hidden.tanh() * (1e4 if self.steep else 1.0))
        return {"logits": logits * torch.inf if self.explode else logits}


def chancy(**config: Any) -> ModelSpec:
    fed = InputSpec("features", ("batch", 4))
    return made_up(Chancy, fed, config=config, parameters=83, training=THREE_CLASSES)


def case_of(
    model: ModelSpec | str, precision: str = "fp32", batch: int = 2, **options: Any
) -> Case:
    spec = choose([model], None, (), (), all_models=False)[0] if isinstance(model, str) else model
    assert spec.training is not None
    # Short texts, but for those whose text begins with places of an image.
    places = any(one.lead for one in spec.trained.inputs)
    shapes = Shapes(batch, None if places or spec.sequence is None else 16)
    target = Target("pytorch", "cpu")
    return Case(spec, target, precision, settle(spec, shapes), Mode.TRAINING, options=options)


@contextlib.contextmanager
def opened(case: Case, seed: int = 0) -> Iterator[PytorchSession]:
    session = PytorchRuntime().open(Job(case, CPU, seed=seed, threads=1))
    assert isinstance(session, PytorchSession)
    try:
        yield session
    finally:
        session.close()


def losses(case: Case, seed: int = 0, steps: int = 10) -> Sequence[float]:
    with opened(case, seed) as session:
        return session.sample(session.prepare(case), steps, Timing.EACH).losses


def training_facts(session: PytorchSession) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = session.evidence().details["training"]
    return facts


class TestLosses:
    @pytest.mark.parametrize("optimizer", OPTIMIZERS)
    @pytest.mark.parametrize("model", [pytest.param(m, id=m.id) for m in SMALL])
    def test_the_loss_of_every_small_model_falls(self, model: ModelSpec, optimizer: str) -> None:
        found = losses(case_of(model, optimizer=optimizer))
        assert len(found) == 10
        assert all(np.isfinite(found))
        assert found[-1] < found[0]

    @pytest.mark.parametrize("precision", ["bf16", "fp16"])
    @pytest.mark.parametrize("model", ["bert-tiny", "vit-tiny"])
    def test_autocast_falls_about_as_far(self, model: str, precision: str) -> None:
        whole, narrow = losses(case_of(model)), losses(case_of(model, precision))
        assert narrow[0] != whole[0]  # it did compute in another type
        fell = whole[0] - whole[-1]
        assert narrow[0] - narrow[-1] == pytest.approx(fell, rel=0.25)

    def test_every_way_of_timing_notes_one_loss_a_step(self) -> None:
        case = case_of(chancy(), batch=8)
        together = losses(case, steps=9)
        with opened(case) as session:
            inputs = session.prepare(case)
            apart = [
                *session.sample(inputs, 2, Timing.EACH).losses,
                *session.sample(inputs, 3, Timing.WHOLE).losses,
                *session.sample(inputs, 4, Timing.PHASES).losses,
            ]
        assert apart == list(together)

    def test_a_step_does_what_a_plain_loop_does(self) -> None:
        """By hand: the model of the session, its loss by torch, AdamW by torch."""
        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            found = session.sample(inputs, 5, Timing.EACH).losses
        with opened(case) as session:
            inputs, module = session.prepare(case), session._module
            optimizer = torch.optim.AdamW(module.parameters(), lr=train.LEARNING_RATES["adamw"])
            expected = []
            for _ in range(5):
                optimizer.zero_grad()
                logits = module(features=inputs["features"])["logits"]
                loss = nn.functional.cross_entropy(logits, inputs["labels"])
                loss.backward()
                optimizer.step()
                expected.append(loss.item())
        assert found == pytest.approx(expected, rel=1e-6)

    def test_a_loss_that_is_no_number_fails_the_case(self) -> None:
        case = case_of(chancy(explode=True))
        with opened(case) as session:
            log = LossLog(session).session
            inputs = log.prepare(case)
            with pytest.raises(CaseError) as caught:
                log.sample(inputs, 1, Timing.EACH)
        assert caught.value.reason == "loss_not_finite"
        assert "step 1" in caught.value.message


class TestFreshStart:
    @pytest.mark.parametrize("model", [chancy(), "bert-tiny", "vit-tiny"], ids=str)
    def test_step_k_is_the_same_in_every_session_of_a_seed_and_another_in_others(
        self, model: ModelSpec | str
    ) -> None:
        case = case_of(model, batch=4)
        first, again, other = (losses(case, seed, steps=5) for seed in (7, 7, 8))
        assert first == again
        assert all(one != two for one, two in zip(first, other, strict=True))

    def test_preparing_again_begins_anew(self) -> None:
        """Weights, running statistics, momentum and chance: all as they were."""
        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            first = session.sample(session.prepare(case), 6, Timing.EACH).losses
            again = session.sample(session.prepare(case), 6, Timing.EACH).losses
        assert again == first

    def test_another_batch_begins_anew_too(self) -> None:
        small, large = case_of(chancy(), batch=4), case_of(chancy(), batch=8)
        with opened(small) as session:
            session.sample(session.prepare(small), 6, Timing.EACH)
            after = session.sample(session.prepare(large), 6, Timing.EACH).losses
        assert after == losses(large, steps=6)

    def test_weights_are_built_again_only_where_a_step_has_changed_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case = case_of(chancy(), batch=4)
        with opened(case) as session:
            built: list[int] = []
            initial = session._initial
            rebuild = lambda: built.append(1) or initial()  # noqa: E731
            session._opened = dataclasses.replace(session._opened, rebuild=rebuild)
            session.prepare(case)
            inputs = session.prepare(case)
            session.outputs(inputs)
            assert not built
            session.sample(inputs, 1, Timing.EACH)
            session.prepare(case)
            session.prepare(case)
            assert len(built) == 1

    def test_looking_at_outputs_changes_nothing_of_the_training(self) -> None:
        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            found = list(session.sample(inputs, 3, Timing.EACH).losses)
            one, two = session.outputs(inputs), session.outputs(inputs)
            session.inspect(inputs)
            assert session._module.training
            found += session.sample(inputs, 3, Timing.EACH).losses
        assert found == list(losses(case, steps=6))
        assert np.array_equal(one["logits"], two["logits"])

    def test_weights_that_were_doubted_are_what_they_were(self) -> None:
        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            assert isinstance(session, Doubtable)
            inputs = session.prepare(case)
            found = list(session.sample(inputs, 2, Timing.EACH).losses)
            with session.other_weights():
                session.outputs(inputs)
            found += session.sample(inputs, 2, Timing.EACH).losses
        assert found == list(losses(case, steps=4))

    def test_no_gradient_is_left_between_steps(self) -> None:
        case = case_of(chancy(), batch=4)
        with opened(case) as session:
            session.sample(session.prepare(case), 2, Timing.EACH)
            assert all(p.grad is None for p in session._module.parameters())


class TestWithoutDropout:
    @pytest.mark.parametrize("model", [pytest.param(m, id=m.id) for m in SMALL])
    def test_no_small_model_draws_anything_of_torch(self, model: ModelSpec) -> None:
        """Other numbers to draw, the same losses: a curve is of the model and its precision."""
        case = case_of(model)
        with opened(case) as session, session.without_dropout():
            inputs = session.prepare(case)
            first = session.sample(inputs, 2, Timing.EACH).losses
            inputs = session.prepare(case)
            torch.manual_seed(99)
            again = session.sample(inputs, 2, Timing.EACH).losses
        assert first == again

    @pytest.mark.parametrize("model", ["bert-tiny", "detr-tiny", "t5-tiny"])
    def test_afterwards_it_is_dropped_as_before(self, model: str) -> None:
        """Of dropout that is a module's, and of one that a model's own attributes hold."""
        case = case_of(model)
        with opened(case) as session:
            before = session.sample(session.prepare(case), 2, Timing.EACH).losses
            with session.without_dropout():
                without = session.sample(session.prepare(case), 2, Timing.EACH).losses
            after = session.sample(session.prepare(case), 2, Timing.EACH).losses
        assert after == before
        assert without != before

    def test_every_place_where_a_probability_is_kept_is_reached(self) -> None:
        class DropPath(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.p = 0.5
                self.dropout_seed = 7
                self.drop_last = True

        class Config:
            attention_dropout = 0.0

            def __init__(self) -> None:
                self.attention_dropout = 0.4
                self.mask_time_prob = 0.3

        module = nn.Sequential(nn.Dropout(0.1), nn.LSTM(2, 2, 2, dropout=0.2), DropPath())
        config = Config()
        module.config = config  # type: ignore[assignment]
        kept = lambda: (  # noqa: E731
            module[0].p,
            module[1].dropout,
            module[2].p,
            config.attention_dropout,
        )
        with dropped_nothing(module):
            assert kept() == (0, 0, 0, 0)
            assert (module[2].dropout_seed, module[2].drop_last) == (7, True)
            assert config.mask_time_prob == 0.3
        assert kept() == (0.1, 0.2, 0.5, 0.4)


class TestPhases:
    @pytest.mark.parametrize("model", ["bert-tiny", "gpt2-tiny"])
    def test_every_phase_takes_its_time(self, model: str) -> None:
        case = case_of(model)
        with opened(case) as session:
            assert session.phases == ("forward", "loss", "backward", "optimizer")
            block = session.sample(session.prepare(case), 3, Timing.PHASES)
        assert set(block.phase_ns) == PHASES
        assert all(ns > 0 for times in block.phase_ns.values() for ns in times)
        assert {len(times) for times in block.phase_ns.values()} == {3}


class TestPrecision:
    @pytest.mark.parametrize(
        ("precision", "autocast", "scaled"),
        [("fp32", None, False), ("bf16", "bfloat16", False), ("fp16", "float16", True)],
    )
    def test_weights_stay_whole_and_only_fp16_is_scaled(
        self, precision: str, autocast: str | None, scaled: bool
    ) -> None:
        case = case_of("vit-tiny", precision)
        with opened(case) as session:
            inputs = session.prepare(case)
            session.sample(inputs, 2, Timing.EACH)
            session.outputs(inputs)
            details = session.evidence().details
            assert (training_facts(session)["loss_scale"] is not None) == scaled
        assert details["weight_dtypes"] == ["float32"]
        assert details["autocast"] == autocast
        assert details["output_dtypes"] == [autocast or "float32"]

    def test_a_step_whose_scaled_gradients_overflow_is_left_out_and_the_scale_halved(self) -> None:
        case = case_of(chancy(), "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            before = [p.detach().clone() for p in session._module.parameters()]
            # The largest fp32 holds: any gradient of size 1 overflows.
            session._procedure._scale_from(3e38)  # type: ignore[attr-defined]
            session.sample(inputs, 1, Timing.EACH)
            after = list(session._module.parameters())
            assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
            facts = training_facts(session)
        assert facts["loss_scale"] == pytest.approx(1.5e38)
        assert facts["skipped_steps"] == 1

    def test_the_scale_is_settled_before_the_first_step(self) -> None:
        """Gradients so steep that they overflow at the scale which torch begins with."""
        model = chancy(steep=True)
        case = case_of(model, "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            before = [p.detach().clone() for p in session._module.parameters()]
            session.sample(inputs, 1, Timing.EACH)
            after = list(session._module.parameters())
            facts = training_facts(session)
        assert facts["skipped_steps"] == 0
        assert 0 < facts["loss_scale"] < train.LARGEST_SCALE / train.SCALE_MARGIN
        assert not any(torch.equal(one, two) for one, two in zip(before, after, strict=True))

    def test_settling_leaves_nothing_but_the_scale(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neither random numbers nor running statistics nor gradients."""
        case = case_of(chancy(), "fp16", batch=8)
        with opened(case) as session:
            inputs = session.prepare(case)
            assert all(p.grad is None for p in session._module.parameters())
            buffers = {name: b.clone() for name, b in session._module.named_buffers()}
            settled = session.sample(inputs, 5, Timing.EACH).losses
        scale = train.LARGEST_SCALE / train.SCALE_MARGIN
        monkeypatch.setattr(train.Train, "settle", lambda self, inputs: self._scale_from(scale))
        with opened(case) as session:
            inputs = session.prepare(case)
            for name, buffer in session._module.named_buffers():
                assert torch.equal(buffer, buffers[name])
            assert session.sample(inputs, 5, Timing.EACH).losses == settled

    def test_a_loss_that_is_no_number_is_found_in_a_step_and_not_before(self) -> None:
        case = case_of(chancy(explode=True), "fp16")
        with opened(case) as session:
            inputs = session.prepare(case)
            assert training_facts(session)["loss_scale"] == train.LARGEST_SCALE
            assert not np.isfinite(session.sample(inputs, 1, Timing.EACH).losses[0])

    def test_pure_training_narrows_the_weights_and_scales_nothing(self) -> None:
        case = case_of("vit-tiny", "bf16", pure=True)
        with opened(case) as session:
            inputs = session.prepare(case)
            found = session.sample(inputs, 10, Timing.EACH).losses
            details = session.evidence().details
            assert training_facts(session)["loss_scale"] is None
        assert details["weight_dtypes"] == ["bfloat16"]
        assert details["autocast"] is None
        assert found[-1] < found[0]


class TestOptions:
    @pytest.mark.parametrize(("name", "made"), [("adamw", "AdamW"), ("sgd", "SGD")])
    def test_the_optimizer_asked_for_is_the_one_that_steps(self, name: str, made: str) -> None:
        case = case_of(chancy(), batch=4, optimizer=name)
        with opened(case) as session:
            facts = training_facts(session)
        assert facts["optimizer"] == made
        assert facts["learning_rate"] == train.LEARNING_RATES[name]
        assert facts["optimizer_kernels"] in ("plain", "foreach", "fused")
        assert facts["loss"] == "classification"
        assert facts["trained_parameters"] == 83

    def test_the_card_and_the_engine_know_the_same_optimizers(self) -> None:
        assert set(OPTIMIZERS) == set(train.LEARNING_RATES)

    def test_what_was_set_on_purpose_is_another_case(self) -> None:
        ids = {
            case_of("bert-tiny", **options).case_id
            for options in ({}, {"optimizer": "sgd"}, {"gradient_checkpointing": True})
        }
        assert len(ids) == 3

    @pytest.mark.parametrize("model", ["bert-tiny", "vit-tiny", "unet-tiny"])
    def test_checkpointing_recomputes_and_changes_no_loss(self, model: str) -> None:
        plain_case = case_of(model)
        case = case_of(model, gradient_checkpointing=True)
        with opened(plain_case) as session:
            plain = session.sample(session.prepare(plain_case), 2, Timing.EACH).losses
        with opened(case) as session:
            session.prepare(case)  # twice: what is enabled already is not enabled again
            inputs = session.prepare(case)
            calls: list[int] = []
            session._module.get_submodule(LAYERS[model]).register_forward_pre_hook(
                lambda *_: calls.append(1)
            )
            found = session.sample(inputs, 2, Timing.EACH).losses
            facts = training_facts(session)
        assert len(calls) == 2 * 2  # forward, and once more backward, every step
        assert facts["checkpointed_modules"] > 0
        assert found == pytest.approx(plain, rel=1e-5)

    def test_without_it_nothing_is_recomputed(self) -> None:
        case = case_of("bert-tiny")
        with opened(case) as session:
            assert training_facts(session)["checkpointed_modules"] == 0

    def test_a_model_that_cannot_is_refused(self) -> None:
        case = case_of(chancy(), gradient_checkpointing=True)
        with pytest.raises(UnsupportedError) as caught, opened(case):
            pass
        assert caught.value.reason == "gradient_checkpointing"
        assert "--gradient-checkpointing" in caught.value.advice


class TestCard:
    """What the runtime's card refuses without the engine."""

    def refused(self, case: Case) -> str:
        support = PytorchRuntime().supports(case, CPU)
        assert not support.ok
        assert support.message
        assert support.advice
        return support.reason

    def test_training_and_its_options_are_supported(self) -> None:
        for case in (
            case_of("bert-tiny"),
            case_of("bert-tiny", "fp16"),
            case_of("bert-tiny", optimizer="sgd", gradient_checkpointing=True),
            case_of("bert-tiny", "bf16", pure=True),
            case_of("bert-tiny", "fp32", compile=True),
        ):
            assert PytorchRuntime().supports(case, CPU).ok, case

    def test_a_model_without_training_is_refused(self) -> None:
        case = case_of("bert-tiny")
        without = dataclasses.replace(case.model, training=None)
        assert self.refused(dataclasses.replace(case, model=without)) == "no_training"

    def test_an_unknown_optimizer_is_refused(self) -> None:
        assert self.refused(case_of("bert-tiny", optimizer="lion")) == "option"

    @pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
    def test_pure_is_for_half_types(self, precision: str) -> None:
        assert self.refused(case_of("bert-tiny", precision, pure=True)) == "option"

    @pytest.mark.parametrize("name", ["optimizer", "gradient_checkpointing", "pure"])
    def test_options_of_training_are_no_options_of_inference(self, name: str) -> None:
        case = dataclasses.replace(case_of("bert-tiny", "bf16"), mode=Mode.INFERENCE)
        value = "sgd" if name == "optimizer" else True
        assert self.refused(dataclasses.replace(case, options={name: value})) == "option"


def compile_seconds(part: str) -> float:
    from torch._dynamo import utils

    return float(sum(utils.compilation_time_metrics.get(part, ())))


@pytest.mark.long
def test_what_the_backward_pass_has_compiled_counts_as_compilation() -> None:
    """It is compiled when it is first called: it must not pass for a slow first step."""
    case = case_of("vit-tiny", compile=True)
    parts = ("_compile.compile_inner", "backward._backward_impl")
    with opened(case) as session:
        inputs = session.prepare(case)
        before = [compile_seconds(part) for part in parts]
        first = session.sample(inputs, 1, Timing.EACH)
        forward, backward = (compile_seconds(p) - b for p, b in zip(parts, before, strict=True))
        assert first.compilations == 1
        assert forward > 0
        assert backward > 0
        assert first.compile_ns == pytest.approx((forward + backward) * 1e9)
        found = [*first.losses, *session.sample(inputs, 2, Timing.EACH).losses]
        session.inspect(inputs)  # in evaluation mode, and not compiled for it
        again = session.sample(session.prepare(case), 3, Timing.PHASES)
    assert again.compilations == 0
    assert again.losses == pytest.approx(found)
    assert found == pytest.approx(losses(case_of("vit-tiny"), steps=3), rel=1e-4)

"""Training on the pytorch runtime: a step, its phases, its losses, and its fresh start."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from training_sessions import SMALL, case_of, chancy, losses, opened

from accelbench.core.abilities import WeightPerturbable
from accelbench.core.errors import CaseError
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.procedures import train
from accelbench.engines.pytorch.procedures.base import dropped_nothing
from accelbench.engines.shared.refusals import OPTIMIZERS
from accelbench.measure.losses import LossLog

PHASES = {"forward", "loss", "backward", "optimizer"}


class TestLosses:
    @pytest.mark.parametrize("optimizer", OPTIMIZERS)
    @pytest.mark.parametrize("model", [pytest.param(m, id=m.id) for m in SMALL])
    def test_the_loss_of_every_small_model_falls(self, model, optimizer):
        found = losses(case_of(model, optimizer=optimizer))
        assert len(found) == 10
        assert all(np.isfinite(found))
        assert found[-1] < found[0]

    @pytest.mark.parametrize("precision", ["bf16", "fp16"])
    @pytest.mark.parametrize("model", ["bert-tiny", "vit-tiny"])
    def test_autocast_falls_about_as_far(self, model, precision):
        whole, narrow = losses(case_of(model)), losses(case_of(model, precision))
        assert narrow[0] != whole[0]  # it did compute in another type
        fell = whole[0] - whole[-1]
        assert narrow[0] - narrow[-1] == pytest.approx(fell, rel=0.25)

    def test_every_way_of_timing_notes_one_loss_a_step(self):
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

    def test_a_step_does_what_a_plain_loop_does(self):
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

    def test_a_loss_that_is_no_number_fails_the_case(self):
        case = case_of(chancy(explode=True))
        with opened(case) as session:
            block = session.sample(session.prepare(case), 1, Timing.EACH)
            with pytest.raises(CaseError) as caught:
                LossLog().record(block)
        assert caught.value.reason == "loss_not_finite"
        assert "step 1" in caught.value.message


class TestFreshStart:
    @pytest.mark.parametrize("model", [chancy(), "bert-tiny", "vit-tiny"], ids=str)
    def test_step_k_is_the_same_in_every_session_of_a_seed_and_another_in_others(self, model):
        case = case_of(model, batch=4)
        first, again, other = (losses(case, seed, steps=5) for seed in (7, 7, 8))
        assert first == again
        assert all(one != two for one, two in zip(first, other, strict=True))

    def test_another_start_begins_anew(self):
        # Weights, running statistics, momentum and chance: all as they were.
        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            first = session.sample(session.prepare(case), 6, Timing.EACH).losses
            again = session.sample(session.prepare(case), 6, Timing.EACH).losses
        assert again == first

        small, large = case_of(chancy(), batch=4), case_of(chancy(), batch=8)
        with opened(small) as session:
            session.sample(session.prepare(small), 6, Timing.EACH)
            after = session.sample(session.prepare(large), 6, Timing.EACH).losses
        assert after == losses(large, steps=6)

        case = case_of(chancy(), batch=4)
        with opened(case) as session:
            session.sample(session.prepare(case), 2, Timing.EACH)
            assert all(p.grad is None for p in session._module.parameters())

    def test_weights_are_built_again_only_where_a_step_has_changed_them(self, monkeypatch):
        case = case_of(chancy(), batch=4)
        with opened(case) as session:
            built = []
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

    def test_looking_changes_nothing(self):
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

        case = case_of(chancy(), batch=8)
        with opened(case) as session:
            assert isinstance(session, WeightPerturbable)
            inputs = session.prepare(case)
            found = list(session.sample(inputs, 2, Timing.EACH).losses)
            with session.other_weights():
                session.outputs(inputs)
            found += session.sample(inputs, 2, Timing.EACH).losses
        assert found == list(losses(case, steps=4))


class TestWithoutDropout:
    @pytest.mark.parametrize("model", [pytest.param(m, id=m.id) for m in SMALL])
    def test_no_small_model_draws_anything_of_torch(self, model):
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
    def test_afterwards_it_is_dropped_as_before(self, model):
        """Of dropout that is a module's, and of one that a model's own attributes hold."""
        case = case_of(model)
        with opened(case) as session:
            before = session.sample(session.prepare(case), 2, Timing.EACH).losses
            with session.without_dropout():
                without = session.sample(session.prepare(case), 2, Timing.EACH).losses
            after = session.sample(session.prepare(case), 2, Timing.EACH).losses
        assert after == before
        assert without != before

    def test_every_place_where_a_probability_is_kept_is_reached(self):
        class DropPath(nn.Module):
            def __init__(self):
                super().__init__()
                self.p = 0.5
                self.dropout_seed = 7
                self.drop_last = True

        class Config:
            attention_dropout = 0.0

            def __init__(self):
                self.attention_dropout = 0.4
                self.mask_time_prob = 0.3

        module = nn.Sequential(nn.Dropout(0.1), nn.LSTM(2, 2, 2, dropout=0.2), DropPath())
        config = Config()
        module.config = config
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
    def test_every_phase_takes_its_time(self, model):
        case = case_of(model)
        with opened(case) as session:
            assert session.phases == ("forward", "loss", "backward", "optimizer")
            block = session.sample(session.prepare(case), 3, Timing.PHASES)
        assert set(block.phase_ns) == PHASES
        assert all(ns > 0 for times in block.phase_ns.values() for ns in times)
        assert {len(times) for times in block.phase_ns.values()} == {3}

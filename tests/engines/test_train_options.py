"""What training may be told, and what its card refuses without the engine."""

import pytest
from training_sessions import case_of, chancy, opened, training_facts

from accelbench.core.errors import UnsupportedError
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.procedures import train
from accelbench.engines.shared.refusals import OPTIMIZERS

#: A part of a layer whose results are worth recomputing.
LAYERS = {
    "bert-tiny": "bert.encoder.layer.0.attention",
    "vit-tiny": "vit.layers.0.attention",
    "unet-tiny": "down_blocks.0.resnets.0",
}


class TestOptions:
    @pytest.mark.parametrize(("name", "made"), [("adamw", "AdamW"), ("sgd", "SGD")])
    def test_the_optimizer_asked_for_is_the_one_that_steps(self, name, made):
        case = case_of(chancy(), batch=4, optimizer=name)
        with opened(case) as session:
            facts = training_facts(session)
        assert facts["optimizer"] == made
        assert facts["learning_rate"] == train.LEARNING_RATES[name]
        assert facts["optimizer_kernels"] in ("plain", "foreach", "fused")
        assert facts["loss"] == "classification"
        assert facts["trained_parameters"] == 83

    def test_optimizers_and_options_make_another_case(self):
        assert set(OPTIMIZERS) == set(train.LEARNING_RATES)

        ids = {
            case_of("bert-tiny", **options).case_id
            for options in ({}, {"optimizer": "sgd"}, {"gradient_checkpointing": True})
        }
        assert len(ids) == 3

    @pytest.mark.parametrize("model", ["bert-tiny", "vit-tiny", "unet-tiny"])
    def test_checkpointing_recomputes_and_changes_no_loss(self, model):
        plain_case = case_of(model)
        case = case_of(model, gradient_checkpointing=True)
        with opened(plain_case) as session:
            plain = session.sample(session.prepare(plain_case), 2, Timing.EACH).losses
        with opened(case) as session:
            session.prepare(case)  # twice: what is enabled already is not enabled again
            inputs = session.prepare(case)
            calls = []
            session._module.get_submodule(LAYERS[model]).register_forward_pre_hook(
                lambda *_: calls.append(1)
            )
            found = session.sample(inputs, 2, Timing.EACH).losses
            facts = training_facts(session)
        assert len(calls) == 2 * 2  # forward, and once more backward, every step
        assert facts["checkpointed_modules"] > 0
        assert found == pytest.approx(plain, rel=1e-5)

    def test_checkpointing_is_asked_for(self):
        case = case_of("bert-tiny")
        with opened(case) as session:
            assert training_facts(session)["checkpointed_modules"] == 0

        case = case_of(chancy(), gradient_checkpointing=True)
        with pytest.raises(UnsupportedError) as caught, opened(case):
            pass
        assert caught.value.reason == "gradient_checkpointing"
        assert "--gradient-checkpointing" in caught.value.advice

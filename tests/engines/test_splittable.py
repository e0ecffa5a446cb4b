"""What is known of tensor parallelism when a run is planned is what a rank would say of it."""

from dataclasses import replace

import pytest
from training_sessions import CPU, case_of

from accelbench.core.vocabulary import Mode
from accelbench.engines.pytorch.distributed.parallel import products_split
from accelbench.engines.pytorch.runtime import PytorchRuntime, nothing_says_how
from accelbench.models.build import skeleton
from accelbench.models.find import every_model

#: One of each architecture: larger ones are built of the same modules.
TINY = {spec.builder: spec for spec in every_model() if spec.size == "tiny"}.values()
CASE = case_of("bert-tiny", batch=2, strategy="tp")


def shared_by(processes, model, mode):
    return replace(CASE, model=model, mode=mode, world_size=processes)


@pytest.mark.parametrize("spec", TINY, ids=lambda spec: spec.id)
def test_what_is_refused_beforehand_is_what_has_no_plan(spec):
    forms = [spec, *([spec.training_variant] if spec.training else [])]
    for form in forms:
        if form.procedure != "forward":
            continue  # refused as a step of several models
        assert nothing_says_how(form) is not products_split(skeleton(form)), form.builder


@pytest.mark.parametrize("mode", [Mode.INFERENCE, Mode.TRAINING])
@pytest.mark.parametrize("model", ["vit-tiny", "clap-tiny", "qwen2-tiny"])
def test_a_model_that_cannot_be_split_is_refused_by_the_card(model, mode):
    (spec,) = (spec for spec in every_model() if spec.id == model)
    said = PytorchRuntime().supports(shared_by(2, spec, mode), CPU)
    assert (said.ok, said.reason) == (False, "tensor_parallel")
    assert ("ddp or fsdp2" in said.advice) is (mode is Mode.TRAINING)  # refused in inference


def test_heads_that_do_not_go_round_are_refused_by_the_card():
    (spec,) = (spec for spec in every_model() if spec.id == "bert-tiny")
    runtime = PytorchRuntime()
    said = runtime.supports(shared_by(3, spec, Mode.TRAINING), CPU)
    assert said.message.startswith("num_attention_heads of bert-tiny is 2, which 3 processes")
    assert runtime.supports(shared_by(2, spec, Mode.TRAINING), CPU).ok

"""Diffusion and RAG: published sizes, what they are fed, built without a network of wires."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import torch

from accelbench.catalog.build import build
from accelbench.catalog.catalogue import MODELS as CATALOGUE
from accelbench.catalog.find import find
from accelbench.catalog.inputs import input_shapes, make_inputs, settle, throughput_unit
from accelbench.catalog.losses import named
from accelbench.catalog.narrow import weights_digest
from accelbench.catalog.selection import choose
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import ModelSpec
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.core.vocabulary import Mode

MODELS = [spec for spec in CATALOGUE if spec.procedure in {"denoise", "rag"}]
TINY = [spec for spec in MODELS if spec.size == "tiny"]

each = pytest.mark.parametrize("spec", MODELS, ids=lambda spec: spec.id)
each_tiny = pytest.mark.parametrize("spec", TINY, ids=lambda spec: spec.id)


def test_key_sizes_are_the_published_ones() -> None:
    # As counted in the published files: the UNet of stable-diffusion-v1-5, all-MiniLM-L6-v2,
    # GPT-2. That this is also what is built, test_build.py holds for every model.
    assert find("stable-diffusion").parameters == 859_520_964
    pooler = 384 * 384 + 384
    assert find("rag").parameters == 22_713_216 - pooler + 124_439_808
    assert {"stable-diffusion-1.5", "rag-base"} <= {s.id for s in choose(set_name="architectures")}
    assert {"unet-tiny", "rag-tiny"} <= {s.id for s in choose(set_name="small")}


def test_the_index_counts_as_no_weights_but_in_the_digest() -> None:
    module = build(find("rag-tiny"), 0)
    assert module.get_buffer("index").shape == (1000, 64)
    assert module.get_buffer("passages").shape == (1000, 16)
    before = weights_digest(module)
    module.get_buffer("passages")[0, 0] += 1
    assert weights_digest(module) != before


@each_tiny
def test_building_asks_nobody(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    one, again, other = (weights_digest(build(spec, seed)) for seed in (1, 1, 2))
    assert one == again != other


@each
def test_a_case_survives_the_way_to_the_worker(spec: ModelSpec) -> None:
    case = Case(spec, Target("pytorch", "cpu"), "fp32", settle(spec, Shapes(1, new_tokens=4)))
    back = case_from_json(case_to_json(case))
    assert back.case_id == case.case_id
    assert back.model.config_digest == spec.config_digest


def test_a_denoiser_sees_an_eighth_of_the_image() -> None:
    spec = find("stable-diffusion")
    assert input_shapes(spec, Shapes(3)) == {
        "sample": (3, 4, 64, 64),
        "timestep": (3,),
        "encoder_hidden_states": (3, 77, 768),
    }
    assert input_shapes(spec, Shapes(1, image=768))["sample"] == (1, 4, 96, 96)
    assert settle(spec, Shapes(1)).steps == 4
    assert settle(spec, Shapes(1, steps=20)).steps == 20
    assert throughput_unit(spec, Shapes(1)) == "images/s"
    times = make_inputs(find("unet-tiny"), Shapes(64), 0)["timestep"]
    assert 0 <= times.min() < times.max() < 1000


def test_a_question_and_its_passages_fit_into_both_networks() -> None:
    for spec in (find("rag-base"), find("rag-tiny")):
        makes = spec.generation
        assert makes is not None
        config = spec.config
        before = config["retrieved"] * config["passage_tokens"]
        assert makes.min_prompt == before + 1
        assert makes.max_tokens is not None
        assert makes.max_tokens <= config["generator"]["n_positions"]
        assert makes.max_tokens - before == spec.max_sequence == 512
        assert spec.inputs[0].high <= config["generator"]["vocab_size"]
        assert spec.inputs[0].high <= config["embedder"]["vocab_size"]
        with pytest.raises(UnsupportedError):
            settle(spec, Shapes(1, prompt_tokens=makes.max_tokens, new_tokens=1))


@each_tiny
def test_one_training_step_has_a_finite_loss_and_gradients(spec: ModelSpec) -> None:
    assert spec.training is not None
    module = build(spec.trained, 0).train()
    drawn = make_inputs(spec, Shapes(2), 0, Mode.TRAINING)
    inputs = {name: torch.from_numpy(array) for name, array in drawn.items()}
    labels = {label.name for label in spec.training.labels}
    output = module(**{name: t for name, t in inputs.items() if name not in labels})
    loss = named(spec.training.loss)(output, inputs)
    loss.backward()
    assert torch.isfinite(loss)
    learning = [p for p in module.parameters() if p.requires_grad]
    assert learning
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in learning)

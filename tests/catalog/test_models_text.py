"""The text models: their published sizes, what they are fed, that they train and generate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from accelbench.catalog.build import build
from accelbench.catalog.catalogue import MODELS as CATALOGUE
from accelbench.catalog.find import find
from accelbench.catalog.inputs import input_shapes, make_inputs, settle
from accelbench.catalog.losses import named
from accelbench.catalog.narrow import weights_digest
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import ModelSpec
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode

MODELS = [spec for spec in CATALOGUE if spec.modalities == ("text",) and spec.procedure != "rag"]
TINY = [spec for spec in MODELS if spec.size == "tiny"]
WRITERS = [spec for spec in MODELS if spec.family is Family.TEXT_GENERATION]

#: The weights that their makers publish, counted in their files; a tied head counts once.
PUBLISHED = {
    "bert-base": 109_482_240,
    "distilbert-base": 66_362_880,
    "gpt2": 124_439_808,
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "llama-2-7b": 6_738_415_616,
    "llama-3.2-1b": 1_235_814_400,
    "qwen2-7b": 7_615_616_512,
    "qwen2-0.5b": 494_032_768,
    "mixtral-8x7b": 46_702_792_704,
    "mamba-130m": 129_135_360,
}

#: config.json as it lies beside the published weights: what could tell another model.
CARDS: dict[str, dict[str, Any]] = {
    "t5-small": {"model_type": "t5", "d_model": 512, "d_ff": 2048, "num_layers": 6,
        "num_heads": 8, "decoder_start_token_id": 0, "n_positions": 512},
    "distilbert-base": {"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12,
        "tie_weights_": True},
    "llama-2-7b": {"model_type": "llama", "max_position_embeddings": 4096,
        "num_key_value_heads": 32, "rms_norm_eps": 1e-5, "rope_scaling": None},
    "llama-3.2-1b": {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_key_value_heads": 8, "head_dim": 64, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 131072, "vocab_size": 128256, "tie_word_embeddings": True,
        "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
        "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192}},
    "qwen2-7b": {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "max_position_embeddings": 131072, "vocab_size": 152064, "rope_theta": 1000000.0,
        "sliding_window": 131072, "use_sliding_window": False},
    "mixtral-8x7b": {"model_type": "mixtral", "max_position_embeddings": 32768,
        "rope_theta": 1000000.0, "sliding_window": None, "router_aux_loss_coef": 0.02},
    "mamba-130m": {"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24,
        "d_model": 768, "vocab_size": 50280, "time_step_rank": 48},
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small products: threads that wait for each other cost more than they bring."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn(spec: ModelSpec, shapes: Shapes, mode: Mode = Mode.INFERENCE) -> dict[str, torch.Tensor]:
    return {k: torch.from_numpy(v) for k, v in make_inputs(spec, shapes, 0, mode).items()}


def test_the_published_sizes_are_those_of_the_catalogue() -> None:
    """That the built models have them, test_build holds for the whole catalogue."""
    ours = {spec.id: spec.parameters for spec in MODELS if spec.size != "tiny"}
    assert ours == PUBLISHED


@pytest.mark.parametrize(("name", "card"), CARDS.items(), ids=CARDS)
def test_published_weights_are_taken_for_the_model(name: str, card: dict[str, Any]) -> None:
    """The config beside the real weights says nothing else than ours, habits apart."""
    from accelbench.catalog.build import transformers_class
    from accelbench.catalog.weights import _matching_config

    spec = find(name)
    config = _matching_config(spec, transformers_class(spec).config_class, card, Path("folder"))
    assert getattr(config, "use_cache", False) is False
    wanted = spec.config.get("experts_implementation")
    assert config._experts_implementation == wanted


@pytest.mark.parametrize("name", ["t5-tiny", "mixtral-tiny", "mamba-tiny"])
def test_weights_come_back_from_a_folder(name: str, tmp_path: Path) -> None:
    """Ties, packed experts and all; with our habits, not those of the folder's config."""
    spec = find(name)
    saved = build(spec, 4)
    saved.config.use_cache = True
    saved.save_pretrained(tmp_path)
    loaded = build(spec, 0, weights=str(tmp_path))
    assert weights_digest(loaded) == weights_digest(saved)
    assert loaded.config.use_cache is False
    if "experts_implementation" in spec.config:
        assert loaded.config._experts_implementation == "grouped_mm"


@pytest.mark.parametrize("name", ["bert-tiny", "distilbert-tiny"])
def test_an_encoder_of_a_folder_gets_a_new_head_for_its_training(name: str, tmp_path: Path) -> None:
    spec = find(name)
    saved = build(spec, 4)
    saved.save_pretrained(tmp_path)
    one, again = (build(spec.trained, 0, weights=str(tmp_path)) for _ in range(2))
    assert weights_digest(one) == weights_digest(again)
    for key, value in saved.state_dict().items():
        assert torch.equal(one.base_model.state_dict()[key], value), key
    assert one.classifier.weight.std() > 0

    body = load_file(tmp_path / "model.safetensors")
    body.pop("embeddings.LayerNorm.weight")
    save_file(body, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CaseError, match="lacks 1 of the model's weights") as raised:
        build(spec.trained, 0, weights=str(tmp_path))
    assert raised.value.reason == "weights_incomplete"


def test_sets_sizes_and_families() -> None:
    assert [s.id for s in MODELS if "key" in s.sets] == [
        "bert-base", "t5-base", "llama-2-7b", "qwen2-7b",
    ]  # fmt: skip
    assert all("small" in s.sets for s in TINY)
    assert all(s.parameters < 8_000_000 for s in TINY)
    for spec in MODELS:
        embeds = spec.architecture is Architecture.ENCODER_ONLY
        assert spec.family is (Family.EMBEDDING if embeds else Family.TEXT_GENERATION)
        assert (spec.small_variant is None) == (spec.size == "tiny")
    assert {s.architecture for s in TINY} == {
        Architecture.ENCODER_ONLY, Architecture.DECODER_ONLY, Architecture.ENCODER_DECODER,
        Architecture.MIXTURE_OF_EXPERTS, Architecture.STATE_SPACE,
    }  # fmt: skip


@pytest.mark.parametrize("spec", MODELS, ids=lambda s: s.id)
def test_a_spec_survives_the_way_to_a_worker(spec: ModelSpec) -> None:
    shapes = settle(spec, Shapes(1, new_tokens=4 if spec.generation else None))
    for mode in Mode:
        case = Case(spec, Target("pytorch", "cpu"), "fp32", shapes, mode=mode)
        again = case_from_json(json.loads(json.dumps(case_to_json(case))))
        assert again == case
        assert again.case_id == case.case_id
        assert again.model.config_digest == spec.config_digest


@pytest.mark.parametrize("spec", TINY, ids=lambda s: s.id)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_forward_pass(spec: ModelSpec, dtype: torch.dtype) -> None:
    module = build(spec, 0).to(dtype)
    with torch.inference_mode():
        outputs = module(**drawn(spec, Shapes(2, sequence=12)))
    main = "last_hidden_state" if spec.family is Family.EMBEDDING else "logits"
    width = spec.config.get("hidden_size", spec.config.get("dim"))
    if main == "logits":
        width = spec.config["vocab_size"]
    assert tuple(outputs[main].shape) == (2, 12, width)
    values = [v for v in outputs.values() if isinstance(v, torch.Tensor)]
    assert all(torch.isfinite(v).all() for v in values)
    assert not any("past" in key or "cache" in key for key in outputs)


@pytest.mark.parametrize("spec", TINY, ids=lambda s: s.id)
def test_outputs_follow_the_inputs_and_the_weights(spec: ModelSpec) -> None:
    inputs = drawn(spec, Shapes(1, sequence=8))
    other = {**inputs, "input_ids": (inputs["input_ids"] + 1) % spec.config["vocab_size"]}
    with torch.inference_mode():
        first, fresh = (build(spec, seed) for seed in (0, 1))
        one, two, three = first(**inputs)[0], first(**other)[0], fresh(**inputs)[0]
    assert not torch.allclose(one, two)
    assert not torch.allclose(one, three)


@pytest.mark.parametrize("spec", TINY, ids=lambda s: s.id)
@pytest.mark.parametrize("narrow", [False, True], ids=["fp32", "autocast"])
def test_training_reaches_every_weight(spec: ModelSpec, narrow: bool) -> None:
    module = build(spec.trained, 0).train()
    fed = drawn(spec, Shapes(2, sequence=12), Mode.TRAINING)
    assert spec.training is not None
    labels = {t.name for t in spec.training.labels}
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        outputs = module(**{k: v for k, v in fed.items() if k not in labels})
        loss = named(spec.training.loss)(outputs, fed)
    loss.backward()
    assert torch.isfinite(loss)
    for name, weight in module.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        assert weight.grad.abs().sum() > 0, name


def test_every_text_model_trains_and_every_writer_generates() -> None:
    assert all(spec.training is not None for spec in MODELS)
    assert [s.id for s in MODELS if s.generation is not None] == [s.id for s in WRITERS]


@pytest.mark.parametrize("spec", [s for s in MODELS if s.training.builder], ids=lambda s: s.id)
def test_an_encoder_is_trained_with_two_classes(spec: ModelSpec) -> None:
    assert spec.trained.config["num_labels"] == 2
    assert spec.builder == spec.trained.builder.replace("ForSequenceClassification", "Model")
    labels = drawn(spec, Shapes(64), Mode.TRAINING)["labels"]
    assert set(labels.tolist()) == {0, 1}


@pytest.mark.parametrize("spec", [s for s in TINY if s.generation], ids=lambda s: s.id)
def test_a_cache_changes_no_token(spec: ModelSpec) -> None:
    """The prefill's inputs are all that the model's own generation needs."""
    assert spec.generation is not None
    shapes = settle(spec, Shapes(2, new_tokens=4))
    fed = drawn(spec, shapes)
    assert fed["input_ids"].shape == (2, spec.generation.prompt_tokens)
    module = build(spec, 0)
    length = {"min_new_tokens": 4, "max_new_tokens": 4, "do_sample": False}
    with torch.inference_mode():
        cached, anew = (module.generate(**fed, **length, use_cache=c) for c in (True, False))
    read = 1 if spec.generation.kind == "encoder-decoder" else spec.generation.prompt_tokens
    assert tuple(cached.shape) == (2, read + 4)
    assert torch.equal(cached, anew)


@pytest.mark.parametrize("spec", WRITERS, ids=lambda s: s.id)
def test_requests(spec: ModelSpec) -> None:
    makes = spec.generation
    assert makes is not None
    assert (makes.prompt_tokens, makes.new_tokens) == (
        (32, 8) if spec.size == "tiny" else (128, 32)
    )
    assert makes.kind == ("encoder-decoder" if spec.id.startswith("t5") else "decoder")
    assert makes.max_tokens == spec.max_sequence
    fed = input_shapes(spec, Shapes(3, prompt_tokens=9, new_tokens=2))
    assert fed["input_ids"] == (3, 9)
    if makes.max_tokens is not None:
        with pytest.raises(UnsupportedError):
            settle(spec, Shapes(1, prompt_tokens=makes.max_tokens, new_tokens=1))


def test_t5_answers_from_its_start_id_alone() -> None:
    spec = find("t5-tiny")
    fed = drawn(spec, settle(spec, Shapes(2, new_tokens=3)))
    assert fed["decoder_input_ids"].tolist() == [[0], [0]]
    assert drawn(spec, Shapes(2, sequence=7))["decoder_input_ids"].shape == (2, 7)
    assert drawn(spec, Shapes(2, sequence=7), Mode.TRAINING)["labels"].shape == (2, 7)
    assert build(spec, 0).config.decoder_start_token_id == 0


def test_each_token_goes_to_two_experts() -> None:
    spec = find("mixtral-tiny")
    module = build(spec, 0)
    chosen: list[torch.Tensor] = []
    for layer in module.model.layers:
        layer.mlp.gate.register_forward_hook(lambda _m, _a, out: chosen.append(out[2]))
    with torch.inference_mode():
        module(**drawn(spec, Shapes(2, sequence=16)))
    assert [tuple(c.shape) for c in chosen] == [(32, 2), (32, 2)]
    assert all(set(c.flatten().tolist()) == {0, 1, 2, 3} for c in chosen)

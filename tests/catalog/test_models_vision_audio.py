"""What the models that see and hear have in common, and where each has its own ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from accelbench.catalog.build import build, parameter_count, skeleton
from accelbench.catalog.find import find
from accelbench.catalog.inputs import (
    input_shapes,
    items_per_step,
    make_inputs,
    settle,
    throughput_unit,
)
from accelbench.catalog.losses import named
from accelbench.catalog.selection import choose
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.model import ModelSpec
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode

#: Parameters as published, weights that are shared once.
PUBLISHED = {
    "vit-base": 86_567_656,
    "resnet-50": 25_557_032,
    "detr-resnet-50": 41_524_768,
    "clip-base": 151_277_313,
    "xclip-base": 196_585_729,
    "clap-base": 153_492_890,
    "wav2vec2-base": 94_396_320,
    "whisper-base": 72_593_920,
    "whisper-tiny": 37_760_640,
    "llava-1.5-7b": 7_063_427_072,
    "llava-next-7b": 7_566_747_648,
    "vit-gpt2": 239_195_904,
}
SMALL = (
    "vit-tiny",
    "resnet-tiny",
    "detr-tiny",
    "clip-tiny",
    "xclip-tiny",
    "clap-tiny",
    "wav2vec2-tiny",
    "whisper-mini",
    "llava-tiny",
    "llava-next-tiny",
    "vit-gpt2-tiny",
)
GENERATIVE = ("whisper-mini", "llava-tiny", "llava-next-tiny", "vit-gpt2-tiny")
every = pytest.mark.parametrize("name", [*PUBLISHED, *SMALL])
small = pytest.mark.parametrize("name", SMALL)


def drawn(spec: ModelSpec, shapes: Shapes, mode: str = Mode.INFERENCE) -> dict[str, torch.Tensor]:
    return {k: torch.from_numpy(v) for k, v in make_inputs(spec, shapes, 0, mode).items()}


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_key_sizes_are_the_published_ones(name: str, parameters: int) -> None:
    assert find(name).parameters == parameters


@pytest.mark.parametrize("name", [*SMALL, "detr-resnet-50"])
def test_the_model_that_is_trained_has_as_many_parameters(name: str) -> None:
    """None needs another head; DETR's other builder sets weights free, and adds none."""
    spec = find(name)
    assert parameter_count(skeleton(spec.trained)) == spec.parameters


@every
def test_small_ones_are_in_the_small_set_and_stand_for_the_others(name: str) -> None:
    spec = find(name)
    assert ("small" in spec.sets) == (name in SMALL)
    if name in SMALL:
        assert spec.parameters < 2_000_000
    else:
        assert spec.small_variant in SMALL
        assert find(spec.small_variant).builder == spec.builder


@every
def test_a_case_goes_through_json_and_stays_itself(name: str) -> None:
    spec = find(name)
    made = spec.generation.new_tokens if spec.generation else None
    for mode, new in ((Mode.INFERENCE, None), (Mode.INFERENCE, made), (Mode.TRAINING, None)):
        shapes = settle(spec, Shapes(2, new_tokens=new))
        case = Case(spec, Target("pytorch", "cpu"), "fp32", shapes, mode=mode)
        again = case_from_json(case_to_json(case))
        assert again == case
        assert again.case_id == case.case_id


def stepped(
    spec: ModelSpec, module: torch.nn.Module
) -> tuple[Mapping[str, torch.Tensor], dict[str, torch.Tensor]]:
    """What a model in training says to what it is fed, and what that was, labels and all."""
    assert spec.training is not None
    labels = {one.name for one in spec.training.labels}
    fed = drawn(spec, Shapes(2), Mode.TRAINING)
    return module(**{k: v for k, v in fed.items() if k not in labels}), fed


def floats(outputs: Any) -> dict[str, torch.Tensor]:
    return {k: v for k, v in outputs.items() if isinstance(v, torch.Tensor)}


@small
def test_what_comes_out_is_finite_and_depends_on_every_input(name: str) -> None:
    """Whatever is fed and changed (masks, sizes and labels apart) shows in the outputs."""
    spec = find(name)
    module = build(spec, seed=0)
    inputs = drawn(spec, Shapes(2))
    other = {k: torch.from_numpy(v) for k, v in make_inputs(spec, Shapes(2), 1).items()}
    changing = [t.name for t in spec.inputs if t.constant is None and t.row is None]
    with torch.inference_mode():
        before = floats(module(**inputs))
        assert all(torch.isfinite(t).all() for t in before.values())
        for changed in changing:
            after = floats(module(**{**inputs, changed: other[changed]}))
            assert any(not torch.equal(before[k], after[k]) for k in before), changed


@small
def test_half_the_bits_are_enough_for_finite_outputs(name: str) -> None:
    spec = find(name)
    follows = {t.name for t in spec.inputs if t.dtype == "float"}
    inputs = {k: v.bfloat16() if k in follows else v for k, v in drawn(spec, Shapes(2)).items()}
    with torch.inference_mode():
        outputs = floats(build(spec, seed=0).bfloat16()(**inputs))
    assert {t.dtype for t in outputs.values()} == {torch.bfloat16}
    assert all(torch.isfinite(t).all() for t in outputs.values())


@small
def test_a_training_step_reaches_the_weights(name: str) -> None:
    """The loss is finite and so is every gradient; few weights are out of its reach.

    Those are: LLaVA's last layer of vision, whose output is not used; poolers that no one
    asks; a second scale of CLAP; Wav2Vec2's mask; DETR's stem and first stage.
    """
    spec = find(name)
    assert spec.training is not None
    module = build(spec.trained, seed=0).train()
    torch.manual_seed(0)
    outputs, fed = stepped(spec, module)
    loss = named(spec.training.loss)(outputs, fed)
    assert loss.ndim == 0
    assert torch.isfinite(loss)
    loss.backward()
    reached = 0
    for key, weight in module.named_parameters():
        if weight.grad is not None:
            assert torch.isfinite(weight.grad).all(), key
            reached += weight.numel()
    assert reached > 0.85 * spec.parameters


@pytest.mark.parametrize("name", GENERATIVE)
def test_a_request_is_one_that_the_model_can_answer(name: str) -> None:
    """transformers' own loop takes the prompt as it is drawn, and writes so many tokens."""
    spec = find(name)
    assert spec.generation is not None
    shapes = settle(spec, Shapes(2, new_tokens=4))
    inputs = drawn(spec, shapes)
    module: Any = build(spec, seed=0)
    ids = module.generate(**inputs, min_new_tokens=4, max_new_tokens=4, do_sample=False)
    prompt = 0 if name == "whisper-mini" else shapes.prompt_tokens or 0  # it gives back no prompt
    assert ids.shape == (2, prompt + 4)


@every
def test_those_that_write_have_generation_and_the_others_do_not(name: str) -> None:
    spec = find(name)
    writes = spec.builder.rpartition(":")[2].endswith(("ConditionalGeneration", "DecoderModel"))
    assert (spec.generation is not None) == writes
    if spec.generation is not None:
        shapes = settle(spec, Shapes(1, new_tokens=spec.generation.new_tokens))
        assert input_shapes(spec, shapes)  # the default request is one that fits


def test_image_places_are_as_many_as_the_model_sees() -> None:
    for name, image_places in (("llava-1.5-7b", 576), ("llava-next-7b", 1176)):
        spec = find(name)
        assert spec.generation is not None
        assert spec.generation.prompt_tokens == image_places + 64
        ids = make_inputs(spec, Shapes(2, new_tokens=1), seed=3)["input_ids"]
        assert ((ids == 32000).sum(axis=1) == image_places).all()
        labels = make_inputs(spec, Shapes(2), 3, Mode.TRAINING)["labels"]
        assert ((labels == -100).sum(axis=1) == image_places).all()
        with pytest.raises(UnsupportedError, match=f"at least {image_places + 1} tokens"):
            settle(spec, Shapes(1, prompt_tokens=image_places, new_tokens=1))
        with pytest.raises(UnsupportedError, match=f"{image_places} of them places"):
            settle(spec, Shapes(1, sequence=image_places))


def test_a_sentence_ends_once() -> None:
    for name in ("clip-base", "clip-tiny", "xclip-base", "xclip-tiny"):
        spec = find(name)
        ids = make_inputs(spec, Shapes(4), seed=0)["input_ids"]
        end = spec.config["text_config"]["vocab_size"] - 1
        assert ((ids == end).sum(axis=1) == 1).all()
        assert (ids[:, -1] == end).all()


@pytest.mark.parametrize(
    "name", ["vit-base", "clip-base", "xclip-base", "llava-1.5-7b", "llava-next-7b", "vit-gpt2"]
)
def test_an_image_of_another_size_than_the_learned_positions_is_refused(name: str) -> None:
    spec = find(name)
    assert spec.image is not None
    assert settle(spec, Shapes(1, image=spec.image)).image == spec.image
    with pytest.raises(UnsupportedError, match="takes images of"):
        settle(spec, Shapes(1, image=spec.image + 32))


def test_networks_of_convolutions_alone_take_any_size() -> None:
    for name in ("resnet-50", "detr-resnet-50"):
        assert settle(find(name), Shapes(1, image=512)).image == 512


def test_sound_is_counted_by_its_seconds() -> None:
    for name, seconds in (("whisper-base", 30), ("clap-base", 10), ("wav2vec2-base", 10)):
        spec = find(name)
        shapes = settle(spec, Shapes(4))
        assert throughput_unit(spec, shapes) == "audio s/s"
        assert items_per_step(spec, shapes) == 4 * seconds
    assert input_shapes(find("wav2vec2"), Shapes(1, audio=3)) == {"input_values": (1, 48_000)}
    for name in ("whisper-base", "whisper-mini", "clap-base"):
        with pytest.raises(UnsupportedError, match="seconds of sound"):
            settle(find(name), Shapes(1, audio=7))


def test_labels_of_the_sounds_never_ask_for_the_blank() -> None:
    spec = find("wav2vec2-tiny")
    labels = make_inputs(spec, Shapes(64), 0, Mode.TRAINING)["labels"]
    assert labels.min() == 1
    frames = 99
    # A letter that follows itself needs a blank between.
    needed = labels.shape[1] + (labels[:, 1:] == labels[:, :-1]).sum(axis=1)
    assert (needed <= frames).all()


def test_boxes_lie_within_the_image() -> None:
    boxes = make_inputs(find("detr"), Shapes(2), 0, Mode.TRAINING)["boxes"]
    assert boxes.dtype == np.float32
    assert boxes.shape == (2, 7, 4)
    assert (boxes[..., :2] - boxes[..., 2:] / 2 >= 0).all()
    assert (boxes[..., :2] + boxes[..., 2:] / 2 <= 1).all()


def test_training_of_wav2vec2_repeats() -> None:
    """With the config of inference, masks would be drawn from NumPy's unseeded state."""
    spec = find("wav2vec2-tiny")
    losses = []
    for numpy_seed in (1, 2):
        np.random.seed(numpy_seed)
        module = build(spec.trained, seed=0).train()
        torch.manual_seed(0)
        outputs, fed = stepped(spec, module)
        losses.append(float(named("ctc")(outputs, fed).detach()))
    assert losses[0] == losses[1]


def test_detr_learns_all_but_batch_norms_stem_and_first_stage() -> None:
    module = skeleton(find("detr-resnet-50").trained)
    frozen = [k for k, p in module.named_parameters() if not p.requires_grad]
    assert frozen
    assert all(".embedder." in k or ".stages.0." in k for k in frozen)
    learns = sum(p.numel() for p in module.parameters() if p.requires_grad)
    assert learns == 41_302_368  # as published
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in module.modules())
    assert sum(b.numel() for k, b in module.named_buffers() if "normalization" in k) == 106_240


def test_detr_is_trained_from_the_weights_it_infers_with() -> None:
    spec = find("detr-tiny")
    ours, theirs = build(spec.trained, seed=5).state_dict(), build(spec, seed=5).state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_categories_find_all_that_see_and_hear() -> None:
    sees = {spec.id for spec in choose(categories=["vision"])}
    assert {"clip-base", "detr-resnet-50", "llava-1.5-7b", "xclip-tiny", "vit-gpt2"} <= sees
    assert not {"whisper-base", "clap-base"} & sees
    hears = {spec.id for spec in choose(categories=["audio"])}
    assert {"whisper-base", "wav2vec2-base", "clap-base", "whisper-mini"} <= hears
    assert not {"vit-base", "llava-tiny"} & hears


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("clip", "clip-base"), ("openai/clip-vit-base-patch32", "clip-base"),
        ("clap", "clap-base"), ("clap-htsat-unfused", "clap-base"),
        ("detr", "detr-resnet-50"), ("facebook/detr-resnet-50", "detr-resnet-50"),
        ("xclip", "xclip-base"), ("X-CLIP", "xclip-base"),
        ("llava", "llava-1.5-7b"), ("llava-1.5-7b-hf", "llava-1.5-7b"),
        ("llava_next", "llava-next-7b"), ("llava-v1.6-mistral-7b", "llava-next-7b"),
        ("wav2vec2", "wav2vec2-base"), ("facebook/wav2vec2-base-960h", "wav2vec2-base"),
        ("whisper", "whisper-base"), ("openai/whisper-tiny", "whisper-tiny"),
        ("vit-gpt2", "vit-gpt2"), ("nlpconnect/vit-gpt2-image-captioning", "vit-gpt2"),
    ],
)  # fmt: skip
def test_names_people_type(typed: str, expected: str) -> None:
    assert find(typed).id == expected


@every
def test_family_and_architecture(name: str) -> None:
    spec = find(name)
    kinds = {
        "ViT": (Family.VISION, Architecture.VISION),
        "ResNet": (Family.VISION, Architecture.VISION),
        "Detr": (Family.VISION, Architecture.VISION),
        "CLIP": (Family.MULTIMODAL, Architecture.MULTIMODAL),
        "XCLIP": (Family.MULTIMODAL, Architecture.MULTIMODAL),
        "Clap": (Family.AUDIO, Architecture.MULTIMODAL),
        "Wav2Vec2": (Family.AUDIO, Architecture.SPEECH),
        "Whisper": (Family.AUDIO, Architecture.SPEECH),
        "Llava": (Family.MULTIMODAL, Architecture.MULTIMODAL),
        "LlavaNext": (Family.MULTIMODAL, Architecture.MULTIMODAL),
        "VisionEncoderDecoder": (Family.MULTIMODAL, Architecture.VISION_ENCODER_TEXT_DECODER),
    }
    builder = spec.builder.removeprefix("transformers:")
    own = builder.partition("For")[0].removesuffix("Model")
    assert (spec.family, spec.architecture) == kinds[own]


def test_a_config_says_everything_that_its_identity_rests_on() -> None:
    """Another image side, and so another model, is another digest."""
    spec = find("clip-tiny")
    config = dict(spec.config)
    config["vision_config"] = {**config["vision_config"], "image_size": 128}
    assert replace(spec, config=config).config_digest != spec.config_digest

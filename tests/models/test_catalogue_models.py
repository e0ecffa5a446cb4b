"""The models of the catalogue: what each is fed, that it runs, trains and generates."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode
from accelbench.models.build import build, parameter_count, skeleton
from accelbench.models.find import every_model, find
from accelbench.models.inputs import (
    input_shapes,
    items_per_step,
    make_inputs,
    settle,
    throughput_unit,
)
from accelbench.models.losses import find_loss
from accelbench.models.narrow import weights_digest
from accelbench.models.selection import choose

#: The weights that their makers publish, counted in their files; a shared one counts once. That the
#: built models have them, test_build holds for the whole catalogue.
PUBLISHED = {
    "bert-base": 109_482_240, "distilbert-base": 66_362_880, "vit-base": 86_567_656,
    "resnet-50": 25_557_032, "detr-resnet-50": 41_524_768, "gpt2": 124_439_808,
    "t5-base": 222_903_552, "t5-small": 60_506_624, "llama-2-7b": 6_738_415_616,
    "llama-3.2-1b": 1_235_814_400, "qwen2-7b": 7_615_616_512, "qwen2-0.5b": 494_032_768,
    "mixtral-8x7b": 46_702_792_704, "mamba-130m": 129_135_360, "wav2vec2-base": 94_396_320,
    "whisper-base": 72_593_920, "whisper-tiny": 37_760_640, "clap-base": 153_492_890,
    "clip-base": 151_277_313, "xclip-base": 196_585_729, "llava-1.5-7b": 7_063_427_072,
    "llava-next-7b": 7_566_747_648, "vit-gpt2": 239_195_904,
    "stable-diffusion-1.5": 859_520_964,
    # all-MiniLM-L6-v2 without its pooler, and GPT-2.
    "rag-base": 22_713_216 - (384 * 384 + 384) + 124_439_808,
}  # fmt: skip

#: config.json as it lies beside the published weights: what could tell another model.
CARDS = {
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

SMALL = [spec for spec in every_model() if "small" in spec.sets]
#: Text models that transformers builds: encoders and decoders.
TEXT = [s for s in every_model() if s.modalities == ("text",) and s.procedure != "rag"]
TINY_TEXT = [spec for spec in TEXT if spec in SMALL]
WRITERS = [spec for spec in TEXT if spec.family is Family.TEXT_GENERATION]
OTHERS = [spec for spec in SMALL if spec not in TEXT]
#: Those that see and hear.
SENSING = [spec for spec in OTHERS if spec.procedure == "forward"]


def of(specs):
    return pytest.mark.parametrize("spec", specs, ids=lambda spec: spec.id)


every = of(list(every_model()))


@pytest.fixture(autouse=True)
def one_thread():
    """Small products: threads that wait for each other cost more than they bring."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def drawn(spec, shapes, mode=Mode.INFERENCE, seed=0):
    return {k: torch.from_numpy(v) for k, v in make_inputs(spec, shapes, seed, mode).items()}


def stepped(spec, module, shapes):
    """The outputs of a model in training, and what it was fed, labels and all."""
    labels = {one.name for one in spec.training.labels}
    fed = drawn(spec, shapes, Mode.TRAINING)
    return module(**{k: v for k, v in fed.items() if k not in labels}), fed


def floats(outputs):
    return {k: v for k, v in outputs.items() if isinstance(v, torch.Tensor)}


def test_the_published_sizes_are_those_of_the_catalogue():
    assert {s.id: s.parameters for s in every_model() if s not in SMALL} == PUBLISHED


@every
def test_a_small_one_stands_for_each_other(spec):
    assert all(s.parameters < 8_000_000 for s in SMALL)
    assert (spec.small_variant is None) == (spec in SMALL)
    if spec.small_variant is not None:
        small = find(spec.small_variant)
        assert small in SMALL
        assert small.builder == spec.builder


@every
def test_a_case_goes_through_json_and_stays_itself(spec):
    made = spec.generation.new_tokens if spec.generation else None
    for mode, new in ((Mode.INFERENCE, None), (Mode.INFERENCE, made), (Mode.TRAINING, None)):
        shapes = settle(spec, Shapes(2, new_tokens=new))
        case = Case(spec, Target("pytorch", "cpu"), "fp32", shapes, mode=mode)
        again = case_from_json(json.loads(json.dumps(case_to_json(case))))
        assert again == case
        assert again.case_id == case.case_id
        assert again.model.config_digest == spec.config_digest


@of([*OTHERS, find("detr-resnet-50")])
def test_the_model_that_is_trained_has_as_many_parameters(spec):
    """None needs another head; DETR's other builder sets weights free, and adds none."""
    assert parameter_count(skeleton(spec.training_variant)) == spec.parameters


@pytest.mark.parametrize(("name", "card"), CARDS.items(), ids=CARDS)
def test_published_weights_are_taken_for_the_model(name, card):
    """The config beside the real weights says nothing else than ours, habits apart."""
    from accelbench.models.build import transformers_class
    from accelbench.models.weights import _matching_config

    spec = find(name)
    config = _matching_config(spec, transformers_class(spec).config_class, card, Path("folder"))
    assert getattr(config, "use_cache", False) is False
    wanted = spec.config.get("experts_implementation")
    assert config._experts_implementation == wanted


@pytest.mark.parametrize("name", ["t5-tiny", "mixtral-tiny", "mamba-tiny"])
def test_weights_come_back_from_a_folder(name, tmp_path):
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
def test_an_encoder_of_a_folder_gets_a_new_head_for_its_training(name, tmp_path):
    spec = find(name)
    saved = build(spec, 4)
    saved.save_pretrained(tmp_path)
    one, again = (build(spec.training_variant, 0, weights=str(tmp_path)) for _ in range(2))
    assert weights_digest(one) == weights_digest(again)
    for key, value in saved.state_dict().items():
        assert torch.equal(one.base_model.state_dict()[key], value), key
    assert one.classifier.weight.std() > 0

    body = load_file(tmp_path / "model.safetensors")
    body.pop("embeddings.LayerNorm.weight")
    save_file(body, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CaseError, match="lacks 1 of the model's weights") as raised:
        build(spec.training_variant, 0, weights=str(tmp_path))
    assert raised.value.reason == "weights_incomplete"


def test_text_models_are_of_every_architecture():
    for spec in TEXT:
        embeds = spec.architecture is Architecture.ENCODER_ONLY
        assert spec.family is (Family.EMBEDDING if embeds else Family.TEXT_GENERATION)
    assert {s.architecture for s in TINY_TEXT} == {
        Architecture.ENCODER_ONLY, Architecture.DECODER_ONLY, Architecture.ENCODER_DECODER,
        Architecture.MIXTURE_OF_EXPERTS, Architecture.STATE_SPACE,
    }  # fmt: skip
    assert [s.id for s in TEXT if "key" in s.sets] == [
        "bert-base", "t5-base", "llama-2-7b", "qwen2-7b",
    ]  # fmt: skip


@of(TINY_TEXT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_forward_pass(spec, dtype):
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


@of(TINY_TEXT)
def test_outputs_follow_the_inputs_and_the_weights(spec):
    inputs = drawn(spec, Shapes(1, sequence=8))
    other = {**inputs, "input_ids": (inputs["input_ids"] + 1) % spec.config["vocab_size"]}
    with torch.inference_mode():
        first, fresh = (build(spec, seed) for seed in (0, 1))
        one, two, three = first(**inputs)[0], first(**other)[0], fresh(**inputs)[0]
    assert not torch.allclose(one, two)
    assert not torch.allclose(one, three)


@of(SENSING)
def test_what_comes_out_is_finite_and_depends_on_every_input(spec):
    """Whatever is fed and changed (masks, sizes and labels apart) shows in the outputs."""
    module = build(spec, seed=0)
    inputs = drawn(spec, Shapes(2))
    other = drawn(spec, Shapes(2), seed=1)
    changing = [t.name for t in spec.inputs if t.constant is None and t.row is None]
    with torch.inference_mode():
        before = floats(module(**inputs))
        assert all(torch.isfinite(t).all() for t in before.values())
        for changed in changing:
            after = floats(module(**{**inputs, changed: other[changed]}))
            assert any(not torch.equal(before[k], after[k]) for k in before), changed


@of(SENSING)
def test_half_the_bits_are_enough_for_finite_outputs(spec):
    follows = {t.name for t in spec.inputs if t.dtype == "float"}
    inputs = {k: v.bfloat16() if k in follows else v for k, v in drawn(spec, Shapes(2)).items()}
    with torch.inference_mode():
        outputs = floats(build(spec, seed=0).bfloat16()(**inputs))
    assert {t.dtype for t in outputs.values()} == {torch.bfloat16}
    assert all(torch.isfinite(t).all() for t in outputs.values())


@of(TINY_TEXT)
@pytest.mark.parametrize("narrow", [False, True], ids=["fp32", "autocast"])
def test_training_of_text_reaches_every_weight(spec, narrow):
    module = build(spec.training_variant, 0).train()
    torch.manual_seed(0)  # gradients of two items may cancel, as dropout has it
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        outputs, fed = stepped(spec, module, Shapes(2, sequence=12))
        loss = find_loss(spec.training.loss)(outputs, fed)
    loss.backward()
    assert torch.isfinite(loss)
    for name, weight in module.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        assert weight.grad.abs().sum() > 0, name


@of(OTHERS)
def test_a_training_step_reaches_the_weights(spec):
    """The loss is finite and so is every gradient; few weights are out of its reach.

    Those are: LLaVA's last layer of vision, whose output is not used; poolers that no one
    asks; a second scale of CLAP; Wav2Vec2's mask; DETR's stem and first stage.
    """
    module = build(spec.training_variant, seed=0).train()
    torch.manual_seed(0)
    outputs, fed = stepped(spec, module, Shapes(2))
    loss = find_loss(spec.training.loss)(outputs, fed)
    assert loss.ndim == 0
    assert torch.isfinite(loss)
    loss.backward()
    learning = [p for p in module.parameters() if p.requires_grad]
    reached = [p for p in learning if p.grad is not None]
    assert all(torch.isfinite(p.grad).all() for p in reached)
    if spec in SENSING:
        assert sum(p.numel() for p in reached) > 0.85 * spec.parameters
    else:
        assert learning
        assert len(reached) == len(learning)


@of([s for s in TEXT if s.training and s.training.builder])
def test_an_encoder_is_trained_with_two_classes(spec):
    assert spec.training_variant.config["num_labels"] == 2
    assert spec.builder == spec.training_variant.builder.replace(
        "ForSequenceClassification", "Model"
    )
    labels = drawn(spec, Shapes(64), Mode.TRAINING)["labels"]
    assert set(labels.tolist()) == {0, 1}


@of([s for s in TINY_TEXT if s.generation])
def test_a_cache_changes_no_token(spec):
    """The prefill's inputs are all that the model's own generation needs."""
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


@of(WRITERS)
def test_requests(spec):
    makes = spec.generation
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


@of([spec for spec in SENSING if spec.generation])
def test_a_request_is_one_that_the_model_can_answer(spec):
    """transformers' own loop takes the prompt as it is drawn, and writes so many tokens."""
    assert spec.generation is not None
    shapes = settle(spec, Shapes(2, new_tokens=4))
    inputs = drawn(spec, shapes)
    module = build(spec, seed=0)
    ids = module.generate(**inputs, min_new_tokens=4, max_new_tokens=4, do_sample=False)
    prompt = (
        0 if spec.id == "whisper-mini" else shapes.prompt_tokens or 0
    )  # it gives back no prompt
    assert ids.shape == (2, prompt + 4)


@every
def test_those_that_write_have_generation_and_the_others_do_not(spec):
    assert spec.training is not None
    ends = ("ConditionalGeneration", "DecoderModel", "CausalLM", "LMHeadModel", ":Rag")
    assert (spec.generation is not None) == spec.builder.endswith(ends)
    if spec.generation is not None:
        shapes = settle(spec, Shapes(1, new_tokens=spec.generation.new_tokens))
        assert input_shapes(spec, shapes)  # the default request is one that fits


def test_t5_answers_from_its_start_id_alone():
    spec = find("t5-tiny")
    fed = drawn(spec, settle(spec, Shapes(2, new_tokens=3)))
    assert fed["decoder_input_ids"].tolist() == [[0], [0]]
    assert drawn(spec, Shapes(2, sequence=7))["decoder_input_ids"].shape == (2, 7)
    assert drawn(spec, Shapes(2, sequence=7), Mode.TRAINING)["labels"].shape == (2, 7)
    assert build(spec, 0).config.decoder_start_token_id == 0


def test_each_token_goes_to_two_experts():
    spec = find("mixtral-tiny")
    module = build(spec, 0)
    chosen = []
    for layer in module.model.layers:
        layer.mlp.gate.register_forward_hook(lambda _m, _a, out: chosen.append(out[2]))
    with torch.inference_mode():
        module(**drawn(spec, Shapes(2, sequence=16)))
    assert [tuple(c.shape) for c in chosen] == [(32, 2), (32, 2)]
    assert all(set(c.flatten().tolist()) == {0, 1, 2, 3} for c in chosen)


def test_image_places_are_as_many_as_the_model_sees():
    for name, image_places in (("llava-1.5-7b", 576), ("llava-next-7b", 1176)):
        spec = find(name)
        assert spec.generation.prompt_tokens == image_places + 64
        ids = make_inputs(spec, Shapes(2, new_tokens=1), seed=3)["input_ids"]
        assert ((ids == 32000).sum(axis=1) == image_places).all()
        labels = make_inputs(spec, Shapes(2), 3, Mode.TRAINING)["labels"]
        assert ((labels == -100).sum(axis=1) == image_places).all()
        with pytest.raises(UnsupportedError, match=f"at least {image_places + 1} tokens"):
            settle(spec, Shapes(1, prompt_tokens=image_places, new_tokens=1))
        with pytest.raises(UnsupportedError, match=f"{image_places} of them places"):
            settle(spec, Shapes(1, sequence=image_places))


def test_labels_and_boxes_can_be():
    spec = find("wav2vec2-tiny")
    labels = make_inputs(spec, Shapes(64), 0, Mode.TRAINING)["labels"]
    assert labels.min() == 1
    frames = 99
    # A letter that follows itself needs a blank between.
    needed = labels.shape[1] + (labels[:, 1:] == labels[:, :-1]).sum(axis=1)
    assert (needed <= frames).all()

    boxes = make_inputs(find("detr"), Shapes(2), 0, Mode.TRAINING)["boxes"]
    assert boxes.dtype == np.float32
    assert boxes.shape == (2, 7, 4)
    assert (boxes[..., :2] - boxes[..., 2:] / 2 >= 0).all()
    assert (boxes[..., :2] + boxes[..., 2:] / 2 <= 1).all()

    for name in ("clip-base", "clip-tiny", "xclip-base", "xclip-tiny"):
        spec = find(name)
        ids = make_inputs(spec, Shapes(4), seed=0)["input_ids"]
        end = spec.config["text_config"]["vocab_size"] - 1
        assert ((ids == end).sum(axis=1) == 1).all()
        assert (ids[:, -1] == end).all()


@pytest.mark.parametrize(
    "name", ["vit-base", "clip-base", "xclip-base", "llava-1.5-7b", "llava-next-7b", "vit-gpt2"]
)
def test_an_image_of_another_size_than_the_learned_positions_is_refused(name):
    spec = find(name)
    assert spec.image is not None
    assert settle(spec, Shapes(1, image=spec.image)).image == spec.image
    with pytest.raises(UnsupportedError, match="takes images of"):
        settle(spec, Shapes(1, image=spec.image + 32))


def test_sizes_of_images_and_sounds():
    for name in ("resnet-50", "detr-resnet-50"):
        assert settle(find(name), Shapes(1, image=512)).image == 512

    for name, seconds in (("whisper-base", 30), ("clap-base", 10), ("wav2vec2-base", 10)):
        spec = find(name)
        shapes = settle(spec, Shapes(4))
        assert throughput_unit(spec, shapes) == "audio s/s"
        assert items_per_step(spec, shapes) == 4 * seconds
    assert input_shapes(find("wav2vec2"), Shapes(1, audio=3)) == {"input_values": (1, 48_000)}
    for name in ("whisper-base", "whisper-mini", "clap-base"):
        with pytest.raises(UnsupportedError, match="seconds of sound"):
            settle(find(name), Shapes(1, audio=7))


def test_training_of_wav2vec2_repeats():
    """With the config of inference, masks would be drawn from NumPy's unseeded state."""
    spec = find("wav2vec2-tiny")
    losses = []
    for numpy_seed in (1, 2):
        np.random.seed(numpy_seed)
        module = build(spec.training_variant, seed=0).train()
        torch.manual_seed(0)
        outputs, fed = stepped(spec, module, Shapes(2))
        losses.append(float(find_loss("ctc")(outputs, fed).detach()))
    assert losses[0] == losses[1]


def test_detr_is_trained_as_published():
    module = skeleton(find("detr-resnet-50").training_variant)
    frozen = [k for k, p in module.named_parameters() if not p.requires_grad]
    assert frozen
    assert all(".embedder." in k or ".stages.0." in k for k in frozen)
    learns = sum(p.numel() for p in module.parameters() if p.requires_grad)
    assert learns == 41_302_368  # as published
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in module.modules())
    assert sum(b.numel() for k, b in module.named_buffers() if "normalization" in k) == 106_240

    spec = find("detr-tiny")
    ours, theirs = (
        build(spec.training_variant, seed=5).state_dict(),
        build(spec, seed=5).state_dict(),
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_categories_find_all_that_see_and_hear():
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
def test_names_people_type(typed, expected):
    assert find(typed).id == expected


def test_a_config_and_an_index_are_part_of_a_digest():
    # Another image side, and so another model, is another digest.
    spec = find("clip-tiny")
    config = dict(spec.config)
    config["vision_config"] = {**config["vision_config"], "image_size": 128}
    assert replace(spec, config=config).config_digest != spec.config_digest

    module = build(find("rag-tiny"), 0)
    assert module.get_buffer("index").shape == (1000, 64)
    assert module.get_buffer("passages").shape == (1000, 16)
    before = weights_digest(module)
    module.get_buffer("passages")[0, 0] += 1
    assert weights_digest(module) != before


@of([s for s in SMALL if s.procedure != "forward"])
def test_building_asks_nobody(spec, monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    one, again, other = (weights_digest(build(spec, seed)) for seed in (1, 1, 2))
    assert one == again != other


def test_a_denoiser_sees_an_eighth_of_the_image():
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


def test_a_question_and_its_passages_fit_into_both_networks():
    for spec in (find("rag-base"), find("rag-tiny")):
        makes = spec.generation
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

"""ViT-GPT2: an image encoder and a text decoder, joined by attention, that describes images."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import other_size, pixel_values
from accelbench.core.model import Generation, InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family


def _config(
    hidden: int, layers: int, heads: int, image: int, patch: int, vocabulary: int, positions: int
) -> dict[str, Any]:
    """Both halves of one size, as ViT-B and GPT-2 are."""
    start = vocabulary - 1  # begins, ends and pads a text, as in GPT-2
    return {
        "encoder": {
            "model_type": "vit",
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
            "image_size": image,
            "patch_size": patch,
            "qkv_bias": True,
        },
        "decoder": {
            "model_type": "gpt2",
            "vocab_size": vocabulary,
            "n_positions": positions,
            "n_embd": hidden,
            "n_layer": layers,
            "n_head": heads,
            "bos_token_id": start,
            "eos_token_id": start,
            "is_decoder": True,
            "add_cross_attention": True,
            "use_cache": False,  # generation asks for the cache itself
        },
        "decoder_start_token_id": start,
        "pad_token_id": start,
        "eos_token_id": start,
    }


def _text(vocabulary: int, name: str = "decoder_input_ids") -> InputSpec:
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary - 1)


def _inputs(vocabulary: int) -> tuple[InputSpec, ...]:
    return (pixel_values(), _text(vocabulary))


def _request(vocabulary: int, new_tokens: int, positions: int) -> Generation:
    """The image is read once; the text begins with nothing but its start."""
    start = vocabulary - 1
    first = InputSpec(
        "decoder_input_ids", ("batch", "sequence"), "int64", 0, start, lead=(start, 1)
    )
    return Generation(
        inputs=(pixel_values(), first),
        prompt_tokens=1,
        new_tokens=new_tokens,
        max_tokens=positions,
        kind="encoder-decoder",
    )


def _training(vocabulary: int) -> Training:
    """The decoder is fed the caption; the labels are the same words, one place on."""
    return Training("seq2seq_lm", (_text(vocabulary, "labels"),))


_GPT2, _TINY = 50257, 4096

_LARGEST = ModelSpec(
    id="vit-gpt2",
    family=Family.MULTIMODAL,
    architecture=Architecture.VISION_ENCODER_TEXT_DECODER,
    modalities=("vision", "text"),
    task="image-to-text",
    size="base",
    builder="transformers:VisionEncoderDecoderModel",
    config=_config(768, 12, 12, 224, 16, _GPT2, 1024),
    inputs=_inputs(_GPT2),
    parameters=239_195_904,
    sequence=16,  # a caption
    max_sequence=1024,
    image=224,
    generation=_request(_GPT2, new_tokens=32, positions=1024),
    training=_training(_GPT2),
    aliases=("vit-gpt2-captioning",),
    hub_ids=("nlpconnect/vit-gpt2-image-captioning",),
    small_variant="vit-gpt2-tiny",
    sets=("architectures",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="vit-gpt2-tiny",  # a size of our own
        size="tiny",
        config=_config(128, 2, 2, 64, 8, _TINY, 128),
        inputs=_inputs(_TINY),
        parameters=1_516_544,
        max_sequence=128,
        image=64,
        generation=_request(_TINY, new_tokens=8, positions=128),
        training=_training(_TINY),
        sets=("small",),
    ),
)

"""LLaVA: CLIP's image encoder, a projector, and a language model that reads image places."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import (
    answers,
    attention_mask,
    other_size,
    pixel_values,
    places,
    seen_request,
)
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family


def config(
    vision: tuple[int, int, int],
    text: dict[str, Any],
    image: int,
    patch: int,
    vocabulary: int,
    image_id: int,
) -> dict[str, Any]:
    """LLaVA's config: the towers' sizes, and which id stands for a place of the image.

    Args:
        vision: hidden size, layers and heads of the image encoder.
        text: the language model's own config.
        image: side of the image; learned positions, no other can be fed.
        patch: side of the square that becomes one place.
        vocabulary: ids of the language model.
        image_id: the one that stands for a place of the image.
    """
    hidden, layers, heads = vision
    return {
        "image_token_index": image_id,
        "image_seq_length": (image // patch) ** 2,
        "projector_hidden_act": "gelu",
        "vision_feature_layer": -2,  # the last layer of the encoder is built, run and not used
        "vision_feature_select_strategy": "default",  # all places but the class token
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
            "hidden_act": "quick_gelu",
            "image_size": image,
            "patch_size": patch,
        },
        "text_config": {
            "vocab_size": vocabulary,
            "tie_word_embeddings": False,
            "use_cache": False,  # generation asks for the cache itself
            **text,
        },
    }


#: CLIP ViT-L/14, which both published models see with.
LARGE_VISION = (1024, 24, 16)
TINY_VISION = (64, 2, 2)
#: A Llama of our own, small enough to train in milliseconds.
TINY_TEXT = {
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
TINY_VOCABULARY, TINY_IMAGE_ID = 4096, 4000

_PLACES, _TINY_PLACES = 24 * 24, 4 * 4
_VICUNA_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
}
_INPUTS = (places(32000, _PLACES), attention_mask(), pixel_values())
_TINY_INPUTS = (places(TINY_IMAGE_ID, _TINY_PLACES), attention_mask(), pixel_values())

_LARGEST = ModelSpec(
    id="llava-1.5-7b",
    family=Family.MULTIMODAL,
    architecture=Architecture.MULTIMODAL,
    modalities=("vision", "text"),
    task="image-text-to-text",
    size="large",
    builder="transformers:LlavaForConditionalGeneration",
    config=config(LARGE_VISION, _VICUNA_7B, 336, 14, 32064, 32000),
    inputs=_INPUTS,
    parameters=7_063_427_072,
    sequence=_PLACES + 64,
    max_sequence=4096,
    image=336,
    generation=seen_request(_INPUTS, _PLACES, text=64, new_tokens=32, max_tokens=4096),
    training=answers(32000, _PLACES),
    aliases=("llava", "llava-7b"),
    hub_ids=("llava-hf/llava-1.5-7b-hf",),
    small_variant="llava-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="llava-tiny",  # a size of our own: 16 places an image
        size="tiny",
        config=config(TINY_VISION, TINY_TEXT, 32, 8, TINY_VOCABULARY, TINY_IMAGE_ID),
        inputs=_TINY_INPUTS,
        parameters=1_515_392,
        sequence=_TINY_PLACES + 16,
        max_sequence=512,
        image=32,
        generation=seen_request(_TINY_INPUTS, _TINY_PLACES, text=16, new_tokens=8, max_tokens=512),
        training=answers(TINY_IMAGE_ID, _TINY_PLACES),
        sets=("small",),
    ),
)

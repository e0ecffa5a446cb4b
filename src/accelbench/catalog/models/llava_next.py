"""LLaVA-NeXT: LLaVA that sees an image whole and in tiles, as large as the image is."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.models.llava import (
    LARGE_VISION,
    TINY_IMAGE_ID,
    TINY_TEXT,
    TINY_VISION,
    TINY_VOCABULARY,
    config,
)
from accelbench.catalog.own import answers, attention_mask, other_size, places, seen_request
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family


def _tiled(made: dict[str, Any], grid: list[list[int]]) -> dict[str, Any]:
    return {**made, "image_grid_pinpoints": grid}


def _count(side: int) -> int:
    """Places of an image as large as one tile is, `side` places a side.

    It is laid on the smallest grid, of one tile by two, and seen once whole beside
    them: 3 tiles are encoded. Of the grid's places those that are not the image's
    are cut away again, and each row is closed by one place of its own.
    """
    return side * side + side * (side + 1)


def _inputs(image_id: int, tile: int, side: int) -> tuple[InputSpec, ...]:
    return (
        places(image_id, _count(side)),
        attention_mask(),
        InputSpec("pixel_values", ("batch", 3, 3, "image", "image")),
        # Height and width; the model decides by them how many tiles and places there are.
        InputSpec("image_sizes", ("batch", 2), "int64", row=(tile, tile)),
    )


_MISTRAL_7B = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
    "sliding_window": None,
}
_GRID = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
_TINY_GRID = [[32, 64], [64, 32], [64, 64]]

_INPUTS = _inputs(32000, 336, 24)
_TINY_INPUTS = _inputs(TINY_IMAGE_ID, 32, 4)

_LARGEST = ModelSpec(
    id="llava-next-7b",
    family=Family.MULTIMODAL,
    architecture=Architecture.MULTIMODAL,
    modalities=("vision", "text"),
    task="image-text-to-text",
    size="large",
    builder="transformers:LlavaNextForConditionalGeneration",
    config=_tiled(config(LARGE_VISION, _MISTRAL_7B, 336, 14, 32064, 32000), _GRID),
    inputs=_INPUTS,
    parameters=7_566_747_648,
    sequence=_count(24) + 64,
    max_sequence=32768,
    image=336,  # the image that LLaVA-1.5 sees: 1176 places here, 576 there
    generation=seen_request(_INPUTS, _count(24), text=64, new_tokens=32, max_tokens=32768),
    training=answers(32000, _count(24)),
    aliases=("llava-next", "llava-1.6", "llava-v1.6-mistral-7b"),
    hub_ids=("llava-hf/llava-v1.6-mistral-7b-hf",),
    small_variant="llava-next-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="llava-next-tiny",  # a size of our own: 36 places an image
        size="tiny",
        config=_tiled(
            config(TINY_VISION, TINY_TEXT, 32, 8, TINY_VOCABULARY, TINY_IMAGE_ID), _TINY_GRID
        ),
        inputs=_TINY_INPUTS,
        parameters=1_515_520,
        sequence=_count(4) + 16,
        max_sequence=512,
        image=32,
        generation=seen_request(_TINY_INPUTS, _count(4), text=16, new_tokens=8, max_tokens=512),
        training=answers(TINY_IMAGE_ID, _count(4)),
        sets=("small",),
    ),
)

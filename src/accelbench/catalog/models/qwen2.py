"""Qwen2: a decoder whose queries share keys, with biases where it makes queries and keys."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import (
    FEW,
    NEXT_TOKEN,
    other_size,
    request,
    rotary_decoder,
    short_request,
    text,
    turning,
)
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_POSITIONS = 131072


def _config(vocabulary: int, hidden: int, **sizes: Any) -> dict[str, Any]:
    return rotary_decoder(
        vocabulary,
        hidden,
        positions=_POSITIONS,
        norm=1e-6,
        rope=turning(1000000.0),
        use_sliding_window=False,
        **sizes,
    )


_LARGEST = ModelSpec(
    id="qwen2-7b",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.DECODER_ONLY,
    modalities=("text",),
    task="text-generation",
    size="large",
    builder="transformers:Qwen2ForCausalLM",
    config=_config(
        152064, 3584, feed_forward=18944, layers=28, heads=28, key_value_heads=4, tied=False
    ),
    inputs=text(152064),
    parameters=7_615_616_512,
    item="sequences",
    sequence=128,
    max_sequence=_POSITIONS,
    generation=request(text(152064), _POSITIONS),
    training=NEXT_TOKEN,
    aliases=("qwen2", "qwen"),
    hub_ids=("Qwen/Qwen2-7B",),
    small_variant="qwen2-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="qwen2-0.5b",
        size="small",
        config=_config(
            151936, 896, feed_forward=4864, layers=24, heads=14, key_value_heads=2, tied=True
        ),
        inputs=text(151936),
        parameters=494_032_768,
        generation=request(text(151936), _POSITIONS),
        hub_ids=("Qwen/Qwen2-0.5B",),
        small_variant="qwen2-tiny",
    ),
    other_size(
        _LARGEST,
        id="qwen2-tiny",  # a size of our own
        size="tiny",
        config=_config(FEW, 128, feed_forward=688, layers=2, heads=4, key_value_heads=1, tied=True),
        inputs=text(FEW),
        parameters=1_135_616,
        generation=short_request(text(FEW), _POSITIONS),
        sets=("small",),
    ),
)

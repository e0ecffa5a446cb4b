"""Qwen2: a decoder whose queries share keys, with biases where it makes queries and keys."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.parts import (
    NEXT_TOKEN,
    attention_mask,
    request,
    short_request,
    token_ids,
)
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.words import Architecture, Family

_POSITIONS = 131072
_FEW = 4096  # ids of the tiny size: the logits of a batch of 128 then stay below 300 MB


def _config(
    vocabulary: int,
    hidden: int,
    feed_forward: int,
    layers: int,
    heads: int,
    key_value_heads: int,
    *,
    tied: bool,
) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": feed_forward,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "max_position_embeddings": _POSITIONS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "use_sliding_window": False,
        "tie_word_embeddings": tied,
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        "use_cache": False,
    }


def _inputs(vocabulary: int) -> tuple[InputSpec, ...]:
    return (token_ids(vocabulary), attention_mask())


MODELS = (
    ModelSpec(
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
        inputs=_inputs(152064),
        parameters=7_615_616_512,
        item="sequences",
        sequence=128,
        max_sequence=_POSITIONS,
        generation=request(_inputs(152064), _POSITIONS),
        training=NEXT_TOKEN,
        aliases=("qwen2", "qwen"),
        hub_ids=("Qwen/Qwen2-7B",),
        small_variant="qwen2-tiny",
        sets=("key",),
    ),
    ModelSpec(
        id="qwen2-0.5b",
        family=Family.TEXT_GENERATION,
        architecture=Architecture.DECODER_ONLY,
        modalities=("text",),
        task="text-generation",
        size="small",
        builder="transformers:Qwen2ForCausalLM",
        config=_config(
            151936, 896, feed_forward=4864, layers=24, heads=14, key_value_heads=2, tied=True
        ),
        inputs=_inputs(151936),
        parameters=494_032_768,
        item="sequences",
        sequence=128,
        max_sequence=_POSITIONS,
        generation=request(_inputs(151936), _POSITIONS),
        training=NEXT_TOKEN,
        hub_ids=("Qwen/Qwen2-0.5B",),
        small_variant="qwen2-tiny",
    ),
    ModelSpec(
        id="qwen2-tiny",  # a size of our own
        family=Family.TEXT_GENERATION,
        architecture=Architecture.DECODER_ONLY,
        modalities=("text",),
        task="text-generation",
        size="tiny",
        builder="transformers:Qwen2ForCausalLM",
        config=_config(
            _FEW, 128, feed_forward=688, layers=2, heads=4, key_value_heads=1, tied=True
        ),
        inputs=_inputs(_FEW),
        parameters=1_135_616,
        item="sequences",
        sequence=128,
        max_sequence=_POSITIONS,
        generation=short_request(_inputs(_FEW), _POSITIONS),
        training=NEXT_TOKEN,
        sets=("small",),
    ),
)

"""LLaMA: the decoder with rotary positions, gated feed-forward and root-mean-square norms."""

from __future__ import annotations

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

#: How version 3 stretches positions it learned up to 8192 over sixteen times as many.
_STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

_LARGEST = ModelSpec(
    id="llama-2-7b",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.DECODER_ONLY,
    modalities=("text",),
    task="text-generation",
    size="large",
    builder="transformers:LlamaForCausalLM",
    config=rotary_decoder(
        32000,
        4096,
        feed_forward=11008,
        layers=32,
        heads=32,
        key_value_heads=32,
        positions=4096,
        rope=turning(10000.0),
    ),
    inputs=text(32000),
    parameters=6_738_415_616,
    item="sequences",
    sequence=128,
    max_sequence=4096,
    generation=request(text(32000), 4096),
    training=NEXT_TOKEN,
    aliases=("llama", "llama2", "llama-7b"),
    hub_ids=("meta-llama/Llama-2-7b-hf",),
    small_variant="llama-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="llama-3.2-1b",
        config=rotary_decoder(
            128256,
            2048,
            feed_forward=8192,
            layers=16,
            heads=32,
            key_value_heads=8,
            positions=131072,
            tied=True,
            rope=_STRETCHED,
        ),
        inputs=text(128256),
        parameters=1_235_814_400,
        max_sequence=131072,
        generation=request(text(128256), 131072),
        hub_ids=("meta-llama/Llama-3.2-1B",),
        small_variant="llama-tiny",
    ),
    other_size(
        _LARGEST,
        id="llama-tiny",  # a size of our own, two queries to a key as in version 3
        size="tiny",
        config=rotary_decoder(
            FEW,
            128,
            feed_forward=344,
            layers=2,
            heads=4,
            key_value_heads=2,
            positions=2048,
            rope=turning(10000.0),
        ),
        inputs=text(FEW),
        parameters=1_411_712,
        max_sequence=2048,
        generation=short_request(text(FEW), 2048),
        sets=("small",),
    ),
)

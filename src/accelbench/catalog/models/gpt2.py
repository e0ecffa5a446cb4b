"""GPT-2: the decoder with its language-model head, tied to the token embedding."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import (
    NEXT_TOKEN,
    attention_mask,
    other_size,
    request,
    short_request,
    token_ids,
)
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_VOCABULARY = 50257
_POSITIONS = 1024


def _config(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "vocab_size": _VOCABULARY,
        "n_positions": _POSITIONS,
        "n_embd": hidden,
        "n_layer": layers,
        "n_head": heads,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        "use_cache": False,
    }


_INPUTS = (token_ids(_VOCABULARY), attention_mask())

_LARGEST = ModelSpec(
    id="gpt2",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.DECODER_ONLY,
    modalities=("text",),
    task="text-generation",
    size="base",
    builder="transformers:GPT2LMHeadModel",
    config=_config(hidden=768, layers=12, heads=12),
    inputs=_INPUTS,
    parameters=124_439_808,
    item="sequences",
    sequence=128,
    max_sequence=_POSITIONS,
    generation=request(_INPUTS, _POSITIONS),
    training=NEXT_TOKEN,
    aliases=("gpt2-small", "gpt2-base"),
    hub_ids=("openai-community/gpt2",),
    small_variant="gpt2-tiny",
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="gpt2-tiny",  # a size of our own, with GPT-2's vocabulary
        size="tiny",
        config=_config(hidden=128, layers=2, heads=2),
        parameters=6_960_768,
        generation=short_request(_INPUTS, _POSITIONS),
        sets=("small",),
    ),
)

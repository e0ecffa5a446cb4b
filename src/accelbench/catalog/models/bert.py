"""BERT: the encoder with its pooler, as it is used for embeddings."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import attention_mask, classes, other_size, token_ids
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_VOCABULARY = 30522
_POSITIONS = 512


def _config(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "vocab_size": _VOCABULARY,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "max_position_embeddings": _POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }


_INPUTS = (token_ids(_VOCABULARY), attention_mask())
_TRAINING = classes("transformers:BertForSequenceClassification")

_LARGEST = ModelSpec(
    id="bert-base",
    family=Family.EMBEDDING,
    architecture=Architecture.ENCODER_ONLY,
    modalities=("text",),
    task="feature-extraction",
    size="base",
    builder="transformers:BertModel",
    config=_config(hidden=768, layers=12, heads=12),
    inputs=_INPUTS,
    parameters=109_482_240,
    item="sequences",
    sequence=128,
    max_sequence=_POSITIONS,
    training=_TRAINING,
    aliases=("bert",),
    hub_ids=("google-bert/bert-base-uncased",),
    small_variant="bert-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="bert-tiny",
        size="tiny",
        config=_config(hidden=128, layers=2, heads=2),
        parameters=4_385_920,
        hub_ids=("prajjwal1/bert-tiny", "google/bert_uncased_L-2_H-128_A-2"),
        sets=("small",),
    ),
)

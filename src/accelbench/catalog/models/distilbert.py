"""DistilBERT: BERT's encoder at half its depth, without segments and without a pooler."""

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
        "dim": hidden,
        "n_layers": layers,
        "n_heads": heads,
        "hidden_dim": 4 * hidden,
        "max_position_embeddings": _POSITIONS,
        "sinusoidal_pos_embds": False,
        "activation": "gelu",
    }


_INPUTS = (token_ids(_VOCABULARY), attention_mask())
_TRAINING = classes("transformers:DistilBertForSequenceClassification")

_LARGEST = ModelSpec(
    id="distilbert-base",
    family=Family.EMBEDDING,
    architecture=Architecture.ENCODER_ONLY,
    modalities=("text",),
    task="feature-extraction",
    size="base",
    builder="transformers:DistilBertModel",
    config=_config(hidden=768, layers=6, heads=12),
    inputs=_INPUTS,
    parameters=66_362_880,
    item="sequences",
    sequence=128,
    max_sequence=_POSITIONS,
    training=_TRAINING,
    aliases=("distilbert",),
    hub_ids=("distilbert/distilbert-base-uncased",),
    small_variant="distilbert-tiny",
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="distilbert-tiny",  # a size of our own, with BERT's vocabulary
        size="tiny",
        config=_config(hidden=128, layers=2, heads=2),
        parameters=4_369_152,
        sets=("small",),
    ),
)

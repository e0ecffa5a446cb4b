"""ViT: the vision transformer with its classification head."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import image_classes, other_size, pixel_values
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_CLASSES = 1000  # ImageNet's


def _config(hidden: int, layers: int, heads: int, image: int, patch: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "image_size": image,  # learned positions: no other size can be fed
        "patch_size": patch,
        "num_channels": 3,
        "qkv_bias": True,
        "num_labels": _CLASSES,
    }


_LARGEST = ModelSpec(
    id="vit-base",
    family=Family.VISION,
    architecture=Architecture.VISION,
    modalities=("vision",),
    task="image-classification",
    size="base",
    builder="transformers:ViTForImageClassification",
    config=_config(hidden=768, layers=12, heads=12, image=224, patch=16),
    inputs=(pixel_values(),),
    training=image_classes(_CLASSES),
    parameters=86_567_656,
    item="images",
    image=224,
    aliases=("vit", "vit_b_16", "vit-b/16", "vit-base-16"),
    hub_ids=("google/vit-base-patch16-224",),
    small_variant="vit-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        # A size of our own, 65 tokens an image, so that it trains and runs in milliseconds.
        id="vit-tiny",
        size="tiny",
        config=_config(hidden=128, layers=2, heads=2, image=64, patch=8),
        parameters=558_952,
        image=64,
        sets=("small",),
    ),
)

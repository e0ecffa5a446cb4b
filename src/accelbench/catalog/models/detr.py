"""DETR: a convolutional backbone, a transformer, and a fixed number of objects it may see."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import other_size, pixel_values
from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

_CLASSES = 91  # COCO's ids; one more output says that there is no object


def _config(
    backbone: dict[str, Any], hidden: int, layers: int, heads: int, wide: int, queries: int
) -> dict[str, Any]:
    return {
        # ResNet as transformers builds it; the usual backbone comes with another package, timm.
        # Its batch norms are frozen: fixed numbers, as DETR has them.
        "backbone_config": {
            "model_type": "resnet",
            "num_channels": 3,
            "hidden_act": "relu",
            "out_features": ["stage4"],
            **backbone,
        },
        "d_model": hidden,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": wide,
        "decoder_ffn_dim": wide,
        "num_queries": queries,
        "num_labels": _CLASSES,
    }


_RESNET_50 = {
    "embedding_size": 64,
    "hidden_sizes": [256, 512, 1024, 2048],
    "depths": [3, 4, 6, 3],
    "layer_type": "bottleneck",
}
_RESNET_TINY = {
    "embedding_size": 16,
    "hidden_sizes": [16, 32, 64, 128],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
}


def _training(objects: int) -> Training:
    """So many objects an image, each of its own class, all in one place: (x, y, width, height)."""
    return Training(
        "detection",
        (
            InputSpec("class_labels", ("batch", objects), "int64", 0, _CLASSES),
            InputSpec("boxes", ("batch", objects, 4), "float32", row=(0.5, 0.5, 0.25, 0.25)),
        ),
        builder="accelbench.catalog.networks.detr:trainable",
    )


_LARGEST = ModelSpec(
    id="detr-resnet-50",
    family=Family.VISION,
    architecture=Architecture.VISION,
    modalities=("vision",),
    task="object-detection",
    size="base",
    builder="transformers:DetrForObjectDetection",
    config=_config(_RESNET_50, hidden=256, layers=6, heads=8, wide=2048, queries=100),
    inputs=(pixel_values(),),
    # The hub counts 41.6 M: with the 106,240 numbers of the frozen batch norms, buffers here.
    parameters=41_524_768,
    image=800,  # its processor makes the shorter side 800
    training=_training(objects=7),  # COCO's mean
    aliases=("detr", "detr-r50"),
    hub_ids=("facebook/detr-resnet-50",),
    small_variant="detr-tiny",
    sets=("key",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="detr-tiny",  # a size of our own, 16 places an image
        size="tiny",
        config=_config(_RESNET_TINY, hidden=64, layers=2, heads=2, wide=128, queries=10),
        parameters=499_024,
        image=128,
        training=_training(objects=4),
        sets=("small",),
    ),
)

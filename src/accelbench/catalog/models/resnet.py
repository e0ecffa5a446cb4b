"""ResNet: the convolutional network with its classification head."""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import image_classes, other_size, pixel_values
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_CLASSES = 1000  # ImageNet's


def _config(
    stem: int, widths: tuple[int, ...], depths: tuple[int, ...], layer: str
) -> dict[str, Any]:
    return {
        "num_channels": 3,
        "embedding_size": stem,
        "hidden_sizes": list(widths),
        "depths": list(depths),
        "layer_type": layer,
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "num_labels": _CLASSES,
    }


_LARGEST = ModelSpec(
    id="resnet-50",
    family=Family.VISION,
    architecture=Architecture.VISION,
    modalities=("vision",),
    task="image-classification",
    size="base",
    builder="transformers:ResNetForImageClassification",
    config=_config(64, (256, 512, 1024, 2048), (3, 4, 6, 3), "bottleneck"),
    inputs=(pixel_values(),),
    training=image_classes(_CLASSES),
    parameters=25_557_032,
    item="images",
    image=224,
    aliases=("resnet", "resnet50-v1.5"),
    hub_ids=("microsoft/resnet-50",),
    small_variant="resnet-tiny",
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="resnet-tiny",  # a size of our own
        size="tiny",
        config=_config(16, (16, 32, 64, 128), (1, 1, 1, 1), "basic"),
        parameters=438_456,
        image=64,
        sets=("small",),
    ),
)

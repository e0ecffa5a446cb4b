"""DETR as it is trained. Imports torch and transformers.

DETR learns its backbone except for the stem and the first stage. transformers (seen in 5.23) looks
for the other stages as `stage.1`, which is `stages.1` in its own ResNet, and so freezes all of it:
a training step would leave out a good part of the backward pass. Here they are set free again:
41,302,368 weights learn in detr-resnet-50, as published, instead of 18,069,856.
"""

from __future__ import annotations

from typing import Any

from transformers import DetrConfig, DetrForObjectDetection
from transformers.utils import logging

# Its hints would land between the lines of our own output.
logging.set_verbosity_error()

_FROZEN = ("embedder.", "encoder.stages.0.")


def trainable(**config: Any) -> DetrForObjectDetection:
    """Return DETR with random weights, whose backbone learns except for stem and first stage."""
    network = DetrForObjectDetection(DetrConfig(**config))
    for name, weight in network.model.backbone.model.named_parameters():
        weight.requires_grad_(not name.startswith(_FROZEN))
    return network

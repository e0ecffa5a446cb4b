"""Weights without which nothing of an untrained model could be measured.

Packages start some layers at zero or nearly so, because training moves them: heads of ViT and
ResMLP, every layer of GoogLeNet. Untrained, such a model gives the same for any image,
which no check of outputs can tell from a broken engine.
"""

from __future__ import annotations

from typing import Any

#: A layer's outputs have this share of its inputs' spread, or its weights are drawn again. Layers
#: of transformers, of 192 channels with a spread of 0.02, have 0.28.
_SMALLEST_GAIN = 0.25


def draw_vanishing(model: Any) -> list[str]:
    """Draw the weights of layers again that let nothing through, and name the layers.

    The spread is He's (https://arxiv.org/abs/1502.01852), by torch's own generator.
    """
    import torch

    layers = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    drawn = []
    with torch.no_grad():
        for name, layer in model.named_modules():
            # A class of their own, as quantised layers have, does not keep its weights like these.
            if not isinstance(layer, layers) or not isinstance(layer.weight, torch.nn.Parameter):
                continue
            fan_in = layer.weight[0].numel()
            if float(layer.weight.square().mean().sqrt()) * fan_in**0.5 < _SMALLEST_GAIN:
                layer.weight.normal_(0.0, (2.0 / fan_in) ** 0.5)
                drawn.append(name)
    return drawn

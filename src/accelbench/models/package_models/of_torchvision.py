"""torchvision's models by name: the attribute `resnet18` makes its resnet18, without weights."""

from __future__ import annotations

import inspect
import math
from typing import Any

from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.package_models.building import (
    Factory,
    draw_vanishing,
    package,
    refuse_others,
    sources_of,
)

#: Files that the digest of what was made last covers.
__accelbench_sources__: list[str] = []
_WRAP_IT = "Measure a module of your own around it: accelbench run model.py:make"
#: Models of which nothing says a batch, by the module that they are of.
_NO_BATCH = {
    ".detection.": "It takes a list of images and gives lists, and no batch of tensors.",
    ".optical_flow.": "It takes two images of any size, and nothing says which.",
}
_SIDE, _FRAMES = 224, 16


def __getattr__(name: str) -> Factory:
    refuse_others(name, lambda: package("torchvision").models.list_models(), "torchvision")

    def make() -> tuple[Any, tuple[Any, ...]]:
        import torch

        torchvision = package("torchvision")
        models = torchvision.models
        builder = models.get_model_builder(name)
        for place, why in _NO_BATCH.items():
            if place in f"{builder.__module__}.":
                raise FileRefusedError(why, _WRAP_IT)
        # Without it the backbone's weights are fetched, though the model's own are not asked for.
        taken = inspect.signature(builder).parameters
        plain = {"weights_backbone": None} if "weights_backbone" in taken else {}
        model = models.get_model(name, weights=None, **plain)
        draw_vanishing(model)
        __accelbench_sources__[:] = sources_of(torchvision, builder)
        return model, (torch.randn(1, *_size(models, name, builder)),)

    return make


def _size(models: Any, name: str, builder: Any) -> tuple[int, ...]:
    """Return the shape of an item, as the transforms of the model's weights make it."""
    weights = models.get_model_weights(name).DEFAULT
    how = weights.transforms()
    size = getattr(how, "crop_size", None) or getattr(how, "resize_size", None) or [_SIDE]
    sides = (*size, *size)[:2] if len(size) < 2 else tuple(size[:2])
    frames: tuple[int, ...] = ()
    if ".video." in f"{builder.__module__}.":
        frames = (max(_FRAMES, math.ceil(weights.meta.get("min_temporal_size") or 0)),)
    return (3, *frames, *sides)

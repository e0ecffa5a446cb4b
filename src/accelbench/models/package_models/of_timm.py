"""timm's models by name: the attribute `resnet18` makes timm's resnet18, without weights."""

from __future__ import annotations

from typing import Any

from accelbench.models.package_models.building import (
    Factory,
    draw_vanishing,
    package,
    refuse_others,
    sources_of,
)

#: Files that the digest of what was made last covers.
__accelbench_sources__: list[str] = []


def __getattr__(name: str) -> Factory:
    refuse_others(name, lambda: package("timm").list_models(), "timm")

    def make() -> tuple[Any, tuple[Any, ...]]:
        import torch

        timm = package("timm")
        model = timm.create_model(name, pretrained=False)
        draw_vanishing(model)
        __accelbench_sources__[:] = sources_of(timm, type(model))
        config = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None) or {}
        size = tuple(config.get("input_size") or (3, 224, 224))
        return model, (torch.randn(1, *size),)

    return make

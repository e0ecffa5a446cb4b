"""Models that no catalogue has: a class of a test, and what it is fed."""

from __future__ import annotations

from typing import Any

from torch import nn

from accelbench.core.model import InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

THREE_CLASSES = Training("classification", (InputSpec("labels", ("batch",), "int64", 0, 3),))


def made_up(builder: type[nn.Module], *inputs: InputSpec, **more: Any) -> ModelSpec:
    """The spec of a class that a module of tests defines."""
    said: dict[str, Any] = {"config": {}, "parameters": 1, **more}
    return ModelSpec(
        id=builder.__name__.lower(),
        family=Family.VISION,
        architecture=Architecture.VISION,
        modalities=("vision",),
        task="test",
        size="tiny",
        builder=f"{builder.__module__}:{builder.__name__}",
        inputs=inputs,
        **said,
    )

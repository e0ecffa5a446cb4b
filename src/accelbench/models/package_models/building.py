"""Shared parts of the modules that build models of packages: an attribute gives a factory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench.core.formatting import suggest
from accelbench.core.safe_text import in_quotes
from accelbench.models.code_models import loading
from accelbench.models.file_models.kinds import FileRefusedError

Factory = Callable[[], tuple[Any, tuple[Any, ...]]]
#: What is asked of a module that gives an owner's object, and is no model's name.
_ASKED = {
    loading.EXAMPLE, loading.LOSS, loading.LABELS, loading.SETUP, loading.TEARDOWN,
    loading.REFERENCE, "example_input_array",
}  # fmt: skip


def package(name: str) -> ModuleType:
    """Import a package, or raise FileRefusedError."""
    try:
        return import_module(name)
    except Exception as error:
        words = " ".join(str(error).split())[:200].rstrip(".")
        advice = f"Import {name} in Python alone, and mend it."
        if "torchvision::" in words:
            # The index has builds for CUDA alone: beside another torch their library is not loaded.
            words = f"torchvision {version('torchvision')} is of another build than this torch"
            advice = (
                "Install it from where this torch came: for CPUs,"
                " pip install torchvision --index-url https://download.pytorch.org/whl/cpu"
            )
        raise FileRefusedError(f"{name} cannot be imported: {words}.", advice) from error


def refuse_others(name: str, known: Callable[[], Iterable[str]], whose: str) -> None:
    """Refuse names that are not models; raise AttributeError for what a person would not type."""
    if name.startswith("_") or name in _ASKED:
        raise AttributeError(name)
    names = list(known())
    if name not in names:
        advice = suggest(name, names, "It has")
        if len(advice) > 300:
            advice = f"It has {len(names):,} models, none of a name like that."
        raise FileRefusedError(f"{whose} has no model {in_quotes(name)}.", advice)


def sources_of(module: ModuleType, builder: Any) -> list[str]:
    """Return files that identify a version of a model: the package's version, and its code."""
    folder = Path(str(module.__file__)).parent
    code = getattr(import_module(builder.__module__), "__file__", None)
    files = [folder / "version.py", *([Path(code)] if code else [])]
    return [str(path) for path in files if path.is_file()]


#: A layer's outputs have this share of its inputs' spread, or its weights are drawn again. Layers
#: of transformers, of 192 channels with a spread of 0.02, have 0.28.
_SMALLEST_GAIN = 0.25


def draw_vanishing(model: Any) -> list[str]:
    """Draw the weights of layers again that let nothing through, and name the layers.

    Packages start some layers at or near zero (heads of ViT and ResMLP, every layer of GoogLeNet):
    such a model gives the same output for any image, which no check of outputs can tell from a
    broken engine. The spread is He's (https://arxiv.org/abs/1502.01852), by torch's own generator.
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

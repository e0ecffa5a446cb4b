"""Building a model: seeded random weights, a local folder, or the hub. Torch only on use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import CaseError, MissingExtraError
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import numpy as np
    import torch

RANDOM = "random"
HUB = "hub"


def build(
    spec: ModelSpec, seed: int, weights: str = RANDOM, trust_remote_code: bool = False
) -> torch.nn.Module:
    """Build a model in fp32 on the CPU, in evaluation mode.

    Args:
        spec: the model.
        seed: decides random weights: the same seed gives the same bits, for the
            same torch on the same kind of CPU. Loaded weights ignore it.
        weights: "random" (never touches the network), "hub" (the spec's first
            hub id), or the path of a folder with config.json and safetensors.
        trust_remote_code: run Python code that comes with loaded weights.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        CaseError: the weights cannot be had, are unsafe, incomplete, or another
            model's; `reason` says which.
    """
    if weights == RANDOM:
        construct = constructor(spec)
        from accelbench.catalog.initial import initialised

        module = initialised(construct, seed)
    else:
        from accelbench.catalog.weights import from_folder, from_hub

        model_class = transformers_class(spec)
        if weights == HUB:
            module = from_hub(spec, model_class, trust_remote_code)
        else:
            module = from_folder(spec, model_class, weights, trust_remote_code)
    return module.eval()


def skeleton(spec: ModelSpec) -> torch.nn.Module:
    """The model on torch's meta device: every shape, no values, no memory."""
    construct = constructor(spec)
    import torch

    with torch.device("meta"):
        return construct().eval()


def parameter_count(module: torch.nn.Module) -> int:
    """The number of weights; one that is shared counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def constructor(spec: ModelSpec) -> Callable[[], torch.nn.Module]:
    """What constructs the model from its config, with its imports done.

    A builder is "transformers:Class", or "package.module:function" of any
    package, called with the config as keywords.
    """
    if spec.builder.startswith("transformers:"):
        model_class = transformers_class(spec)
        return lambda: model_class(model_class.config_class(**spec.config))
    where, _, name = spec.builder.partition(":")
    try:
        function = getattr(import_module(where), name)
    except (ImportError, AttributeError) as error:
        raise CaseError(
            "builder_missing",
            f"The builder {spec.builder} of {spec.id} cannot be loaded: {error}.",
            "Install the package that brings it.",
        ) from error
    return lambda: function(**spec.config)


def transformers_class(spec: ModelSpec) -> Any:
    """The model's class of transformers, with that package's chatter silenced.

    Raises:
        CaseError: the model is not built through transformers, or the installed
            version has no such class.
    """
    origin, _, name = spec.builder.partition(":")
    if origin != "transformers":
        raise CaseError(
            "weights_unavailable",
            f"{spec.id} is not a model of transformers: it has random weights only.",
            "Leave out --weights.",
        )
    _require_torch()
    import transformers

    # Its progress bars and hints would land between the lines of our own output.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model_class = getattr(transformers, name, None)
    if model_class is None:
        raise CaseError(
            "builder_missing",
            f"transformers {transformers.__version__} has no {name}.",
            "Install a version within accelbench's bounds: pip install 'accelbench[torch]'",
        )
    return model_class


def _require_torch() -> None:
    for package in ("torch", "transformers"):
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            raise MissingExtraError(package, "torch", "Building a model") from error


def weights_digest(module: torch.nn.Module) -> str:
    """A digest of a module's state, the same in every process.

    Covers the name, shape and type of every parameter and stored buffer, and every
    byte: the bytes go in as wrapping sums over the rows and the columns of a
    table of 1024 words, so any single change shows, and moving values about
    does too. It guards against mistakes, not against forgery. BERT-base takes
    0.04 s on one core; a cryptographic hash of the bytes took 0.2 s and more.
    """
    total = hashlib.sha256()
    seen: dict[int, bytes] = {}  # a tied weight is summed once
    for name, tensor in sorted(module.state_dict().items()):
        place = tensor.data_ptr()
        if tensor.numel() and (place not in seen):
            seen[place] = _sums(_bytes_of(tensor))
        head = f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode()
        total.update(head + seen.get(place, b""))
    return total.hexdigest()[:16]


def _bytes_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1)
    result: np.ndarray[Any, Any] = flat.view(torch.uint8).numpy()
    return result


def _sums(data: np.ndarray[Any, Any]) -> bytes:
    import numpy as np

    width = 1024
    whole = data.size // (8 * width) * (8 * width)
    table = data[:whole].view(np.int64).reshape(-1, width)
    rest = hashlib.sha256(data[whole:].tobytes()).digest()
    summed: bytes = table.sum(axis=0).tobytes() + table.sum(axis=1).tobytes()
    return summed + rest

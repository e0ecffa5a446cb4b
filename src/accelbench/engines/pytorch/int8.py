"""int8 in PyTorch, by torchao: linear layers with int8 weights and activations.

Weights are quantised a channel each, activations a token each while the model runs: nothing is
calibrated. Convolutions, transformers' Conv1D and its experts stay in fp32 (ResNet has one linear
layer, its last). So multiplications with weights are counted, by type: a case with less than half
of them in int8 fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.core.errors import MissingExtraError, UnsupportedError

#: Layers whose work is products of matrices.
_PRODUCTS = ("Linear", "Conv1D", "Conv1d", "Conv2d", "Conv3d")
#: The operator that multiplies int8 by int8.
_OPERATOR = "aten::_int_mm"


def quantise(module: torch.nn.Module) -> dict[str, Any]:
    """Quantise a model in place, and return evidence of it; refuse if nothing is quantised."""
    if find_spec("torchao") is None:
        raise MissingExtraError("torchao", "int8", "int8 in PyTorch")
    # It tells of every GPU kernel that a CPU's build has not.
    logging.getLogger("torchao").setLevel(logging.ERROR)
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    layers = [layer for layer in module.modules() if type(layer).__name__ in _PRODUCTS]
    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    done = sum(not _plain(layer.weight) for layer in layers)
    if not done:
        raise UnsupportedError(
            "nothing_quantised",
            "torchao quantises linear layers, and this model has none",
            "Use --framework onnxruntime or openvino for int8.",
        )
    return {
        "quantiser": {
            "method": f"torchao {version('torchao')} dynamic activations, int8 weights",
            "calibration": None,
        },
        "quantised_layers": done,
        "product_layers": len(layers),
    }


def _plain(weight: Any) -> bool:
    return type(weight.detach()) is torch.Tensor


def stored_type(weight: Any) -> str:
    """Return the type that a weight's values are stored in, not torchao's dequantised one."""
    tensor = weight.detach()
    while type(tensor) is not torch.Tensor and hasattr(tensor, "__tensor_flatten__"):
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        # A tensor that is split over ranks names its mesh of devices, too.
        tensors = [part for part in parts if isinstance(part, torch.Tensor)]
        tensor = max(tensors, key=torch.Tensor.numel)
    return str(tensor.dtype).removeprefix("torch.")


def plain(parameters: Any) -> list[Any]:
    """Return the weights that are still ordinary numbers."""
    return [weight for weight in parameters if _plain(weight)]


@contextmanager
def refusals() -> Iterator[None]:
    """Refuse what torchao has no int8 product for, in place of a crash."""
    try:
        yield
    except NotImplementedError as error:
        raise UnsupportedError(
            "int8_not_covered",
            "the model uses a weight in a way that torchao has no int8 product for:"
            f" {str(error).partition(', types=')[0][:200]}",
            "Use --framework onnxruntime or openvino for int8.",
        ) from error


def products(run: Callable[[], Any]) -> dict[str, Any]:
    """Return how many int8 products one step makes, and their share of the work, for evidence."""
    with _Work() as work:
        run()
    share = round(work.share, 4)
    return {
        "int8_products": work.products,
        "computed_in": {"int8": share, "float32": round(1 - share, 4)},
    }


class _Work(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    def __init__(self) -> None:
        super().__init__()
        self.products = 0  # of int8 by int8
        self._int8 = self._all = 0

    @property
    def share(self) -> float:
        return self._int8 / self._all if self._all else 0.0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in _INNER:
            count = output.numel() * _INNER[name](args)
            self._all += count
            if name == _OPERATOR:
                self._int8 += count
                self.products += 1
        return output


#: How many multiplications a result takes, by operator.
_INNER: dict[str, Callable[[tuple[Any, ...]], int]] = {
    "aten::linear": lambda args: args[1].shape[-1],
    "aten::addmm": lambda args: args[1].shape[-1],
    "aten::mm": lambda args: args[0].shape[-1],
    _OPERATOR: lambda args: args[0].shape[-1],
    "aten::_grouped_mm": lambda args: args[0].shape[-1],
    **dict.fromkeys(
        ("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"),
        lambda args: args[1][0].numel(),
    ),
}

"""int8 in PyTorch, by torchao: linear layers with int8 weights and activations.

Weights are quantised a channel each, activations a token each while the model runs, so
nothing is calibrated. Convolutions and transformers' Conv1D stay in fp32: GPT-2 has
one linear layer, its last. How many of a model's products were quantised is part of
the evidence, and that they ran in int8 is read from a profile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch

from accelbench.core.errors import CaseError, MissingExtraError, UnsupportedError

#: Layers whose work is products of matrices.
_PRODUCTS = ("Linear", "Conv1D", "Conv1d", "Conv2d", "Conv3d")
#: The operator that multiplies int8 by int8.
_OPERATOR = "aten::_int_mm"


def quantise(module: torch.nn.Module) -> dict[str, Any]:
    """Quantise a model in place; what the evidence says of it.

    Raises:
        MissingExtraError: torchao is not installed.
        UnsupportedError: the model has no layer that it quantises.
    """
    if find_spec("torchao") is None:
        raise MissingExtraError("torchao", "int8", "int8 in PyTorch")
    # It tells of every GPU kernel that a CPU's build has not.
    logging.getLogger("torchao").setLevel(logging.ERROR)
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    layers = [one for one in module.modules() if type(one).__name__ in _PRODUCTS]
    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    done = sum(not _plain(one.weight) for one in layers)
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


def plain(parameters: Any) -> list[Any]:
    """The weights that are still ordinary numbers."""
    return [one for one in parameters if _plain(one)]


def products(run: Callable[[], Any]) -> int:
    """How many int8 products one step makes; raises CaseError where there are none."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    count = sum(one.count for one in seen.key_averages() if one.key == _OPERATOR)
    if not count:
        raise CaseError(
            "precision_changed",
            "int8 was asked for, and no product was computed in it",
            "What was timed was another precision.",
        )
    return int(count)

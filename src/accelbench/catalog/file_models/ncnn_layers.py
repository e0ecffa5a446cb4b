"""What ncnn's layers take, by the weights that they have. Pure.

ncnn checks none of it: where a channel is missing, a layer reads what lies behind its input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accelbench.catalog.file_models.ncnn_text import NcnnLayer

#: Layers of weights and products, by the keys of: results, kernel, weights; and the axis of
#: channels from the end, where the layer has a kernel.
_WINDOWED = {
    "Convolution": 3, "Deconvolution": 3, "ConvolutionDepthWise": 3, "DeconvolutionDepthWise": 3,
    "Convolution1D": 2, "Deconvolution1D": 2, "ConvolutionDepthWise1D": 2,
    "DeconvolutionDepthWise1D": 2,
    "Convolution3D": 4, "Deconvolution3D": 4, "ConvolutionDepthWise3D": 4,
    "DeconvolutionDepthWise3D": 4,
}  # fmt: skip
_RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Where a layer says that its weights are quantised.
_QUANTISED = {
    "Convolution": 8, "ConvolutionDepthWise": 8, "InnerProduct": 8, "LSTM": 8, "GRU": 8, "RNN": 8,
    "Gemm": 18, "MultiHeadAttention": 18,
}  # fmt: skip
PRODUCTS = frozenset(
    {*_WINDOWED, *_RECURRENT, "InnerProduct", "Gemm", "MatMul", "MultiHeadAttention", "SDPA"}
)
#: Layers that leave the sizes of what they take as they are.
KEEPS_SIZES = frozenset(
    {
        "Split", "Noop", "Dropout", "DeepCopy", "ReLU", "Sigmoid", "TanH", "Clip", "HardSwish",
        "HardSigmoid", "Swish", "Mish", "ELU", "SELU", "GELU", "UnaryOp", "Cast", "Scale",
        "BatchNorm", "Bias",
    }
)  # fmt: skip
#: Layers that make as many rows as they find in what they are given.
FINDS_SO_MANY = frozenset(
    {"DetectionOutput", "YoloDetectionOutput", "Yolov3DetectionOutput", "Proposal"}
)
#: Of the key that holds how many channels are normalised.
_PER_CHANNEL = {"BatchNorm": 0, "Bias": 0, "InstanceNorm": 0, "GroupNorm": 1}


def is_quantised(layer: NcnnLayer) -> bool:
    """Whether a layer computes with whole numbers."""
    return bool(layer.number(_QUANTISED[layer.type])) if layer.type in _QUANTISED else False


def rows_of(layer: NcnnLayer) -> int | None:
    """Rows of the table that a layer looks up; None of those that look nothing up."""
    return layer.number(1) or None if layer.type == "Embed" else None


def shape_taken(layer: NcnnLayer) -> tuple[int | str, ...] | None:
    """The shape that a layer's weights ask of its input, free sizes as ""; None if they do not."""
    if layer.type in _WINDOWED:
        channels = _channels(layer)
        return (channels, *[""] * (_WINDOWED[layer.type] - 1)) if channels else None
    if layer.type in _RECURRENT:
        size = _recurrent_size(layer)
        return ("", size) if size else None
    if layer.type == "InnerProduct":
        size = _flat_size(layer)
        return (size,) if size else None
    if layer.type == "Embed":
        return ("",)
    return None


def mismatch(layer: NcnnLayer, shape: Sequence[int]) -> str:
    """Why a layer cannot take an input of a shape, as the rest of a sentence; "" where it can.

    Args:
        layer: one of weights; of others nothing is known.
        shape: of one item, channels first.
    """
    if layer.type in _WINDOWED:
        channels, axes = _channels(layer), _WINDOWED[layer.type]
        if channels and len(shape) == 1 and layer.type == "Convolution":
            return _unequal(channels, shape[0], "values")  # taken as a product of a row
        if channels and len(shape) != axes:
            return f"takes {axes} axes, and is given {len(shape)}"
        return _unequal(channels, shape[0], "channels") if channels else ""
    if layer.type == "InnerProduct":
        size = _flat_size(layer)
        if not size or (len(shape) == 2 and shape[-1] == size):
            return ""
        return _unequal(size, math.prod(shape), "values")
    if layer.type in _RECURRENT:
        size = _recurrent_size(layer)
        return _unequal(size, shape[-1], "values a step") if size else ""
    if layer.type in _PER_CHANNEL:
        channels = layer.number(_PER_CHANNEL[layer.type])
        return _unequal(channels, shape[0], "channels") if channels else ""
    if layer.type == "LayerNorm" and layer.number(2, 1):
        size = layer.number(0)
        fits = size in {math.prod(shape[place:]) for place in range(len(shape))}
        return "" if fits or not size else f"normalises {size} values, and is given {list(shape)}"
    return ""


def _unequal(wanted: int, given: int, what: str) -> str:
    return "" if wanted == given else f"takes {wanted} {what}, and is given {given}"


def _channels(layer: NcnnLayer) -> int:
    """Channels that a window is laid over; 0 where its weights are an input, or make no sense."""
    results, wide = layer.number(0), layer.number(1)
    window = wide
    if _WINDOWED[layer.type] > 2:
        window *= layer.number(11, wide)
    if _WINDOWED[layer.type] > 3:
        window *= layer.number(21, wide)
    groups = layer.number(7, 1) if "DepthWise" in layer.type else 1
    each = results * window
    whole = layer.number(6) * groups
    return whole // each if each > 0 and whole > 0 and whole % each == 0 else 0


def _flat_size(layer: NcnnLayer) -> int:
    results, weights = layer.number(0), layer.number(2)
    return weights // results if results > 0 and weights > 0 and weights % results == 0 else 0


def _recurrent_size(layer: NcnnLayer) -> int:
    """Values that a step of it reads."""
    results, weights = layer.number(0), layer.number(1)
    hidden = layer.number(3, results) if layer.type == "LSTM" else results
    ways = 2 if layer.number(2) == 2 else 1
    each = ways * hidden * _RECURRENT[layer.type]
    return weights // each if each > 0 and weights > 0 and weights % each == 0 else 0

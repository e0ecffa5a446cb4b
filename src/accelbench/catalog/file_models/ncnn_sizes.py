"""What an ncnn network makes of inputs of given sizes, and whether it can take them.

ncnn asks no layer whether its input fits: it reads past what is there. Layers are therefore gone
through one by one, and none is run before what it takes was compared with its weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.catalog.file_models.ncnn_layers import layers_of, mismatch
from accelbench.core.errors import CaseError
from accelbench.core.visible import in_quotes

_ADVICE = "Say the sizes of one item: --input NAME=[3,224,224]."


def item_shapes(
    path: Path, inputs: Mapping[str, tuple[str, tuple[int, ...]]]
) -> dict[str, tuple[int, ...]]:
    """The sizes of every result of a network, of one item.

    Args:
        path: its text; the weights lie beside it.
        inputs: of each its type by NumPy's name, and the sizes of an item.

    Raises:
        CaseError: a layer cannot take what it would be given.
    """
    import ncnn

    net = ncnn.Net()
    net.opt.use_vulkan_compute = net.opt.use_fp16_storage = net.opt.use_bf16_storage = False
    net.opt.num_threads = 1
    if net.load_param(str(path)) != 0 or net.load_model(str(path.with_suffix(".bin"))) != 0:
        raise CaseError("session_failed", f"ncnn cannot read {path}", "Convert it again.")
    extractor = net.create_extractor()
    extractor.set_light_mode(False)  # what a layer has taken is looked at again
    for name, (dtype, shape) in inputs.items():
        zeros = np.zeros(shape, dtype)  # a matrix of it keeps it neither alive nor mapped
        extractor.input(name, ncnn.Mat(zeros).clone())
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in layers_of(path.read_bytes()):
        if layer.takes and (why := mismatch(layer, shapes[layer.takes[0]])):
            raise CaseError(
                "format", f"the layer {in_quotes(layer.name)} of its network {why}", _ADVICE
            )
        for name in layer.makes:
            code, made = extractor.extract(name)
            shape = _shape(made)
            if code != 0 or not math.prod(shape):
                raise CaseError(
                    "format",
                    f"the layer {in_quotes(layer.name)} of its network makes nothing of inputs of"
                    f" these sizes",
                    _ADVICE,
                )
            shapes[name] = shape
    return shapes


def _shape(made: Any) -> tuple[int, ...]:
    """Channels, then depth, rows and columns, as far as a matrix of ncnn has them."""
    axes: dict[int, tuple[int, ...]] = {
        1: (made.w,),
        2: (made.h, made.w),
        3: (made.c, made.h, made.w),
        4: (made.c, made.d, made.h, made.w),
    }
    return axes.get(made.dims, (0,))

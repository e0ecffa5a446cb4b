"""Small ONNX graphs, as an owner's files hold them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return numpy_helper.from_array(values, name)


def saved(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[int | str | None]]],
    weights: Sequence[onnx.TensorProto] = (),
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
) -> Path:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        list(weights),
    )
    path.parent.mkdir(exist_ok=True, parents=True)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(made, str(path))
    return path

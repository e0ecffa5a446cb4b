"""A small ONNX graph as its owner has it: pictures, and logits of ten classes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(path: Path) -> Path:
    """A graph of any batch: a product over patches, a rectifier, the mean, a product."""
    random = np.random.default_rng(0)
    kernel = random.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5
    last = random.standard_normal((8, 10)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["pixel_values", "kernel"], ["patches"]),
        helper.make_node("Relu", ["patches"], ["kept"]),
        helper.make_node("GlobalAveragePool", ["kept"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("MatMul", ["flat", "last"], ["logits"]),
    ]
    pictures = helper.make_tensor_value_info(
        "pixel_values", TensorProto.FLOAT, ["batch", 3, 16, 16]
    )
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])
    weights = [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(last, "last")]
    graph = helper.make_graph(nodes, "g", [pictures], [logits], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return path


def kept() -> Path:
    """The graph where every process of the tests finds it."""
    folder = Path(tempfile.gettempdir()) / f"accelbench-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "pictures.onnx"
    if not path.exists():
        write(folder / f"{os.getpid()}.onnx").replace(path)
    return path


def renamed(path: Path) -> Path:
    """A graph whose free sizes its owner calls N (the batch), L (tokens) and nodes."""
    table = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("ReduceMean", ["rows"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("ReduceMean", ["others"], ["rest"], axes=[1], keepdims=0),
        helper.make_node("Add", ["mean", "rest"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "L"]),
            helper.make_tensor_value_info("others", TensorProto.FLOAT, ["N", "nodes", 4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(table, "table")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return path

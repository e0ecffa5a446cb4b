"""Graphs that nobody of accelbench has made: those that the onnx package ships, and awkward ones.

Each function writes one file; what is awkward of it is its name. Used by `foreign_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as Type
from onnx import helper, numpy_helper

Shape = Sequence[int | str]
_random = np.random.default_rng(0)


def weight(name: str, *shape: int, dtype: Any = np.float32) -> onnx.TensorProto:
    """Normal values, as small as trained ones."""
    scale = (2 / max(int(np.prod(shape[1:])), 1)) ** 0.5
    return numpy_helper.from_array((_random.standard_normal(shape) * scale).astype(dtype), name)


def constant(name: str, values: Any, dtype: Any = np.int64) -> onnx.TensorProto:
    """Values as they are."""
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Shape]],
    outputs: Sequence[tuple[str, int, Shape | None]],
    weights: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
    domains: Sequence[str] = (),
    external: bool = False,
) -> None:
    """Write a graph."""
    graph = helper.make_graph(
        list(nodes),
        path.stem,
        [helper.make_tensor_value_info(*entry) for entry in inputs],
        [helper.make_tensor_value_info(*entry) for entry in outputs],
        list(weights),
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    version = 3 if opset < 9 else 8 if opset < 20 else 10
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    if opset < 9:  # weights were inputs, too
        model.graph.input.extend(
            helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in weights
        )
    onnx.save_model(
        model, str(path), save_as_external_data=external, location=f"{path.name}.data",
        size_threshold=0,
    )  # fmt: skip


def perceptron(path: Path, opset: int = 17, dtype: int = Type.FLOAT, **more: Any) -> None:
    kind = np.float16 if dtype == Type.FLOAT16 else np.float32
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    weights = [weight("w", 32, 64, dtype=kind), weight("v", 64, 8, dtype=kind)]
    save(path, nodes, [("x", dtype, ["batch", 32])], [("y", dtype, ["batch", 8])], weights, opset,
         **more)  # fmt: skip


def of_opset(opset: int) -> Callable[[Path], None]:
    return lambda path: perceptron(path, opset)


def half_inputs(path: Path) -> None:
    perceptron(path, dtype=Type.FLOAT16)


def external_data(path: Path) -> None:
    perceptron(path, external=True)


def several_outputs(path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("ArgMax", ["a"], ["best"], axis=1, keepdims=0),
        helper.make_node("TopK", ["a", "k"], ["top", "where"]),
    ]
    outputs = [("r", Type.FLOAT, ["batch", 64]), ("best", Type.INT64, ["batch"]),
               ("top", Type.FLOAT, ["batch", 3]), ("where", Type.INT64, ["batch", 3])]  # fmt: skip
    save(path, nodes, [("x", Type.FLOAT, ["batch", 32])], outputs,
         [weight("w", 32, 64), constant("k", [3])])  # fmt: skip


def branches(path: Path) -> None:
    """If: which of two products depends on the sum of the input."""

    def branch(name: str) -> onnx.GraphProto:
        node = helper.make_node("MatMul", ["x", name], [f"y_{name}"])
        return helper.make_graph(
            [node], name, [], [helper.make_tensor_value_info(f"y_{name}", Type.FLOAT, None)]
        )

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["yes"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch("w"), else_branch=branch("v")),
    ]
    save(path, nodes, [("x", Type.FLOAT, ["batch", 16])], [("y", Type.FLOAT, ["batch", 16])],
         [weight("w", 16, 16), weight("v", 16, 16), constant("zero", 0.0, np.float32)])  # fmt: skip


def loop(path: Path) -> None:
    """Loop: the same product three times."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "w"], ["p"]),
            helper.make_node("Tanh", ["p"], ["h_out"]),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [helper.make_tensor_value_info("i", Type.INT64, []),
         helper.make_tensor_value_info("go", Type.BOOL, []),
         helper.make_tensor_value_info("h", Type.FLOAT, None)],
        [helper.make_tensor_value_info("go_out", Type.BOOL, []),
         helper.make_tensor_value_info("h_out", Type.FLOAT, None)],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["times", "yes", "x"], ["y"], body=body)]
    save(path, nodes, [("x", Type.FLOAT, ["batch", 16])], [("y", Type.FLOAT, ["batch", 16])],
         [weight("w", 16, 16), constant("times", 3), constant("yes", True, np.bool_)])  # fmt: skip


def recurrent(kind: str, gates: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        hidden = 24
        nodes = [
            helper.make_node(kind, ["x", "w", "r"], ["all", "last"], hidden_size=hidden),
            helper.make_node("Squeeze", ["last", "axis"], ["h"]),
            helper.make_node("MatMul", ["h", "v"], ["y"]),
        ]
        weights = [weight("w", 1, gates * hidden, 16), weight("r", 1, gates * hidden, hidden),
                   weight("v", hidden, 4), constant("axis", [0])]  # fmt: skip
        save(path, nodes, [("x", Type.FLOAT, ["seq", "batch", 16])],
             [("y", Type.FLOAT, ["batch", 4])], weights)  # fmt: skip

    return write


def message_passing(path: Path) -> None:
    """A GNN: what arrives at each node is summed by ScatterElements."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Gather", ["m", "from"], ["sent"]),
        helper.make_node("Mul", ["m", "zero"], ["none"]),
        helper.make_node("Unsqueeze", ["to", "last"], ["rows"]),
        helper.make_node("Shape", ["sent"], ["shape"]),
        helper.make_node("Expand", ["rows", "shape"], ["where"]),
        helper.make_node("ScatterElements", ["none", "where", "sent"], ["y"], reduction="add"),
    ]
    inputs = [("x", Type.FLOAT, ["nodes", 16]), ("from", Type.INT64, ["edges"]),
              ("to", Type.INT64, ["edges"])]  # fmt: skip
    save(path, nodes, inputs, [("y", Type.FLOAT, ["nodes", 16])],
         [weight("w", 16, 16), constant("zero", 0.0, np.float32), constant("last", [1])],
         opset=18)  # fmt: skip


def volumes(path: Path) -> None:
    """A 3-D U-Net of one step down and one up."""
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["d"], pads=[1] * 6),
        helper.make_node("Relu", ["d"], ["skip"]),
        helper.make_node("MaxPool", ["skip"], ["p"], kernel_shape=[2] * 3, strides=[2] * 3),
        helper.make_node("Conv", ["p", "b"], ["q"], pads=[1] * 6),
        helper.make_node("Relu", ["q"], ["deep"]),
        helper.make_node("ConvTranspose", ["deep", "c"], ["u"], strides=[2] * 3),
        helper.make_node("Concat", ["u", "skip"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "e"], ["y"]),
    ]
    weights = [weight("a", 8, 1, 3, 3, 3), weight("b", 16, 8, 3, 3, 3),
               weight("c", 16, 8, 2, 2, 2), weight("e", 2, 16, 1, 1, 1)]  # fmt: skip
    save(path, nodes, [("x", Type.FLOAT, ["batch", 1, 16, 16, 16])],
         [("y", Type.FLOAT, ["batch", 2, 16, 16, 16])], weights)  # fmt: skip


def convolutions(path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "b"], ["r"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["r"], ["s"]),
        helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("MatMul", ["f", "c"], ["y"]),
    ]
    weights = [weight("a", 8, 3, 3, 3), weight("b", 16, 8, 3, 3), weight("c", 1024, 10)]
    inputs = [("x", Type.FLOAT, ["N", 3, 32, 32])]
    save(path, nodes, inputs, [("y", Type.FLOAT, ["N", 10])], weights)


def quantised(path: Path) -> None:
    """int8 as onnxruntime's own quantiser writes it (QDQ)."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [{"x": _random.standard_normal((4, 3, 32, 32)).astype(np.float32)}] * 2

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    plain = path.with_name("before.onnx")
    convolutions(plain)
    quantize_static(str(plain), str(path), Reader(), quant_format=QuantFormat.QDQ)
    plain.unlink()


def embedding_and_mask(path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"]),
        helper.make_node("Cast", ["attention_mask"], ["m"], to=Type.FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["m3"]),
        helper.make_node("Mul", ["e", "m3"], ["kept"]),
        helper.make_node("ReduceMean", ["kept"], ["pooled"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["pooled", "w"], ["y"]),
    ]
    inputs = [("input_ids", Type.INT64, ["batch", "sequence"]),
              ("attention_mask", Type.INT64, ["batch", "sequence"])]  # fmt: skip
    save(path, nodes, inputs, [("y", Type.FLOAT, ["batch", 8])],
         [weight("table", 500, 32), weight("w", 32, 8), constant("last", [2])])  # fmt: skip


def text_input(path: Path) -> None:
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")]
    save(path, nodes, [("x", Type.STRING, ["n"])], [("y", Type.STRING, None)])


def empty_graph(path: Path) -> None:
    save(path, [], [("x", Type.FLOAT, [1, 3])], [("x", Type.FLOAT, [1, 3])])


def custom_operator(path: Path) -> None:
    nodes = [helper.make_node("Wobble", ["x"], ["y"], domain="com.example")]
    save(path, nodes, [("x", Type.FLOAT, ["batch", 3])], [("y", Type.FLOAT, ["batch", 3])],
         domains=["com.example"])  # fmt: skip


def doubles(path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    save(path, nodes, [("x", Type.DOUBLE, ["batch", 8])], [("y", Type.DOUBLE, ["batch", 8])],
         [weight("w", 8, 8, dtype=np.float64)])  # fmt: skip


def draws_numbers(path: Path) -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["n"]),
        helper.make_node("Add", ["x", "n"], ["y"]),
    ]
    save(path, nodes, [("x", Type.FLOAT, ["batch", 8])], [("y", Type.FLOAT, ["batch", 8])])


def sizes_from_values(path: Path) -> None:
    """NonZero: how large the output is depends on what the input holds."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Greater", ["a", "zero"], ["g"]),
        helper.make_node("NonZero", ["g"], ["y"]),
    ]
    save(path, nodes, [("x", Type.FLOAT, ["batch", 8])], [("y", Type.INT64, [2, "found"])],
         [weight("w", 8, 8), constant("zero", 0.0, np.float32)])  # fmt: skip


def images_of_bytes(path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["image"], ["f"], to=Type.FLOAT),
        helper.make_node("Mul", ["f", "scale"], ["n"]),
        helper.make_node("Transpose", ["n"], ["c"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["c", "k"], ["y"], strides=[4, 4]),
    ]
    save(path, nodes, [("image", Type.UINT8, [1, 64, 64, 3])], [("y", Type.FLOAT, None)],
         [weight("k", 8, 3, 4, 4), constant("scale", 1 / 255, np.float32)])  # fmt: skip


#: By name; what has to be said of it on the command line beside.
GRAPHS: dict[str, tuple[Callable[[Path], None], str]] = {
    **{f"opset-{n}": (of_opset(n), "") for n in (7, 9, 11, 13, 15, 17, 19, 21, 23)},
    "half-inputs": (half_inputs, ""),
    "external-data": (external_data, ""),
    "several-outputs": (several_outputs, ""),
    "branches": (branches, ""),
    "loop": (loop, ""),
    "lstm": (recurrent("LSTM", 4), ""),
    "gru": (recurrent("GRU", 3), ""),
    "message-passing": (
        message_passing,
        "--input from=0..64 --input to=0..64 --dim nodes=64 --dim edges=200",
    ),
    "volumes": (volumes, ""),
    "convolutions": (convolutions, ""),
    "quantised": (quantised, ""),
    "embedding-and-mask": (embedding_and_mask, ""),
    "text-input": (text_input, ""),
    "empty-graph": (empty_graph, ""),
    "custom-operator": (custom_operator, ""),
    "doubles": (doubles, ""),
    "draws-numbers": (draws_numbers, ""),
    "sizes-from-values": (sizes_from_values, ""),
    "images-of-bytes": (images_of_bytes, ""),
}  # fmt: skip

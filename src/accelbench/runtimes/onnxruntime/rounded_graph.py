"""What a precision costs a graph: the same graph with numbers rounded as it would round them.

As `runtimes.pytorch.rounding` has it for modules: in bf16 and fp16 every result is rounded; in int8
what enters a product is, to 255 steps between its least and its largest value. And the graph in
fp64, by ONNX's own evaluator in NumPy: slow, and no engine's code.

Imports onnx: import this module only where a reference is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.errors import UnsupportedError

#: What multiplies weights or what was computed with something computed.
_PRODUCTS = frozenset(
    {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN", "Attention"}
)
_NARROW = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_MARK = "accelbench_rounded_"


def rounded(source: str | bytes, precision: str) -> onnx.ModelProto:
    """A graph with its numbers rounded as a precision rounds them; its loops as is.

    Args:
        source: the path of its file, or the graph itself.
        precision: which.
    """
    model = _whole(source)
    graph = model.graph
    floats = _floats(model)
    nodes = _stepped(graph, floats) if precision == "int8" else _cast(graph, floats, precision)
    made = list(nodes)
    del graph.node[:]
    graph.node.extend(made)
    return model


def in_fp64(source: str | bytes, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a graph gives in fp64.

    Raises:
        UnsupportedError: ONNX's evaluator does not know one of its operators.
    """
    from onnx.reference import ReferenceEvaluator

    model = _whole(source)
    _widen(model.graph)
    fed = {
        name: np.asarray(value, np.float64) if value.dtype == np.float32 else value
        for name, value in inputs.items()
    }
    try:
        outputs = ReferenceEvaluator(model).run(None, fed)
    except Exception as error:
        raise UnsupportedError(
            "no_fp64", f"ONNX's evaluator cannot run it: {type(error).__name__}", ""
        ) from error
    return dict(zip((entry.name for entry in model.graph.output), outputs, strict=True))


def _whole(source: str | bytes) -> onnx.ModelProto:
    """A graph with its weights in it and functions of its own in place."""
    model = onnx.load(source) if isinstance(source, str) else onnx.load_from_string(source)
    if len(model.functions):
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    return model


def _floats(model: onnx.ModelProto) -> frozenset[str]:
    """Values of the graph that are of float, as far as their types follow."""
    known = onnx.shape_inference.infer_shapes(model).graph
    entries = (*known.input, *known.value_info, *known.output)
    float_ = TensorProto.FLOAT
    names = {entry.name for entry in entries if entry.type.tensor_type.elem_type == float_}
    weights = (w.name for w in model.graph.initializer if w.data_type == float_ and len(w.dims))
    return frozenset(names.union(weights))


def _stepped(graph: Any, floats: frozenset[str]) -> Iterator[Any]:
    """The graph's nodes; what enters a product goes through a quantiser and back."""
    stepped: dict[str, str] = {}
    for node in graph.node:
        if node.op_type in _PRODUCTS:
            for place, name in enumerate(node.input):
                if name not in floats or (node.op_type in {"Gemm", "Conv"} and place == 2):
                    continue
                if name not in stepped:
                    stepped[name] = f"{_MARK}{len(stepped)}"
                    yield from _quantised(name, stepped[name])
                node.input[place] = stepped[name]
        yield node


def _quantised(name: str, result: str) -> Iterator[Any]:
    parts = [f"{result}_{part}" for part in ("steps", "scale", "zero")]
    yield helper.make_node("DynamicQuantizeLinear", [name], parts)
    yield helper.make_node("DequantizeLinear", parts, [result])


def _cast(graph: Any, floats: frozenset[str], precision: str) -> Iterator[Any]:
    """The graph's nodes, each followed by what rounds its results."""
    narrow, number = _NARROW[precision], 0
    for node in graph.node:
        after = []
        for place, name in enumerate(node.output):
            if name in floats:
                exact = f"{_MARK}{number}"
                number += 1
                node.output[place] = exact
                after += [
                    helper.make_node("Cast", [exact], [f"{exact}_narrow"], to=narrow),
                    helper.make_node("Cast", [f"{exact}_narrow"], [name], to=TensorProto.FLOAT),
                ]
        yield node
        yield from after


def _widen(graph: Any) -> None:
    """Make every float of a graph a double, those of its loops and branches too."""
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.type.tensor_type.elem_type == TensorProto.FLOAT:
            entry.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in {"to", "dtype"} and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    _widen(inner)


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        wide = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))

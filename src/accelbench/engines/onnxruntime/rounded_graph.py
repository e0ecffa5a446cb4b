"""ONNX graphs rewritten for references: rounded as a precision rounds, in fp64, or to opset 7.

In bf16 and fp16 every result is rounded; in int8 what enters a product is, to 255 steps between its
least and its largest value, as `pytorch.session.Rounded` has it for modules. fp64 is by ONNX's own
evaluator in NumPy: slow, and no engine's code. Imports onnx: import this module only if a reference
or an old graph is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from accelbench.core.errors import UnsupportedError

#: What multiplies weights or what was computed with something computed.
_PRODUCTS = frozenset(
    {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN", "Attention"}
)
_NARROW = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_MARK = "accelbench_rounded_"


def rounded(source: str | bytes, precision: str) -> onnx.ModelProto:
    """Return a graph, or a file's, with numbers rounded as a precision does; loops as is."""
    model = _whole(source)
    graph = model.graph
    floats = _floats(model)
    nodes = _stepped(graph, floats) if precision == "int8" else _cast(graph, floats, precision)
    made = list(nodes)
    del graph.node[:]
    graph.node.extend(made)
    return model


def in_fp64(source: str | bytes, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph's outputs in fp64, unless ONNX's evaluator lacks an operator."""
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
    # With its weights in it and functions of its own in place.
    model = onnx.load(source) if isinstance(source, str) else onnx.load_from_string(source)
    if len(model.functions):
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    return model


def _floats(model: onnx.ModelProto) -> frozenset[str]:
    known = onnx.shape_inference.infer_shapes(model).graph
    entries = (*known.input, *known.value_info, *known.output)
    float_ = TensorProto.FLOAT
    names = {entry.name for entry in entries if entry.type.tensor_type.elem_type == float_}
    weights = (w.name for w in model.graph.initializer if w.data_type == float_ and len(w.dims))
    return frozenset(names.union(weights))


def _stepped(graph: Any, floats: frozenset[str]) -> Iterator[Any]:
    # What enters a product goes through a quantiser and back.
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
    # Each node is followed by what rounds its results.
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
    # Floats of its loops and branches too.
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


#: Of ONNX's own operators the first version of which ONNX Runtime has each.
OPSET = 7
_OWN = ("", "ai.onnx")
#: Operators of two operands, which had an axis then and repeat as in NumPy since.
_BROADCASTS = {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"}
#: No size of a weight, as which a free one must not be taken.
_LARGE = 2**30 + 7


def converted(path: Path) -> onnx.ModelProto:
    """Return the graph of a file with the operators of opset 7; as it is if it has newer ones.

    Before opset 7, `Add` and its like named the axis from which their second operand lies, and
    `PRelu` had a slope a channel. Of both onnx's converter makes other graphs without a word: it
    takes any axis for the first, and slopes for those of the last axis. So these two are rewritten
    here. Of the 112 graphs of opset below 7 that the package onnx 1.23 ships, all then give what is
    stored beside them.
    """
    model = onnx.load(str(path))
    if opset_of(model) >= OPSET:
        return model
    try:
        ranks = _ranks(model)
        _operands_by_numpy(model.graph, ranks)
        _slopes_by_channel(model.graph, ranks)
        ends = [*model.graph.input, *model.graph.output]
        shapes = {entry.name: onnx.ValueInfoProto.FromString(entry.SerializeToString())
                  for entry in ends}  # fmt: skip
        _numbered(ends)
        made = version_converter.convert_version(model, OPSET)
        for entry in (*made.graph.input, *made.graph.output):
            entry.CopyFrom(shapes[entry.name])
        # What it puts between is there without a type, which ONNX Runtime refuses; it infers all.
        del made.graph.value_info[:]
        onnx.checker.check_model(made)
    except UnsupportedError:
        raise
    except Exception as error:  # the converter's own, by version of onnx
        raise UnsupportedError(
            "operator",
            f"onnx cannot convert it to opset {OPSET}: {' '.join(str(error).split())[:200]}",
            "Export it again with a newer opset.",
        ) from error
    return made


def opset_of(model: Any) -> int:
    """Return the version of ONNX's own operators that a graph is of."""
    return max((int(o.version) for o in model.opset_import if o.domain in _OWN), default=OPSET)


def _numbered(entries: Iterable[Any]) -> None:
    # The converter takes no names for free sizes, and asks which are alike.
    numbers: dict[str, int] = {}
    for entry in entries:
        for place, size in enumerate(entry.type.tensor_type.shape.dim):
            if not size.HasField("dim_value"):
                name = size.dim_param or f"{entry.name} {place}"
                size.dim_value = numbers.setdefault(name, _LARGE + len(numbers))


def _ranks(model: Any) -> dict[str, int]:
    known = onnx.shape_inference.infer_shapes(model).graph
    ranks = {
        entry.name: len(entry.type.tensor_type.shape.dim)
        for entry in (*known.input, *known.value_info, *known.output)
        if entry.type.tensor_type.HasField("shape")
    }
    return ranks | {tensor.name: len(tensor.dims) for tensor in known.initializer}


def _operands_by_numpy(graph: Any, ranks: Mapping[str, int]) -> None:
    """Give second operands that lie from an axis on the axes behind them."""
    nodes = []
    for number, node in enumerate(graph.node):
        axis = next((int(a.i) for a in node.attribute if a.name == "axis"), None)
        if node.op_type in _BROADCASTS and node.domain in _OWN:
            if axis is not None:
                first, second = (ranks.get(name) for name in node.input[:2])
                if first is None or second is None:
                    raise _unknown(node.op_type)
                behind = first - (axis + first if axis < 0 else axis) - second
                if behind > 0:
                    wide = f"accelbench_operand_{number}"
                    axes = list(range(second, second + behind))
                    nodes.append(helper.make_node("Unsqueeze", [node.input[1]], [wide], axes=axes))
                    node.input[1] = wide
            kept = [a for a in node.attribute if a.name not in {"axis", "broadcast"}]
            del node.attribute[:]
            node.attribute.extend(kept)
        nodes.append(node)
    made = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(made)


def _slopes_by_channel(graph: Any, ranks: Mapping[str, int]) -> None:
    """Give each slope of `PRelu` the axes behind the channels."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    given = {entry.name: entry for entry in graph.input}
    for node in graph.node:
        if node.op_type != "PRelu" or node.domain not in _OWN:
            continue
        slope, rank = stored.get(node.input[1]), ranks.get(node.input[0])
        if slope is None or rank is None:
            raise _unknown("PRelu")
        if len(slope.dims) == 1 and slope.dims[0] > 1:
            slope.dims.extend([1] * (rank - 2))
            if slope.name in given:
                shape = given[slope.name].type.tensor_type.shape
                for _ in range(rank - 2):
                    shape.dim.add().dim_value = 1


def _unknown(operator: str) -> UnsupportedError:
    return UnsupportedError(
        "operator",
        f"what a {operator} of it works on has no known number of axes, or is no stored weight",
        "Export it again with a newer opset.",
    )

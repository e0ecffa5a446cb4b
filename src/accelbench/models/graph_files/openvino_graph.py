"""Steps of an OpenVINO graph, by its own inference of shapes; weights are mapped, not read.

Imports openvino: import this module only to read a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.openvino_file import ENDS, open_graph
from accelbench.models.graph_files.steps import (
    FileInput,
    GraphSizes,
    GraphStep,
    GraphValue,
    OperatorSignature,
    UntracedError,
    attention,
    convolution,
    moving,
    product,
    refuse_uncounted,
    step,
    stored_weights,
)

_VIEWS = {
    "Parameter", "Result", "Constant", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Broadcast",
    "ShapeOf", "StridedSlice", "Slice", "Split", "VariadicSplit", "Range", "FakeQuantize",
    "ConvertLike", "Identity", "FakeConvert",
}  # fmt: skip
_CLASSES = {
    "bn": ("BatchNormInference",),
    "ln": ("MVN", "LayerNorm", "GroupNormalization", "NormalizeL2", "LRN", "RMS"),
    "act": (
        "Clamp", "Elu", "Erf", "Gelu", "HSigmoid", "HSwish", "HardSigmoid", "Mish", "PRelu",
        "Relu", "ReLU", "Selu", "Sigmoid", "SoftPlus", "SoftSign", "Swish", "Tanh",
    ),
    "pool": (
        "AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "CumSum", "MaxPool", "ReduceL1",
        "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ROIAlign",
    ),
    "softmax": ("Softmax", "SoftMax", "LogSoftmax"),
    "copy": (
        "Concat", "Convert", "DepthToSpace", "Gather", "GatherElements", "GatherND", "Interpolate",
        "OneHot", "Pad", "Roll", "ScatterElementsUpdate", "ScatterNDUpdate", "ScatterUpdate",
        "Select", "SpaceToDepth", "Tile", "TopK", "Reverse",
    ),
    "elt": (
        "Abs", "Add", "Ceiling", "Cos", "Divide", "Equal", "Exp", "Floor", "FloorMod", "Greater",
        "GreaterEqual", "IsFinite", "IsInf", "IsNaN", "Less", "LessEqual", "Log", "LogicalAnd",
        "LogicalNot", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mod", "Multiply",
        "Negative", "NotEqual", "Power", "Round", "Sign", "Sin", "Sqrt", "SquaredDifference",
        "Subtract", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    ),
}  # fmt: skip
_CLASS_OF = {name: op_class for op_class, names in _CLASSES.items() for name in names}
_CONVOLUTIONS = {
    "Convolution", "GroupConvolution", "ConvolutionBackpropData",
    "GroupConvolutionBackpropData",
}  # fmt: skip
_SDPA = "ScaledDotProductAttention"
_COUNTED = {*_VIEWS, *_CLASS_OF, *_CONVOLUTIONS, "MatMul", _SDPA}
#: What the steps that are joined are called in other formats.
_NAMES = {"Add": "Add", "Multiply": "Mul"}
_WEIGHTS = {"f32": "float", "f16": "float16", "bf16": "bfloat16", "f64": "double"}
_NARROW = {"i8", "u8", "i4", "u4"}


class OpenvinoGraph:
    """An OpenVINO graph without its weights: a `FileGraph`."""

    def __init__(self, path: Path) -> None:
        self._model = open_graph(path)
        ops = self._model.get_ordered_ops()
        if all(op.get_type_name() in ENDS for op in ops):
            raise UntracedError("There is no layer in it.")
        self.operators = len(ops)
        refuse_uncounted({op.get_type_name() for op in ops} - _COUNTED)
        for entry in self._model.inputs:
            if not entry.names:
                entry.get_tensor().set_names({entry.get_node().get_friendly_name()})
        self.inputs = tuple(
            FileInput(entry.any_name, _free(entry.partial_shape)) for entry in self._model.inputs
        )
        kinds = (
            (op.output(0).element_type.get_type_name(), op.output(0).shape)
            for op in ops
            if op.get_type_name() == "Constant"
        )
        self.weights, self.precision = stored_weights(
            (_WEIGHTS.get(kind, "int8"), math.prod(shape))
            for kind, shape in kinds
            if kind in _WEIGHTS or kind in _NARROW
        )

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        model = self._model.clone()
        try:
            model.reshape({name: list(shape) for name, shape in sizes.shapes.items()})
        except RuntimeError as error:
            words = " ".join(str(error).split())
            raise UntracedError(f"Its shapes do not fit at these sizes: {words[-200:]}") from error
        constants: set[str] = set()
        steps: list[GraphStep] = []
        results: set[str] = set()
        for op in model.get_ordered_ops():
            name = op.get_type_name()
            inputs = [_value(source.get_source_output(), constants) for source in op.inputs()]
            if name == "Result":
                results.update(value.name for value in inputs)
                continue
            if name == "ShapeOf" or (name != "Parameter" and all(v.constant for v in inputs)):
                constants.update(_output_name(output) for output in op.outputs())
                continue
            outputs = [_value(output, constants) for output in op.outputs()]
            if name != "Parameter":
                signature = _signature(name, op, inputs, outputs)
                steps.append(step(_NAMES.get(name, name), inputs, outputs, signature))
        return steps, results


def _free(shape: Any) -> tuple[int | str, ...]:
    if shape.rank.is_dynamic:
        raise UntracedError("An input of it has no fixed number of axes.")
    return tuple("" if size.is_dynamic else size.get_length() for size in shape)


def _output_name(output: Any) -> str:
    return f"{output.get_node().get_friendly_name()}:{output.get_index()}"


def _value(output: Any, constants: set[str]) -> GraphValue:
    shape = output.partial_shape
    node = output.get_node()
    if shape.is_dynamic:
        raise UntracedError(
            f"The shape of what its operator {node.get_type_name()}"
            f" {in_quotes(node.get_friendly_name())} gives does not follow from shapes: it depends"
            " on values."
        )
    name = _output_name(output)
    return GraphValue(name, tuple(shape.to_shape()), name in constants)


def _signature(
    name: str, op: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue]
) -> OperatorSignature | None:
    made = outputs[0]
    if name in _VIEWS or not made.elements:
        return None
    attributes: Mapping[str, Any] = op.get_attributes()
    if name == "MatMul":
        left, right = inputs[:2]
        turned = attributes.get("transpose_a") and len(left.shape) > 1
        return product(left, right, made, left.shape[-2 if turned else -1])
    if name == _SDPA:
        query, key, value = inputs[:3]
        return attention(
            (query.shape[-2], query.shape[-1]), (key.shape[-2], key.shape[-1]), value.shape[-1],
            heads=math.prod(query.shape[:-2]), masked=len(inputs) > 3 and bool(inputs[3].shape),
        )  # fmt: skip
    if name in _CONVOLUTIONS:
        return _convolution(name, attributes, inputs, made)
    looked_up = name == "Gather" and inputs[0].constant
    return moving(_CLASS_OF[name], inputs, outputs, looked_up=looked_up)


def _convolution(
    name: str, attributes: Mapping[str, Any], inputs: Sequence[GraphValue], made: GraphValue
) -> OperatorSignature:
    """Count a convolution; a grouped one's weight has its groups as an axis of their own."""
    weight, groups = inputs[1], 1
    transposed = "Backprop" in name
    if name.startswith("Group"):
        groups, first, *rest = weight.shape
        # (groups, out, in, …), of a transposed one (groups, in, out, …): joined with the first.
        weight = GraphValue(weight.name, (groups * first, *rest), weight.constant)
    strides = list(attributes.get("strides") or [1])
    return convolution(
        inputs[0], weight, made, groups=groups, stride=int(strides[0]), transposed=transposed
    )

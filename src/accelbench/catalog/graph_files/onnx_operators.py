"""What each of ONNX's operators takes, by the shapes of its operands. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from accelbench.catalog.graph_files.signatures import OperatorSignature, UntracedError
from accelbench.catalog.graph_files.steps import (
    GraphStep,
    GraphValue,
    attention,
    convolution,
    moving,
    product,
    step,
)
from accelbench.core.visible import in_quotes

#: Values are looked at in another way, or what is made follows from sizes; casts are looked at.
_VIEWS = {
    "Constant", "ConstantOfShape", "Dropout", "Expand", "Flatten", "Identity", "Range", "Reshape",
    "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze", "EyeLike",
    # Of weights they are folded; of results they are the seam between quantised operators.
    "DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear",
}  # fmt: skip
_CLASSES = {
    "bn": ("BatchNormalization",),
    "ln": (
        "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization",
        "LpNormalization", "MeanVarianceNormalization", "LRN",
    ),
    "act": (
        "Celu", "Clip", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish",
        "PRelu", "Relu", "Selu", "Sigmoid", "Shrink", "Softplus", "Softsign", "Swish", "Tanh",
        "ThresholdedRelu",
    ),
    "pool": (
        "AveragePool", "CumSum", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool",
        "MaxPool", "MaxUnpool", "MaxRoiPool", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare", "RoiAlign",
    ),
    "softmax": ("LogSoftmax", "Softmax", "Hardmax"),
    "copy": (
        "Cast", "CastLike", "Concat", "Gather", "GatherElements", "GatherND", "DepthToSpace",
        "SpaceToDepth", "Pad", "Resize", "Upsample", "ScatterElements", "ScatterND", "Scatter",
        "Tile", "TopK", "Where", "Trilu", "OneHot", "GridSample", "CenterCropPad", "Col2Im",
        "ReverseSequence", "ArgMax", "ArgMin",
    ),
    "elt": (
        "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
        "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Cos", "Cosh", "Div",
        "Equal", "Exp", "Floor", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less",
        "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
        "Reciprocal", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Sub", "Sum", "Tan", "Xor",
        "RandomNormalLike", "RandomUniformLike", "Bernoulli",
    ),
}  # fmt: skip
_CLASS_OF = {name: op_class for op_class, names in _CLASSES.items() for name in names}
_CONVOLUTIONS = {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv"}
_PRODUCTS = {"MatMul", "Gemm", "MatMulInteger", "QLinearMatMul", "Einsum"}
_RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}
_COUNTED = {*_VIEWS, *_CLASS_OF, *_CONVOLUTIONS, *_PRODUCTS, *_RECURRENT, "Attention"}


def is_countable(node: Any) -> bool:
    """Whether a rule counts a node."""
    return node.domain in {"", "ai.onnx"} and node.op_type in _COUNTED


def onnx_step(
    node: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue], kinds: Sequence[int]
) -> GraphStep:
    """The step of a node.

    Args:
        node: a node that `is_countable`.
        inputs: its operands; one that is left out has no name.
        outputs: its results.
        kinds: element types of both, in their order.
    """
    named = [value for value in inputs if value.name]
    return step(node.op_type, named, outputs, _signature(node, inputs, outputs, kinds))


def _signature(
    node: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue], kinds: Sequence[int]
) -> OperatorSignature | None:
    name, made = node.op_type, outputs[0]
    named = [value for value in inputs if value.name]
    if name in _VIEWS or (name == "Cast" and kinds[0] == kinds[-1]) or not made.elements:
        return None
    if name in _CONVOLUTIONS:
        return _convolution(node, inputs, made)
    if name == "Einsum":
        return _einsum(node, named, made)
    if name in _PRODUCTS:
        left, right = (inputs[0], inputs[3]) if name == "QLinearMatMul" else inputs[:2]
        turned = name == "Gemm" and _attribute(node, "transA", 0)
        return product(left, right, made, left.shape[0 if turned else -1] if left.shape else 1)
    if name == "Attention":
        return _attention(node, inputs)
    if name in _RECURRENT:
        return _recurrent(name, inputs, made)
    looked_up = name == "Gather" and inputs[0].constant
    return moving(_CLASS_OF[name], named, outputs, looked_up=looked_up)


def _convolution(node: Any, inputs: Sequence[GraphValue], made: GraphValue) -> OperatorSignature:
    weight = inputs[3 if node.op_type == "QLinearConv" else 1]
    strides = _attribute(node, "strides", [1])
    return convolution(
        inputs[0], weight, made, groups=int(_attribute(node, "group", 1)),
        stride=int(strides[0]) if strides else 1, transposed=node.op_type == "ConvTranspose",
    )  # fmt: skip


def _einsum(node: Any, inputs: Sequence[GraphValue], made: GraphValue) -> OperatorSignature:
    equation = _attribute(node, "equation", b"").decode().replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(inputs) > 2 or "." in equation:
        raise UntracedError(f"No rule counts its Einsum of {in_quotes(equation)}.")
    sizes = {letter: size for term, value in zip(terms, inputs, strict=True)
             for letter, size in zip(term, value.shape, strict=True)}  # fmt: skip
    if len(inputs) < 2:
        return moving("copy", inputs, (made,))
    return product(inputs[0], inputs[1], made, math.prod(sizes.values()) // made.elements)


def _attention(node: Any, inputs: Sequence[GraphValue]) -> OperatorSignature:
    query, key, value = inputs[:3]
    if len(query.shape) == 4:
        heads, length, width = math.prod(query.shape[:2]), query.shape[2], query.shape[3]
        other, depth = key.shape[2], value.shape[3]
    else:
        each = int(_attribute(node, "q_num_heads", 1))
        others = int(_attribute(node, "kv_num_heads", each))
        heads, length, width = query.shape[0] * each, query.shape[1], query.shape[2] // each
        other, depth = key.shape[1], value.shape[2] // others
    masked = len(inputs) > 3 and bool(inputs[3].name)
    return attention((length, width), (other, width), depth, heads=heads, masked=masked)


def _recurrent(name: str, inputs: Sequence[GraphValue], made: GraphValue) -> OperatorSignature:
    """All steps of a recurrent layer: its products with inputs and with states."""
    values, weight, states = inputs[:3]
    items = math.prod(values.shape[:2])  # steps × batch
    weights = weight.elements + states.elements
    return OperatorSignature(
        "lin", items * weights, values.elements, weights, max(made.elements, 1), items,
        _RECURRENT[name] * states.shape[-1], values.shape[-1] + states.shape[-1], 1, 1, 1,
    )  # fmt: skip


def _attribute(node: Any, name: str, usual: Any) -> Any:
    import onnx

    for attribute in node.attribute:
        if attribute.name == name:
            return onnx.helper.get_attribute_value(attribute)
    return usual

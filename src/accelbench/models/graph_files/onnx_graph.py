"""Steps of an ONNX graph: shapes inferred node by node, weights never read.

Results are inferred from operands' shapes and from small known values: sizes that a graph computes
(Shape, Gather, Concat, Reshape) are computed here. Imports onnx: import only to read a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.external_data_helper import uses_external_data
from onnx.reference import ReferenceEvaluator

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.onnx_file import open_graph
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
    refuse_unmade,
    step,
    stored_weights,
)

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
    """Return whether a rule counts a node."""
    return node.domain in {"", "ai.onnx"} and node.op_type in _COUNTED


def onnx_step(
    node: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue], kinds: Sequence[int]
) -> GraphStep:
    """Return the step of a countable node; `kinds` are the types of its operands and results."""
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


#: Operators of sizes, which are calculated where their operands are known.
_OF_SIZES = {
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "Constant", "ConstantOfShape", "Div", "Equal",
    "Expand", "Flatten", "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "Less",
    "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterND", "Shape", "Size", "Slice",
    "Split", "Sqrt", "Squeeze", "Sub", "Transpose", "Trilu", "Unsqueeze", "Where",
}  # fmt: skip
#: Larger values are no sizes.
_MOST_ELEMENTS = 4096
_FLOATS = {
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE,
}  # fmt: skip
#: What quantised weights are stored in.
_NARROW = {TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4, TensorProto.UINT4}

Array = np.ndarray[Any, np.dtype[Any]]


class OnnxGraph:
    """An ONNX graph without its weights: a `FileGraph`."""

    def __init__(self, path: Path) -> None:
        model = open_graph(path)
        if not model.graph.node:
            raise UntracedError("There is no operator in it.")
        if len(model.functions):
            from onnx import inliner

            model = inliner.inline_local_functions(model)
        self._model = model
        self.operators = len(model.graph.node)
        self._opsets = {entry.domain: int(entry.version) for entry in model.opset_import}
        given = {tensor.name for tensor in model.graph.initializer}
        self.inputs = tuple(
            FileInput(entry.name, tuple(_dimension(d) for d in _dimensions(entry)))
            for entry in model.graph.input
            if entry.name not in given
        )
        tensors = [*model.graph.initializer, *_constants(model)]
        if any(size < 0 for tensor in tensors for size in tensor.dims):
            raise UntracedError("A weight of it has a size below 0.")
        self.weights, self.precision = stored_weights(
            (TensorProto.DataType.Name(t.data_type).lower(), math.prod(t.dims))
            for t in tensors
            if t.data_type in _FLOATS | _NARROW
        )
        refuse_uncounted(
            f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            for node in model.graph.node
            if not is_countable(node)
        )

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        walk = _Walk(self._model, self._opsets, sizes.shapes)
        steps = [entry for node in self._model.graph.node if (entry := walk.step(node))]
        return steps, {value.name for value in self._model.graph.output}


class _Walk:
    def __init__(
        self, model: Any, opsets: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self._opsets = opsets
        self._imports = list(model.opset_import)
        self._types: dict[str, Any] = {}
        self._known: dict[str, Array] = {}
        self._constants: set[str] = set()
        for entry in model.graph.input:
            if entry.name in shapes:
                kind = entry.type.tensor_type.elem_type
                self._types[entry.name] = helper.make_tensor_type_proto(kind, shapes[entry.name])
        for tensor in model.graph.initializer:
            self._keep(tensor.name, tensor)

    def _keep(self, name: str, tensor: Any) -> None:
        self._constants.add(name)
        self._types[name] = helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims))
        if math.prod(tensor.dims) <= _MOST_ELEMENTS and not uses_external_data(tensor):
            self._known[name] = numpy_helper.to_array(tensor)

    def step(self, node: Any) -> GraphStep | None:
        read = [name for name in node.input if name]
        if node.op_type == "Constant":
            self._constant(node)
            return None
        refuse_unmade(_describe_node(node), (name for name in read if name not in self._types))
        if all(name in self._constants for name in read):
            self._constants.update(node.output)
        types = self._inferred(node, read)
        for name in node.output:
            if name:
                self._types[name] = types[name]
        self._calculate(node, read)
        if all(name in self._constants for name in node.output if name):
            return None
        inputs = [self._value(name) for name in node.input]
        outputs = [self._value(name) for name in node.output if name]
        kinds = [self._types[n].tensor_type.elem_type for n in (*node.input, *node.output) if n]
        return onnx_step(node, inputs, outputs, kinds)

    def _constant(self, node: Any) -> None:
        for attribute in node.attribute:
            if attribute.name == "value":
                self._keep(node.output[0], attribute.t)
                return
        value = np.asarray(ReferenceEvaluator(node, opsets=dict(self._opsets)).run(None, {})[0])
        self._keep(node.output[0], numpy_helper.from_array(value))

    def _inferred(self, node: Any, read: Iterable[str]) -> dict[str, Any]:
        schema = onnx.defs.get_schema(node.op_type, self._opsets.get(node.domain, 1), node.domain)
        data = {name: numpy_helper.from_array(self._known[name], name)
                for name in read if name in self._known}  # fmt: skip
        types = {name: self._types[name] for name in read}
        try:
            made = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self._imports
            )
        except Exception as error:
            words = " ".join(str(error).split())
            raise UntracedError(
                f"The shapes at its operator {_describe_node(node)} do not fit: {words[:200]}"
            ) from error
        for name in node.output:
            if name and not _is_settled(made.get(name)):
                raise UntracedError(
                    f"The shape of what its operator {_describe_node(node)} gives does not"
                    " follow from"
                    " shapes: it depends on values."
                )
        return {name: made[name] for name in node.output if name}

    def _calculate(self, node: Any, read: list[str]) -> None:
        results = [name for name in node.output if name]
        if node.op_type not in _OF_SIZES or any(_size(self._types[n]) > _MOST_ELEMENTS
                                                for n in results):  # fmt: skip
            return
        if node.op_type in {"Shape", "Size"}:
            shape = self._value(node.input[0]).shape
            begin, end = (_number(node, name, None) for name in ("start", "end"))
            value = np.array(
                shape[begin:end] if node.op_type == "Shape" else math.prod(shape), dtype=np.int64
            )
            self._known[results[0]] = value
            self._constants.update(results)
        elif all(name in self._known for name in read):
            evaluator = ReferenceEvaluator(node, opsets=dict(self._opsets))
            values = evaluator.run(None, {name: self._known[name] for name in read})
            for name, value in zip(results, values, strict=True):
                self._known[name] = np.asarray(value)
            self._constants.update(results)

    def _value(self, name: str) -> GraphValue:
        if not name:
            return GraphValue("", (), constant=True)
        shape = tuple(int(d.dim_value) for d in self._types[name].tensor_type.shape.dim)
        return GraphValue(name, shape, name in self._constants)


def _number(node: Any, name: str, usual: int | None) -> int | None:
    return next((int(a.i) for a in node.attribute if a.name == name), usual)


def _describe_node(node: Any) -> str:
    return f"{node.op_type} {in_quotes(node.name)}" if node.name else str(node.op_type)


def _dimensions(entry: Any) -> Iterable[Any]:
    kind = entry.type.tensor_type
    if not entry.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise UntracedError(f"Its input {entry.name} is no tensor with a known number of axes.")
    dimensions: Iterable[Any] = kind.shape.dim
    return dimensions


def _dimension(dimension: Any) -> int | str:
    if dimension.HasField("dim_value"):
        return int(dimension.dim_value)
    return str(dimension.dim_param)


def _constants(model: Any) -> list[Any]:
    return [a.t for node in model.graph.node if node.op_type == "Constant"
            for a in node.attribute if a.HasField("t")]  # fmt: skip


def _is_settled(kind: Any) -> bool:
    if kind is None or not kind.HasField("tensor_type"):
        return False
    tensor = kind.tensor_type
    return tensor.HasField("shape") and all(
        d.HasField("dim_value") and d.dim_value >= 0 for d in tensor.shape.dim
    )


def _size(kind: Any) -> int:
    return math.prod(int(d.dim_value) for d in kind.tensor_type.shape.dim)

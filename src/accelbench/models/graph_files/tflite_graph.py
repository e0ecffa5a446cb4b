"""Steps of a TensorFlow Lite model: shapes by the engine's own preparation, nothing run.

Sizes that depend on values are known only after a run: such a model is not counted. Imports
ai_edge_litert: import this module only to read a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from accelbench.models.file_models.tflite_file import free_shape, open_graph
from accelbench.models.graph_files.steps import (
    FileInput,
    GraphSizes,
    GraphStep,
    GraphValue,
    OperatorSignature,
    UntracedError,
    convolution,
    moving,
    product,
    refuse_uncounted,
    step,
    stored_weights,
)

_VIEWS = {
    "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SHAPE", "STRIDED_SLICE", "SLICE", "SPLIT",
    "SPLIT_V", "UNPACK", "BROADCAST_TO", "QUANTIZE", "DEQUANTIZE", "RANGE", "FILL", "ZEROS_LIKE",
    "FAKE_QUANT", "RANK",
}  # fmt: skip
_CLASSES = {
    "ln": ("L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION"),
    "act": (
        "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "ELU", "GELU",
        "HARD_SWISH", "LEAKY_RELU", "PRELU",
    ),
    "pool": (
        "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN",
        "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL", "CUMSUM",
    ),
    "softmax": ("SOFTMAX", "LOG_SOFTMAX"),
    "copy": (
        "CONCATENATION", "PAD", "PADV2", "MIRROR_PAD", "GATHER", "GATHER_ND", "EMBEDDING_LOOKUP",
        "PACK", "TILE", "CAST", "SELECT", "SELECT_V2", "ONE_HOT", "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPACE_TO_BATCH_ND",
        "BATCH_TO_SPACE_ND", "TOPK_V2", "REVERSE_V2", "SCATTER_ND", "ARG_MAX", "ARG_MIN",
    ),
    "elt": (
        "ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "POW", "MAXIMUM", "MINIMUM", "EXP",
        "LOG", "SQRT", "RSQRT", "SQUARE", "SQUARED_DIFFERENCE", "ABS", "NEG", "SIN", "COS", "FLOOR",
        "CEIL", "ROUND", "SIGN", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS",
        "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "ADD_N",
    ),
}  # fmt: skip
_CLASS_OF = {name: op_class for op_class, names in _CLASSES.items() for name in names}
_CONVOLUTIONS = {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D"}
_PRODUCTS = {*_CONVOLUTIONS, "FULLY_CONNECTED", "BATCH_MATMUL"}
_COUNTED = {*_VIEWS, *_CLASS_OF, *_PRODUCTS}
#: What the steps that are joined are called in other formats.
_NAMES = {"ADD": "Add", "MUL": "Mul", "LOGISTIC": "Sigmoid"}
#: What an operator does to its results besides, by its number in the schema: of 0, nothing.
_FUSED = {
    value: name for name, value in vars(schema.ActivationFunctionType).items()
    if isinstance(value, int) and value
}  # fmt: skip
_WEIGHTS = {
    schema.TensorType.FLOAT32: "float", schema.TensorType.FLOAT16: "float16",
    schema.TensorType.BFLOAT16: "bfloat16", schema.TensorType.FLOAT64: "double",
    schema.TensorType.INT8: "int8", schema.TensorType.UINT8: "int8", schema.TensorType.INT4: "int8",
}  # fmt: skip


class TfliteGraph:
    """A TensorFlow Lite model's first graph: a `FileGraph`."""

    def __init__(self, path: Path) -> None:
        self._engine, model, codes = open_graph(path)
        self._graph = model.subgraphs[0]
        self._codes = [codes[entry.opcodeIndex] for entry in self._graph.operators]
        self.operators = len(self._codes)
        refuse_uncounted({code or "of its own" for code in self._codes} - _COUNTED)
        self._stored = {
            index
            for index, tensor in enumerate(self._graph.tensors)
            if model.buffers[tensor.buffer].data is not None
        }
        fed = self._engine.get_input_details()
        self._fed = {str(entry["name"]): int(entry["index"]) for entry in fed}
        self.inputs = tuple(
            FileInput(str(entry["name"]), tuple(free_shape(entry))) for entry in fed
        )
        self.weights, self.precision = stored_weights(
            (_WEIGHTS[tensor.type], math.prod(map(int, tensor.shape)))
            for index in sorted(self._stored)
            if (tensor := self._graph.tensors[index]).type in _WEIGHTS and tensor.shape is not None
        )

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        shapes = self._prepared(sizes.shapes)
        constants = set(self._stored)

        def value(index: int) -> GraphValue:
            return GraphValue(str(index), shapes[index], index in constants)

        steps: list[GraphStep] = []
        for code, entry in zip(self._codes, self._graph.operators, strict=True):
            read = [int(index) for index in entry.inputs if index >= 0]
            made = [int(index) for index in entry.outputs]
            if code == "SHAPE" or all(index in constants for index in read):
                constants.update(made)
                continue
            steps += _steps(code, entry, list(map(value, read)), list(map(value, made)))
        return steps, {str(int(index)) for index in self._graph.outputs}

    def _prepared(self, inputs: Mapping[str, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        engine = self._engine
        try:
            for name, shape in inputs.items():
                engine.resize_tensor_input(self._fed[name], list(shape))
            engine.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            words = " ".join(str(error).split())
            raise UntracedError(f"Its shapes do not fit at these sizes: {words[-200:]}") from error
        shapes = {
            int(entry["index"]): tuple(map(int, entry["shape"]))
            for entry in engine.get_tensor_details()
        }
        for code, entry in zip(self._codes, self._graph.operators, strict=True):
            for index in entry.outputs:
                if int(index) not in shapes or 0 in shapes[int(index)]:
                    raise UntracedError(
                        f"The shape of what its operator {code} gives depends on values."
                    )
        return shapes


def _steps(
    code: str, entry: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue]
) -> Iterator[GraphStep]:
    """Yield an operator, and the activation that it applies to its result as another step."""
    options = entry.builtinOptions
    fused = _FUSED.get(getattr(options, "fusedActivationFunction", 0))
    made = list(outputs)
    if fused:
        made[0] = GraphValue(f"{outputs[0].name} before {fused}", outputs[0].shape)
    signature = _signature(code, options, inputs, made)
    yield step(_NAMES.get(code, code), inputs, made, signature)
    if fused:
        yield step(fused, made[:1], outputs[:1], moving("act", made[:1], outputs[:1]))


def _signature(
    code: str, options: Any, inputs: Sequence[GraphValue], outputs: Sequence[GraphValue]
) -> OperatorSignature | None:
    made = outputs[0]
    if code in _VIEWS or not made.elements:
        return None
    if code == "FULLY_CONNECTED":
        return product(inputs[0], inputs[1], made, inputs[1].shape[-1])
    if code == "BATCH_MATMUL":
        turned = getattr(options, "adjX", False) and len(inputs[0].shape) > 1
        return product(inputs[0], inputs[1], made, inputs[0].shape[-2 if turned else -1])
    if code in _CONVOLUTIONS:
        return _convolution(code, options, inputs, made)
    looked_up = code in {"GATHER", "EMBEDDING_LOOKUP"} and any(v.constant for v in inputs)
    return moving(_CLASS_OF[code], inputs, outputs, looked_up=looked_up)


def _convolution(
    code: str, options: Any, inputs: Sequence[GraphValue], made: GraphValue
) -> OperatorSignature:
    """Count a convolution whose channels lie last."""
    weight, transposed = inputs[1], code == "TRANSPOSE_CONV"
    values = inputs[2] if transposed else inputs[0]
    channels, groups = values.shape[-1], 1
    if code == "DEPTHWISE_CONV_2D":  # (1, kernel …, out)
        groups, shape = channels, (weight.shape[-1], 1, *weight.shape[1:-1])
    elif code == "CONV_3D":  # (kernel …, in a group, out)
        groups = channels // max(weight.shape[-2], 1)
        shape = (weight.shape[-1], weight.shape[-2], *weight.shape[:-2])
    elif transposed:  # (out, kernel …, in)
        shape = (weight.shape[-1], weight.shape[0], *weight.shape[1:-1])
    else:  # (out, kernel …, in a group)
        groups = channels // max(weight.shape[-1], 1)
        shape = (weight.shape[0], weight.shape[-1], *weight.shape[1:-1])
    return convolution(
        _channels_first(values), GraphValue(weight.name, shape, weight.constant),
        _channels_first(made), groups=max(groups, 1), stride=int(getattr(options, "strideW", 1)),
        transposed=transposed,
    )  # fmt: skip


def _channels_first(value: GraphValue) -> GraphValue:
    first, *rest, channels = value.shape
    return GraphValue(value.name, (first, channels, *rest), value.constant)

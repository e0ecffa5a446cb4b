"""TensorFlow Lite models: inputs and outputs, their values, and precision.

The engine checks a file's tables before it reads them, and maps the weights. Imports
ai_edge_litert: import this module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from accelbench.models.file_models.given_inputs import (
    InputRanges,
    MaskEffect,
    choice_effect,
    pair_effect,
    refuse_text,
)
from accelbench.models.file_models.kinds import FileRefusedError

PRODUCTS = frozenset(
    {
        "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D",
        "BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    }
)  # fmt: skip


#: Operators that look a row up: input with its number, and that of the table.
_LOOKUPS = {"GATHER": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "TRANSPOSE", "TILE",
    "BROADCAST_TO", "SPLIT", "SPLIT_V", "UNPACK",
}  # fmt: skip
_JOINS = {"LOGICAL_AND", "LOGICAL_OR"}
_PAIRS = {"MUL": "mul", "EQUAL": "eq", "NOT_EQUAL": "ne", "GREATER": "gt", "SUB": "sub"}
_VALUES = {
    schema.TensorType.FLOAT32: "<f4", schema.TensorType.FLOAT16: "<f2",
    schema.TensorType.INT32: "<i4", schema.TensorType.INT64: "<i8",
    schema.TensorType.BOOL: "?",
}  # fmt: skip


class TfliteRanges(InputRanges):
    """Values of a model's inputs."""

    def __init__(self, model: Any, codes: Sequence[str]) -> None:
        super().__init__()
        self._model, self._graph = model, model.subgraphs[0]
        self._codes = codes
        for operator in self._graph.operators:
            for place, index in enumerate(operator.inputs):
                self._note_reader(str(int(index)), operator, place)

    def _made(self, node: Any) -> list[str]:
        return [str(int(index)) for index in node.outputs]

    def _passes_on(self, node: Any, place: int) -> bool:
        return place == 0 and self._codes[node.opcodeIndex] in _PASSES_ON

    def _table(self, node: Any, place: int) -> int | None:
        number, table = _LOOKUPS.get(self._codes[node.opcodeIndex], (None, 0))
        if place != number:
            return None
        shape = _shape(self._graph.tensors[node.inputs[table]])
        axis = getattr(node.builtinOptions, "axis", 0)
        rows = shape[axis] if -len(shape) <= axis < len(shape) else 0
        return rows if rows > 0 else None

    def _effect(self, node: Any, place: int) -> MaskEffect | None:
        inputs, code = node.inputs, self._codes[node.opcodeIndex]
        if code in {"SELECT", "SELECT_V2"} and place == 0:
            return choice_effect(self._scalar(inputs[1]), self._scalar(inputs[2]))
        if (code in {*_PASSES_ON, "GATHER", "GATHER_ND"} and place == 0) or code in _JOINS:
            return MaskEffect.SAME
        if code == "LOGICAL_NOT":
            return MaskEffect.TURNED
        if code not in _PAIRS:
            return None
        return pair_effect(_PAIRS[code], place, self._scalar(inputs[1 - place]))

    def _scalar(self, index: int) -> float | None:
        tensor = self._graph.tensors[index]
        content = self._model.buffers[tensor.buffer].data
        kind = _VALUES.get(tensor.type)
        if content is None or kind is None or math.prod(_shape(tensor)) != 1:
            return None
        values = np.asarray(content, np.uint8).tobytes()
        if len(values) < np.dtype(kind).itemsize:
            return None
        return float(np.frombuffer(values, kind, 1)[0])


_STORED = {
    "FLOAT32": "fp32", "FLOAT64": "fp64", "FLOAT16": "fp16", "BFLOAT16": "bf16", "INT8": "int8",
    "UINT8": "int8", "INT4": "int8",
}  # fmt: skip


def open_graph(path: Path) -> tuple[Interpreter, Any, list[str]]:
    """Return a file as the engine and as its schema have it, and the names of operator codes."""
    content = path.read_bytes()
    try:
        engine = Interpreter(
            model_path=str(path),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    except Exception as error:  # the engine's own, by version
        words = " ".join(str(error).split())
        raise FileRefusedError(
            f"LiteRT cannot read it: {words[:200].rstrip('.') or type(error).__name__}.",
            "Convert it again.",
        ) from error
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    return engine, model, [names.get(code.builtinCode, "") for code in model.operatorCodes]


def look(path: Path) -> dict[str, Any]:
    """Describe a file, or raise FileRefusedError if it is incomplete or cannot be fed."""
    engine, model, codes = open_graph(path)
    graph = model.subgraphs[0]
    if not graph.operators:
        raise FileRefusedError("There is no operator in it: nothing would be measured.")
    weights = [
        tensor
        for tensor in graph.tensors
        if model.buffers[tensor.buffer].data is not None and _stored_precision(tensor)
    ]
    ranges = TfliteRanges(model, codes)
    return {
        "inputs": [_input(entry, ranges) for entry in engine.get_input_details()],
        "outputs": [_tensor(entry) for entry in engine.get_output_details()],
        "weights": sum(math.prod(_shape(tensor)) for tensor in weights),
        "precision": _precision(graph, codes, weights),
        "operators": len(graph.operators),
        "beside": [],
    }


def _stored_precision(tensor: Any) -> str:
    names = {value: name for name, value in vars(schema.TensorType).items()}
    return _STORED.get(names.get(tensor.type, ""), "")


def _shape(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else [int(size) for size in tensor.shape]


def free_shape(entry: Mapping[str, Any]) -> list[int | str]:
    """Return the sizes of an input or output, "" if one is free."""
    signature = entry["shape_signature"] if len(entry["shape_signature"]) else entry["shape"]
    return [int(size) if size >= 0 else "" for size in signature]


def _tensor(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": str(entry["name"]),
        "dtype": np.dtype(entry["dtype"]).name if entry["dtype"] is not np.bytes_ else "str",
        "shape": free_shape(entry),
    }


def _input(entry: dict[str, Any], ranges: TfliteRanges) -> dict[str, Any]:
    fields = _tensor(entry)
    if fields["dtype"] in ("str", "bytes"):
        raise refuse_text(fields["name"], "convert")
    return fields | ranges.of(str(int(entry["index"])), fields["name"], fields["dtype"])


def _precision(graph: Any, codes: list[str], weights: list[Any]) -> str:
    held = {id(tensor): tensor for tensor in weights}
    counted: Counter[str] = Counter()
    for operator in graph.operators:
        if codes[operator.opcodeIndex] in PRODUCTS:
            for index in operator.inputs:
                tensor = graph.tensors[index] if index >= 0 else None
                if tensor is not None and id(tensor) in held:
                    counted[_stored_precision(tensor)] += math.prod(_shape(tensor))
    return counted.most_common(1)[0][0] if counted else "fp32"

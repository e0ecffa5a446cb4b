"""OpenVINO graphs: inputs and outputs, their values, and precision.

OpenVINO maps the weights next to the graph and reads none of them. Imports openvino: import this
module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openvino

from accelbench.models.file_models.given_inputs import (
    InputRanges,
    MaskEffect,
    choice_effect,
    pair_effect,
    refuse_rank,
    refuse_text,
)
from accelbench.models.file_models.kinds import FileRefusedError, weights_beside

#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "Convert", "Reshape", "Unsqueeze", "Squeeze", "Slice", "StridedSlice", "Transpose", "Broadcast",
    "Tile", "Split", "VariadicSplit", "ConvertLike", "Identity",
}  # fmt: skip
_SAME = {*_PASSES_ON, "Gather", "GatherElements", "GatherND"}
_JOINS = {"LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr"}
_PAIRS = {"Multiply": "mul", "Equal": "eq", "NotEqual": "ne", "Greater": "gt", "Subtract": "sub"}
_SDPA, _MASK_OF_SDPA = "ScaledDotProductAttention", 3
_DEEPEST = 64


class _Ranges(InputRanges):
    def __init__(self, port: Any) -> None:
        super().__init__()
        self._outputs: dict[str, Any] = {}
        (self.key,) = self._made(port.get_node())

    def _readers(self, key: str) -> Iterator[tuple[Any, int]]:
        for target in self._outputs[key].get_target_inputs():
            yield target.get_node(), target.get_index()

    def _made(self, node: Any) -> list[str]:
        made = {f"{node.get_friendly_name()}:{out.get_index()}": out for out in node.outputs()}
        self._outputs |= made
        return list(made)

    def _passes_on(self, node: Any, place: int) -> bool:
        return place == 0 and node.get_type_name() in _PASSES_ON

    def _table(self, node: Any, place: int) -> int | None:
        if node.get_type_name() != "Gather" or place != 1:
            return None
        axis_node = node.input_value(2).get_node()
        shape = node.input_value(0).partial_shape
        if axis_node.get_type_name() != "Constant" or shape.is_dynamic:
            return None
        axis = int(axis_node.data.reshape(-1)[0])
        sizes = list(shape.to_shape())
        return int(sizes[axis]) if -len(sizes) <= axis < len(sizes) else None

    def _effect(self, node: Any, place: int) -> MaskEffect | None:
        kind = node.get_type_name()
        if kind == "Select" and place == 0:
            return choice_effect(_scalar(node.input_value(1)), _scalar(node.input_value(2)))
        if kind == _SDPA and place == _MASK_OF_SDPA:
            truth = node.input_value(place).get_element_type().get_type_name() == "boolean"
            return MaskEffect.KEEPS if truth else None
        if (kind in _SAME and place == 0) or kind in _JOINS:
            return MaskEffect.SAME
        if kind in {"LogicalNot", "BitwiseNot"}:
            return MaskEffect.TURNED
        if node.get_input_size() == 2:
            other = _scalar(node.input_value(1 - place))
            return pair_effect(_PAIRS.get(kind, ""), place, other)
        return None


def _scalar(output: Any) -> float | None:
    node = output.get_node()
    for _ in range(_DEEPEST):
        kind = node.get_type_name()
        if kind == "Constant":
            if node.output(0).partial_shape.is_dynamic or node.data.size != 1:
                return None
            return float(node.data.reshape(-1)[0])
        if kind not in _PASSES_ON:
            return None
        node = node.input_value(0).get_node()
    return None


#: Within so many bytes a graph says that it is one, behind what a licence may take.
_BEGINS = 2**16
#: What a graph has beside layers.
ENDS = {"Parameter", "Result", "Constant"}
_STORED = {"f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "bf16"}
_NARROW = {"i8", "u8", "i4", "u4", "nf4"}
_QUANTISES = {"FakeQuantize", "FakeConvert"}
_PRODUCTS = {
    "MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData",
    "GroupConvolutionBackpropData", "LSTMSequence", "GRUSequence",
}  # fmt: skip


def look(path: Path) -> dict[str, Any]:
    """Describe a file, or raise FileRefusedError if it is incomplete or cannot be fed."""
    weights = weights_beside(path)
    ops = (model := open_graph(path)).get_ordered_ops()
    if all(op.get_type_name() in ENDS for op in ops):
        raise FileRefusedError("There is no layer in it: nothing would be measured.")
    constants = {op.get_friendly_name(): op for op in ops if op.get_type_name() == "Constant"}
    return {
        "inputs": [_input(port) for port in model.inputs],
        "outputs": [
            {"name": _name(port), "dtype": _dtype(port), "shape": _shape(port)}
            for port in model.outputs
        ],
        "weights": sum(
            math.prod(op.output(0).shape)
            for op in constants.values()
            if op.output(0).element_type.get_type_name() in {*_STORED, *_NARROW}
        ),
        "precision": _precision(ops),
        "operators": len(ops),
        "beside": [str(weights)] if weights.is_file() else [],
    }


def open_graph(path: Path) -> Any:
    """Return the engine's model of a graph, or raise FileRefusedError."""
    weights = weights_beside(path)
    try:
        return openvino.Core().read_model(str(path))
    except RuntimeError as error:
        begins = path.open("rb").read(_BEGINS)
        if b"<net" not in begins:
            raise FileRefusedError("It is XML, and no OpenVINO graph.") from error
        if not weights.is_file():
            raise FileRefusedError(
                f"The file {weights.name} with its weights is not beside it.",
                "Copy it into the same folder.",
            ) from error
        lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
        raise FileRefusedError(
            f"OpenVINO cannot read it: {lines[-1][:200].rstrip('.') if lines else 'no message'}.",
            "A part may be missing: copy the graph and its .bin again, or export it again.",
        ) from error


def _input(port: Any) -> dict[str, Any]:
    name = _name(port)
    dtype = _dtype(port)
    if dtype == "str":
        raise refuse_text(name)
    if port.partial_shape.rank.is_dynamic:
        raise refuse_rank(name)
    ranges = _Ranges(port)
    values = ranges.of(ranges.key, name, dtype)
    return {"name": name, "dtype": dtype, "shape": _shape(port), **values}


def _name(port: Any) -> str:
    return str(port.any_name if port.names else port.get_node().get_friendly_name())


def _dtype(port: Any) -> str:
    try:
        return str(port.element_type.to_dtype())
    except Exception:  # of types that NumPy has not, by version of OpenVINO
        return str(port.element_type.get_type_name())


def _shape(port: Any) -> list[int | str]:
    if port.partial_shape.rank.is_dynamic:
        return []
    return [size.get_length() if size.is_static else "" for size in port.partial_shape]


def _precision(ops: Any) -> str:
    names = {op.get_type_name() for op in ops}
    if names & _QUANTISES:
        return "int8"
    counted: dict[str, int] = {}
    for op in ops:
        if op.get_type_name() in _PRODUCTS:
            for value in op.input_values():
                kind, size = _constant(value.get_node())
                if kind:
                    counted[kind] = counted.get(kind, 0) + size
    return max(counted, key=lambda kind: counted[kind], default="fp32")


def _constant(node: Any) -> tuple[str, int]:
    for _ in range(8):  # Convert, Subtract, Multiply, Reshape: a compressed weight has no more
        if node.get_type_name() == "Constant":
            kind = node.output(0).element_type.get_type_name()
            known: Mapping[str, str] = {**_STORED, **dict.fromkeys(_NARROW, "int8")}
            return known.get(kind, ""), math.prod(node.output(0).shape)
        if node.get_type_name() not in {"Convert", "Subtract", "Multiply", "Reshape", "Transpose"}:
            return "", 0
        node = node.input_value(0).get_node()
    return "", 0

"""OpenVINO graphs: inputs and outputs, their values, and precision.

OpenVINO maps the weights next to the graph and reads none of them. Imports openvino: import this
module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openvino

from accelbench.catalog.file_models.given_inputs import (
    MaskEffect,
    drawn_as_mask,
    drawn_of_type,
    of_choice,
    of_equality,
    of_factor,
)
from accelbench.catalog.file_models.kinds import FileRefusedError, weights_beside
from accelbench.core.visible import in_quotes

#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "Convert", "Reshape", "Unsqueeze", "Squeeze", "Slice", "StridedSlice", "Transpose", "Broadcast",
    "Tile", "Split", "VariadicSplit", "ConvertLike", "Identity",
}  # fmt: skip
_SAME = {*_PASSES_ON, "Gather", "GatherElements", "GatherND"}
_JOINS = {"LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr"}
_SDPA, _MASK_OF_SDPA = "ScaledDotProductAttention", 3
_DEEPEST = 64


def range_of(port: Any, name: str, dtype: str) -> dict[str, Any]:
    """Return the values of an input, as in `drawn_of_type`."""
    whole = dtype.startswith(("int", "uint"))
    rows = _rows(port) if whole else None
    if rows is None and (whole or dtype in {"bool", "boolean"}):
        as_mask = _Masks(port).drawn()
        if as_mask is not None:
            return dict(as_mask)
    return drawn_of_type(name, dtype, rows)


def _readers(output: Any) -> Iterator[tuple[Any, int]]:
    for target in output.get_target_inputs():
        yield target.get_node(), target.get_index()


def _key(output: Any) -> str:
    return f"{output.get_node().get_friendly_name()}:{output.get_index()}"


class _Masks:
    """An input, followed to where it masks."""

    def __init__(self, port: Any) -> None:
        first = port.get_node().output(0)
        self._first = _key(first)
        self._outputs = {self._first: first}

    def drawn(self) -> Mapping[str, Any] | None:
        """Return its values if it is a mask."""
        return drawn_as_mask(self._first, self._effects)

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for node, place in _readers(self._outputs[read]):
            effect = _effect(node, place)
            made = node.outputs() if effect in {MaskEffect.SAME, MaskEffect.TURNED} else []
            self._outputs |= {_key(output): output for output in made}
            yield effect, [_key(output) for output in made]


def _effect(node: Any, place: int) -> MaskEffect | None:
    kind = node.get_type_name()
    if kind == "Select" and place == 0:
        return of_choice(_scalar(node.input_value(1)), _scalar(node.input_value(2)))
    if kind == _SDPA and place == _MASK_OF_SDPA:
        truth = node.input_value(place).get_element_type().get_type_name() == "boolean"
        return MaskEffect.KEEPS if truth else None
    if (kind in _SAME and place == 0) or kind in _JOINS:
        return MaskEffect.SAME
    if kind in {"LogicalNot", "BitwiseNot"}:
        return MaskEffect.TURNED
    if node.get_input_size() == 2:
        return _of_pair(kind, place, _scalar(node.input_value(1 - place)))
    return None


def _of_pair(kind: str, place: int, other: float | None) -> MaskEffect | None:
    if kind == "Multiply":
        return of_factor(other)
    if kind in {"Equal", "NotEqual"}:
        return of_equality(other, unequal=kind == "NotEqual")
    if kind == "Greater" and place == 0 and other == 0.0:
        return MaskEffect.SAME
    return MaskEffect.TURNED if kind == "Subtract" and place == 1 and other == 1.0 else None


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


def _rows(port: Any) -> int | None:
    found: list[int] = []
    ports, seen = [port.get_node().output(0)], set[str]()
    while ports:
        for node, place in _readers(ports.pop()):
            rows = _table(node, place)
            if rows:
                found.append(rows)
            elif (
                place == 0
                and node.get_type_name() in _PASSES_ON
                and node.get_friendly_name() not in seen
            ):
                seen.add(node.get_friendly_name())
                ports += node.outputs()
    return min(found, default=None)


def _table(node: Any, place: int) -> int | None:
    if node.get_type_name() != "Gather" or place != 1:
        return None
    axis_node = node.input_value(2).get_node()
    shape = node.input_value(0).partial_shape
    if axis_node.get_type_name() != "Constant" or shape.is_dynamic:
        return None
    axis = int(axis_node.data.reshape(-1)[0])
    sizes = list(shape.to_shape())
    return int(sizes[axis]) if -len(sizes) <= axis < len(sizes) else None


#: Within so many bytes a graph says that it is one, behind what a licence may take.
_BEGINS = 2**16
_ENDS = {"Parameter", "Result", "Constant"}
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
    model = _read(path, weights)
    ops = model.get_ordered_ops()
    if all(op.get_type_name() in _ENDS for op in ops):
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


def _read(path: Path, weights: Path) -> Any:
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
        raise FileRefusedError(
            f"Its input {in_quotes(name)} takes text, which is not drawn.",
            "Measure the part behind it: export the model without that step.",
        )
    if port.partial_shape.rank.is_dynamic:
        raise FileRefusedError(
            f"Its input {in_quotes(name)} does not say how many axes it has.",
            "Export the model with the rank of each input.",
        )
    return {
        "name": name,
        "dtype": dtype,
        "shape": _shape(port),
        **range_of(port, name, dtype),
    }


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

"""What an OpenVINO graph is: its inputs and outputs, what they may hold, what it is stored in.

OpenVINO maps the weights beside the graph and reads none of them.

Imports openvino: import this module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openvino

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.catalog.file_models.openvino_ranges import range_of
from accelbench.core.visible import in_quotes

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
    """What a file says of itself.

    Raises:
        FileRefusedError: it is no whole graph, or one that cannot be fed.
    """
    weights = path.with_suffix(".bin")
    model = _read(path, weights)
    ops = model.get_ordered_ops()
    if all(op.get_type_name() in _ENDS for op in ops):
        raise FileRefusedError("There is no layer in it: nothing would be measured.")
    if not model.inputs:
        raise FileRefusedError("It takes no input: what it gives is a constant.")
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
    if not weights.resolve().is_relative_to(path.parent.resolve()):
        raise FileRefusedError(
            f"Its weights {weights.name} lie outside its own folder: they are not read.",
            "Put the file of weights beside the graph.",
        )
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
    """What most weights of its products are stored in."""
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
    """What a product's weight is stored in, behind what widens it; "" of what is no weight."""
    for _ in range(8):  # Convert, Subtract, Multiply, Reshape: a compressed weight has no more
        if node.get_type_name() == "Constant":
            kind = node.output(0).element_type.get_type_name()
            known: Mapping[str, str] = {**_STORED, **dict.fromkeys(_NARROW, "int8")}
            return known.get(kind, ""), math.prod(node.output(0).shape)
        if node.get_type_name() not in {"Convert", "Subtract", "Multiply", "Reshape", "Transpose"}:
            return "", 0
        node = node.input_value(0).get_node()
    return "", 0

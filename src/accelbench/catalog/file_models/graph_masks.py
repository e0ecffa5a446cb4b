"""Inputs of an ONNX graph that it uses as masks, and which value of them leaves nothing out.

Imports onnx: import this module only in the process that looks at a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnx import numpy_helper

from accelbench.catalog.file_models.mask_effects import (
    MaskEffect,
    drawn_as_mask,
    of_choice,
    of_equality,
    of_factor,
)

#: Operators whose result holds the values of their first input, as numbers or as truth.
_SAME = {
    "Cast", "CastLike", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice",
    "Transpose", "Expand", "Tile", "Gather", "And", "Or",
}  # fmt: skip
_DEEPEST = 64
Readers = Mapping[str, Sequence[tuple[Any, int]]]


class Masks:
    """Masks among a graph's inputs."""

    def __init__(self, graph: Any, readers: Readers) -> None:
        self._readers = readers
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._made = {name: node for node in graph.node for name in node.output}

    def drawn(self, name: str) -> Mapping[str, Any] | None:
        """How an input is filled that is a mask; None where it is none."""
        return drawn_as_mask(name, self._effects)

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for node, place in self._readers.get(read, ()):
            yield self._effect(node, place), node.output

    def _effect(self, node: Any, place: int) -> MaskEffect | None:
        """What an operator does with what it reads at a place."""
        kind = node.op_type
        if kind == "Where" and place == 0:
            return of_choice(self._scalar(node.input[1]), self._scalar(node.input[2]))
        if kind in _SAME and (place == 0 or kind in {"And", "Or"}):
            return MaskEffect.SAME
        if kind == "Not":
            return MaskEffect.TURNED
        other = self._scalar(node.input[1 - place]) if len(node.input) == 2 and place < 2 else None
        if kind == "Mul":
            return of_factor(other)
        if kind == "Equal":
            return of_equality(other)
        if kind == "Greater" and place == 0 and other == 0.0:
            return MaskEffect.SAME
        if kind == "Sub" and place == 1 and other == 1.0:
            return MaskEffect.TURNED
        return None

    def _scalar(self, name: str, depth: int = 0) -> float | None:
        """The one value that a constant holds; None of anything else."""
        if name in self._tensors:
            return _value(self._tensors[name])
        node = self._made.get(name)
        if node is None or depth > _DEEPEST:
            return None
        if node.op_type in {"Constant", "ConstantOfShape"}:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    return _value(attribute.t)
                if attribute.name in {"value_float", "value_int"}:
                    return float(attribute.f or attribute.i)
            return None
        if node.op_type in _SAME - {"Gather", "And", "Or"} and node.input:
            return self._scalar(node.input[0], depth + 1)
        return None


def _value(tensor: Any) -> float | None:
    """Of a tensor of one value that lies in the graph."""
    if any(size != 1 for size in tensor.dims) or tensor.external_data:
        return None
    try:
        values = numpy_helper.to_array(tensor).reshape(-1)
        return float(values[0]) if len(values) == 1 else None
    except (TypeError, ValueError):
        return None

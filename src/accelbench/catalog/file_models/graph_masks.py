"""Inputs of an ONNX graph that it uses as masks, and which value of them leaves nothing out.

Exporters write a mask in a few ways: `(1 - mask) * -10000` is added to scores, or `Where` puts a
very negative number in their place. Which value leaves out is followed from the input to there.

Imports onnx: import this module only in the process that looks at a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import numpy_helper

#: What is as negative as this is added to scores to leave them out: -10000, or the least there is.
_LEAVES_OUT = -1e3
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

    def lets_through(self, name: str) -> int | None:
        """The value of an input that leaves nothing out, 0 or 1; None where it is no mask."""
        steps, seen = [(name, True)], {(name, True)}
        while steps:
            read, same = steps.pop()
            for node, place in self._readers.get(read, ()):
                leaves_out = self._leaves_out(node, place)
                if leaves_out is not None:
                    return int(leaves_out != same)
                turned = self._turned(node, place)
                if turned is None:
                    continue
                for output in node.output:
                    step = (output, same != turned)
                    if output and step not in seen:
                        seen.add(step)
                        steps.append(step)
        return None

    def _turned(self, node: Any, place: int) -> bool | None:
        """Whether a result is the other way round than what is read; None where it is neither."""
        kind = node.op_type
        if kind in _SAME and (place == 0 or kind in {"And", "Or"}):
            return False
        if kind == "Not":
            return True
        other = self._scalar(node.input[1 - place]) if len(node.input) == 2 and place < 2 else None
        if kind == "Equal" and other in (0.0, 1.0):
            return other == 0.0
        if kind == "Greater" and place == 0 and other == 0.0:
            return False
        if kind == "Sub" and place == 1 and other == 1.0:
            return True
        return None

    def _leaves_out(self, node: Any, place: int) -> bool | None:
        """Whether what is true, or 1, leaves out here; None where nothing is left out."""
        if node.op_type == "Where" and place == 0:
            for branch in (1, 2):
                value = self._scalar(node.input[branch])
                if value is not None and value <= _LEAVES_OUT:
                    return branch == 1
        if node.op_type == "Mul" and len(node.input) == 2:
            value = self._scalar(node.input[1 - place])
            if value is not None and value <= _LEAVES_OUT:
                return True
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

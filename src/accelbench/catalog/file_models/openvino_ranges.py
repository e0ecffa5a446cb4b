"""What the inputs of an OpenVINO graph may hold, as the graph itself tells it.

A whole number that names a row is below the rows of its table; a mask is filled with what leaves
nothing out.

Imports nothing of openvino: nodes are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelbench.catalog.file_models.input_ranges import drawn_of_type
from accelbench.catalog.file_models.mask_effects import (
    MaskEffect,
    drawn_as_mask,
    of_choice,
    of_equality,
    of_factor,
)

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
    """What an input may hold, as `drawn_of_type` has it."""
    whole = dtype.startswith(("int", "uint"))
    rows = _rows(port) if whole else None
    if rows is None and (whole or dtype in {"bool", "boolean"}):
        as_mask = _Masks(port).drawn()
        if as_mask is not None:
            return dict(as_mask)
    return drawn_of_type(name, dtype, rows)


def _readers(output: Any) -> Iterator[tuple[Any, int]]:
    """The operators that read a value, each with the place where it does."""
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
        """How it is filled where it is a mask."""
        return drawn_as_mask(self._first, self._effects)

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for node, place in _readers(self._outputs[read]):
            effect = _effect(node, place)
            made = node.outputs() if effect in {MaskEffect.SAME, MaskEffect.TURNED} else []
            self._outputs |= {_key(output): output for output in made}
            yield effect, [_key(output) for output in made]


def _effect(node: Any, place: int) -> MaskEffect | None:
    """What an operator does with what it reads at a place."""
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
    """What an operator of two values does with the one, beside another that is a number."""
    if kind == "Multiply":
        return of_factor(other)
    if kind in {"Equal", "NotEqual"}:
        return of_equality(other, unequal=kind == "NotEqual")
    if kind == "Greater" and place == 0 and other == 0.0:
        return MaskEffect.SAME
    return MaskEffect.TURNED if kind == "Subtract" and place == 1 and other == 1.0 else None


def _scalar(output: Any) -> float | None:
    """The one value that a constant holds; None of anything else."""
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
    """Rows of the smallest table that is read at an input's numbers."""
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

"""What the inputs of a TensorFlow Lite model may hold, as its operators tell it.

A whole number that names a row is below the rows of its table; a mask is filled with what leaves
nothing out.

Imports ai_edge_litert: import this module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from accelbench.catalog.file_models.input_ranges import drawn_of_type
from accelbench.catalog.file_models.mask_effects import (
    MaskEffect,
    drawn_as_mask,
    of_choice,
    of_equality,
    of_factor,
)

#: Operators that look a row up: input with its number, and that of the table.
_LOOKUPS = {"GATHER": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "CAST", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "SLICE", "STRIDED_SLICE", "TRANSPOSE", "TILE",
    "BROADCAST_TO", "SPLIT", "SPLIT_V", "UNPACK",
}  # fmt: skip
_JOINS = {"LOGICAL_AND", "LOGICAL_OR"}
_PAIRS = {"MUL", "EQUAL", "NOT_EQUAL", "GREATER", "SUB"}
_VALUES = {
    schema.TensorType.FLOAT32: "<f4", schema.TensorType.FLOAT16: "<f2",
    schema.TensorType.INT32: "<i4", schema.TensorType.INT64: "<i8",
    schema.TensorType.BOOL: "?",
}  # fmt: skip


class TfliteRanges:
    """Ranges of values of a model's inputs."""

    def __init__(self, model: Any, codes: Sequence[str]) -> None:
        self._model, self._graph = model, model.subgraphs[0]
        self._readers: dict[int, list[tuple[str, Any, int]]] = {}
        for operator in self._graph.operators:
            for place, index in enumerate(operator.inputs):
                reader = (codes[operator.opcodeIndex], operator, place)
                self._readers.setdefault(int(index), []).append(reader)

    def of(self, index: int, name: str, dtype: str) -> dict[str, Any]:
        """What an input may hold, as `drawn_of_type` has it."""
        whole = dtype.startswith(("int", "uint"))
        rows = self._rows(index) if whole else None
        if rows is None and (whole or dtype == "bool"):
            as_mask = drawn_as_mask(str(index), self._effects)
            if as_mask is not None:
                return dict(as_mask)
        return drawn_of_type(name, dtype, rows)

    def _rows(self, index: int) -> int | None:
        """Rows of the smallest table that is read at these numbers."""
        found: list[int] = []
        indices, seen = [index], {index}
        while indices:
            for code, operator, place in self._readers.get(indices.pop(), ()):
                number, table = _LOOKUPS.get(code, (None, 0))
                if place == number:
                    shape = _shape(self._graph.tensors[operator.inputs[table]])
                    axis = getattr(operator.builtinOptions, "axis", 0)
                    if -len(shape) <= axis < len(shape):
                        found.append(shape[axis])
                elif place == 0 and code in _PASSES_ON:
                    more = [int(made) for made in operator.outputs if int(made) not in seen]
                    seen.update(more)
                    indices += more
        return min((rows for rows in found if rows > 0), default=None)

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for code, operator, place in self._readers.get(int(read), ()):
            made = [str(int(index)) for index in operator.outputs]
            yield self._effect(code, operator, place), made

    def _effect(self, code: str, operator: Any, place: int) -> MaskEffect | None:
        """What an operator does with what it reads at a place."""
        inputs = operator.inputs
        if code in {"SELECT", "SELECT_V2"} and place == 0:
            return of_choice(self._scalar(inputs[1]), self._scalar(inputs[2]))
        if (code in {*_PASSES_ON, "GATHER", "GATHER_ND"} and place == 0) or code in _JOINS:
            return MaskEffect.SAME
        if code == "LOGICAL_NOT":
            return MaskEffect.TURNED
        if code not in _PAIRS:
            return None
        other = self._scalar(inputs[1 - place])
        if code == "MUL":
            return of_factor(other)
        if code in {"EQUAL", "NOT_EQUAL"}:
            return of_equality(other, unequal=code == "NOT_EQUAL")
        if code == "GREATER":
            return MaskEffect.SAME if place == 0 and other == 0.0 else None
        return MaskEffect.TURNED if place == 1 and other == 1.0 else None

    def _scalar(self, index: int) -> float | None:
        """The one value that a constant holds; None of anything else."""
        tensor = self._graph.tensors[index]
        content = self._model.buffers[tensor.buffer].data
        kind = _VALUES.get(tensor.type)
        if content is None or kind is None or math.prod(_shape(tensor)) != 1:
            return None
        values = np.asarray(content, np.uint8).tobytes()
        if len(values) < np.dtype(kind).itemsize:
            return None
        return float(np.frombuffer(values, kind, 1)[0])


def _shape(tensor: Any) -> list[int]:
    return [] if tensor.shape is None else [int(size) for size in tensor.shape]

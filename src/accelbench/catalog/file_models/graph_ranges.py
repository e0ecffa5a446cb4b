"""What the inputs of an ONNX graph may hold, as the graph itself tells it.

A whole number that names a row is below the rows of its table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.catalog.file_models.graph_masks import Masks
from accelbench.catalog.file_models.input_ranges import drawn_of_type

#: Operators that look a row up: input with its number, input that is the table, its axis's default.
_LOOKUPS = {"Gather": (1, 0), "GatherElements": (1, 0)}
#: Of a fused operator which inputs are numbers of rows, and where the table of each is.
_FUSED = {"EmbedLayerNormalization": {0: 2, 1: 4}}
#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Transpose",
    "Expand", "Tile", "Split", "Dropout", "CastLike",
}  # fmt: skip


class Ranges:
    """Ranges of values of a graph's inputs."""

    def __init__(self, model: Any) -> None:
        self._graph = _without_functions(model)
        self._readers: dict[str, list[tuple[Any, int]]] = {}
        for node in self._graph.node:
            for place, name in enumerate(node.input):
                self._readers.setdefault(name, []).append((node, place))
        self._shapes = _shapes(self._graph)
        self._masks = Masks(self._graph, self._readers)

    def of(self, name: str, dtype: str) -> dict[str, Any]:
        """What an input may hold, as `drawn_of_type` has it."""
        whole = dtype.startswith(("int", "uint"))
        rows = self._rows(name) if whole else None
        if rows is None and (whole or dtype == "bool"):
            as_mask = self._masks.drawn(name)
            if as_mask is not None:
                return dict(as_mask)
        return drawn_of_type(name, dtype, rows)

    def _rows(self, name: str) -> int | None:
        """Rows of the smallest table that is read at these numbers."""
        found: list[int] = []
        names, seen = [name], {name}
        while names:
            for node, place in self._readers.get(names.pop(), ()):
                rows = self._table(node, place)
                if rows:
                    found.append(rows)
                elif place == 0 and node.op_type in _PASSES_ON:
                    more = [output for output in node.output if output and output not in seen]
                    seen.update(more)
                    names += more
        return min(found, default=None)

    def _table(self, node: Any, place: int) -> int | None:
        if node.op_type in _FUSED:
            table = _FUSED[node.op_type].get(place)
            shape = None if table is None else self._shape_at(node, table)
            return shape[0] if shape else None
        number, table = _LOOKUPS.get(node.op_type, (None, 0))
        if place != number:
            return None
        shape = self._shape_at(node, table)
        axis = next((int(a.i) for a in node.attribute if a.name == "axis"), 0)
        if not shape or not -len(shape) <= axis < len(shape):
            return None
        return shape[axis] or None

    def _shape_at(self, node: Any, place: int) -> tuple[int, ...] | None:
        return self._shapes.get(node.input[place]) if place < len(node.input) else None


def _without_functions(model: Any) -> Any:
    """The graph with functions of its own in place; as it is where that is not possible."""
    if not len(model.functions):
        return model.graph
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model).graph
    except Exception:
        return model.graph


def _shapes(graph: Any) -> Mapping[str, tuple[int, ...]]:
    """Shapes of tables: weights, and what only changes the type of one."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    shapes[node.output[0]] = tuple(attribute.t.dims)
        elif node.op_type in {"DequantizeLinear", "Cast", "Identity"} and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        elif node.op_type == "Transpose" and node.input[0] in shapes:
            shape = shapes[node.input[0]]
            order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
            order = list(range(len(shape)))[::-1] if order is None else order
            if sorted(order) == list(range(len(shape))):
                shapes[node.output[0]] = tuple(shape[i] for i in order)
    return shapes

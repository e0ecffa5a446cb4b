"""Names of a graph that tools have made, such that an engine can open it and optimise it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def tidy(model: Any) -> None:
    """Drop what is there twice, and give constants names that no engine makes."""
    once(model)
    renamed(model)


def once(model: Any) -> int:
    """Drop nodes whose outputs are there already; how many.

    Of a value that two nodes read in fp32, the converter to fp16 writes the same cast twice,
    and ONNX Runtime calls the graph invalid: two nodes with same node name (DETR's, whose
    positions are sums over the image).
    """
    made: set[str] = set()
    twice = []
    for node in model.graph.node:
        names = {name for name in node.output if name}
        if names and names <= made:
            twice.append(node)
        made |= names
    for node in twice:
        model.graph.node.remove(node)
    return len(twice)


def renamed(model: Any) -> int:
    """Give the constants of a folded graph new names; how many.

    ONNX Runtime folds by its own optimiser, which calls what it adds gemm_input_shape. Opening
    what it has written, it adds others of that name and stops: "Attempt to replace the
    existing tensor" (BERT's and RAG's, in fp16 for one batch size).
    """
    graph = model.graph
    shown = {value.name for value in (*graph.input, *graph.output)}
    new = {
        tensor.name: f"{tensor.name}_kept"
        for tensor in graph.initializer
        if tensor.name not in shown
    }
    for entry in (*graph.initializer, *graph.value_info):
        entry.name = new.get(entry.name, entry.name)
    for node in _nodes(graph):
        for place, name in enumerate(node.input):
            if name in new:
                node.input[place] = new[name]
    return len(new)


def _nodes(graph: Any) -> Iterator[Any]:
    """Those of a graph, and of the branches and loops within it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)

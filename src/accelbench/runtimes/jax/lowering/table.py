"""The table of operators: what each ATen name means in JAX.

The functions take what the node of the graph takes (arrays for tensors, Python
values as they are) and need not care for the result's dtype: `lower` casts
every result to what torch says that it is. Shapes are static throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Function = Callable[..., Any]

#: By the operator's name in a graph, such as "aten.add.Tensor".
OPS: dict[str, Function] = {}

#: Operators that draw: `lower` hands a key of its own to each of their nodes.
RANDOM: set[str] = set()


def op(*names: str, random: bool = False) -> Callable[[Function], Function]:
    """Enter a function under these names of the operator library aten."""

    def enter(function: Function) -> Function:
        for name in names:
            full = name if name.startswith("transformers.") else f"aten.{name}"
            OPS[full] = function
            if random:
                RANDOM.add(full)
        return function

    return enter


def each(functions: Mapping[str, Function], *overloads: str) -> None:
    """Enter functions by their names, each under the same overloads."""
    for name, function in functions.items():
        op(*(f"{name}.{overload}" for overload in overloads))(function)

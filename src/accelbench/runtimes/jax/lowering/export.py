"""A torch module written down as a graph of ATen operators, all shapes settled.

torch.export runs the module once on tensors that have shapes and no values.
What it needs of Python (configs, loops, branches on shapes) is settled by that;
a branch on values cannot be, and is said to be the reason.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np
import torch

from accelbench.core.errors import UnsupportedError
from accelbench.runtimes.jax.lowering.table import OPS

# What torch.export would import when it is first called: 370 modules, 1.5 s and 35 MB of every
# model. It is torch's own affair, and may move.
with suppress(ImportError):
    import torch.export._trace

#: Kept whole where torch would take them apart: fewer nodes, and XLA gets the wide operations.
_WHOLE = ("scaled_dot_product_attention", "linear", "layer_norm", "dropout")

#: Python functions on sizes that stand in graphs beside the operators.
PLAIN = (operator.getitem, operator.eq, operator.ge, operator.le, operator.mul, operator.add)

_CHECKS = (
    "aten._assert_tensor_metadata",
    "aten._assert_scalar",
    "aten._assert_async",
    "aten.sym_constrain",
)


class Wrapped(torch.nn.Module):  # type: ignore[misc]  # mypy skips torch
    """A module that gives tensors by name, or a loss; what nobody asks for is dead code.

    Args:
        module: the model.
        after: takes its output and everything that was fed to what is wanted.
        labels: names of what is fed for `after` alone.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        after: Callable[[Any, Mapping[str, Any]], Any],
        labels: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self.module = module
        self._after = after
        self._labels = labels

    def forward(self, **fed: Any) -> Any:
        """Call the model with everything but the labels."""
        given = {name: value for name, value in fed.items() if name not in self._labels}
        return self._after(self.module(**given), fed)


def own_name(target: str | None) -> str:
    """A weight's name in the module that was wrapped."""
    return str(target).removeprefix("module.")


def exported(
    wrapped: Wrapped,
    inputs: Mapping[str, Any],
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> torch.export.ExportedProgram:
    """The module, in the mode and dtype that it is in, as operators that change nothing in place.

    Args:
        wrapped: the module.
        inputs: one batch as an example, whose shapes are the graph's. What is not a
            tensor is a constant of the graph.
        within: entered while the module's code runs.

    Raises:
        UnsupportedError: the graph depends on values, or on numbers drawn on the host, or
            has operators that the table lacks.
    """
    table = torch.export.default_decompositions()
    for name in _WHOLE:
        table.pop(getattr(torch.ops.aten, name).default, None)
    before = _host_chance()
    try:
        with torch.set_grad_enabled(wrapped.module.training), within():
            program = torch.export.export(wrapped, (), dict(inputs), strict=False)
        program = program.run_decompositions(table)
    except Exception as error:
        raise _not_exported(error) from error
    if _host_chance() != before:
        raise UnsupportedError(
            "host_random",
            "the model draws numbers with NumPy or Python: in a compiled step they"
            " would be the same every time",
            "Use --framework pytorch.",
        )
    _prune(program.graph_module.graph)
    _check(program.graph_module.graph)
    return program


def calls(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """The nodes that calculate."""
    return (node for node in graph.nodes if node.op == "call_function")


def _host_chance() -> tuple[Any, ...]:
    """Where the host's generators stand."""
    numbers = np.random.get_state(legacy=False)
    return str(numbers), random.getstate()


def _not_exported(error: Exception) -> UnsupportedError:
    lines = str(error).strip().splitlines()
    return UnsupportedError(
        "not_exported",
        f"torch.export cannot write the model down as a graph:"
        f" {type(error).__name__}: {lines[0][:200] if lines else ''}",
        "Use --framework pytorch.",
    )


def _prune(graph: torch.fx.Graph) -> None:
    """Take out the checks, and what only they needed."""
    for node in list(calls(graph)):
        if str(node.target).startswith(_CHECKS):
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _check(graph: torch.fx.Graph) -> None:
    used = {str(n.target) for n in calls(graph) if n.target not in PLAIN}
    missing = sorted(used - OPS.keys())
    if missing:
        raise UnsupportedError(
            "operator",
            f"the jax runtime has no counterpart of {', '.join(missing)}",
            "Use --framework pytorch.",
        )

"""A torch module as a JAX function: torch.export writes its graph down, which is walked once.

torch.export runs the module on tensors that have shapes and no values. What it needs of Python
(configs, loops, branches on shapes) is settled by that; a branch on values cannot be. The walk,
under jax.jit, replaces each ATen operator by the table's: nothing of torch runs in the compiled
function. Weights are handed in by name, so that one set of them serves the graphs of every shape.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind, TensorArgument

from accelbench.core.errors import UnsupportedError
from accelbench.engines.jax.lowering.operators import DTYPES, OPS, RANDOM, array, outputs_first

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

    `after` takes its output and everything that was fed; `labels` are fed for `after` alone.
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
        given = {name: value for name, value in fed.items() if name not in self._labels}
        return self._after(self.module(**given), fed)


def own_name(target: str | None) -> str:
    """Return a weight's name in the module that was wrapped."""
    return str(target).removeprefix("module.")


def exported(wrapped: Wrapped, inputs: Mapping[str, Any]) -> torch.export.ExportedProgram:
    """Return the module, in its mode and dtype, as operators that change nothing in place.

    The example's shapes are the graph's; inputs that are no tensors are its constants. Raises
    UnsupportedError if the graph depends on values, or on numbers drawn on the host, or has
    operators that the table lacks.
    """
    table = torch.export.default_decompositions()
    for name in _WHOLE:
        table.pop(getattr(torch.ops.aten, name).default, None)
    before = _host_chance()
    try:
        with torch.set_grad_enabled(wrapped.module.training):
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
    """Return the nodes that calculate."""
    return (node for node in graph.nodes if node.op == "call_function")


def _host_chance() -> tuple[Any, ...]:
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


Arrays = dict[str, jax.Array]

_CONVOLUTION = "aten.convolution.default"
_CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


@dataclass(frozen=True)
class Names:
    """The names of a module's weights, and how they lie."""

    canonical: Mapping[str, str]  # of every name: the first of the same weight
    trained: frozenset[str]  # those that a gradient is wanted of
    kernels: frozenset[str]  # of convolutions: kept with the outputs last

    @classmethod
    def of(cls, module: torch.nn.Module) -> Names:
        first: dict[int, str] = {}
        canonical, trained = {}, set()
        for name, weight in module.named_parameters(remove_duplicate=False):
            canonical[name] = first.setdefault(id(weight), name)
            if weight.requires_grad:
                trained.add(canonical[name])
        kernels = {
            canonical[f"{name}.weight"]
            for name, part in module.named_modules()
            if isinstance(part, _CONVOLUTIONS)
            and part.groups == 1
            and f"{name}.weight" in canonical  # else it is made of others at each step
        }
        return cls(canonical, frozenset(trained), frozenset(kernels))


def weights_of(
    module: torch.nn.Module, names: Names, where: Callable[[Sequence[int]], Any] = lambda _: None
) -> Arrays:
    """Return a module's weights, each where one of its shape lies; a shared one stands once.

    Each of torch's own is let go as soon as it is copied, so that the model is not held twice.
    The module keeps shapes: empty memory that nobody writes to takes none.
    """
    held = {}
    for name, weight in module.named_parameters():
        data = _outputs_last(weight.data) if name in names.kernels else weight.data
        held[name] = array(data, where(data.shape))
        weight.data = torch.empty_like(weight.data)
    return held


def _outputs_last(kernel: torch.Tensor) -> torch.Tensor:
    # As `outputs_last`, before it is on the device.
    return kernel.permute(*range(2, kernel.ndim), 1, 0)


@dataclass(frozen=True, eq=False)  # jax.jit knows a function by its identity
class Lowered:
    """A torch graph as a function of weights, buffers and inputs."""

    used: tuple[str, ...]  # the weights that the graph reads
    buffers: Arrays  # running statistics and constants, as they are at the start
    operators: tuple[str, ...]
    draws: bool  # whether anything in it depends on chance
    _graph: torch.fx.Graph = field(repr=False)
    _signature: ExportGraphSignature = field(repr=False)
    _home: Mapping[str, tuple[str, str]] = field(repr=False)  # a placeholder's: where, and name
    _kernels: frozenset[str] = field(repr=False)
    _tree: Any = field(repr=False)

    def __call__(
        self, weights: Arrays, buffers: Arrays, inputs: Arrays, key: jax.Array | None = None
    ) -> tuple[Any, Arrays]:
        """Return the module's outputs and its buffers afterwards; without a key nothing drops."""
        given = {"weights": weights, "buffers": buffers, "inputs": inputs}
        values: dict[torch.fx.Node, Any] = {}
        laid_out: dict[torch.fx.Node, jax.Array] = {}
        for number, node in enumerate(self._graph.nodes):
            if node.op == "placeholder":
                where, name = self._home.get(node.name, ("inputs", node.name))
                value = given[where].get(name)  # a constant of the graph has none
                if where == "weights" and name in self._kernels:
                    laid_out[node] = value
                    value = outputs_first(value)  # for others than convolutions; else dead code
                values[node] = value
            elif node.op == "call_function":
                own = None if key is None else (key, number)
                values[node] = _called(node, values, laid_out, own)
        (results,) = self._graph.output_node().args
        return self._given_back([values.get(r, r) for r in results], buffers)

    def compiled(self) -> Lowered:
        """Return what is needed once it is compiled: the graph is not, and is large."""
        return replace(self, _graph=torch.fx.Graph(), _home={})

    def _given_back(self, results: list[Any], buffers: Arrays) -> tuple[Any, Arrays]:
        outputs, renewed = [], dict(buffers)
        for spec, value in zip(self._signature.output_specs, results, strict=True):
            if spec.kind is OutputKind.USER_OUTPUT:
                outputs.append(value)
            elif spec.kind is OutputKind.BUFFER_MUTATION:
                renewed[own_name(spec.target)] = value
        return torch.utils._pytree.tree_unflatten(outputs, self._tree), renewed


def lower(wrapped: Wrapped, inputs: Mapping[str, Any], names: Names, device: Any = None) -> Lowered:
    """Export a module as `exported` does, and make a function of its graph."""
    program = exported(wrapped, inputs)
    graph, signature = program.graph_module.graph, program.graph_signature
    home: dict[str, tuple[str, str]] = {}
    buffers: Arrays = {}
    fed = iter([name for name, value in inputs.items() if isinstance(value, torch.Tensor)])
    held = {**program.constants, **program.state_dict}
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, TensorArgument):  # else a constant
                home[spec.arg.name] = ("inputs", next(fed))
        elif spec.kind is InputKind.PARAMETER:
            home[spec.arg.name] = ("weights", names.canonical[own_name(spec.target)])
        else:
            name = own_name(spec.target)
            home[spec.arg.name] = ("buffers", name)
            buffers[name] = array(held[str(spec.target)], device)
    reads = {n.name for n in graph.nodes if n.op == "placeholder" and n.users}
    used = {name for node, (kind, name) in home.items() if kind == "weights" and node in reads}
    return Lowered(
        used=tuple(sorted(used)),
        buffers=buffers,
        operators=tuple(sorted({str(n.target) for n in graph.nodes if n.op == "call_function"})),
        draws=any(_draws(node) for node in graph.nodes if node.op == "call_function"),
        _graph=graph,
        _signature=signature,
        _home=home,
        _kernels=names.kernels,
        _tree=program.call_spec.out_spec,
    )


#: Of operators that drop by chance: which argument says how much.
_PROBABILITY = {
    "aten.dropout.default": 1,
    "aten.native_dropout.default": 1,
    "aten.scaled_dot_product_attention.default": 4,
}


def _draws(node: torch.fx.Node) -> bool:
    # A dropout of nothing draws nothing.
    name = str(node.target)
    place = _PROBABILITY.get(name)
    if place is None:
        return name in RANDOM
    args, _ = placed(node.target, node.args, node.kwargs)
    return bool(args[place]) if place < len(args) else False


def _called(
    node: torch.fx.Node,
    values: Mapping[torch.fx.Node, Any],
    laid_out: Mapping[torch.fx.Node, jax.Array],
    key: tuple[jax.Array, int] | None,
) -> Any:
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    if node.target in PLAIN:
        return node.target(*args, **kwargs)
    args, kwargs = placed(node.target, args, kwargs)
    name = str(node.target)
    if name in RANDOM and key is not None:
        kwargs = {**kwargs, "key": jax.random.fold_in(*key)}
    if name == _CONVOLUTION and node.args[1] in laid_out:
        args = (args[0], laid_out[node.args[1]], *args[2:])
        kwargs = {**kwargs, "laid_out": True}
    return cast(OPS[name](*args, **kwargs), node.meta["val"])


def placed(
    target: torch._ops.OpOverload, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put arguments in places if torch's schema has them: its names need not be ours."""
    positional, rest = [*args], dict(named)
    for argument in target._schema.arguments[len(args) :]:
        if argument.kwarg_only or not rest:
            break
        positional.append(rest.pop(argument.name, argument.default_value))
    return tuple(positional), rest


def cast(result: Any, expected: Any) -> Any:
    """Return results in torch's dtypes, so that the rules of promotion are torch's."""
    if isinstance(expected, torch.Tensor):
        return result.astype(DTYPES[expected.dtype])
    if isinstance(expected, (list, tuple)):
        return [None if r is None else cast(r, e) for r, e in zip(result, expected, strict=True)]
    return result

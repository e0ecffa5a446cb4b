"""A torch module of a program of torch.export: its graph built again, node by node.

Not by `torch.export.load`, which runs code of the file (see exported_archive). The module calls the
same operators on the same weights and gives the same bits. Checks of sizes are left out:
unsupported sizes are refused before.

Imports torch: import this module only to build a model.
"""

from __future__ import annotations

import math
import operator
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from accelbench.models.file_models.exported_archive import (
    SIZES,
    UNTRACKED,
    ExportedArchive,
    StoredTensor,
    aten_name,
    names_in,
    output_names,
    refuse_nodes,
)
from accelbench.models.file_models.kinds import FileRefusedError

_TYPES = {
    1: torch.uint8, 2: torch.int8, 3: torch.int16, 4: torch.int32, 5: torch.int64,
    6: torch.float16, 7: torch.float32, 8: torch.float64, 9: torch.complex32, 10: torch.complex64,
    11: torch.complex128, 12: torch.bool, 13: torch.bfloat16, 28: torch.uint16, 34: torch.uint32,
    35: torch.uint64,
}  # fmt: skip
_MEMORY = {
    1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d,
    4: torch.preserve_format,
}  # fmt: skip
#: Checks that a program makes of its own values.
_CHECKS = {"_assert_tensor_metadata", "_assert_async", "_assert_scalar",
           "sym_constrain_range_for_size", "sym_constrain_range"}  # fmt: skip
_KEYWORD = 2


class ExportedModule(torch.nn.Module):  # type: ignore[misc]  # mypy skips torch
    """A program as a module that takes tensors by the names of its inputs.

    A node that names a type or a device follows the module when it is cast or moved.
    """

    def __init__(self, archive: ExportedArchive) -> None:
        super().__init__()
        module = archive.program["graph_module"]
        graph, signature = module["graph"], module["signature"]
        refuse_nodes(graph, list(names_in(graph["inputs"])))
        built = _Building(archive)
        self.program = built.whole(graph, signature)
        self.inputs = built.inputs
        self.outputs = output_names(module, len(built.outputs))
        self.computes_sizes = any(
            node.target is torch.ops.aten.sym_size.int for node in self.program.graph.nodes
        )
        self._stored = next((t.dtype for t in built.floats), torch.float32)
        self.register_buffer("kind", torch.zeros((), dtype=self._stored), persistent=False)

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        made = self.program(*[inputs[name] for name in self.inputs])
        return dict(zip(self.outputs, made, strict=True))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> ExportedModule:
        super()._apply(fn, recurse)
        dtype, device = self.kind.dtype, self.kind.device
        changed = False
        for node in self.program.graph.nodes:
            for values, place, value in _named(node):
                wanted = value
                if isinstance(value, torch.device):
                    wanted = device
                elif value is self._stored:
                    wanted = dtype
                if wanted != value:
                    _put(node, values, place, wanted)
                    changed = True
        self._stored = dtype
        if changed:
            self.program.recompile()
        return self


def _named(node: Any) -> Iterator[tuple[str, Any, Any]]:
    for where, entries in (("args", enumerate(node.args)), ("kwargs", node.kwargs.items())):
        for place, value in list(entries):
            if isinstance(value, (torch.dtype, torch.device)):
                yield where, place, value


def _put(node: Any, where: str, place: Any, value: Any) -> None:
    if where == "kwargs":
        node.kwargs = {**node.kwargs, place: value}
    else:
        node.args = (*node.args[:place], value, *node.args[place + 1 :])


class _Building:
    def __init__(self, archive: ExportedArchive) -> None:
        self._archive = archive
        self._root = torch.nn.Module()
        self._graph = torch.fx.Graph()
        self._storages: dict[str, torch.Tensor] = {}
        self._kept: dict[tuple[Any, ...], str] = {}
        self.floats: list[torch.Tensor] = []
        self.inputs: list[str] = []
        self.outputs: list[str] = []

    def whole(self, graph: Mapping[str, Any], signature: Mapping[str, Any]) -> Any:
        values: dict[str, Any] = {}
        given = [entry for spec in signature["input_specs"] for entry in spec.items()]
        with zipfile.ZipFile(self._archive.path) as members:
            for argument, (kind, body) in zip(graph["inputs"], given, strict=True):
                for name in names_in([argument]):
                    if kind == "user_input":
                        values[name] = self._graph.placeholder(f"input_{len(self.inputs)}")
                        self.inputs.append(name)
                    else:
                        tensor = self._archive.tensors[body[f"{kind}_name"]]
                        values[name] = self._graph.get_attr(self._weight(tensor, members))
        self._storages.clear()
        self._nodes(graph, values)
        self.outputs = [
            name for spec in signature["output_specs"] for name in _user_outputs(spec)
            if name in graph["tensor_values"]
        ]  # fmt: skip
        self._graph.output(tuple(values[name] for name in self.outputs))
        return torch.fx.GraphModule(self._root, self._graph)

    def _weight(self, tensor: StoredTensor, members: zipfile.ZipFile) -> str:
        key = (tensor.member, tensor.dtype, tensor.shape, tensor.strides, tensor.offset)
        if key in self._kept:
            return self._kept[key]
        flat = self._storages.get(tensor.member)
        if flat is None:
            numbers = self._archive.numbers(members, tensor)
            dtype = _TYPES[tensor.dtype]
            flat = torch.frombuffer(numbers, dtype=dtype) if numbers else torch.empty(0).to(dtype)
            self._storages[tensor.member] = flat
        value = flat.as_strided(tensor.shape, tensor.strides, tensor.offset)
        name = f"weight_{len(self._kept)}"
        if tensor.trained:
            parameter = torch.nn.Parameter(value, requires_grad=False)
            self._root.register_parameter(name, parameter)
        else:
            self._root.register_buffer(name, value)
        if value.is_floating_point():
            self.floats.append(value)
        self._kept[key] = name
        return name

    def _nodes(self, graph: Mapping[str, Any], values: dict[str, Any]) -> None:
        for node in graph["nodes"]:
            target = str(node["target"])
            if target == UNTRACKED:
                self._inline(node, values)
                continue
            if (aten := aten_name(target)) is not None and aten[0] in _CHECKS:
                continue
            function = _function(target)
            args, kwargs = _arguments(node, function, values)
            made = self._graph.call_function(function, tuple(args), kwargs)
            self._name(node["outputs"], made, values)

    def _inline(self, node: Mapping[str, Any], values: dict[str, Any]) -> None:
        _, part, *rest = (entry["arg"] for entry in node["inputs"])
        inner = part["as_graph"]["graph"]
        given = dict(zip(names_in(inner["inputs"]), (_value(a, values) for a in rest), strict=True))
        self._nodes(inner, given)
        made = [given[name] for name in names_in(inner["outputs"])]
        values.update(zip(names_in(node["outputs"]), made, strict=True))

    def _name(self, outputs: Any, made: Any, values: dict[str, Any]) -> None:
        if len(outputs) == 1:
            ((kind, body),) = outputs[0].items()
            if kind == "as_tensors":
                for place, tensor in enumerate(body):
                    values[tensor["name"]] = self._item(made, place)
                return
            for name in names_in(outputs):
                values[name] = made
            return
        for place, output in enumerate(outputs):
            self._name([output], self._item(made, place), values)

    def _item(self, made: Any, place: int) -> Any:
        return self._graph.call_function(operator.getitem, (made, place))


def _user_outputs(spec: Mapping[str, Any]) -> list[str]:
    ((_, body),) = spec.items()
    arg = body["arg"]
    return [arg["name"]] if "name" in arg else list(names_in([arg]))


def _function(target: str) -> Callable[..., Any]:
    aten = aten_name(target)
    if aten is None:
        assert target in SIZES  # as refuse_nodes has seen
        library, _, name = target.partition(".")
        where: Any = {"_operator": operator, "math": math, "torch": torch}[library]
        found: Callable[..., Any] = getattr(where, name)
        return found
    overload = getattr(getattr(torch.ops.aten, aten[0], None), aten[1], None)
    # Operators of TorchScript are called aten, too: they are not in the dispatcher.
    if not isinstance(overload, torch._ops.OpOverload) or not torch._C._dispatch_has_kernel(
        overload.name()
    ):
        raise FileRefusedError(
            f"This PyTorch, {torch.__version__}, has no operator aten.{aten[0]}.{aten[1]}.",
            "Save it again with this PyTorch, or install the one that it was saved with.",
        )
    operation: Callable[..., Any] = overload
    return operation


def _arguments(
    node: Mapping[str, Any], function: Any, values: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = list[Any](), dict[str, Any]()
    schema = getattr(function, "_schema", None)
    alone = {entry.name for entry in schema.arguments if entry.kwarg_only} if schema else set()
    for entry in node["inputs"]:
        value = _value(entry["arg"], values)
        if schema is not None and (entry.get("kind") == _KEYWORD or entry["name"] in alone):
            kwargs[entry["name"]] = value
        else:
            args.append(value)
    return args, kwargs


def _value(argument: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    ((kind, body),) = argument.items()
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple(body)
    if kind == "as_tensor":
        return values[body["name"]]
    if kind in {"as_sym_int", "as_sym_float", "as_sym_bool"}:
        return _size(body, values)
    if kind in {"as_sym_ints", "as_sym_floats", "as_sym_bools"}:
        return [_size(entry, values) for entry in body]
    if kind == "as_tensors":
        return [values[tensor["name"]] for tensor in body]
    if kind == "as_nested_tensors":
        return [[values[tensor["name"]] for tensor in tensors] for tensors in body]
    if kind == "as_optional_tensor":
        return _value(body, values)
    assert kind == "as_optional_tensors", kind  # as refuse_nodes has seen
    return [_value(entry, values) for entry in body]


def _size(body: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    return values[body["as_name"]] if "as_name" in body else next(iter(body.values()))


_SIMPLE: Mapping[str, Callable[[Any], Any]] = {
    "as_none": lambda _: None,
    "as_int": int,
    "as_float": float,
    "as_bool": bool,
    "as_string": str,
    "as_ints": list,
    "as_floats": list,
    "as_bools": list,
    "as_strings": list,
    "as_scalar_type": lambda body: _TYPES[body],
    "as_memory_format": lambda body: _MEMORY[body],
    "as_layout": lambda _: torch.strided,
    "as_device": lambda _: torch.device("cpu"),  # it follows the module
    "as_complex": lambda body: complex(body["real"], body["imag"]),
}

"""ONNX files: inputs and outputs, their values, precision, and unknown operators.

Nothing is run, and weights are not read: their claims are compared with the bytes in the graph and
next to it. Imports onnx: import this module only in the process that looks at a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.given_inputs import (
    InputRanges,
    MaskEffect,
    choice_effect,
    pair_effect,
    refuse_rank,
)
from accelbench.models.file_models.kinds import FileRefusedError

#: Domains of operators that ONNX Runtime brings beside ONNX's own.
_OF_ONNX_RUNTIME = "com.microsoft"
_DEFAULT = "ai.onnx"
#: So many are named.
_MOST = 20


def custom_operators(model: Any, nodes: Iterable[Any]) -> list[str]:
    """Return operators that their owner's code must bring, as domain:name, each once."""
    own = {(function.domain, function.name) for function in model.functions}
    inner = (node for function in model.functions for node in function.node)
    found: dict[str, None] = {}
    for node in (*nodes, *inner):
        key = (node.domain, node.op_type)
        if key not in own and not _is_defined(*key):
            found[f"{node.domain or _DEFAULT}:{node.op_type}"] = None
    return sorted(found)[:_MOST]


def _is_defined(domain: str, name: str) -> bool:
    domain = "" if domain == _DEFAULT else domain
    if onnx.defs.has(name, domain):
        return True
    known = _runtime_operators()
    # Where ONNX Runtime is not here, nobody says what it defines.
    return domain.startswith(_OF_ONNX_RUNTIME) if known is None else (domain, name) in known


def _runtime_operators() -> set[tuple[str, str]] | None:
    if not _schemas:
        try:
            from onnxruntime.capi import onnxruntime_pybind11_state as state

            _schemas.append({(s.domain, s.name) for s in state.get_all_operator_schema()})
        except (ImportError, AttributeError):
            _schemas.append(None)
    return _schemas[0]


#: Asked once: there are some hundreds of them.
_schemas: list[set[tuple[str, str]] | None] = []


#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Transpose",
    "Expand", "Tile", "Split", "Dropout", "CastLike",
}  # fmt: skip
#: Operators whose result holds the values of their first input, as numbers or as truth.
_SAME = {*_PASSES_ON - {"Split", "Dropout"}, "Gather", "And", "Or"}
_PAIRS = {"Mul": "mul", "Equal": "eq", "Greater": "gt", "Sub": "sub"}
#: Operators that look a row up: input with its number, input that is the table, its axis's default.
_LOOKUPS = {"Gather": (1, 0), "GatherElements": (1, 0)}
#: Of a fused operator which inputs are numbers of rows, and where the table of each is.
_FUSED = {"EmbedLayerNormalization": {0: 2, 1: 4}}
_DEEPEST_CONSTANT = 64


class Ranges(InputRanges):
    """Values of an ONNX graph's inputs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        graph = _inline_functions(model)
        for node in graph.node:
            for place, name in enumerate(node.input):
                self._note_reader(name, node, place)
        self._shapes = _shapes(graph)
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._makers = {name: node for node in graph.node for name in node.output}

    def _made(self, node: Any) -> Iterable[str]:
        made: Iterable[str] = node.output
        return made

    def _passes_on(self, node: Any, place: int) -> bool:
        return place == 0 and node.op_type in _PASSES_ON

    def _effect(self, node: Any, place: int) -> MaskEffect | None:
        kind = node.op_type
        if kind == "Where" and place == 0:
            return choice_effect(self._scalar(node.input[1]), self._scalar(node.input[2]))
        if kind in _SAME and (place == 0 or kind in {"And", "Or"}):
            return MaskEffect.SAME
        if kind == "Not":
            return MaskEffect.TURNED
        other = self._scalar(node.input[1 - place]) if len(node.input) == 2 and place < 2 else None
        return pair_effect(_PAIRS.get(kind, ""), place, other)

    def _scalar(self, name: str, depth: int = 0) -> float | None:
        if name in self._tensors:
            return _value(self._tensors[name])
        node = self._makers.get(name)
        if node is None or depth > _DEEPEST_CONSTANT:
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


def _value(tensor: Any) -> float | None:
    if any(size != 1 for size in tensor.dims) or tensor.external_data:
        return None
    try:
        values = numpy_helper.to_array(tensor).reshape(-1)
        return float(values[0]) if len(values) == 1 else None
    except (TypeError, ValueError):
        return None


def _inline_functions(model: Any) -> Any:
    if not len(model.functions):
        return model.graph
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model).graph
    except Exception:
        return model.graph


def _shapes(graph: Any) -> Mapping[str, tuple[int, ...]]:
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


#: More nodes, or deeper nesting of their bodies, than any model has.
_MOST_NODES = 1_000_000
_DEEPEST = 32
_MOST_RANK = 64
#: Types that are not fed.
_UNFED = {
    TensorProto.STRING: "text, which is not drawn",
    TensorProto.BFLOAT16: "bfloat16, which NumPy has not",
    TensorProto.COMPLEX64: "complex numbers",
    TensorProto.COMPLEX128: "complex numbers",
}
_FLOATS = {
    TensorProto.FLOAT: "fp32", TensorProto.DOUBLE: "fp64", TensorProto.FLOAT16: "fp16",
    TensorProto.BFLOAT16: "bf16",
}  # fmt: skip
_QUANTISES = {"DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger",
              "DynamicQuantizeLinear", "MatMulNBits", "QGemm", "QAttention"}  # fmt: skip
#: Products, whose weights say what most of a model's arithmetic is of.
_PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN"}


def open_graph(path: Path) -> Any:
    """Return a graph without its weights, or raise FileRefusedError."""
    try:
        return onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own, by version
        raise FileRefusedError(
            "It is no ONNX graph, or a part of one is missing.", "Export it again."
        ) from error


def look(path: Path) -> dict[str, Any]:
    """Describe a file, or raise FileRefusedError if it is incomplete or cannot be fed."""
    model = open_graph(path)
    graph = model.graph
    if not model.opset_import:
        raise FileRefusedError("It names no version of ONNX's operators.", "Export it again.")
    if not graph.node:
        raise FileRefusedError("There is no operator in it: nothing would be measured.")
    nodes = list(_nodes(graph))
    beside = _weights_beside(path, _all_tensors(model))
    _refuse_unordered(graph)
    given = {tensor.name for tensor in graph.initializer}
    given |= {tensor.values.name for tensor in graph.sparse_initializer}
    fed = [entry for entry in graph.input if entry.name not in given]
    ranges = Ranges(model)
    return {
        "opset": {entry.domain or "ai.onnx": int(entry.version) for entry in model.opset_import},
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version)))[:100],
        "inputs": [_input(entry, ranges) for entry in fed],
        "outputs": [_tensor(entry, "output") for entry in graph.output],
        "weights": sum(
            math.prod(tensor.dims) for tensor in graph.initializer if _is_weight(tensor)
        ),
        "precision": _precision(graph, nodes),
        "operators": len(nodes),
        "custom": custom_operators(model, nodes),
        "beside": [str(file) for file in beside],
    }


def _input(entry: Any, ranges: Ranges) -> dict[str, Any]:
    fields = _tensor(entry, "input")
    return fields | ranges.of(entry.name, entry.name, fields["dtype"])


def _is_weight(tensor: Any) -> bool:
    return tensor.data_type in _FLOATS or tensor.data_type in {
        TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4, TensorProto.UINT4,
    }  # fmt: skip


def _nodes(graph: Any, depth: int = 0) -> Iterator[Any]:
    if depth > _DEEPEST:
        raise FileRefusedError("Its loops and branches are nested deeper than any model's.")
    if len(graph.node) > _MOST_NODES:
        raise FileRefusedError(f"It has {len(graph.node):,} operators, which no model has.")
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _nodes(inner, depth + 1)


def _all_tensors(model: Any) -> Iterator[Any]:
    yield from _tensors(model.graph)
    for function in model.functions:
        yield from _in_nodes(function.node)
        for attribute in function.attribute_proto:
            yield from _in_attribute(attribute)


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _in_nodes(graph.node)


def _in_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _in_attribute(attribute)


def _in_attribute(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    own = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
    for sparse in (*own, *attribute.sparse_tensors):
        yield from (sparse.values, sparse.indices)
    for inner in (attribute.g, *attribute.graphs):
        yield from _tensors(inner)


def _weights_beside(path: Path, tensors: Iterable[Any]) -> list[Path]:
    """Return the files next to the graph that hold its weights; refuse bytes that lie elsewhere."""
    files: dict[Path, None] = {}
    sizes: dict[Path, int] = {}
    folder = path.parent.resolve()
    for tensor in tensors:
        if any(size < 0 for size in tensor.dims):
            raise FileRefusedError(f"Its weight {_quote_name(tensor)} has a size below 0.")
        need = _claimed_bytes(tensor)
        if not uses_external_data(tensor):
            have = len(tensor.raw_data)
            if tensor.HasField("raw_data") and need is not None and have != need:
                raise FileRefusedError(
                    f"Its weight {_quote_name(tensor)} claims {need:,} bytes and has {have:,}.",
                    "Export it again.",
                )
            if need and not tensor.HasField("raw_data") and not _typed_values(tensor):
                raise FileRefusedError(
                    f"Its weight {_quote_name(tensor)} claims {need:,} bytes and has none.",
                    "Export it again.",
                )
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file = _inside(folder, entries.get("location", ""), tensor)
        if file not in sizes:
            sizes[file] = file.stat().st_size
            files[file] = None
        offset = _number(entries.get("offset") or "0")
        length = _number(entries["length"]) if "length" in entries else sizes[file] - offset
        if offset < 0 or length < 0 or offset + length > sizes[file]:
            raise FileRefusedError(
                f"Its weight {_quote_name(tensor)} ends beyond the end of {file.name}.",
                "A part of that file is missing: copy it again.",
            )
        if need is not None and length < need:
            raise FileRefusedError(
                f"Its weight {_quote_name(tensor)} claims {need:,} bytes, and {length:,} of"
                f" {file.name} are its own.",
                "Export it again.",
            )
    return list(files)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _inside(folder: Path, location: str, tensor: Any) -> Path:
    named = Path(location)
    file = (folder / named).resolve()
    if named.is_absolute() or ".." in named.parts or not file.is_relative_to(folder):
        raise FileRefusedError(
            f"Its weight {_quote_name(tensor)} is said to lie in {in_quotes(location)}, which"
            " is outside"
            " its own folder: it is not read.",
            "Put the weights beside the graph.",
        )
    if not file.is_file():
        raise FileRefusedError(
            f"The file {in_quotes(location)} with its weights is not beside it.",
            "Copy it into the same folder.",
        )
    return file


def _claimed_bytes(tensor: Any) -> int | None:
    try:
        each = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError, ValueError) as error:
        raise FileRefusedError(f"Its weight {_quote_name(tensor)} is of no known type.") from error
    if tensor.data_type in _PACKED or tensor.data_type == TensorProto.STRING:
        return None
    return int(each) * int(math.prod(tensor.dims))


_PACKED = {
    getattr(TensorProto, name)
    for name in ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1")
    if hasattr(TensorProto, name)
}


def _typed_values(tensor: Any) -> int:
    return max(
        len(getattr(tensor, field))
        for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data",
                      "string_data")
    )  # fmt: skip


def _refuse_unordered(graph: Any) -> None:
    known = {entry.name for entry in (*graph.input, *graph.initializer)}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                called = f"{node.op_type} {in_quotes(node.name)}" if node.name else node.op_type
                raise FileRefusedError(
                    f"Its operator {called} reads {in_quotes(name)}, which nothing before it gives:"
                    " the graph runs in a circle, or a part of it is missing.",
                    "Export it again.",
                )
        known.update(node.output)
    for entry in graph.output:
        if entry.name not in known:
            raise FileRefusedError(
                f"Nothing in it gives its output {in_quotes(entry.name)}.", "Export it again."
            )


def _tensor(entry: Any, what: str) -> dict[str, Any]:
    kind = entry.type.WhichOneof("value")
    if kind != "tensor_type":
        words = (kind or "nothing known").removesuffix("_type").replace("_", " ")
        if what == "output":
            return {"name": entry.name, "dtype": words, "shape": []}
        raise FileRefusedError(
            f"Its input {in_quotes(entry.name)} takes {words}, and tensors alone are fed.",
            "Export the model with tensors as inputs.",
        )
    tensor = entry.type.tensor_type
    if what == "input":
        if tensor.elem_type in _UNFED:
            raise FileRefusedError(
                f"Its input {in_quotes(entry.name)} takes {_UNFED[tensor.elem_type]}.",
                "Measure the part behind it: export the model without that step.",
            )
        if not tensor.HasField("shape"):
            raise refuse_rank(entry.name)
    sizes: list[int | str] = [
        int(d.dim_value) if d.HasField("dim_value") else str(d.dim_param) for d in tensor.shape.dim
    ]
    if len(sizes) > _MOST_RANK:
        raise FileRefusedError(f"Its {what} {in_quotes(entry.name)} has {len(sizes)} axes.")
    if what == "input" and any(isinstance(size, int) and size < 0 for size in sizes):
        raise FileRefusedError(
            f"Its input {in_quotes(entry.name)} has a size below 0.",
            "Export the model with a name for a free size.",
        )
    return {"name": entry.name, "dtype": _dtype(tensor.elem_type), "shape": sizes}


def _dtype(kind: int) -> str:
    try:
        return str(helper.tensor_dtype_to_np_dtype(kind))
    except (KeyError, TypeError, ValueError):
        return "unknown"


def _precision(graph: Any, nodes: Sequence[Any]) -> str:
    if any(node.op_type in _QUANTISES for node in nodes):
        return "int8"
    stored: Mapping[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
    counted: dict[str, int] = {}
    for node in graph.node:
        for name in node.input if node.op_type in _PRODUCTS else ():
            tensor = stored.get(name)
            if tensor is not None and tensor.data_type in _FLOATS:
                kind = _FLOATS[tensor.data_type]
                counted[kind] = counted.get(kind, 0) + math.prod(tensor.dims)
    if not counted:
        for entry in graph.input:
            kind = _FLOATS.get(entry.type.tensor_type.elem_type, "")
            if kind:
                counted[kind] = counted.get(kind, 0) + 1
    return max(counted, key=lambda kind: counted[kind], default="fp32")


def _quote_name(tensor: Any) -> str:
    return in_quotes(tensor.name) if tensor.name else "without a name"

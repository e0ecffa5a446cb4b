"""Programs of torch.export: inputs and outputs, their values, and precision.

Only the JSON in the archive is read: torch is not imported.
"""

from __future__ import annotations

import ast
import math
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.exported_archive import (
    FLOATS,
    ExportedArchive,
    aten_name,
    changed_in_place,
    named_types,
    names_in,
    open_archive,
    output_names,
    refuse_nodes,
    unlike_torch,
)
from accelbench.models.file_models.given_inputs import (
    BATCH,
    IMAGE,
    SEQUENCE,
    InputRanges,
    MaskEffect,
    choice_effect,
    pair_effect,
    size_named,
)
from accelbench.models.file_models.kinds import FileRefusedError

#: Operators that look a row up: the argument with its number, and the table.
_LOOKUPS = {"embedding": ("indices", "weight"), "index_select": ("index", "self"),
            "index": ("indices", "self")}  # fmt: skip
#: Operators whose result holds nothing but values of their first input.
_PASSES_ON = {
    "to", "_to_copy", "view", "reshape", "unsqueeze", "squeeze", "flatten", "slice", "select",
    "transpose", "permute", "expand", "clone", "contiguous", "alias", "detach", "repeat", "split",
    "chunk", "unbind", "unflatten", "narrow", "tile", "t", "long", "int", "type_as",
}  # fmt: skip
_SAME = {*_PASSES_ON, "bool", "float", "half", "index", "index_select", "gather", "expand_as",
         "lift_fresh_copy"}  # fmt: skip
_JOINS = {"__and__", "__or__", "bitwise_and", "bitwise_or", "logical_and", "logical_or"}
_TURNS = {"logical_not", "bitwise_not"}
_SDPA = "scaled_dot_product_attention"
_BOOL = 12
#: NumPy's names of the types that a constant of one value may have, by their numbers.
_SCALARS = {4: "<i4", 5: "<i8", 6: "<f2", 7: "<f4", 8: "<f8"}
_DEEPEST = 64


class ExportedRanges(InputRanges):
    """Ranges of values of a program's inputs."""

    def __init__(self, archive: ExportedArchive) -> None:
        super().__init__()
        module = archive.program["graph_module"]
        graph = module["graph"]
        self._archive = archive
        self._values = graph["tensor_values"]
        self._makers: dict[str, Mapping[str, Any]] = {}
        for node in graph["nodes"]:
            for name in dict.fromkeys(names_in(entry["arg"] for entry in node["inputs"])):
                self._note_reader(name, node, name)
            self._makers |= dict.fromkeys(names_in(node["outputs"]), node)
        self._stored = {
            body["arg"]["name"]: body[f"{kind}_name"]
            for spec in module["signature"]["input_specs"]
            for kind, body in spec.items()
            if kind in {"buffer", "tensor_constant"}
        }

    def _made(self, node: Mapping[str, Any]) -> Iterator[str]:
        return names_in(node["outputs"])

    def _passes_on(self, node: Mapping[str, Any], place: str) -> bool:
        name = _operator_name(node)
        return name in _PASSES_ON and place in names_in([node["inputs"][0]["arg"]])

    def _effect(self, node: Mapping[str, Any], place: str) -> MaskEffect | None:
        aten = _aten(node)
        args = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        if aten == "masked_fill" and place in names_in([args["mask"]]):
            return choice_effect(self._number(args["value"]), None)
        if aten == "where" and "condition" in args and place in names_in([args["condition"]]):
            return choice_effect(self._number(args.get("self")), self._number(args.get("other")))
        if aten == _SDPA and place in names_in([args.get("attn_mask", {})]):
            return MaskEffect.KEEPS if self._values[place]["dtype"] == _BOOL else None
        first: Mapping[str, Any] = next(iter(args.values()), {})
        if place in names_in([first]):
            if aten in _SAME:
                return MaskEffect.SAME
            other = self._number(args.get("other"))
            if aten in _TURNS or (aten == "rsub" and other == 1.0):
                return MaskEffect.TURNED
            return MaskEffect.SAME if aten in _JOINS else pair_effect(aten, 0, other)
        return MaskEffect.SAME if aten in _JOINS else pair_effect(aten, 1, self._number(first))

    def _number(self, arg: Mapping[str, Any] | None, depth: int = 0) -> float | None:
        for kind in ("as_float", "as_int", "as_bool"):
            if arg and kind in arg:
                return float(arg[kind])
        names = list(names_in([arg])) if arg else []
        if len(names) != 1 or depth > _DEEPEST:
            return None
        if names[0] in self._stored:
            return self._constant(self._stored[names[0]])
        node = self._makers.get(names[0])
        if node is None:
            return None
        aten = _aten(node)
        args = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        if aten == "scalar_tensor":
            return self._number(args["s"], depth + 1)
        if aten in {"full", "full_like", "new_full"}:
            return self._number(args["fill_value"], depth + 1)
        first = next(iter(args.values()), None)
        passes = aten in _PASSES_ON or aten == "lift_fresh_copy"
        return self._number(first, depth + 1) if passes else None

    def _constant(self, name: str) -> float | None:
        tensor = self._archive.tensors.get(name)
        if tensor is None or any(size != 1 for size in tensor.shape):
            return None
        kind = _SCALARS.get(tensor.dtype)
        if kind is None:
            return None
        with zipfile.ZipFile(self._archive.path) as members:
            content = self._archive.numbers(members, tensor)
        place = tensor.offset * np.dtype(kind).itemsize
        return float(np.frombuffer(content, kind, 1, place)[0])

    def _table(self, node: Mapping[str, Any], place: str) -> int | None:
        aten = _operator_name(node)
        if aten not in _LOOKUPS:
            return None
        number, table = _LOOKUPS[aten]
        args = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        names = list(names_in([args[table]]))
        if place not in names_in([args[number]]) or not names or names[0] == place:
            return None
        sizes = self._values[names[0]]["sizes"]
        axis = int(args["dim"]["as_int"]) if aten == "index_select" else 0
        if aten == "index":
            places = args["indices"].get("as_optional_tensors") or args["indices"]["as_tensors"]
            axis = next(
                number for number, entry in enumerate(places)
                if place in names_in([entry if "as_tensor" in entry or "as_none" in entry
                                     else {"as_tensor": entry}])
            )  # fmt: skip
        size = sizes[axis] if -len(sizes) <= axis < len(sizes) else {}
        return int(size["as_int"]) if "as_int" in size else None


def _aten(node: Mapping[str, Any]) -> str:
    name = _operator_name(node)
    return name if name in _JOINS else name.rstrip("_")


def _operator_name(node: Mapping[str, Any]) -> str:
    return (aten_name(str(node["target"])) or ("", ""))[0]


#: NumPy's names of types by their numbers in the schema.
_NUMPY = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 12: "bool", 13: "bfloat16", 28: "uint16", 34: "uint32", 35: "uint64",
}  # fmt: skip
#: A size of which the program says no more than that it is one. Exporting takes 0 and 1 for other
#: cases than all else and so begins at 2; the program takes one item all the same.
_UNSAID = 2


def look(path: Path) -> dict[str, Any]:
    """Describe a program; raise FileRefusedError if it is incomplete, unsafe or cannot be fed."""
    archive = open_archive(path)
    try:
        return _describe_program(archive)
    except (LookupError, TypeError, AttributeError, ValueError, SyntaxError) as error:
        raise unlike_torch() from error


def _describe_program(archive: ExportedArchive) -> dict[str, Any]:
    module = archive.program["graph_module"]
    graph, signature = module["graph"], module["signature"]
    given = [entry for spec in signature["input_specs"] for entry in spec.items()]
    _refuse_unknown(given, archive)
    refuse_nodes(graph, list(names_in(graph["inputs"])))
    _refuse_state(signature["output_specs"])
    if changed := changed_in_place(graph):
        kept = {body["arg"]["name"]: body["buffer_name"] for k, body in given if k == "buffer"}
        raise _changes(kept.get(changed, changed))
    if not any(aten_name(str(node["target"])) for node in graph["nodes"]):
        raise FileRefusedError("There is no operator in it: nothing would be measured.")
    fed = [name for kind, body in given if kind == "user_input" for name in names_in([body["arg"]])]
    values = graph["tensor_values"]
    made = [
        name
        for spec in signature["output_specs"]
        for name in _names_of_output(spec)
        if name in values
    ]
    output_names(module, len(made))
    precision, types = _precision(archive), named_types(graph)
    sizes = _Sizes(archive.program["range_constraints"])
    ranges = ExportedRanges(archive)
    inputs = [_input(name, values[name], sizes, ranges) for name in fed]
    return {
        "inputs": inputs,
        "outputs": [_tensor(name, values[name], sizes) for name in made],
        "weights": sum(_elements(archive)),
        "precision": precision,
        "operators": len(graph["nodes"]),
        "beside": [],
        "least": sizes.least,
        "most": sizes.most,
        "casts": not types,
    }


def _refuse_unknown(given: Iterable[tuple[str, Any]], archive: ExportedArchive) -> None:
    for kind, body in given:
        if kind == "user_input":
            if next(iter(body["arg"])).startswith("as_sym"):
                raise FileRefusedError(
                    "One of its inputs is a number, and tensors alone are fed.",
                    "Export it with that number fixed.",
                )
        elif kind in {"parameter", "buffer", "tensor_constant"}:
            if body[f"{kind}_name"] not in archive.tensors:
                raise FileRefusedError(
                    f"Its weight {in_quotes(str(body[f'{kind}_name']))} is not in it.",
                    "Save it whole: torch.export.save(program, path).",
                )
        elif kind != "constant_input":
            raise FileRefusedError(f"It takes a {kind}, and tensors alone are fed.")


def _refuse_state(specs: Iterable[Mapping[str, Any]]) -> None:
    for spec in specs:
        ((kind, body),) = spec.items()
        if kind not in {"user_output", "loss_output"}:
            raise _changes(body.get("buffer_name") or body.get("user_input_name") or kind)


def _changes(what: object) -> FileRefusedError:
    return FileRefusedError(
        f"Each call changes its {in_quotes(str(what))}, so that no two are alike.",
        "Export it as it infers, without work in place: model.eval() before torch.export.export.",
    )


def _names_of_output(spec: Mapping[str, Any]) -> Iterable[str]:
    ((_, body),) = spec.items()
    arg = body["arg"]
    return names_in([arg]) if "name" not in arg else [arg["name"]]


def _elements(archive: ExportedArchive) -> Iterable[int]:
    """Return the sizes of its parameters; those that share one place count once."""
    return {
        (tensor.member, tensor.offset): math.prod(tensor.shape)
        for tensor in archive.tensors.values()
        if tensor.trained
    }.values()


def _precision(archive: ExportedArchive) -> str:
    counted: Counter[str] = Counter()
    for tensor in archive.tensors.values():
        if tensor.dtype in FLOATS:
            counted[FLOATS[tensor.dtype]] += math.prod(tensor.shape)
        elif tensor.trained:
            raise FileRefusedError(
                "Some of its weights are stored in a type that is not measured.",
                "Export it in fp32, fp16 or bf16.",
            )
    if len(counted) > 1:
        raise FileRefusedError(
            f"Its weights are of several types: {', '.join(sorted(counted))}.",
            "Export it in one: model.float() before torch.export.export.",
        )
    return next(iter(counted), "fp32")


def _input(
    name: str, meta: Mapping[str, Any], sizes: _Sizes, ranges: ExportedRanges
) -> dict[str, Any]:
    fields = _tensor(name, meta, sizes)
    dtype = fields["dtype"]
    if not dtype:
        raise FileRefusedError(
            f"Its input {in_quotes(name)} takes numbers of a type that is not drawn.",
            "Measure the part behind it: export the model without that step.",
        )
    if "" in fields["shape"]:
        raise FileRefusedError(
            f"Its input {in_quotes(name)} has a size that follows from other sizes.",
            "Export it with each free size of its own: torch.export.Dim.DYNAMIC.",
        )
    return fields | ranges.of(name, name, "float32" if dtype == "bfloat16" else dtype)


def _tensor(name: str, meta: Mapping[str, Any], sizes: _Sizes) -> dict[str, Any]:
    shape = [sizes.of(size, place, len(meta["sizes"])) for place, size in enumerate(meta["sizes"])]
    return {"name": name, "dtype": _NUMPY.get(meta["dtype"], ""), "shape": shape}


class _Sizes:
    """Sizes of inputs: a free one has the same name wherever its symbol is."""

    def __init__(self, ranges: Mapping[str, Mapping[str, int | None]]) -> None:
        self._ranges = ranges
        self._names: dict[str, str] = {}
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def of(self, size: Mapping[str, Any], place: int, rank: int) -> int | str:
        """Return a size as inputs of a file have it, or "" if it follows from others."""
        if "as_int" in size:
            return int(size["as_int"])
        text = str(size["as_expr"]["expr_str"])
        symbol = _symbol(text)
        if symbol is None:
            return ""
        if symbol not in self._names:
            name = size_named(symbol, place, rank)
            own = f"size_{symbol.strip('su')}"
            self._names[symbol] = name if name in {BATCH, SEQUENCE, IMAGE} else own
            self._bound(self._names[symbol], self._ranges.get(symbol, {}))
        return self._names[symbol]

    def _bound(self, name: str, limits: Mapping[str, int | None]) -> None:
        low, high = limits.get("min_val"), limits.get("max_val")
        if low is not None and low > _UNSAID:
            self.least[name] = max(int(low), self.least.get(name, 0))
        if high is not None:
            self.most[name] = min(int(high), self.most.get(name, int(high)))


def _symbol(text: str) -> str | None:
    if len(text) > 10_000:
        raise unlike_torch()
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        first = tree.args[0] if tree.args else None
        if tree.func.id == "Symbol" and isinstance(first, ast.Constant):
            return str(first.value)
    return None

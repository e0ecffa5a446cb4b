"""What the inputs of a program of torch.export may hold, as its nodes tell it.

A whole number that names a row is below the rows of its table; a mask is filled with what leaves
nothing out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from accelbench.catalog.file_models.exported_archive import ExportedArchive
from accelbench.catalog.file_models.exported_nodes import aten_name, names_in
from accelbench.catalog.file_models.input_ranges import drawn_of_type
from accelbench.catalog.file_models.mask_effects import (
    MaskEffect,
    drawn_as_mask,
    of_choice,
    of_equality,
    of_factor,
)

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


class ExportedRanges:
    """Ranges of values of a program's inputs."""

    def __init__(self, archive: ExportedArchive) -> None:
        module = archive.program["graph_module"]
        graph = module["graph"]
        self._archive = archive
        self._values = graph["tensor_values"]
        self._readers: dict[str, list[Mapping[str, Any]]] = {}
        self._made: dict[str, Mapping[str, Any]] = {}
        for node in graph["nodes"]:
            for name in dict.fromkeys(names_in(entry["arg"] for entry in node["inputs"])):
                self._readers.setdefault(name, []).append(node)
            self._made |= dict.fromkeys(names_in(node["outputs"]), node)
        self._stored = {
            body["arg"]["name"]: body[f"{kind}_name"]
            for spec in module["signature"]["input_specs"]
            for kind, body in spec.items()
            if kind in {"buffer", "tensor_constant"}
        }

    def of(self, name: str, dtype: str) -> dict[str, Any]:
        """What an input may hold, as `drawn_of_type` has it."""
        whole = dtype.startswith(("int", "uint"))
        rows = self._rows(name) if whole else None
        if rows is None and (whole or dtype == "bool"):
            as_mask = drawn_as_mask(name, self._effects)
            if as_mask is not None:
                return dict(as_mask)
        return drawn_of_type(name, "float32" if dtype == "bfloat16" else dtype, rows)

    # -- masks

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Sequence[str]]]:
        for node in self._readers.get(read, ()):
            yield self._effect(node, read), list(names_in(node["outputs"]))

    def _effect(self, node: Mapping[str, Any], read: str) -> MaskEffect | None:
        """What a node does with a value that it reads."""
        aten = _aten(node)
        args = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        if aten == "masked_fill" and read in names_in([args["mask"]]):
            return of_choice(self._number(args["value"]), None)
        if aten == "where" and "condition" in args and read in names_in([args["condition"]]):
            return of_choice(self._number(args.get("self")), self._number(args.get("other")))
        if aten == _SDPA and read in names_in([args.get("attn_mask", {})]):
            return MaskEffect.KEEPS if self._values[read]["dtype"] == _BOOL else None
        first: Mapping[str, Any] = next(iter(args.values()), {})
        if read in names_in([first]):
            return self._of_first(aten, self._number(args.get("other")))
        if aten in _JOINS:
            return MaskEffect.SAME
        if aten == "sub" and self._number(first) == 1.0:
            return MaskEffect.TURNED
        return of_factor(self._number(first)) if aten == "mul" else None

    @staticmethod
    def _of_first(aten: str, other: float | None) -> MaskEffect | None:
        """What a node does with its first value, beside another one that is a number."""
        if aten in _SAME or aten in _JOINS or (aten == "gt" and other == 0.0):
            return MaskEffect.SAME
        if aten in _TURNS or (aten == "rsub" and other == 1.0):
            return MaskEffect.TURNED
        if aten in {"eq", "ne"}:
            return of_equality(other, unequal=aten == "ne")
        return of_factor(other) if aten == "mul" else None

    def _number(self, arg: Mapping[str, Any] | None, depth: int = 0) -> float | None:
        """The one number that an argument is; None of any other."""
        for kind in ("as_float", "as_int", "as_bool"):
            if arg and kind in arg:
                return float(arg[kind])
        names = list(names_in([arg])) if arg else []
        if len(names) != 1 or depth > _DEEPEST:
            return None
        if names[0] in self._stored:
            return self._constant(self._stored[names[0]])
        node = self._made.get(names[0])
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

    # -- tables

    def _rows(self, name: str) -> int | None:
        """Rows of the smallest table that is read at an input's numbers."""
        found: list[int] = []
        names, seen = [name], {name}
        while names:
            read = names.pop()
            for node in self._readers.get(read, ()):
                aten = (aten_name(str(node["target"])) or ("", ""))[0]
                rows = self._looked_up(node, aten, read)
                if rows:
                    found.append(rows)
                elif aten in _PASSES_ON and read in names_in([node["inputs"][0]["arg"]]):
                    more = [made for made in names_in(node["outputs"]) if made not in seen]
                    seen.update(more)
                    names += more
        return min(found, default=None)

    def _looked_up(self, node: Mapping[str, Any], aten: str, read: str) -> int | None:
        if aten not in _LOOKUPS:
            return None
        number, table = _LOOKUPS[aten]
        args = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        names = list(names_in([args[table]]))
        if read not in names_in([args[number]]) or not names or names[0] == read:
            return None
        sizes = self._values[names[0]]["sizes"]
        axis = int(args["dim"]["as_int"]) if aten == "index_select" else 0
        if aten == "index":
            places = args["indices"].get("as_optional_tensors") or args["indices"]["as_tensors"]
            axis = next(
                place for place, entry in enumerate(places)
                if read in names_in([entry if "as_tensor" in entry or "as_none" in entry
                                     else {"as_tensor": entry}])
            )  # fmt: skip
        size = sizes[axis] if -len(sizes) <= axis < len(sizes) else {}
        return int(size["as_int"]) if "as_int" in size else None


def _aten(node: Mapping[str, Any]) -> str:
    """The name of a node's operator, in place or not."""
    name = (aten_name(str(node["target"])) or ("", ""))[0]
    return name if name in _JOINS else name.rstrip("_")

"""What a program of torch.export is: inputs, outputs, what they may hold, what it is stored in.

From the JSON in its archive alone: torch is not imported.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from accelbench.catalog.file_models.dimensions import BATCH, IMAGE, SEQUENCE, size_named
from accelbench.catalog.file_models.exported_archive import ExportedArchive, opened, unlike_torch
from accelbench.catalog.file_models.exported_nodes import (
    FLOATS,
    aten_name,
    changed_in_place,
    named_types,
    names_in,
    output_names,
    refuse_nodes,
)
from accelbench.catalog.file_models.exported_ranges import ExportedRanges
from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.visible import in_quotes

#: NumPy's names of types by their numbers in the schema.
_NUMPY = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 12: "bool", 13: "bfloat16", 28: "uint16", 34: "uint32", 35: "uint64",
}  # fmt: skip
#: A size of which the program says no more than that it is one. Exporting takes 0 and 1 for other
#: cases than all else and so begins at 2; the program takes one item all the same.
_UNSAID = 2


def look(path: Path) -> dict[str, Any]:
    """What a program says of itself.

    Raises:
        FileRefusedError: it is no whole program, one that is unsafe, or one that cannot be fed.
    """
    archive = opened(path)
    try:
        return _described(archive)
    except (LookupError, TypeError, AttributeError, ValueError, SyntaxError) as error:
        raise unlike_torch() from error


def _described(archive: ExportedArchive) -> dict[str, Any]:
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
    if not fed:
        raise FileRefusedError("It takes no input: what it gives is a constant.")
    values = graph["tensor_values"]
    made = [
        name for spec in signature["output_specs"] for name in _of_output(spec) if name in values
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


def _of_output(spec: Mapping[str, Any]) -> Iterable[str]:
    ((_, body),) = spec.items()
    arg = body["arg"]
    return names_in([arg]) if "name" not in arg else [arg["name"]]


def _elements(archive: ExportedArchive) -> Iterable[int]:
    """Numbers of its parameters; those that lie at one place count once."""
    return {
        (tensor.member, tensor.offset): math.prod(tensor.shape)
        for tensor in archive.tensors.values()
        if tensor.trained
    }.values()


def _precision(archive: ExportedArchive) -> str:
    """What its weights are stored in."""
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
    return fields | ranges.of(name, dtype)


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
        """A size as inputs of a file have it; "" of one that follows from others."""
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
    """The name of a free size; None of an expression of several."""
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

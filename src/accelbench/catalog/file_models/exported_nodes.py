"""What the nodes of a program of torch.export may be: operators of ATen on values made before.

Everything else that the format allows is refused by name: other libraries' operators, functions
of torch that are no operators, operators that open files. Pure: torch is not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelbench.catalog.file_models.exported_archive import unlike_torch
from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.jsonc import loads
from accelbench.core.visible import in_quotes

_ATEN = re.compile(r"^torch\.ops\.aten\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)$")
#: Operators of ATen that read or write files.
_FILES = {"from_file", "save", "load"}
#: Arithmetic on sizes, by Python's and torch's own functions.
SIZES = frozenset(
    f"_operator.{name}"
    for name in (
        "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "neg", "eq", "ne", "lt", "le",
        "gt", "ge", "and_", "or_", "xor", "getitem", "pos", "lshift", "rshift",
    )
) | {
    "math.ceil", "math.floor", "math.trunc", "torch.sym_int", "torch.sym_float", "torch.sym_max",
    "torch.sym_min", "torch.sym_not", "torch.sym_ite", "torch.sym_sum",
}  # fmt: skip
#: Of a part that is computed without gradients, which nothing here is computed with.
UNTRACKED = "torch.ops.higher_order.wrap_with_set_grad_enabled"
_PLAIN = {
    "as_none", "as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string",
    "as_strings", "as_scalar_type", "as_memory_format", "as_layout", "as_device", "as_complex",
}  # fmt: skip
_ELSEWHERE = "Export it to ONNX, or measure its code: accelbench run model.py:make"
#: Types by number that a floating-point tensor may have.
FLOATS = {6: "fp16", 7: "fp32", 8: "fp64", 13: "bf16"}


#: Operators whose outputs are their first input, seen otherwise.
_VIEWS = frozenset(
    (
        *(
            "view",
            "reshape",
            "transpose",
            "permute",
            "t",
            "flatten",
            "unflatten",
            "alias",
            "detach",
        ),
        *(
            "slice",
            "select",
            "narrow",
            "unsqueeze",
            "squeeze",
            "expand",
            "chunk",
            "split",
            "unbind",
        ),
        *(
            "contiguous",
            "to",
            "type_as",
            "view_as",
            "expand_as",
            "as_strided",
            "numpy_T",
            "diagonal",
        ),
    )
)


def aten_name(target: str) -> tuple[str, str] | None:
    """The name and the overload of an operator of ATen; None of anything else."""
    parts = _ATEN.match(target)
    return None if parts is None else (parts[1], parts[2])


def refuse_nodes(graph: Mapping[str, Any], given: Sequence[str]) -> None:
    """Refuse nodes that are not measured, and values that nothing makes.

    Args:
        graph: of a program, or a part of one.
        given: the values that are there before the first node.
    """
    made = set(given)
    for node in graph["nodes"]:
        target = str(node["target"])
        _refuse_target(target)
        for entry in node["inputs"]:
            ((kind, body),) = entry["arg"].items()
            if kind == "as_graph" and target == UNTRACKED:
                inner = body["graph"]
                refuse_nodes(inner, list(names_in(inner["inputs"])))
                continue
            if kind not in _PLAIN and not _is_values(kind):
                raise _not_measured(f"its operator {_shown(target)} takes a {kind[3:]}")
            if not made.issuperset(names_in([entry["arg"]])):
                raise unlike_torch()
        made.update(names_in(node["outputs"]))
    if not made.issuperset(names_in(graph["outputs"])):
        raise unlike_torch()


def changed_in_place(graph: Mapping[str, Any]) -> str:
    """What of the graph's own inputs its nodes change: its name, "" where they change none.

    Exported for training, a graph keeps the operators that work in place as they were written: they
    are nodes, and its signature does not name what they change.
    """
    roots = {name: name for name in names_in(graph["inputs"])}
    for node in graph["nodes"]:
        operator = (aten_name(str(node["target"])) or ("", ""))[0]
        arguments = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        first = next(iter(names_in([entry["arg"] for entry in node["inputs"][:1]])), "")
        if operator in _VIEWS and first in roots:
            roots.update(dict.fromkeys(names_in(node["outputs"]), roots[first]))
        elif operator.endswith("_") and not operator.endswith("__") and first in roots:
            return roots[first]
        elif arguments.get("training", {}).get("as_bool") and "running_mean" in arguments:
            kept = next(iter(names_in([arguments["running_mean"]])), "")
            if kept in roots:
                return roots[kept]
    return ""


def _is_values(kind: str) -> bool:
    return kind.removesuffix("s") in {
        "as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor",
        "as_nested_tensor",
    }  # fmt: skip


def _refuse_target(target: str) -> None:
    aten = aten_name(target)
    if aten is not None:
        if aten[0] in _FILES:
            raise _not_measured(f"its operator {aten[0]} opens files")
        return
    if target in SIZES or target == UNTRACKED:
        return
    raise _not_measured(f"it calls {_shown(target)}, which is no operator of ATen")


def _shown(target: str) -> str:
    return in_quotes(target.removeprefix("torch.ops.")[:80])


def _not_measured(why: str) -> FileRefusedError:
    return FileRefusedError(f"{why[:1].upper()}{why[1:]}.", _ELSEWHERE)


def names_in(arguments: Any) -> Iterator[str]:
    """The values that arguments name, in their order."""
    for argument in arguments:
        for kind, body in argument.items():
            if kind in {"as_tensor", "as_custom_obj"}:
                yield body["name"]
            elif kind.startswith("as_sym_"):
                several = body if kind.endswith("s") else [body]
                yield from (entry["as_name"] for entry in several if "as_name" in entry)
            elif kind == "as_tensors":
                yield from (tensor["name"] for tensor in body)
            elif kind == "as_nested_tensors":
                yield from (tensor["name"] for tensors in body for tensor in tensors)
            elif kind == "as_optional_tensor":
                yield from names_in([body])
            elif kind == "as_optional_tensors":
                yield from names_in(body)


def named_types(graph: Mapping[str, Any]) -> set[str]:
    """The floating-point types that nodes name: a program with one is in no other."""
    found: set[str] = set()
    for node in graph["nodes"]:
        for entry in node["inputs"]:
            if "as_graph" in entry["arg"]:
                found |= named_types(entry["arg"]["as_graph"]["graph"])
            elif (kind := FLOATS.get(entry["arg"].get("as_scalar_type", 0))) is not None:
                found.add(kind)
    return found


def output_names(module: Mapping[str, Any], count: int) -> list[str]:
    """Names as the exported module's own outputs have them: keys of a dict, else places."""
    places = [str(place) for place in range(count)]
    for entry in module["module_call_graph"]:
        if entry["fqn"] == "" and entry["signature"]:
            spec = loads(entry["signature"]["out_spec"])[1]
            leaves, context = spec["children_spec"], spec["context"]
            flat = len(leaves) == count and all(leaf["type"] is None for leaf in leaves)
            if spec["type"] is not None and flat:
                keys = loads(context) if isinstance(context, str) else []
                named = isinstance(keys, list) and len(keys) == count
                return list(map(str, keys)) if named else places
    return ["output"] if count == 1 else places

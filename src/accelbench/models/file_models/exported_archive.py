"""Archives of torch.export: their program and the places of their weights; nothing is run.

`torch.export.load` is not used: it unpickles sample inputs, evaluates sizes (sympy's `sympify`) and
guards (`exec`), and calls any function of torch that a node names, so it runs code of a hostile
file. Here only JSON and numbers are read. Nodes may be operators of ATen on values made before;
everything else that the format allows is refused by name. Torch is not imported.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import ARCHIVE_ERRORS, JsonError, loads
from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.kinds import FileRefusedError

SAVE_IT = "Write it with torch.export.save(torch.export.export(model, example), path)."
_ANEW = "Save it again: torch.export.save(program, path), with PyTorch 2.9 or newer."
_PROGRAM = "models/model.json"
_CONFIGS = {
    "data/weights/": "data/weights/model_weights_config.json",
    "data/constants/": "data/constants/model_constants_config.json",
}
#: The major version of the program's schema; another one may mean another thing by the same words.
_SCHEMA = 8
_LARGEST_JSON = 2**28
_MOST_MEMBERS = 2**16
_PICKLED = ("custom_obj_", "opaque_obj_")
#: Bytes of an element, by the type's number in the schema.
ELEMENTS = {
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2,
    29: 1, 30: 1, 31: 1, 32: 1, 33: 1, 34: 4, 35: 8,
}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """A weight or a constant, and where its numbers lie in the archive."""

    member: str  # of the archive
    dtype: int  # number of its type
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    offset: int  # in elements
    trained: bool  # whether it is a parameter


@dataclass(frozen=True)
class ExportedArchive:
    """Content of an archive."""

    path: Path
    program: Mapping[str, Any]  # its JSON
    tensors: Mapping[str, StoredTensor]  # weights and constants by their names in the signature

    def numbers(self, members: zipfile.ZipFile, tensor: StoredTensor) -> bytearray:
        return bytearray(members.read(tensor.member))


def open_archive(path: Path) -> ExportedArchive:
    """Read an archive of torch.export; refuse one that is incomplete or runs code."""
    with _unpacked(path) as (archive, root):
        entries = archive.infolist()
        _refuse_others([entry.filename.removeprefix(root) for entry in entries])
        sizes = _sizes(entries, path.stat().st_size)
        program = _json(archive, root + _PROGRAM)
        _refuse_version(program)
        tensors: dict[str, StoredTensor] = {}
        for folder, name in _CONFIGS.items():
            config = _json(archive, root + name) if root + name in sizes else {"config": {}}
            tensors |= _tensors(config, root + folder, sizes)
    return ExportedArchive(path, program, tensors)


def program_of(path: Path) -> Any:
    """Return the JSON of a program, the only member of the archive that is opened."""
    with _unpacked(path) as (archive, root):
        names = [name.removeprefix(root) for name in archive.namelist()]
        if _PROGRAM not in names:
            _refuse_others(names)
        return _json(archive, root + _PROGRAM)


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive, _root(archive.namelist())
    except (OSError, *ARCHIVE_ERRORS) as error:
        raise FileRefusedError(
            "It is no archive of torch.export, or half of one.", SAVE_IT
        ) from error
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise unlike_torch() from error


def unlike_torch() -> FileRefusedError:
    """Return the refusal of a program that torch.export would not have written."""
    return FileRefusedError("Its program is not as torch.export writes it.", _ANEW)


def _sizes(entries: list[zipfile.ZipInfo], whole: int) -> dict[str, int]:
    """Return the bytes of each member.

    torch.export compresses nothing: members that claim more than the file has are a bomb.
    """
    sizes = {entry.filename: entry.file_size for entry in entries}
    if len(sizes) < len(entries) or len(entries) > _MOST_MEMBERS:
        raise FileRefusedError("Its archive has a name twice, or more names than any.", _ANEW)
    for entry in entries:
        parts = entry.filename.split("/")
        if entry.filename.startswith("/") or ".." in parts or "\\" in entry.orig_filename:
            raise FileRefusedError(
                f"Its archive has a member outside its own folder: {in_quotes(entry.filename)}."
            )
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise FileRefusedError(
                "Its archive is compressed or encrypted, which torch.export does not do.", _ANEW
            )
    if sum(sizes.values()) > whole:
        raise FileRefusedError("Its archive claims more bytes than the file has.", _ANEW)
    return sizes


def _root(names: list[str]) -> str:
    first = names[0].partition("/")[0] if names else ""
    if not all(name.startswith(f"{first}/") for name in names):
        if "serialized_exported_program.json" in names:
            raise FileRefusedError("PyTorch before 2.8 wrote it, with pickles in it.", _ANEW)
        raise FileRefusedError("There is no program of torch.export in it.", SAVE_IT)
    return f"{first}/"


def _refuse_others(names: list[str]) -> None:
    if _PROGRAM not in names:
        if any(name.startswith("data/aotinductor/") for name in names):
            raise _compiled()
        if any(name.startswith("code/") for name in names):
            raise FileRefusedError(
                "It is a TorchScript archive, which is pickled, whatever its name says.", SAVE_IT
            )
        if any(name.endswith("data.pkl") for name in names):
            raise FileRefusedError(
                "It is a pickled checkpoint of torch.save, whatever its name says: whoever reads"
                " it runs the code in it.",
                SAVE_IT,
            )
        raise FileRefusedError("There is no program of torch.export in it.", SAVE_IT)
    for name in names:
        last = name.rpartition("/")[2]
        if name.startswith("data/aotinductor/"):
            raise _compiled()
        if name.startswith("models/") and name != _PROGRAM:
            raise FileRefusedError("It holds several programs.", "Save each to a file of its own.")
        if name.startswith(tuple(_CONFIGS)) and last.endswith(".pt"):
            raise FileRefusedError("Its weights are pickled.", _ANEW)
        if last.startswith(_PICKLED):
            raise FileRefusedError(
                "It holds pickled objects, and whoever reads them runs the code in them.",
                "Export a module whose state is tensors alone.",
            )


def _compiled() -> FileRefusedError:
    return FileRefusedError(
        "It holds code that AOTInductor compiled, for one machine.",
        f"Keep the program instead. {SAVE_IT}",
    )


def _json(archive: zipfile.ZipFile, name: str) -> Any:
    if archive.getinfo(name).file_size > _LARGEST_JSON:
        raise FileRefusedError("Its program is larger than any that was ever exported.")
    try:
        return loads(archive.read(name).decode("utf-8"), allow_infinity=True)
    except (JsonError, UnicodeDecodeError) as error:
        raise FileRefusedError(f"Its program is no JSON: {error}.", _ANEW) from error


def _refuse_version(program: Mapping[str, Any]) -> None:
    version = program["schema_version"]["major"]
    if version != _SCHEMA:
        raise FileRefusedError(
            f"Its program is written in version {int(version)} of its schema, and {_SCHEMA} is"
            " read.",
            _ANEW,
        )


def _tensors(
    config: Mapping[str, Any], folder: str, sizes: Mapping[str, int]
) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for name, entry in config["config"].items():
        if entry["use_pickle"] or not entry["tensor_meta"]:
            raise FileRefusedError(
                f"Its weight {in_quotes(str(name))} is pickled, and whoever reads that runs the"
                " code in it.",
                "Export a module whose weights are plain tensors.",
            )
        meta = entry["tensor_meta"]
        tensor = StoredTensor(
            member=folder + entry["path_name"],
            dtype=int(meta["dtype"]),
            shape=_ints(meta["sizes"]),
            strides=_ints(meta["strides"]),
            offset=int(meta["storage_offset"]["as_int"]),
            trained=bool(entry["is_param"]),
        )
        _refuse_claims(name, tensor, sizes[tensor.member])
        found[name] = tensor
    return found


def _ints(sizes: Any) -> tuple[int, ...]:
    return tuple(int(size["as_int"]) for size in sizes)


def _refuse_claims(name: str, tensor: StoredTensor, held: int) -> None:
    axes = list(zip(tensor.shape, tensor.strides, strict=True))
    if min((tensor.offset, *tensor.shape, *tensor.strides)) < 0:
        raise unlike_torch()
    width, count = ELEMENTS[tensor.dtype], math.prod(tensor.shape)
    last = tensor.offset + sum((size - 1) * stride for size, stride in axes)
    if count and max(count, last + 1) * width > held:
        raise FileRefusedError(
            f"Its weight {in_quotes(str(name))} claims bytes that are not there.", _ANEW
        )


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
_VIEWS = {
    "view", "reshape", "transpose", "permute", "t", "flatten", "unflatten", "alias", "detach",
    "slice", "select", "narrow", "unsqueeze", "squeeze", "expand", "chunk", "split", "unbind",
    "contiguous", "to", "type_as", "view_as", "expand_as", "as_strided", "numpy_T", "diagonal",
}  # fmt: skip


def aten_name(target: str) -> tuple[str, str] | None:
    """Return the name and overload of an operator of ATen, or None."""
    parts = _ATEN.match(target)
    return None if parts is None else (parts[1], parts[2])


def refuse_nodes(graph: Mapping[str, Any], given: Sequence[str]) -> None:
    """Raise FileRefusedError if a graph has nodes that cannot be measured, or values from nowhere.

    `given` are the values before the first node.
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
    """Return the name of an input that the graph changes, or "".

    Exported for training, a graph keeps operators that work in place: they are nodes, and its
    signature does not name what they change.
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
    """Yield the values that arguments name, in their order."""
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
    """Return the floating-point types that nodes name: the program cannot be cast to another."""
    found: set[str] = set()
    for node in graph["nodes"]:
        for entry in node["inputs"]:
            if "as_graph" in entry["arg"]:
                found |= named_types(entry["arg"]["as_graph"]["graph"])
            elif (kind := FLOATS.get(entry["arg"].get("as_scalar_type", 0))) is not None:
                found.add(kind)
    return found


def output_names(module: Mapping[str, Any], count: int) -> list[str]:
    """Return the names of the outputs: keys of a dict, else places."""
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

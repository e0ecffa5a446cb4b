"""The archive that torch.export writes: its program and the places of its weights, nothing run.

`torch.export.load` is not used. It unpickles sample inputs, evaluates sizes (sympy's `sympify`) and
guards (`exec`), and calls whatever function of torch a node names: each runs code out of a hostile
file. Here the JSON of the program is read, and numbers; what is pickled is never opened.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.archives import NO_ARCHIVE
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.visible import in_quotes

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
    """A weight or a constant: where its numbers lie in the archive, and how.

    Attributes:
        member: of the archive.
        dtype: the number of its type.
        shape: of the tensor.
        strides: in elements,
        offset: and where it begins.
        trained: whether it is a parameter.
    """

    member: str
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    trained: bool


@dataclass(frozen=True)
class ExportedArchive:
    """What an archive holds.

    Attributes:
        path: of the file.
        program: the JSON of the program.
        tensors: weights and constants by the names that the program's signature has for them.
    """

    path: Path
    program: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]

    def numbers(self, members: zipfile.ZipFile, tensor: StoredTensor) -> bytearray:
        """The bytes of a member, which may be changed."""
        return bytearray(members.read(tensor.member))


def opened(path: Path) -> ExportedArchive:
    """An archive of torch.export, looked through.

    Raises:
        FileRefusedError: it is none, a part of one, or holds what runs code when it is read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            root = _root([entry.filename for entry in entries])
            _refuse_others([entry.filename.removeprefix(root) for entry in entries])
            sizes = _sizes(entries, path.stat().st_size)
            program = _json(archive, root + _PROGRAM)
            _refuse_version(program)
            tensors: dict[str, StoredTensor] = {}
            for folder, name in _CONFIGS.items():
                config = _json(archive, root + name) if root + name in sizes else {"config": {}}
                tensors |= _tensors(config, root + folder, sizes)
    except (OSError, *NO_ARCHIVE) as error:
        raise FileRefusedError("It is no archive of torch.export, or half of one.", SAVE_IT) from (
            error
        )
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise unlike_torch() from error
    return ExportedArchive(path, program, tensors)


def unlike_torch() -> FileRefusedError:
    """The refusal of a program that torch.export would not have written."""
    return FileRefusedError("Its program is not as torch.export writes it.", _ANEW)


def _sizes(entries: list[zipfile.ZipInfo], whole: int) -> dict[str, int]:
    """The bytes of each member.

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
    """The folder that everything in it lies in."""
    first = names[0].partition("/")[0] if names else ""
    if not all(name.startswith(f"{first}/") for name in names):
        if "serialized_exported_program.json" in names:
            raise FileRefusedError("PyTorch before 2.8 wrote it, with pickles in it.", _ANEW)
        raise FileRefusedError("There is no program of torch.export in it.", SAVE_IT)
    return f"{first}/"


def _refuse_others(names: list[str]) -> None:
    """Refuse archives of other kinds, and what runs code when it is read."""
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
        return loads(archive.read(name).decode("utf-8"), infinite=True)
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
    """Refuse a weight that claims numbers which its member does not have."""
    axes = list(zip(tensor.shape, tensor.strides, strict=True))
    if min((tensor.offset, *tensor.shape, *tensor.strides)) < 0:
        raise unlike_torch()
    width, count = ELEMENTS[tensor.dtype], math.prod(tensor.shape)
    last = tensor.offset + sum((size - 1) * stride for size, stride in axes)
    if count and max(count, last + 1) * width > held:
        raise FileRefusedError(
            f"Its weight {in_quotes(str(name))} claims bytes that are not there.", _ANEW
        )

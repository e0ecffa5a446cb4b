"""Labelled samples in a file of arrays: the model's inputs by name, and `labels`."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from accelbench.core.case import Case
from accelbench.core.errors import CaseError, UsageError
from accelbench.core.jsonc import ARCHIVE_ERRORS
from accelbench.core.model import InputSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.data.rows import NO_ARRAY, named_twice
from accelbench.models.inputs import draw, input_shapes, tensors

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

LABELS = "labels"
_ENDING = ".npy"
#: Of one array a row at least is held in memory, with as many others as a batch has.
LARGEST_ROW = 2**30


class LabelledData(Protocol):
    """Samples with labels, as a case's model takes them."""

    @property
    def count(self) -> int | None:
        """Number of samples that are taken; None until all have been read."""

    @property
    def classes(self) -> int | None:
        """Number of classes that the model must have; None if any number does."""

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def facts(self) -> Mapping[str, Any]: ...

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        """Yield each sample's inputs, without the batch, and its label; count those left out."""

    def digest(self) -> str: ...


@dataclass(frozen=True)
class StoredRows:
    """An array of a file, by its header."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def headers(path: Path) -> Mapping[str, StoredRows]:
    """Return the arrays of a file by name, from their headers only, or raise UsageError."""
    if path.exists() and not path.is_file():
        raise _data_error(path, "is no file")  # a pipe or a device, which may have no end
    try:
        with zipfile.ZipFile(path) as archive:
            if again := named_twice(archive):
                raise _data_error(path, f"has {in_quotes(again)} twice")
            found = {}
            for entry in archive.infolist():
                if entry.filename.endswith(_ENDING):
                    with archive.open(entry) as stream:
                        name = entry.filename.removesuffix(_ENDING)
                        found[name] = _header(stream, name, path)
    except OSError as error:
        raise _data_error(path, f"cannot be read: {error.strerror or error}") from error
    except ARCHIVE_ERRORS as error:
        raise _data_error(path, "is no archive of arrays as numpy.savez writes it") from error
    except NO_ARRAY as error:  # of headers
        raise _data_error(path, f"holds what is no plain array: {error}") from error
    if not found:
        raise _data_error(path, "holds no array")
    return found


def look_labelled(path: Path) -> Mapping[str, StoredRows]:
    """Return the arrays of a file, or raise UsageError if labels are missing or too few."""
    found = headers(path)
    labels = found.get(LABELS)
    if labels is None:
        raise _data_error(path, f"has no array {LABELS}: there are {', '.join(sorted(found))}")
    if _kind(labels) not in "iu":
        raise _data_error(path, f"has {LABELS} of {labels.dtype}, which are no whole numbers")
    if not labels.shape or not labels.shape[0]:
        raise _data_error(path, "holds no sample")
    for stored in found.values():
        if not stored.shape or stored.shape[0] != labels.shape[0]:
            count = stored.shape[0] if stored.shape else "no"
            raise _data_error(
                path, f"has {labels.shape[0]} {LABELS} and {count} rows of {in_quotes(stored.name)}"
            )
    return found


def _data_error(path: Path, why: str) -> UsageError:
    return UsageError(
        f"The labelled data {in_quotes(str(path))} {why}.",
        "Write it with numpy.savez(path, labels=labels, name=array, …), with the names of the"
        " model's inputs.",
    )


class LabelledArrays:
    """The rows of a file's arrays, each the inputs of one sample; at most `most` of them."""

    classes: int | None = None

    def __init__(self, path: str, case: Case, seed: int, most: int | None = None) -> None:
        self._path = Path(path)
        try:
            stored = look_labelled(self._path)
        except UsageError as error:  # it was another file when the run was planned
            raise CaseError("data_unreadable", error.message, error.advice) from error
        self.notes: list[str] = []
        self._takes = _match_types(self._path, stored, case, self.notes)
        self._stored = {name: stored[name] for name in (*self._takes, LABELS)}
        whole = stored[LABELS].shape[0]
        self._places = chosen(whole, most, seed)
        self.count: int | None = len(self._places)
        if len(self._places) < whole:
            self.notes.append(f"{self.count} of {whole} samples were drawn for accuracy.")
        self.facts: Mapping[str, Any] = {
            "kind": "arrays",
            "inputs": sorted(self._takes),
            "labels_shape": list(stored[LABELS].shape[1:]),
        }
        self._sum = hashlib.sha256()

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        kinds = [(name, stored.dtype, stored.shape[1:]) for name, stored in self._stored.items()]
        self._sum = hashlib.sha256(repr(sorted(kinds)).encode())
        names = [*self._takes, LABELS]
        with zipfile.ZipFile(self._path) as archive, ExitStack() as stack:
            streams = {}
            for name in names:
                stream = stack.enter_context(archive.open(name + _ENDING))
                streams[name] = _Rows(stream, self._path, name)
            at = 0
            for place in self._places:
                row = {}
                for name, stream_ in streams.items():
                    stream_.skip(place - at)
                    row[name] = stream_.next()
                    self._sum.update(row[name].tobytes())
                at = place + 1
                label = row.pop(LABELS)
                yield {name: self._fed(name, row[name]) for name in row}, label

    def _fed(self, name: str, values: Array) -> Array:
        import numpy as np

        wants = np.dtype(self._takes[name])
        with np.errstate(over="ignore"):
            fed: Array = values.astype(wants)
        if wants.kind in "iu":
            lost = values[fed != values]
        else:
            lost = values[np.isfinite(values) & ~np.isfinite(fed)]
        if lost.size:
            raise CaseError(
                "data_mismatch",
                f"{name} of {self._path.name} holds {lost.flat[0]}, which {wants} cannot.",
                f"Store what the model takes: values of {wants}.",
            )
        return fed

    def digest(self) -> str:
        return self._sum.hexdigest()[:16]


def chosen(count: int, most: int | None, seed: int) -> list[int]:
    """Return which of so many samples are taken, in their order; the same for the same seed."""
    if most is None or most >= count:
        return list(range(count))
    import numpy as np

    random = np.random.Generator(np.random.PCG64([seed % 2**64, count]))
    return sorted(random.permutation(count)[:most].tolist())


class _Rows:
    def __init__(self, stream: IO[bytes], path: Path, name: str) -> None:
        import numpy as np

        header = _header(stream, name, path)
        self._stream = stream
        self._dtype = np.dtype(header.dtype)
        self._shape = header.shape[1:]
        self._size = int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize
        self._what = f"{name} of {path}"

    def skip(self, rows: int) -> None:
        left = rows * self._size
        while left > 0:
            step = len(self._read(min(left, 2**20)))
            if not step:
                raise self._short()
            left -= step

    def next(self) -> Array:
        import numpy as np

        data = self._read(self._size)
        if len(data) < self._size:
            raise self._short()
        values: Array = np.frombuffer(data, self._dtype).reshape(self._shape)
        return values

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (OSError, *ARCHIVE_ERRORS) as error:
            raise CaseError(
                "data_unreadable", f"{self._what} is damaged: {error}.", "Write the file anew."
            ) from error

    def _short(self) -> CaseError:
        return CaseError(
            "data_unreadable", f"{self._what} ends before its last row.", "Write the file anew."
        )


def _header(stream: IO[bytes], name: str, path: Path) -> StoredRows:
    import numpy as np

    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"the format of {name} is not known")
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError(f"{name} is pickled")
    if dtype.kind not in "fiub":
        raise ValueError(f"{name} is of {dtype}")
    if by_columns and len(shape) > 1:
        order = "numpy.ascontiguousarray orders it"
        raise _data_error(path, f"has {in_quotes(name)} by columns: {order}")
    row = int(np.prod(shape[1:], dtype=np.float64)) * dtype.itemsize
    if row > LARGEST_ROW:
        raise _data_error(path, f"has rows of {row / 2**30:,.0f} GiB in {in_quotes(name)}")
    return StoredRows(name, dtype.str, tuple(int(size) for size in shape))


def _kind(stored: StoredRows) -> str:
    import numpy as np

    return np.dtype(stored.dtype).kind


def _match_types(
    path: Path, stored: Mapping[str, StoredRows], case: Case, notes: list[str]
) -> dict[str, Any]:
    """Return the types in which the file's arrays are fed, by input; refuse others."""
    shapes = input_shapes(case.model, case.shapes, case.mode)
    takes: dict[str, Any] = {}
    for tensor in tensors(case.model, case.shapes, case.mode):
        shape = shapes[tensor.name]
        if tensor.name not in stored or tensor.name == LABELS:
            if not is_fixed(tensor):
                raise CaseError(
                    "data_mismatch",
                    f"{path.name} has no {tensor.name}, which {case.model.id} takes; it has"
                    f" {', '.join(sorted(stored))}.",
                    "Name the arrays as the model's inputs are named.",
                )
            continue
        takes[tensor.name] = _fed_as(path, stored[tensor.name], tensor, shape, case, notes)
    return takes


def is_fixed(tensor: InputSpec) -> bool:
    """Return whether an input's values are known without data, like a mask of ones."""
    return tensor.constant is not None or tensor.row is not None


def _fed_as(
    path: Path,
    stored: StoredRows,
    tensor: InputSpec,
    shape: tuple[int, ...],
    case: Case,
    notes: list[str],
) -> Any:
    import numpy as np

    if not shape or shape[0] != case.shapes.batch:
        raise CaseError(
            "data_mismatch",
            f"{tensor.name} of {case.model.id} is {list(shape)}: its first size is not the batch.",
            "Leave out --data.",
        )
    if stored.shape[1:] != shape[1:]:
        raise CaseError(
            "data_mismatch",
            f"{tensor.name} of {path.name} has rows of {list(stored.shape[1:])}, and"
            f" {case.model.id} is fed {list(shape[1:])}.",
            "Ask for that size with --sequence-lengths, --image-sizes or --dim, or store others.",
        )
    have = np.dtype(stored.dtype)
    wants = np.dtype("float32" if tensor.dtype == "float" else tensor.dtype)
    alike = have.kind == wants.kind or (have.kind in "iu" and wants.kind in "iu")
    if have.kind in "iub" and wants.kind == "f":
        notes.append(f"{tensor.name} is fed with its {have} as {wants}, not scaled.")
    elif not alike:
        raise CaseError(
            "data_mismatch",
            f"{tensor.name} of {path.name} is {have}, and {case.model.id} takes {wants}.",
            f"Store it as {wants}.",
        )
    return wants


def batch_of(
    case: Case, rows: Sequence[Mapping[str, Array]], seed: int
) -> dict[str, np.ndarray[Any, Any]]:
    """Return a batch of a case's inputs: rows, and the last one again if there are too few.

    Inputs that the samples do not have are drawn: they are the same in every sample.
    """
    import numpy as np

    shapes = input_shapes(case.model, case.shapes, case.mode)
    full = [*rows, *[rows[-1]] * (case.shapes.batch - len(rows))]
    return {
        tensor.name: np.stack([row[tensor.name] for row in full])
        if tensor.name in rows[0]
        else draw(tensor, shapes[tensor.name], seed)
        for tensor in tensors(case.model, case.shapes, case.mode)
    }

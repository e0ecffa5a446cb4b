"""One item from disk into one row of a batch; arrays of a model's owner in an .npz file.

Headers of a file are read before its arrays. Pickled arrays are refused, and archives that would
unpack to more than any batch.
"""

from __future__ import annotations

import hashlib
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.core.case import Case
from accelbench.core.errors import CaseError, MissingExtraError, UnsupportedError, UsageError
from accelbench.core.jsonc import ARCHIVE_ERRORS
from accelbench.core.model import InputSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.inputs import LARGEST_BYTES, make_inputs

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


#: Hears the bytes that a row was made of.
Saw = Callable[[bytes], None]


class UnreadableError(Exception):
    """A single item cannot be decoded: it is skipped and counted."""


def contents(path: Path) -> bytes:
    """Return the bytes of a file; raise UnreadableError of what cannot be read or has no end."""
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(str(error)) from error


def open_regular(path: Path) -> BufferedReader:
    """Open a file, unless it is a pipe or a device, which has no end."""
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no file")
    return path.open("rb")


class Reader(Protocol):
    """Reads, decodes and preprocesses the items of a folder."""

    count: int  # of items: images, videos, sounds, places where a text can begin
    gives: frozenset[str]  # the inputs it makes
    classes: tuple[str, ...]  # the class folders, by label
    notes: list[str]  # what a reader of the result should know
    facts: Mapping[str, Any]  # how many files and classes there are

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        """Return one row of every input it makes, or raise UnreadableError."""

    def name(self, index: int) -> str: ...


class Walk:
    """Goes through a reader's items in a seeded order, past those that cannot be read."""

    def __init__(self, reader: Reader, seed: int, shuffle: bool = True) -> None:
        import numpy as np

        self._reader = reader
        self._bad: set[int] = set()
        self.skipped: dict[str, str] = {}
        self.order: list[int] = list(range(reader.count))
        if shuffle:
            random = np.random.Generator(np.random.PCG64([seed % 2**64, reader.count]))
            self.order = random.permutation(reader.count).tolist()

    def rows(self, saw: Saw, rounds: bool) -> Iterator[dict[str, Array]]:
        """Yield row after row; with `rounds` from the start again when all have been read."""
        while True:
            for index in self.order:
                if index in self._bad:
                    continue
                try:
                    yield self._reader.read(index, saw)
                except UnreadableError as error:
                    self._bad.add(index)
                    self.skipped[self._reader.name(index)] = str(error)
            if len(self._bad) == len(self.order):
                name, why = next(iter(self.skipped.items()), ("", "it is empty"))
                raise CaseError(
                    "data_unreadable",
                    f"None of the {len(self.order)} inputs can be read; {name}: {why}.",
                    "Check that the files are whole.",
                )
            if not rounds:
                return

    def batch(self, rows: Iterator[dict[str, Array]], size: int) -> dict[str, Array] | None:
        """Return the next rows as one batch, or None if too few are left."""
        import numpy as np

        taken = [row for _, row in zip(range(size), rows, strict=False)]
        if len(taken) < size:
            return None
        return {name: np.stack([row[name] for row in taken]) for name in taken[0]}


def ready_decoders() -> None:
    """Import the installed decoders.

    scipy.signal alone takes 20 MB: imported while a model is at work, it would count as its memory.
    """
    for module in ("PIL.Image", "soundfile", "scipy.signal", "tokenizers"):
        with suppress(ModuleNotFoundError):
            import_module(module)


def need(module: str, package: str, extra: str, needed_for: str) -> Any:
    """Import a module of an optional package, or raise MissingExtraError."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, extra, needed_for) from error


def number(value: int) -> Array:
    """Return a label's element of a row."""
    import numpy as np

    return np.asarray(value, np.int64)


def label_of(
    labels: InputSpec, classes: Sequence[str], what: str, notes: list[str]
) -> dict[str, int]:
    """Return a number for each class folder, in the order of their names; empty without classes."""
    if not classes:
        notes.append(f"The labels are drawn: the {what} do not all lie in class folders.")
        return {}
    room = labels.high - labels.low
    if len(classes) > room:
        raise UnsupportedError(
            "too_many_classes",
            f"The folder has {len(classes)} classes, and the model tells {room} apart.",
            "Use a folder with fewer classes, or another model.",
        )
    return {name: labels.low + number for number, name in enumerate(classes)}


SUFFIX = ".npz"
#: What NumPy raises of a header that is none, and of what it would have to unpickle.
NO_ARRAY = (ValueError, SyntaxError, TokenError)


@dataclass(frozen=True)
class StoredArray:
    """An array of a file; of whole numbers also their range."""

    dtype: str
    shape: tuple[int, ...]
    low: int | None = None
    high: int | None = None  # the first that is too large


def stored_arrays(path: Path) -> Mapping[str, StoredArray]:
    """Return the arrays of a file by name; raise UsageError if they cannot be fed."""
    import numpy as np

    if path.exists() and not path.is_file():
        raise _data_error(path, "is no file")  # a pipe or a device, which may have no end
    found: dict[str, StoredArray] = {}
    try:
        _weigh(path)
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                array = arrays[name]
                if not isinstance(array, np.ndarray):  # the bytes of a member that is none
                    raise _data_error(path, f"holds {in_quotes(name)}, which is no array")
                found[name] = _describe_array(array)
    except OSError as error:
        raise _data_error(path, f"cannot be read: {error.strerror or error}") from error
    except ARCHIVE_ERRORS as error:
        raise _data_error(path, "is no archive of arrays as numpy.savez writes it") from error
    except NO_ARRAY as error:
        raise _data_error(path, f"holds what is no plain array: {error}") from error
    except MemoryError as error:  # of a header: the archive itself has been weighed
        raise _data_error(path, "claims to hold more than it has") from error
    if not found:
        raise _data_error(path, "holds no array")
    return found


def _weigh(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        if again := named_twice(archive):
            raise _data_error(path, f"has {in_quotes(again)} twice")
        total = sum(entry.file_size for entry in archive.infolist())
    if total > LARGEST_BYTES:
        raise _data_error(path, f"would unpack to {total / 2**30:,.0f} GiB")


def named_twice(archive: zipfile.ZipFile) -> str:
    """Return a name that an archive has twice, of which readers take one, or ""."""
    seen = set[str]()
    for member in archive.namelist():
        name = member.removesuffix(".npy")
        if name in seen:
            return name
        seen.add(name)
    return ""


def _describe_array(array: Any) -> StoredArray:
    whole = array.dtype.kind in "iu" and array.size
    low, high = (int(array.min()), int(array.max()) + 1) if whole else (None, None)
    return StoredArray(str(array.dtype), tuple(array.shape), low, high)


def _data_error(path: Path, why: str) -> UsageError:
    return UsageError(
        f"The file of inputs {in_quotes(str(path))} {why}.",
        "Write it with numpy.savez(path, name=array, …), with the names of the model's inputs.",
    )


class DataFeed(ABC):
    """A reader of real inputs, with columns and evidence of the batch that it read last."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._columns: Mapping[str, Any] = {}
        self._details: Mapping[str, Any] = {}

    @abstractmethod
    def batch(self, case: Case) -> Mapping[str, Array]:
        """Return a case's inputs, or raise CaseError if the data is not its model's."""

    def columns(self) -> Mapping[str, Any]:
        return self._columns

    def details(self) -> Mapping[str, Any]:
        return self._details


class ArraysFeed(DataFeed):
    """The arrays of a file as a model's inputs; missing ones are drawn."""

    def __init__(self, path: str, seed: int, now_ns: Callable[[], int]) -> None:
        super().__init__(now_ns)
        self._path = Path(path)
        self._seed = seed

    def batch(self, case: Case) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return the inputs of a case, or raise CaseError if the file changed since the plan."""
        import numpy as np

        drawn = make_inputs(case.model, case.shapes, self._seed, case.mode)
        start = self._now_ns()
        try:
            with np.load(self._path, allow_pickle=False) as arrays:
                read = {name: arrays[name] for name in drawn if name in arrays.files}
        except (OSError, *ARCHIVE_ERRORS, *NO_ARRAY) as error:
            raise CaseError("data_unreadable", f"{self._path} cannot be read: {error}") from error
        self._columns = {
            "data_load_ms": (self._now_ns() - start) / 1e6,
            "data_digest": _digest(read),
        }
        for name, array in read.items():
            if array.shape != drawn[name].shape or array.dtype != drawn[name].dtype:
                raise CaseError(
                    "data_mismatch",
                    f"{name} of {self._path} is {array.dtype} {list(array.shape)}, not"
                    f" {drawn[name].dtype} {list(drawn[name].shape)}",
                    "Run it again: the file was changed.",
                )
        self._details = {"read": sorted(read), "drawn": sorted(set(drawn) - set(read))}
        return {**drawn, **read}


def _digest(arrays: Mapping[str, Any]) -> str:
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        whole.update(arrays[name].tobytes())
    return whole.hexdigest()

"""What every reader of real inputs does: one item from disk into one row of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.core.errors import CaseError, MissingExtraError, UnsupportedError
from accelbench.core.model import InputSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Hears the bytes that a row was made of.
Saw = Callable[[bytes], None]


class UnreadableError(Exception):
    """A single item cannot be decoded: it is skipped and counted."""


def contents(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        UnreadableError: it cannot be read, or is a pipe or a device, which would have no end.
    """
    try:
        with opened(path) as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(str(error)) from error


def opened(path: Path) -> BufferedReader:
    """A file opened to be read.

    Raises:
        UnreadableError: it is a pipe or a device, which would have no end, or no beginning.
        OSError: it cannot be read.
    """
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
        """One row of every input it makes. Raises UnreadableError."""
        ...

    def name(self, index: int) -> str:
        """The item, as people know it."""
        ...


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
        """Row after row; with `rounds` from the start again when all have been read.

        Raises:
            CaseError: not a single item can be read.
        """
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
        """The next rows as one batch; None where too few are left."""
        import numpy as np

        taken = [row for _, row in zip(range(size), rows, strict=False)]
        if len(taken) < size:
            return None
        return {name: np.stack([row[name] for row in taken]) for name in taken[0]}


def ready_decoders() -> None:
    """Import what is installed of the decoders.

    scipy.signal alone takes 20 MB: imported while a model is at work, they would
    be counted as its memory. What is missing is told of where it is needed.
    """
    for module in ("PIL.Image", "soundfile", "scipy.signal", "tokenizers"):
        with suppress(ModuleNotFoundError):
            import_module(module)


def need(module: str, package: str, extra: str, needed_for: str) -> Any:
    """A module of an optional package, or one sentence naming what brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, extra, needed_for) from error


def number(value: int) -> Array:
    """A label's element of a row."""
    import numpy as np

    return np.asarray(value, np.int64)


def label_of(
    labels: InputSpec, classes: Sequence[str], what: str, notes: list[str]
) -> dict[str, int]:
    """A number for each class folder, in the order of their names; empty where there are none.

    Raises:
        UnsupportedError: there are more classes than the model tells apart.
    """
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

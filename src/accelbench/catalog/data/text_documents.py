"""Texts with their labels, one after the other: a table, or a folder per class. Nothing is kept.

A table is .csv, .tsv or .jsonl with `text` and `label`, and `text_pair` where a sample is of two
texts. A row that is none is refused with its line; a file of a folder is skipped and counted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.rows import UnreadableError, opened
from accelbench.core.errors import UsageError
from accelbench.core.jsonc import loads
from accelbench.core.visible import in_quotes

if TYPE_CHECKING:
    from io import BufferedReader

#: What is a table whatever it holds; a .jsonl is one where its first record has a label.
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = tuple(_SEPARATORS)
_LINES = ".jsonl"
TEXT, PAIR, LABEL = "text", "text_pair", "label"
#: A text beyond that is none of a sample; it is held in memory.
LARGEST_TEXT = 2**24
_NUMBER = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True)
class TextDocument:
    """A text, what belongs to it, and its label as it is written."""

    name: str
    text: str
    pair: str | None = None
    label: str | None = None


class TextDocuments(Protocol):
    """Texts in an order that is the same on every machine."""

    path: Path
    kind: str  # table or folder
    skipped: dict[str, str]  # what could not be read, by name

    def all(self) -> Iterator[TextDocument | None]:
        """Each text; None in the place of one that cannot be read."""
        ...

    def labels(self) -> tuple[int, tuple[str, ...]]:
        """How many texts there are, and what their labels are, sorted."""
        ...


def is_text_table(path: Path) -> bool:
    """Whether a file is a table of texts with labels."""
    ending = path.suffix.lower()
    if ending in _SEPARATORS:
        return True
    if ending != _LINES or not path.is_file():
        return False
    try:
        with opened(path) as file:
            record = loads(file.readline(LARGEST_TEXT).decode("utf-8-sig"))
    except (OSError, ValueError, UnreadableError):
        return False
    return isinstance(record, Mapping) and LABEL in record


class TextTable:
    """A table of texts.

    Raises:
        UsageError: of whatever asks for its rows, where one is none.
    """

    kind = "table"

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        self.skipped: dict[str, str] = {}

    def all(self) -> Iterator[TextDocument | None]:
        """Each row."""
        ending = self.path.suffix.lower()
        rows = self._records() if ending == _LINES else self._cells(_SEPARATORS[ending])
        try:
            for line, row in rows:
                yield self._row(line, row)
        except UnreadableError as error:
            raise self._refused(str(error)) from error
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise self._refused("is not text in UTF-8") from error
        except csv.Error as error:
            raise self._refused(f"is no table: {error}") from error

    def labels(self) -> tuple[int, tuple[str, ...]]:
        """How many rows there are, and what their labels are, sorted."""
        count, found = 0, set[str]()
        for document in self.all():
            assert document is not None  # else it was refused
            assert document.label is not None
            count += 1
            found.add(document.label)
        if not count:
            raise self._refused("holds no sample")
        return count, tuple(sorted(found))

    def _cells(self, separator: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        csv.field_size_limit(LARGEST_TEXT)
        with opened(self.path):
            pass  # no pipe, which would have no end
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=separator)
            names = [name.strip() for name in next(rows, [])]
            for name in (TEXT, LABEL):
                if names.count(name) != 1:
                    heads = ", ".join(map(in_quotes, names)) or "nothing"
                    raise self._refused(f"has no column {name}: it has {heads}")
            for row in rows:
                if not row:
                    continue
                if len(row) != len(names):
                    raise self._refused(
                        f"has {len(row)} cells in line {rows.line_num}, not {len(names)}"
                    )
                yield rows.line_num, dict(zip(names, row, strict=True))

    def _records(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        with opened(self.path) as file:
            yield from _records_of(file)

    def _row(self, line: int, row: Mapping[str, Any]) -> TextDocument:
        label = row.get(LABEL)
        if isinstance(label, int) and not isinstance(label, bool):
            label = str(label)
        text, pair = row.get(TEXT), row.get(PAIR)
        if not isinstance(text, str):
            raise self._refused(f"has no {TEXT} in line {line}")
        if not isinstance(label, str) or not label.strip():
            raise self._refused(f"has no {LABEL} in line {line}")
        if pair is not None and not isinstance(pair, str):
            raise self._refused(f"has a {PAIR} in line {line} that is no text")
        return TextDocument(f"line {line}", text, pair, label.strip())

    def _refused(self, why: str) -> UsageError:
        return UsageError(
            f"The labelled text {in_quotes(str(self.path))} {why}.",
            f"It has a {TEXT} and a {LABEL} in every row, in UTF-8: .csv and .tsv begin with those"
            " names, .jsonl has them as keys.",
        )


class TextFiles:
    """The texts of a folder, or of one file: a .txt as a whole, of a .jsonl each line."""

    kind = "folder"

    def __init__(self, folder: Folder) -> None:
        self.path = folder.path
        self._entries = folder.texts
        self.skipped: dict[str, str] = {}

    def all(self) -> Iterator[TextDocument | None]:
        """Each text; None in the place of a file, or the rest of it, that cannot be read."""
        self.skipped = {}
        for entry in self._entries:
            try:
                yield from _documents(entry)
            except (OSError, ValueError, UnreadableError) as error:
                why = error.strerror if isinstance(error, OSError) else None
                self.skipped[entry.name] = why or str(error)
                yield None

    def labels(self) -> tuple[int, tuple[str, ...]]:
        """How many texts there are, and the classes of their folders, sorted."""
        return sum(1 for _ in self.all()), classes_of(self._entries)


def _documents(entry: Entry) -> Iterator[TextDocument]:
    with opened(entry.path) as file:
        if entry.path.suffix.lower() == _LINES:
            for line, record in _records_of(file):
                if not isinstance(record.get(TEXT), str):
                    raise UnreadableError(f"line {line} has no {TEXT}")
                name = f"{entry.name}, line {line}"
                yield TextDocument(name, record[TEXT], label=entry.label)
            return
        data = file.read(LARGEST_TEXT + 1)
    if len(data) > LARGEST_TEXT:
        raise UnreadableError(f"it has more than {LARGEST_TEXT >> 20} MiB")
    text = data.decode("utf-8-sig")
    if not text.strip():
        raise UnreadableError("it is empty")
    yield TextDocument(entry.name, text, label=entry.label)


def _records_of(file: BufferedReader) -> Iterator[tuple[int, Mapping[str, Any]]]:
    line = 0
    while data := file.readline(LARGEST_TEXT + 1):
        line += 1
        if len(data) > LARGEST_TEXT:
            raise UnreadableError(f"has more than {LARGEST_TEXT >> 20} MiB in line {line}")
        said = data.decode("utf-8-sig" if line == 1 else "utf-8")
        if not said.strip():
            continue
        try:
            record = loads(said)
        except ValueError as error:
            raise UnreadableError(f"has no JSON in line {line}") from error
        if not isinstance(record, Mapping):
            raise UnreadableError(f"has no object in line {line}")
        yield line, record


def numbers_of(labels: Sequence[str]) -> Mapping[str, int] | None:
    """Labels that are numbers already, as the model's own; None where they are names."""
    if all(_NUMBER.fullmatch(label) for label in labels):
        return {label: int(label) for label in labels}
    return None

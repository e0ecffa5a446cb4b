"""Rows of text, packed to the length of a case, and texts with labels.

A table is .csv, .tsv or .jsonl with `text` and `label`, and `text_pair` if a sample has two texts.
An invalid row is refused with its line; an unreadable file of a folder is skipped and counted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.core.errors import CaseError, UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.data.captions import Encoder, Fed, mask, pad_ids, start_id
from accelbench.models.data.folder import Entry, Folder, classes_of
from accelbench.models.data.rows import Saw, UnreadableError, label_of, number, open_regular

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


#: What is indexed at most; a sample of a corpus is as good as the whole for timing.
_MOST_BYTES = 16 * 2**20
#: A book may be one line; places to begin at are then this far apart.
_LONGEST = 4096
_CONTINUED = re.compile(b"[\x80-\xbf]")  # a byte of UTF-8 that begins no character
#: Read at once towards a row: about four characters a token, in most languages and tokenizers.
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class TextPlace:
    """Where a line of text begins."""

    file: int
    offset: int


class Corpus:
    """The lines of a folder's text files, in the order of their names."""

    def __init__(self, folder: Folder) -> None:
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []
        self.entries: list[Entry] = []
        self.places: list[TextPlace] = []
        self.total = len(folder.texts)
        left = _MOST_BYTES
        for entry in folder.texts:
            if left <= 0:
                self.notes.append(f"Of the text, the first {_MOST_BYTES >> 20} MiB are used.")
                break
            left -= self._index(entry, left)
        if not self.places:
            name, why = next(iter(self.skipped.items()), (str(folder.path), "it is empty"))
            raise CaseError(
                "data_unreadable", f"There is no text to read; {name}: {why}.",
                'Text is UTF-8 in .txt, or .jsonl with a key "text" in every line.',
            )  # fmt: skip

    def _index(self, entry: Entry, most: int) -> int:
        number, read = len(self.entries), 0
        places: list[TextPlace] = []
        try:
            with open_regular(entry.path) as file:
                for count, line in enumerate(_lines(entry, file), start=1):
                    if _line_text(entry, line, count).strip():
                        places.append(TextPlace(number, read))
                    read += len(line)
                    if read >= most:
                        break
        except (UnreadableError, OSError) as error:
            self.skipped[entry.name] = str(error)
            return read
        if places:
            self.entries.append(entry)
            self.places += places
        return read

    def firsts(self) -> list[TextPlace]:
        """Return the beginning of every document: of a .txt, or of each line of a .jsonl."""
        kept: list[TextPlace] = []
        for place in self.places:
            jsonl = self.entries[place.file].path.suffix.lower() == ".jsonl"
            if jsonl or not kept or kept[-1].file != place.file:
                kept.append(place)
        return kept

    def lines(self, place: TextPlace, saw: Saw, rounds: bool) -> Iterator[str]:
        """Yield lines from disk; after a file comes the next, after the last the first."""
        number, offset = place.file, place.offset
        while True:
            entry = self.entries[number]
            try:
                with open_regular(entry.path) as file:
                    file.seek(offset)
                    for line in _lines(entry, file):
                        saw(line)
                        yield _line_text(entry, line)
                        if not rounds and entry.path.suffix.lower() == ".jsonl":
                            return
            except OSError as error:
                raise UnreadableError(str(error)) from error
            if not rounds:
                return
            number, offset = (number + 1) % len(self.entries), 0

    def sample(self) -> Iterator[str]:
        """Yield everything once, from the first line on, to learn a tokenizer from."""
        for entry in self.entries:
            with open_regular(entry.path) as file:
                for line in _lines(entry, file):
                    yield _line_text(entry, line)


def _lines(entry: Entry, file: BufferedReader) -> Iterator[bytes]:
    """Yield a file's lines; a very long line of plain text in parts, cut between characters."""
    if entry.path.suffix.lower() == ".jsonl":
        yield from file
        return
    while line := file.readline(_LONGEST):
        while line[-1:] != b"\n" and _CONTINUED.match(file.peek(1)[:1]):
            line += file.read(1)
        yield line


def _line_text(entry: Entry, line: bytes, count: int | None = None) -> str:
    try:
        text = line.decode("utf-8")
        if entry.path.suffix.lower() != ".jsonl":
            return text
        if not text.strip():
            return ""
        record = loads(text)
    except JsonError as error:
        raise UnreadableError(f"{_line(count)}: {error.message}") from error
    except ValueError as error:
        raise UnreadableError(f"{_line(count)}: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise UnreadableError(f'{_line(count)} has no "text"')
    return f"{record['text']}\n"


def _line(count: int | None) -> str:
    return "a line" if count is None else f"line {count}"


class TextReader:
    """One item is a line to begin at, or a document if each has a label."""

    def __init__(
        self, folder: Folder, corpus: Corpus, spec: ModelSpec, fed: Fed, encoder: Encoder
    ) -> None:
        self._corpus, self._spec, self._encoder, self._fed = corpus, spec, encoder, fed
        self.notes = [*corpus.notes, encoder.note]
        if corpus.skipped:
            bad, name = len(corpus.skipped), next(iter(corpus.skipped))
            self.notes.append(
                f"Skipped, as unreadable: {bad} of {corpus.total} texts; {name}:"
                f" {corpus.skipped[name]}."
            )
        self.classes = classes_of(corpus.entries)
        labels = fed.get("labels")
        self._labels: dict[str, int] = {}
        if labels is not None and len(labels[1]) == 1:
            self._labels = label_of(labels[0], self.classes, "texts", self.notes)
        self._places = corpus.firsts() if self._labels else corpus.places
        self.count = len(self._places)
        self._decoder = self._of("decoder_input_ids")
        self._targets = self._of("labels")
        self.gives = frozenset(
            {"input_ids"}
            | ({"attention_mask"} & set(fed) if self._labels else set())
            | ({"decoder_input_ids"} if self._decoder else set())
            | ({"labels"} if self._labels or self._targets else set())
        )
        self.facts: Mapping[str, Any] = {
            "kind": "text",
            "files": corpus.total,
            "classes": len(self.classes),
            "places": self.count,
        }

    def _of(self, name: str) -> tuple[InputSpec, tuple[int, ...]] | None:
        pair = self._fed.get(name)
        drawn = pair is not None and pair[0].constant is None and pair[0].lead is None
        return pair if drawn and pair is not None and len(pair[1]) == 2 else None

    def name(self, index: int) -> str:
        place = self._places[index]
        return f"{self._corpus.entries[place.file].name} from byte {place.offset}"

    def read(self, index: int, saw: Saw) -> dict[str, Array]:
        place = self._places[index]
        if self._labels:
            return self._document(place, saw)
        return self._packed(place, saw)

    def _document(self, place: TextPlace, saw: Saw) -> dict[str, Array]:
        spec, shape = self._fed["input_ids"]
        text = "".join(self._corpus.lines(place, saw, rounds=False))
        row, used = pad_ids(self._encoder.marked(text), spec, shape[1])
        made = {"input_ids": row}
        if "attention_mask" in self.gives:
            made["attention_mask"] = mask(used, shape[1])
        made["labels"] = number(self._labels[self._corpus.entries[place.file].label])
        return made

    def _packed(self, place: TextPlace, saw: Saw) -> dict[str, Array]:
        spec, shape = self._fed["input_ids"]
        decoder, targets = self._decoder, self._targets
        after = decoder[1][1] if decoder else 0
        answer = max(after, targets[1][1] if targets else 0) if decoder else 0
        ids = self._ids(place, shape[1] + answer, saw)
        row, _ = pad_ids(ids[: shape[1]], spec, shape[1])
        made = {"input_ids": row}
        if decoder:
            tokens = [start_id(self._spec, decoder[0]), *ids[shape[1] :]]
            made["decoder_input_ids"], _ = pad_ids(tokens, decoder[0], after)
        if targets:
            source = ids[shape[1] :] if decoder else ids
            made["labels"], _ = pad_ids(source, targets[0], targets[1][1])
        return made

    def _ids(self, place: TextPlace, count: int, saw: Saw) -> list[int]:
        ids: list[int] = []
        text = ""
        for line in self._corpus.lines(place, saw, rounds=True):
            text += line
            if len(text) >= _CHARACTERS_A_TOKEN * (count - len(ids)):
                ids += self._encoder.plain(text)
                text = ""
                if len(ids) >= count:
                    break
        return ids[:count]


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
    """A text, its pair, and its label as written."""

    name: str
    text: str
    pair: str | None = None
    label: str | None = None


class TextDocuments(Protocol):
    """Texts in an order that is the same on every machine."""

    path: Path
    kind: str  # table or folder
    skipped: dict[str, str]  # what could not be read, by name

    def all(self) -> Iterator[TextDocument | None]: ...

    def labels(self) -> tuple[int, tuple[str, ...]]: ...


def is_text_table(path: Path) -> bool:
    """Return whether a file is a table of texts with labels."""
    ending = path.suffix.lower()
    if ending in _SEPARATORS:
        return True
    if ending != _LINES or not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            record = loads(file.readline(LARGEST_TEXT).decode("utf-8-sig"))
    except (OSError, ValueError, UnreadableError):
        return False
    return isinstance(record, Mapping) and LABEL in record


class TextTable:
    """A table of texts. Reading a row raises UsageError if it is invalid."""

    kind = "table"

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        self.skipped: dict[str, str] = {}

    def all(self) -> Iterator[TextDocument | None]:
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
        with open_regular(self.path):
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
        with open_regular(self.path) as file:
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
        self.skipped = {}
        for entry in self._entries:
            try:
                yield from _documents(entry)
            except (OSError, ValueError, UnreadableError) as error:
                why = error.strerror if isinstance(error, OSError) else None
                self.skipped[entry.name] = why or str(error)
                yield None

    def labels(self) -> tuple[int, tuple[str, ...]]:
        return sum(1 for _ in self.all()), classes_of(self._entries)


def _documents(entry: Entry) -> Iterator[TextDocument]:
    with open_regular(entry.path) as file:
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
    """Return labels that are numbers, or None if they are names."""
    if all(_NUMBER.fullmatch(label) for label in labels):
        return {label: int(label) for label in labels}
    return None

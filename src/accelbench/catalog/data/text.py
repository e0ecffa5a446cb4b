"""Rows of text: read from a place on, turned into ids, packed to the length of a case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.captions import Fed, mask, padded, start_id
from accelbench.catalog.data.encoding import Encoder
from accelbench.catalog.data.folder import Entry, Folder, classes_of
from accelbench.catalog.data.rows import Saw, UnreadableError, label_of, number, opened
from accelbench.core.errors import CaseError
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.model import InputSpec, ModelSpec

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
            with opened(entry.path) as file:
                for count, line in enumerate(_lines(entry, file), start=1):
                    if _said(entry, line, count).strip():
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
        """The beginning of every document: of a .txt as a whole, of each line of a .jsonl."""
        kept: list[TextPlace] = []
        for place in self.places:
            jsonl = self.entries[place.file].path.suffix.lower() == ".jsonl"
            if jsonl or not kept or kept[-1].file != place.file:
                kept.append(place)
        return kept

    def lines(self, place: TextPlace, saw: Saw, rounds: bool) -> Iterator[str]:
        """Line after line, read from disk; at the end of a file comes the next, after the last
        the first.
        """
        number, offset = place.file, place.offset
        while True:
            entry = self.entries[number]
            try:
                with opened(entry.path) as file:
                    file.seek(offset)
                    for line in _lines(entry, file):
                        saw(line)
                        yield _said(entry, line)
                        if not rounds and entry.path.suffix.lower() == ".jsonl":
                            return
            except OSError as error:
                raise UnreadableError(str(error)) from error
            if not rounds:
                return
            number, offset = (number + 1) % len(self.entries), 0

    def sample(self) -> Iterator[str]:
        """Everything once, from the first line on: what a tokenizer is learned from."""
        for entry in self.entries:
            with opened(entry.path) as file:
                for line in _lines(entry, file):
                    yield _said(entry, line)


def _lines(entry: Entry, file: BufferedReader) -> Iterator[bytes]:
    """A file's lines; a very long one of plain text in parts, cut between two characters."""
    if entry.path.suffix.lower() == ".jsonl":
        yield from file
        return
    while line := file.readline(_LONGEST):
        while line[-1:] != b"\n" and _CONTINUED.match(file.peek(1)[:1]):
            line += file.read(1)
        yield line


def _said(entry: Entry, line: bytes, count: int | None = None) -> str:
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
    """One item is a line to begin at, or a document where each has a label."""

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
        row, used = padded(self._encoder.marked(text), spec, shape[1])
        made = {"input_ids": row}
        if "attention_mask" in self.gives:
            made["attention_mask"] = mask(used, shape[1])
        made["labels"] = number(self._labels[self._corpus.entries[place.file].label])
        return made

    def _packed(self, place: TextPlace, saw: Saw) -> dict[str, Array]:
        """Text without gaps; what follows it is what a decoder is to write."""
        spec, shape = self._fed["input_ids"]
        decoder, targets = self._decoder, self._targets
        after = decoder[1][1] if decoder else 0
        answer = max(after, targets[1][1] if targets else 0) if decoder else 0
        ids = self._ids(place, shape[1] + answer, saw)
        row, _ = padded(ids[: shape[1]], spec, shape[1])
        made = {"input_ids": row}
        if decoder:
            tokens = [start_id(self._spec, decoder[0]), *ids[shape[1] :]]
            made["decoder_input_ids"], _ = padded(tokens, decoder[0], after)
        if targets:
            source = ids[shape[1] :] if decoder else ids
            made["labels"], _ = padded(source, targets[0], targets[1][1])
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

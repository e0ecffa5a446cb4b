"""Labelled text: a table or a folder per class, in the ids of the model's own tokenizer.

Plain text has labels of its own for a model that writes: each token is what the ones before it
should have led to. It is cut into windows of the case's length that do not overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.beside import folders_beside, numbered
from accelbench.catalog.data.labelled import chosen
from accelbench.catalog.data.own_tokenizer import OwnTokenizer, TokenizedText
from accelbench.catalog.data.text_documents import TextDocument, TextDocuments, numbers_of
from accelbench.catalog.data.text_inputs import text_inputs
from accelbench.catalog.losses import IGNORED
from accelbench.core.case import Case
from accelbench.core.errors import CaseError, UsageError
from accelbench.core.job_settings import JobSettings

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: Names of skipped files that a result carries; all are counted.
_NAMED = 5
#: Characters that are told the ids of at once: a document that is longer is cut at a line's end.
_AT_ONCE = 2**20


class _Text:
    """What both have: documents, a model's inputs, and the tokenizer between them."""

    def __init__(self, documents: TextDocuments, case: Case, settings: JobSettings) -> None:
        self._documents = documents
        self._folders = folders_beside(case.model, settings)
        self._inputs = text_inputs(case)
        self._tokenizer = OwnTokenizer(settings.preprocessing, self._folders, case.model.id)
        self._sum = hashlib.sha256()

    def _begin(self) -> None:
        self._sum = hashlib.sha256(f"{type(self).__name__} {self._inputs.length}".encode())

    def _hear(self, row: Mapping[str, Array], label: Array) -> None:
        for name in sorted(row):
            self._sum.update(name.encode() + row[name].tobytes())
        self._sum.update(label.tobytes())

    @property
    def _skipped(self) -> list[str]:
        skipped = self._documents.skipped
        return [f"Skipped, as unreadable: {len(skipped)} of the texts."] if skipped else []

    def _told(self) -> dict[str, Any]:
        return {
            "kind": "text",
            "documents": self._documents.kind,
            "tokenizer": self._tokenizer.digest,
            "tokens_a_text": self._inputs.length,
            "filled_with": self._tokenizer.pad,
            "skipped": dict(list(self._documents.skipped.items())[:_NAMED]),
        }

    def digest(self) -> str:
        return self._sum.hexdigest()[:16]


class LabelledTexts(_Text):
    """Texts, each of one class.

    Args:
        documents: with their labels.
        case: whose model is fed.
        settings: of the job.
    """

    def __init__(self, documents: TextDocuments, case: Case, settings: JobSettings) -> None:
        super().__init__(documents, case, settings)
        try:
            self._all, names = documents.labels()
        except UsageError as error:  # it was another file when the run was planned
            raise CaseError("data_unreadable", error.message, error.advice) from error
        numbers = numbers_of(names) if documents.kind == "table" else None
        self.classes: int | None = None
        self._by = "their labels, which are the model's own numbers"
        if numbers is None:
            root = documents.path if documents.path.is_dir() else documents.path.parent
            numbers, self.classes, self._by = numbered(root, names, case.model, self._folders)
        self._numbers = numbers
        self._places = chosen(self._all, settings.accuracy_samples, settings.seed)
        self.count: int | None = len(self._places)
        self._cut = self._filled = 0

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know; what was cut is known once all was read."""
        length, pad = self._inputs.length, self._tokenizer.pad
        how = f"Text is in {length} ids of the {self._tokenizer.name}"
        mask = "" if self._inputs.masks else ", which no mask of the model leaves out"
        filled = f", {self._filled} filled up with the id {pad or 0}{mask}" if self._filled else ""
        notes = [f"{how}: {self._cut} of {self.count} were cut{filled}."]
        notes.append(f"Classes are numbered by {self._by}.")
        if self.count != self._all:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        return notes + self._skipped

    @property
    def facts(self) -> Mapping[str, Any]:
        """How they were made into inputs."""
        return {
            **self._told(),
            "texts": self._all,
            "cut": self._cut,
            "classes_by": self._by,
            "classes_in_data": len(self._numbers),
        }

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        import numpy as np

        self._begin()
        self._cut = self._filled = read = 0
        places = iter(self._places)
        wanted = next(places, None)
        for place, document in enumerate(self._documents.all()):
            if wanted is None:
                break
            if place != wanted:
                continue
            wanted = next(places, None)
            if document is None:
                continue
            read += 1
            row = self._row(document)
            label = np.asarray(self._numbers[document.label or ""], np.int64)
            self._hear(row, label)
            yield row, label
        if not read:
            why = next(iter(self._documents.skipped.values()), "there is none")
            raise CaseError(
                "data_unreadable", f"None of the texts can be read: {why}.", "Write it in UTF-8."
            )

    def _row(self, document: TextDocument) -> dict[str, Array]:
        made = self._tokenizer.fitted(document.text, document.pair, self._inputs.length)
        self._refuse_unfed(made)
        self._cut += made.cut
        self._filled += 0 in made.mask
        return self._inputs.row(made.ids, made.mask, made.types)

    def _refuse_unfed(self, made: TokenizedText) -> None:
        if 0 in made.mask and not self._inputs.masks and self._tokenizer.pad is None:
            raise CaseError(
                "data_mismatch",
                f"Nothing says which id fills a text up to {self._inputs.length}, and the model has"
                " no mask.",
                "Write pad_token into tokenizer_config.json beside the tokenizer.",
            )
        if any(made.types) and not self._inputs.types:
            raise CaseError(
                "data_mismatch",
                "A sample is of two texts, and the model has no input that tells one from the"
                " other, as token_type_ids does.",
                "Use a model that was exported with it.",
            )


class TextWindows(_Text):
    """Plain text, in windows of tokens of which each is predicted from those before it.

    Args:
        documents: whose labels do not matter.
        case: whose model is fed.
        settings: of the job.
    """

    classes: int | None = None

    def __init__(self, documents: TextDocuments, case: Case, settings: JobSettings) -> None:
        super().__init__(documents, case, settings)
        self._most, self._seed = settings.accuracy_samples, settings.seed
        self.count: int | None = None
        self._all: int | None = None

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know."""
        how = f"Text is in windows of {self._inputs.length} ids of the {self._tokenizer.name}"
        notes = [
            f"{how}, which do not overlap; the first of each has nothing before it to be told from."
        ]
        if self.count != self._all:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        return notes + self._skipped

    @property
    def facts(self) -> Mapping[str, Any]:
        """How they were made into inputs."""
        return {**self._told(), "windows": self.count}

    def rows(self) -> Iterator[tuple[Mapping[str, Array], Array]]:
        import numpy as np

        self._begin()
        places: set[int] | None = None
        if self._most is not None:
            self._all = sum(1 for _ in self._windows())
            places = set(chosen(self._all, self._most, self._seed))
        length, pad = self._inputs.length, self._tokenizer.pad or 0
        read = whole = 0
        for place, ids in enumerate(self._windows()):
            whole += 1
            if places is not None and place not in places:
                continue
            read += 1
            left = length - len(ids)
            mask = [1] * len(ids) + [0] * left
            row = self._inputs.row([*ids, *[pad] * left], mask, [0] * length)
            label = np.asarray([*ids, *[IGNORED] * left], np.int64)
            self._hear(row, label)
            yield row, label
        self.count, self._all = read, whole
        if not read:
            why = next(iter(self._documents.skipped.values()), "it has no two tokens")
            raise CaseError(
                "data_unreadable", f"There is no text to predict: {why}.", "Write it in UTF-8."
            )

    def _windows(self) -> Iterator[Sequence[int]]:
        length = self._inputs.length
        for document in self._documents.all():
            ids: list[int] = []
            for more in self._ids("" if document is None else document.text):
                ids += more
                while len(ids) >= length:
                    yield ids[:length]
                    del ids[:length]
            if len(ids) > 1:
                yield ids

    def _ids(self, text: str) -> Iterator[list[int]]:
        """The ids of a document with its marks, a part of it at a time."""
        at = 0
        while at < len(text):
            end = len(text)
            if end - at > _AT_ONCE:
                end = text.rfind("\n", at, at + _AT_ONCE) + 1 or at + _AT_ONCE
            before, ids, behind = self._tokenizer.parts(text[at:end])
            yield [*(before if at == 0 else []), *ids, *(behind if end == len(text) else [])]
            at = end

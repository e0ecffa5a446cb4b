"""Labelled text: a table or a folder per class, in the ids of the model's own tokenizer.

Plain text labels itself for a model that writes: each token follows from those before it. It is cut
into windows of the case's length that do not overlap. No tokenizer is learned or guessed: other ids
would be another model's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.case import Case
from accelbench.core.errors import CaseError, UsageError
from accelbench.core.model import InputSpec
from accelbench.core.run_options import JobSettings
from accelbench.core.safe_text import in_quotes
from accelbench.models.data.folder import folders_beside, number_classes, read_beside
from accelbench.models.data.labelled import chosen
from accelbench.models.data.rows import need
from accelbench.models.data.text import TextDocument, TextDocuments, numbers_of
from accelbench.models.inputs import input_shapes, tensors
from accelbench.models.losses import IGNORED

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


TOKENIZER = "tokenizer.json"
ADVICE = (
    f"Put its {TOKENIZER} beside it, as tokenizer.save_pretrained(folder) of transformers writes"
    " it, or name one with --preprocessing."
)
#: What fills a text up is called so by most tokenizers whose files do not say it.
_PADS = ("[PAD]", "<pad>")


@dataclass(frozen=True)
class TokenizedText:
    """A text as ids of one length."""

    ids: Sequence[int]  # with the tokenizer's marks, filled up to the length
    mask: Sequence[int]  # 1 where an id counts
    types: Sequence[int]  # 0 of a first text, 1 of a second
    cut: bool  # whether the text was longer


class OwnTokenizer:
    """A tokenizer.json and its padding: the one that was asked for, or the nearest to the model."""

    def __init__(self, asked: str | None, folders: Sequence[Path], what: str) -> None:
        tokenizers = need("tokenizers", "tokenizers", "data", "Reading text")
        path = _path(asked, folders, what)
        try:
            data = path.read_bytes()
            self._tokenizer = tokenizers.Tokenizer.from_buffer(data)
        except Exception as error:  # a parser of foreign bytes raises whatever it likes
            raise CaseError(
                "tokenizer_unreadable",
                f"{in_quotes(str(path))} is no tokenizer that can be read: {_line(error)}.",
                ADVICE,
            ) from error
        self.digest = hashlib.sha256(data).hexdigest()[:16]
        self.name = path.name if asked is not None else f"{TOKENIZER} beside the model"
        beside = [path.parent, *folders]
        self._side = _side(self._tokenizer, read_beside(beside, "tokenizer_config.json"))
        self.pad = _pad(self._tokenizer, beside)
        self._length = 0
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def fitted(self, text: str, pair: str | None, length: int) -> TokenizedText:
        """Return a text (and its pair) of one length; the tokenizer cuts, so that marks stay."""
        if length != self._length:
            self._tokenizer.enable_truncation(length)
            self._tokenizer.enable_padding(
                direction=self._side, pad_id=self.pad or 0, length=length
            )
            self._length = length
        made = self._tokenizer.encode(text, pair)
        return TokenizedText(made.ids, made.attention_mask, made.type_ids, bool(made.overflowing))

    def parts(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """Return the marks before a text, its ids, and the marks after it; nothing is cut."""
        if self._length:
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            self._length = 0
        made = self._tokenizer.encode(text)
        marks, ids = made.special_tokens_mask, list(made.ids)
        first, last = 0, len(ids)
        while first < last and marks[first]:
            first += 1
        while last > first and marks[last - 1]:
            last -= 1
        return ids[:first], ids[first:last], ids[last:]


def _path(asked: str | None, folders: Sequence[Path], what: str) -> Path:
    if asked is not None:
        return Path(asked)
    for folder in folders:
        if (folder / TOKENIZER).is_file():
            return folder / TOKENIZER
    raise CaseError(
        "data_mismatch", f"Nothing says how {what} takes text: there is no {TOKENIZER} beside it.",
        ADVICE,
    )  # fmt: skip


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0]


def _side(tokenizer: Any, config: Mapping[str, Any]) -> str:
    known = tokenizer.padding
    side = known["direction"] if known else config.get("padding_side")
    return "left" if side == "left" else "right"


def _pad(tokenizer: Any, folders: Sequence[Path]) -> int | None:
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    named = read_beside(folders, "tokenizer_config.json").get("pad_token")
    word = named.get("content") if isinstance(named, Mapping) else named
    if isinstance(word, str) and (found := tokenizer.token_to_id(word)) is not None:
        return int(found)
    told = read_beside(folders, "config.json").get("pad_token_id")
    if isinstance(told, int) and told >= 0:
        return told
    return next((i for word in _PADS if (i := tokenizer.token_to_id(word)) is not None), None)


_MASK = re.compile("mask", re.IGNORECASE)
_TYPES = re.compile(r"token_type|segment|type_ids", re.IGNORECASE)
_POSITIONS = re.compile(r"position", re.IGNORECASE)
#: What a mask holds where ids count: a floating one of zeros is added, and 1 would leave out none.
_LETS_THROUGH: Mapping[bool, tuple[float | None, ...]] = {False: (1, 0, None), True: (1, None)}


@dataclass(frozen=True)
class TextInputs:
    """The inputs of [batch, sequence] that a text gives."""

    ids: InputSpec  # takes the ids
    length: int  # of a text in ids
    known: int | None  # the first id that the model does not know; None if nothing states it
    masks: Mapping[str, tuple[str, int]]  # which ids count; each with its value there
    types: Mapping[str, str]  # tell a first text from a second
    positions: Mapping[str, str]  # count the ids

    def row(
        self, ids: Sequence[int], mask: Sequence[int], types: Sequence[int]
    ) -> dict[str, Array]:
        import numpy as np

        self._check(ids)
        counts = np.asarray(mask, np.int64)
        made = {self.ids.name: np.asarray(ids).astype(self.ids.dtype)}
        for name, (dtype, there) in self.masks.items():
            made[name] = (counts if there else 1 - counts).astype(dtype)
        for name, dtype in self.types.items():
            made[name] = np.asarray(types).astype(dtype)
        for name, dtype in self.positions.items():
            made[name] = np.maximum(counts.cumsum() - 1, 0).astype(dtype)
        return made

    def _check(self, ids: Sequence[int]) -> None:
        if self.known is not None and max(ids) >= self.known:
            raise CaseError(
                "tokenizer_mismatch",
                f"The tokenizer gives the id {max(ids)}, and the model knows {self.known}.",
                "Use the tokenizer.json that belongs to the weights.",
            )


def text_inputs(case: Case) -> TextInputs:
    """Return the inputs of a case that a text gives; refuse a case with others that matter."""
    shapes = input_shapes(case.model, case.shapes, case.mode)
    masks, types, positions = dict[str, tuple[str, int]](), dict[str, str](), dict[str, str]()
    open_: list[InputSpec] = []
    for tensor in tensors(case.model, case.shapes, case.mode):
        shape, name, dtype = shapes[tensor.name], tensor.name, tensor.dtype
        dtype = "float32" if dtype == "float" else dtype
        alike = len(shape) == 2 and shape[0] == case.shapes.batch
        if alike and _MASK.search(name) and tensor.constant in _LETS_THROUGH[dtype[0] == "f"]:
            masks[name] = (dtype, 1 if tensor.constant is None else int(tensor.constant))
        elif alike and _TYPES.search(name):
            types[name] = dtype
        elif alike and _POSITIONS.search(name):
            positions[name] = dtype
        elif tensor.constant is None and tensor.row is None:
            open_.append(tensor)
    if len(open_) == 1 and open_[0].dtype in ("int64", "int32"):
        ids, shape = open_[0], shapes[open_[0].name]
        beside = [*masks, *types, *positions]
        fits = all(shapes[name] == shape for name in beside)
        if len(shape) == 2 and shape[0] == case.shapes.batch and fits and ids.lead is None:
            known = None if case.model.code is not None or not ids.high else ids.high
            return TextInputs(ids, shape[1], known, masks, types, positions)
    taken = ", ".join(f"{t.name} {list(shapes[t.name])}" for t in open_) or "nothing that is open"
    raise CaseError(
        "data_mismatch",
        f"{case.model.id} takes {taken}, which no text of one input of ids is.",
        "Store its inputs and labels in an .npz file, and name that with --data.",
    )


#: Names of skipped files that a result carries; all are counted.
_NAMED = 5
#: Characters that are told the ids of at once: a document that is longer is cut at a line's end.
_AT_ONCE = 2**20


class _Text:
    """Documents, a model's inputs, and the tokenizer between them."""

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
    """Texts, each of one class."""

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
            numbers, self.classes, self._by = number_classes(root, names, case.model, self._folders)
        self._numbers = numbers
        self._places = chosen(self._all, settings.accuracy_samples, settings.seed)
        self.count: int | None = len(self._places)
        self._cut = self._filled = 0

    @property
    def notes(self) -> list[str]:
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
    """Plain text in windows of tokens, each predicted from those before it."""

    classes: int | None = None

    def __init__(self, documents: TextDocuments, case: Case, settings: JobSettings) -> None:
        super().__init__(documents, case, settings)
        self._most, self._seed = settings.accuracy_samples, settings.seed
        self.count: int | None = None
        self._all: int | None = None

    @property
    def notes(self) -> list[str]:
        how = f"Text is in windows of {self._inputs.length} ids of the {self._tokenizer.name}"
        notes = [
            f"{how}, which do not overlap; the first of each has nothing before it to be told from."
        ]
        if self.count != self._all:
            notes.append(f"{self.count} of {self._all} samples were drawn for accuracy.")
        return notes + self._skipped

    @property
    def facts(self) -> Mapping[str, Any]:
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
        at = 0
        while at < len(text):
            end = len(text)
            if end - at > _AT_ONCE:
                end = text.rfind("\n", at, at + _AT_ONCE) + 1 or at + _AT_ONCE
            before, ids, behind = self._tokenizer.parts(text[at:end])
            yield [*(before if at == 0 else []), *ids, *(behind if end == len(text) else [])]
            at = end

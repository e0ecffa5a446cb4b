"""From text to ids: the tokenizer of a folder of weights, or one learned from the text itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from accelbench.catalog.data.rows import need
from accelbench.core.errors import CaseError, UnsupportedError

#: More text teaches a vocabulary little: 1 MB gives 13,000 ids, in 0.3 s on one core.
_LEARNED_FROM = 4 * 2**20


class Encoder(Protocol):
    """Turns text into ids of a model's vocabulary."""

    note: str  # where it comes from

    def plain(self, text: str) -> list[int]:
        """The ids of the text alone."""
        ...

    def marked(self, text: str) -> list[int]:
        """With the marks that the tokenizer puts around a text."""
        ...


class _Ids:
    """A tokenizer whose ids are held within a model's."""

    def __init__(self, tokenizer: Any, low: int, top: int, note: str) -> None:
        self._tokenizer = tokenizer
        self._low, self._top = low, top
        self.note = note

    def plain(self, text: str) -> list[int]:
        return self._checked(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def marked(self, text: str) -> list[int]:
        return self._checked(self._tokenizer.encode(text, add_special_tokens=True).ids)

    def _checked(self, ids: list[int]) -> list[int]:
        if ids and max(ids) + self._low >= self._top:
            raise UnsupportedError(
                "tokenizer_mismatch",
                f"The tokenizer gives the id {max(ids)}, and the model knows {self._top}.",
                "Use the tokenizer.json that belongs to the weights.",
            )
        return [i + self._low for i in ids] if self._low else ids


def encoder_for(weights: str, text: Iterable[str], low: int, high: int, marks: int) -> Encoder:
    """The tokenizer beside the weights, else one learned from the text.

    Args:
        weights: a folder with tokenizer.json, or anything else.
        text: what a tokenizer is learned from; the same text gives the same ids.
        low: the first id that text may have.
        high: the first id beyond them.
        marks: the first id beyond those that a tokenizer of the model's own may use as marks.

    Raises:
        UnsupportedError: the vocabulary has no room for the 256 bytes.
        CaseError: tokenizer.json cannot be read.
    """
    tokenizers = need("tokenizers", "tokenizers", "data", "Reading text")
    file = Path(weights).expanduser() / "tokenizer.json"
    if file.is_file():
        try:
            own = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:
            raise CaseError(
                "tokenizer_unreadable", f"{file} cannot be read: {error}.",
                "Check that the file is whole.",
            ) from error  # fmt: skip
        own.no_padding()
        own.no_truncation()
        return _Ids(own, 0, marks, "Text is in ids of the tokenizer.json beside the weights.")
    learned = _learned(tokenizers, text, high - low)
    size = learned.get_vocab_size()
    return _Ids(
        learned, low, high,
        f"The weights come without a tokenizer: a byte-level BPE of {size} ids was learned from "
        f"the text, of the {high - low} that the model knows.",
    )  # fmt: skip


def _learned(tokenizers: Any, text: Iterable[str], size: int) -> Any:
    if size < 256:
        raise UnsupportedError(
            "vocabulary_too_small",
            f"The model knows {size} ids, too few for the 256 bytes of text.",
            "Leave out --data.",
        )
    bytes_of = tokenizers.pre_tokenizers.ByteLevel
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = bytes_of(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=bytes_of.alphabet()
    )
    made.train_from_iterator(_beginning(text), trainer)
    return made


def _beginning(text: Iterable[str]) -> Iterable[str]:
    left = _LEARNED_FROM
    for part in text:
        yield part[:left]
        left -= len(part)
        if left <= 0:
            return

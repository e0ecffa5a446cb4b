"""Texts of pictures and sounds as ids, and the tokenizer that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.models.data.rows import need
from accelbench.models.losses import IGNORED

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


#: More text teaches a vocabulary little: 1 MB gives 13,000 ids, in 0.3 s on one core.
_LEARNED_FROM = 4 * 2**20


class Encoder:
    """Turns text into ids of a model's vocabulary."""

    def __init__(self, tokenizer: Any, low: int, top: int, note: str) -> None:
        self._tokenizer = tokenizer
        self._low, self._top = low, top
        self.note = note  # where it comes from

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
    """Return the tokenizer next to the weights, or one learned from the text.

    The same text gives the same ids, from `low` to below `high`; a tokenizer of the model's own may
    use ids below `marks` as marks. Raises UnsupportedError if the vocabulary has no room for the
    256 bytes.
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
        return Encoder(own, 0, marks, "Text is in ids of the tokenizer.json beside the weights.")
    learned = _train_tokenizer(tokenizers, text, high - low)
    size = learned.get_vocab_size()
    return Encoder(
        learned, low, high,
        f"The weights come without a tokenizer: a byte-level BPE of {size} ids was learned from "
        f"the text, of the {high - low} that the model knows.",
    )  # fmt: skip


def _train_tokenizer(tokenizers: Any, text: Iterable[str], size: int) -> Any:
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


Fed = Mapping[str, tuple[InputSpec, tuple[int, ...]]]

#: The letters of wav2vec2's published vocabulary by number; 0 is the blank, 1 to 3 are markers,
#: 4 stands between words.
_LETTERS = {c: i for i, c in enumerate("|ETAONIHSRDLUMWCFGYPBVK'XJQZ", start=4)}


def tokenize_caption(fed: Fed) -> InputSpec | None:
    """Return the ids that a caption becomes, or None if the model takes none.

    Ids with places for an image are a prompt, not a caption.
    """
    for name in ("input_ids", "decoder_input_ids"):
        if name in fed:
            spec, shape = fed[name]
            if spec.lead is None and spec.constant is None and len(shape) == 2:
                return spec if spec.shape[0] == "batch" else None
    return None


class Captions:
    """Rows of ids, mask, decoder ids and labels of one text."""

    def __init__(self, spec: ModelSpec, fed: Fed, encoder: Encoder) -> None:
        ids = tokenize_caption(fed)
        self._encoder = encoder
        self._ids = fed["input_ids"] if ids and ids.name == "input_ids" else None
        self._decoder = fed["decoder_input_ids"] if ids and self._ids is None else None
        self._mask = fed.get("attention_mask") if self._ids else None
        labels = fed.get("labels")
        self._labels = labels if self._decoder and labels and len(labels[1]) == 2 else None
        self._start = start_id(spec, self._decoder[0]) if self._decoder else 0
        parts = (self._ids, self._decoder, self._mask, self._labels)
        self.gives = frozenset(part[0].name for part in parts if part)

    def rows(self, text: str) -> dict[str, Array]:
        row: dict[str, Array] = {}
        if self._ids:
            spec, shape = self._ids
            tokens = self._encoder.marked(text)
            while tokens and tokens[-1] == spec.last:  # the tokenizer's own mark of the end
                tokens.pop()
            row["input_ids"], used = pad_ids(tokens, spec, shape[1])
            if self._mask:
                row["attention_mask"] = mask(used, self._mask[1][1])
        if self._decoder:
            spec, shape = self._decoder
            tokens = self._encoder.plain(text)
            row["decoder_input_ids"], _ = pad_ids([self._start, *tokens], spec, shape[1])
            if self._labels:
                row["labels"] = targets(tokens, self._labels[1][1])
        return row


def start_id(spec: ModelSpec, ids: InputSpec) -> int:
    """Return the first id of a decoder's text."""
    named = spec.config.get("decoder_start_token_id")
    if isinstance(named, int):
        return named
    for tensor in spec.generation.inputs if spec.generation else ():
        if tensor.name == "decoder_input_ids" and tensor.constant is not None:
            return int(tensor.constant)
    return ids.low


def pad_ids(tokens: list[int], spec: InputSpec, length: int) -> tuple[Array, int]:
    """Return ids of one length, and how many of them are the text's own.

    If a row must end with a certain id, that id fills it up, like CLIP's end-of-text.
    """
    import numpy as np

    fill = spec.low if spec.last is None else spec.last
    own = tokens[:length] if spec.last is None else [*tokens[: length - 1], spec.last]
    row = np.full(length, fill, np.int64)
    row[: len(own)] = own
    return row, len(own)


def mask(used: int, length: int) -> Array:
    """Return ones over the text's own ids."""
    import numpy as np

    return (np.arange(length) < used).astype(np.int64)


def targets(tokens: list[int], length: int) -> Array:
    """Return labels of one length; losses ignore what lies beyond the text."""
    import numpy as np

    row = np.full(length, IGNORED, np.int64)
    own = tokens[:length]
    row[: len(own)] = own
    return row


def letters(text: str) -> list[int]:
    """Return a transcript in wav2vec2's letters, without characters that have none."""
    upper = "|".join(text.upper().split())
    return [_LETTERS[c] for c in upper if c in _LETTERS]

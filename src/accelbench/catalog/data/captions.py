"""Texts that belong to a picture or a sound, as the ids that a model is fed with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accelbench.catalog.data.encoding import Encoder
from accelbench.catalog.losses import IGNORED
from accelbench.core.model import InputSpec, ModelSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

Fed = Mapping[str, tuple[InputSpec, tuple[int, ...]]]

#: The letters of wav2vec2's published vocabulary by number; 0 is the blank, 1 to 3 are markers,
#: 4 stands between words.
_LETTERS = {c: i for i, c in enumerate("|ETAONIHSRDLUMWCFGYPBVK'XJQZ", start=4)}


def captioned(fed: Fed) -> InputSpec | None:
    """The ids that a caption becomes; None where the model takes none.

    Ids with places for an image among them are a prompt, not a caption.
    """
    for name in ("input_ids", "decoder_input_ids"):
        if name in fed:
            spec, shape = fed[name]
            if spec.lead is None and spec.constant is None and len(shape) == 2:
                return spec if spec.shape[0] == "batch" else None
    return None


class Captions:
    """Makes the rows of ids, mask, decoder ids and labels from one text."""

    def __init__(self, spec: ModelSpec, fed: Fed, encoder: Encoder) -> None:
        ids = captioned(fed)
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
        """The text cut or padded to the lengths of the inputs."""
        row: dict[str, Array] = {}
        if self._ids:
            spec, shape = self._ids
            tokens = self._encoder.marked(text)
            while tokens and tokens[-1] == spec.last:  # the tokenizer's own mark of the end
                tokens.pop()
            row["input_ids"], used = padded(tokens, spec, shape[1])
            if self._mask:
                row["attention_mask"] = mask(used, self._mask[1][1])
        if self._decoder:
            spec, shape = self._decoder
            tokens = self._encoder.plain(text)
            row["decoder_input_ids"], _ = padded([self._start, *tokens], spec, shape[1])
            if self._labels:
                row["labels"] = targets(tokens, self._labels[1][1])
        return row


def start_id(spec: ModelSpec, ids: InputSpec) -> int:
    """What a decoder's text begins with."""
    named = spec.config.get("decoder_start_token_id")
    if isinstance(named, int):
        return named
    for tensor in spec.generation.inputs if spec.generation else ():
        if tensor.name == "decoder_input_ids" and tensor.constant is not None:
            return int(tensor.constant)
    return ids.low


def padded(tokens: list[int], spec: InputSpec, length: int) -> tuple[Array, int]:
    """Ids of one length, and how many of them are the text's own.

    Where a row has to end with a certain id, that one fills it up, as CLIP's
    end-of-text does.
    """
    import numpy as np

    fill = spec.low if spec.last is None else spec.last
    own = tokens[:length] if spec.last is None else [*tokens[: length - 1], spec.last]
    row = np.full(length, fill, np.int64)
    row[: len(own)] = own
    return row, len(own)


def mask(used: int, length: int) -> Array:
    """Ones over the text's own ids."""
    import numpy as np

    return (np.arange(length) < used).astype(np.int64)


def targets(tokens: list[int], length: int) -> Array:
    """Labels of one length; what lies beyond the text is passed over by losses."""
    import numpy as np

    row = np.full(length, IGNORED, np.int64)
    own = tokens[:length]
    row[: len(own)] = own
    return row


def letters(text: str) -> list[int]:
    """A transcript in wav2vec2's letters; what has no letter is left out."""
    upper = "|".join(text.upper().split())
    return [_LETTERS[c] for c in upper if c in _LETTERS]

"""The tokenizer that belongs to a model: its tokenizer.json, and what its owner says of padding.

For accuracy none is learned and none is guessed: other ids would be another model's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.catalog.data.beside import read_beside
from accelbench.catalog.data.rows import need
from accelbench.core.errors import CaseError
from accelbench.core.visible import in_quotes

TOKENIZER = "tokenizer.json"
ADVICE = (
    f"Put its {TOKENIZER} beside it, as tokenizer.save_pretrained(folder) of transformers writes"
    " it, or name one with --preprocessing."
)
#: What fills a text up is called so by most tokenizers whose files do not say it.
_PADS = ("[PAD]", "<pad>")


@dataclass(frozen=True)
class TokenizedText:
    """A text as ids of one length.

    Attributes:
        ids: with the marks of the tokenizer, filled up to the length.
        mask: 1 where an id counts.
        types: 0 of a first text, 1 of a second.
        cut: whether the text was longer.
    """

    ids: Sequence[int]
    mask: Sequence[int]
    types: Sequence[int]
    cut: bool


class OwnTokenizer:
    """A tokenizer.json, and with what it fills texts up.

    Args:
        asked: the path of one that was named; None: what lies beside the model.
        folders: beside the model, the nearest first.
        what: whose it is, for a refusal.

    Raises:
        CaseError: there is none, or it cannot be read.
    """

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
        """A text of one length: cut as the tokenizer cuts, so that its marks stay, or filled up.

        Args:
            text: to tell the ids of.
            pair: a second text that belongs to it; None where there is none.
            length: of the ids.
        """
        if length != self._length:
            self._tokenizer.enable_truncation(length)
            self._tokenizer.enable_padding(
                direction=self._side, pad_id=self.pad or 0, length=length
            )
            self._length = length
        made = self._tokenizer.encode(text, pair)
        return TokenizedText(made.ids, made.attention_mask, made.type_ids, bool(made.overflowing))

    def parts(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """The marks before a text, its ids, and the marks behind it; nothing is cut."""
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
    """The id that fills texts up; None where nothing says one."""
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

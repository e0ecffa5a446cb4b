"""Precision names: what people type, what is stored, what file names show."""

from __future__ import annotations

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

_LONG = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8": "int8",
    "amp-fp16": "amp_float16",
    "amp-bf16": "amp_bfloat16",
}
PRECISIONS = tuple(_LONG)
#: An output of fewer values has no spread of its own that errors could be compared with.
FEW_VALUES = 16
_ALIASES = {
    **{name: name for name in _LONG},
    **{long: short for short, long in _LONG.items()},
    "f32": "fp32",
    "float": "fp32",
    "half": "fp16",
    "f16": "fp16",
    "bfloat": "bf16",
    "i8": "int8",
    "amp_fp16": "amp-fp16",
    "amp_bf16": "amp-bf16",
}
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "amp-fp16": 4, "amp-bf16": 4}


def parse_precision(text: str) -> str:
    """Return the stored name for what a person typed."""
    name = _ALIASES.get(text.strip().lower())
    if name is None:
        raise UsageError(
            f"There is no precision named {in_quotes(text)}.",
            f"Known precisions: {', '.join(PRECISIONS)}.",
        )
    return name


def meaning(text: str) -> str:
    """What is the same of all spellings of one precision: our name, else its letters."""
    word = text.strip().lower()
    return _ALIASES.get(word, word)


def spellings(text: str) -> tuple[str, ...]:
    """Every spelling of a precision that stored results may have, the word as it was typed last.

    Imports keep their source's word, which may be one that people type for one of ours: float is
    theirs as it stands, and fp32 here.
    """
    word = text.strip()
    ours = _ALIASES.get(word.lower())
    names = (word,) if ours is None else (ours, word)
    cases = [spelt for name in names for spelt in (name, name.lower(), name.upper())]
    return (*dict.fromkeys(spelt for spelt in cases if spelt != word), word)


def long_name(precision: str) -> str:
    """The spelling of document 004's `dtype` and of file names."""
    return _LONG[precision]


def bytes_per_weight(precision: str) -> int:
    """Storage of one weight; autocast keeps fp32 weights."""
    return _BYTES[precision]


def narrowed(precision: str) -> str | None:
    """What a precision rounds to, autocast like the type it narrows to; None: no less than fp32."""
    narrow = precision.removeprefix("amp-")
    return None if narrow == "fp32" else narrow

"""Precision names: what people type, what is stored, what file names show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

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
#: Types that count as a precision. In fp32 nothing may be narrower; wider is no contradiction.
_TYPES = {
    "fp32": ("float32", "float64", "complex64", "complex128"),
    "fp16": ("float16",),
    "bf16": ("bfloat16",),
    "int8": ("int8", "uint8"),
}
#: What engines call types, by NumPy's names for them.
_TYPE_ALIASES = {
    "float": "float32", "fp32": "float32", "f32": "float32",
    "double": "float64", "fp64": "float64", "f64": "float64",
    "half": "float16", "fp16": "float16", "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8", "s8": "int8", "qint8": "int8", "u8": "uint8", "quint8": "uint8",
}  # fmt: skip
#: Share of a model's products that has to be computed in the precision asked for. Attention's own
#: products stay in float if weights are int8, as torchao leaves them.
COMPUTED_AS_ASKED = 0.5
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


def is_type_of(precision: str, name: str) -> bool:
    """Return whether an engine's name of a type is a type of a precision; autocast's is narrow."""
    word = name.lower().removeprefix("torch.")
    return _TYPE_ALIASES.get(word, word) in _TYPES[narrowed(precision) or "fp32"]


def weight_types(weights: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Return the types of weights for an evidence: their names, and each one's share.

    Args:
        weights: type and number of values of each.
    """
    counted: Counter[str] = Counter()
    for name, count in weights:
        counted[name.removeprefix("torch.")] += count
    total = counted.total() or 1
    shares = {name: round(count / total, 4) for name, count in counted.most_common()}
    return {"weight_dtypes": sorted(counted), "weight_shares": shares}


def narrowed(precision: str) -> str | None:
    """What a precision rounds to, autocast like the type it narrows to; None: no less than fp32."""
    narrow = precision.removeprefix("amp-")
    return None if narrow == "fp32" else narrow

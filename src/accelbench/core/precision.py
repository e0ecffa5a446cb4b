"""Precision names: what people type, what is stored, what file names show. Pure.

Quantised weights give other outputs. A result with them counts unasked only if its outputs were
compared with the reference's, and were near.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.rows import Row, number, text
from accelbench.core.safe_text import in_quotes

_LONG = {
    "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8",
    "amp-fp16": "amp_float16", "amp-bf16": "amp_bfloat16",
}  # fmt: skip
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
    """Return for an evidence the names of weights' types, and each one's share of the values."""
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


#: The most that quantised outputs may be off, of what another input would change in them: what
#: verification allows fp16 at most (docs/measuring.md).
MOST_ERROR = 0.1
#: int8, w8a16, "int8(w8/a8)", uint8, fp8, nf4, e4m3: what has fewer digits than a half float, or
#: integers in its place.
_QUANTISED = re.compile(
    r"int\d|w\d+a\d+|\bw\d\b|(?:fp|float|nf)[468](?!\d)|\d-?bit|e[45]m[23]|\bq\d", re.IGNORECASE
)
#: Floats of 16 bits and more, by whoever's name: amp-fp16, bfloat16, "default(fp16/fp32)", float.
_FLOAT = re.compile(
    r"(?<![a-z])(?:(?:fp|float|bfloat|bf|tf|f)(?:16|19|32|64)|float|half|single|double)(?![a-z\d])",
    re.IGNORECASE,
)
#: How a reason ends that verifying may remove.
UNVERIFIED = "its error was not verified"
#: Of a result that outputs are compared with: by definition it does not differ from itself.
_REFERENCE = "reference"


def says_quantised(name: str) -> bool:
    """Whether a name is one of a quantised precision, and not of one that nobody knows."""
    return bool(_QUANTISED.search(name))


def is_quantised(precision: str | None) -> bool:
    """Whether a precision, by whoever's name, has weights that are no floats of 16 bits or more.

    A name that says neither (awq, gguf, ternary) may be of any digits, and no name says nothing.
    """
    name = precision or ""
    return says_quantised(name) or not _FLOAT.search(name)


def error_of(row: Row) -> float | None:
    """How far its outputs are from the reference's; None where nobody compared them."""
    if row.get("verification") == _REFERENCE:
        return 0.0
    error = number(row, "verification_error")
    return None if error is None else float(error)


def is_exact(row: Row) -> bool:
    """Whether a figure counts where no precision was named."""
    if not is_quantised(text(row, "precision")):
        return True
    error = error_of(row)
    return error is not None and error <= MOST_ERROR


def why_inexact(row: Row) -> str:
    """In words, why it does not."""
    error = error_of(row)
    known = UNVERIFIED if error is None else f"its error is {error:.2g}"
    if not row.get("precision"):
        return "its precision is not recorded"
    return f"unasked, {row.get('precision')} may be off by at most {MOST_ERROR:g}, and {known}"


def not_exact(launches: Sequence[Row]) -> str:
    """In few words, what keeps a figure of some launches from counting unasked; "" where nothing.

    Of several launches the one that is furthest off speaks, as for whoever chooses by them.
    """
    unlike = [row for row in launches if is_quantised(text(row, "precision"))]
    if not unlike:
        return ""
    known = [error for row in unlike if (error := error_of(row)) is not None]
    if known:
        return "" if max(known) <= MOST_ERROR else f"error {max(known):.2g}"
    named = any(row.get("precision") for row in unlike)
    return "outputs not verified" if named else "precision not recorded"

"""Names of precisions: as typed, as stored, and in file names.

Quantised weights change the outputs. A quantised result counts by default only if its outputs were
compared with the reference's and were close.
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
#: Fewest values of an output whose own spread can serve as the scale of its errors.
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
#: Types of each precision. Types wider than fp32 are allowed in fp32, narrower ones are not.
_TYPES = {
    "fp32": ("float32", "float64", "complex64", "complex128"),
    "fp16": ("float16",),
    "bf16": ("bfloat16",),
    "int8": ("int8", "uint8"),
}
#: NumPy's name of a type for the names that engines use.
_TYPE_ALIASES = {
    "float": "float32", "fp32": "float32", "f32": "float32",
    "double": "float64", "fp64": "float64", "f64": "float64",
    "half": "float16", "fp16": "float16", "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8", "s8": "int8", "qint8": "int8", "u8": "uint8", "quint8": "uint8",
}  # fmt: skip
#: Least share of a model's products that must be computed in the requested precision. torchao keeps
#: attention's own products in float if weights are int8.
MIN_REQUESTED_SHARE = 0.5
_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1, "amp-fp16": 4, "amp-bf16": 4}


def parse_precision(text: str) -> str:
    """Return the stored name of a precision as people type it."""
    name = _ALIASES.get(text.strip().lower())
    if name is None:
        raise UsageError(
            f"There is no precision named {in_quotes(text)}.",
            f"Known precisions: {', '.join(PRECISIONS)}.",
        )
    return name


def normalise_precision(text: str) -> str:
    """Return one name for all spellings of a precision: the stored name, else in lower case."""
    word = text.strip().lower()
    return _ALIASES.get(word, word)


def spellings(text: str) -> tuple[str, ...]:
    """Return every spelling of a precision in stored results, the typed word last.

    Imports keep the word of their source, which may be one that people type for ours: "float" is
    stored by them as it is, and by us as fp32.
    """
    word = text.strip()
    ours = _ALIASES.get(word.lower())
    names = (word,) if ours is None else (ours, word)
    cases = [spelt for name in names for spelt in (name, name.lower(), name.upper())]
    return (*dict.fromkeys(spelt for spelt in cases if spelt != word), word)


def long_name(precision: str) -> str:
    """Return the name in file names and in the `dtype` of document 004's files."""
    return _LONG[precision]


def bytes_per_weight(precision: str) -> int:
    """Return the bytes of a stored weight; autocast keeps fp32 weights."""
    return _BYTES[precision]


def is_type_of(precision: str, name: str) -> bool:
    """Return whether an engine's type name belongs to a precision; autocast's type is narrow."""
    word = name.lower().removeprefix("torch.")
    return _TYPE_ALIASES.get(word, word) in _TYPES[narrow_type(precision) or "fp32"]


def weight_types(weights: Iterable[tuple[str, int]]) -> dict[str, Any]:
    """Return evidence of weights' types: their names, and each type's share of the values."""
    counted: Counter[str] = Counter()
    for name, count in weights:
        counted[name.removeprefix("torch.")] += count
    total = counted.total() or 1
    shares = {name: round(count / total, 4) for name, count in counted.most_common()}
    return {"weight_dtypes": sorted(counted), "weight_shares": shares}


def narrow_type(precision: str) -> str | None:
    """Return the type that a precision or autocast rounds to; None for fp32."""
    narrow = precision.removeprefix("amp-")
    return None if narrow == "fp32" else narrow


#: Largest error of quantised outputs, as a share of the change that another input causes. It is the
#: largest tolerance of verification for fp16 (docs/measuring.md).
MAX_ERROR = 0.1
#: int8, w8a16, "int8(w8/a8)", uint8, fp8, nf4, e4m3: types narrower than a half float, or integers.
_QUANTISED = re.compile(
    r"int\d|w\d+a\d+|\bw\d\b|(?:fp|float|nf)[468](?!\d)|\d-?bit|e[45]m[23]|\bq\d", re.IGNORECASE
)
#: Floats of 16 bits and more in any spelling: amp-fp16, bfloat16, "default(fp16/fp32)", float.
_FLOAT = re.compile(
    r"(?<![a-z])(?:(?:fp|float|bfloat|bf|tf|f)(?:16|19|32|64)|float|half|single|double)(?![a-z\d])",
    re.IGNORECASE,
)
#: End of a reason that verification may remove.
UNVERIFIED = "its error was not verified"
#: Verification of the result that serves as the reference: its error is zero by definition.
_REFERENCE = "reference"


def has_quantised_name(name: str) -> bool:
    """Return whether a name is that of a quantised precision, rather than unknown."""
    return bool(_QUANTISED.search(name))


def is_quantised(precision: str | None) -> bool:
    """Return whether a precision's weights may be other than floats of 16 bits or more.

    Unknown names (awq, gguf, ternary) and a missing name count as quantised.
    """
    name = precision or ""
    return has_quantised_name(name) or not _FLOAT.search(name)


def error_of(row: Row) -> float | None:
    """Return the error of the outputs; None if they were not compared."""
    if row.get("verification") == _REFERENCE:
        return 0.0
    error = number(row, "verification_error")
    return None if error is None else float(error)


def is_exact(row: Row) -> bool:
    """Return whether a result counts if no precision was requested."""
    if not is_quantised(text(row, "precision")):
        return True
    error = error_of(row)
    return error is not None and error <= MAX_ERROR


def why_inexact(row: Row) -> str:
    """Return why a result does not count if no precision was requested."""
    error = error_of(row)
    known = UNVERIFIED if error is None else f"its error is {error:.2g}"
    if not row.get("precision"):
        return "its precision is not recorded"
    return f"by default, {row.get('precision')} may have an error of {MAX_ERROR:g}, and {known}"


def summarise_inexact(launches: Sequence[Row]) -> str:
    """Return briefly why launches do not count by default; "" if they do.

    The launch with the largest error decides.
    """
    quantised = [row for row in launches if is_quantised(text(row, "precision"))]
    if not quantised:
        return ""
    errors = [error for row in quantised if (error := error_of(row)) is not None]
    if errors:
        return "" if max(errors) <= MAX_ERROR else f"error {max(errors):.2g}"
    has_precision = any(row.get("precision") for row in quantised)
    return "outputs not verified" if has_precision else "precision not recorded"

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
#: An output of fewer values has no spread of its own that errors could be held against.
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

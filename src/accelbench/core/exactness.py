"""Whether a figure may be chosen although nobody named its precision. Pure.

Quantised weights give other outputs, and whoever did not ask for them has not agreed to that. Such
a figure counts unasked only where its outputs were compared with the reference's, and were near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from accelbench.core.rows import Row, number, text

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

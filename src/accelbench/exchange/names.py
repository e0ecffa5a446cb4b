"""File names from words that people chose."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from accelbench.core.identity import digest
from accelbench.core.precision import PRECISIONS, long_name

_LONGEST = 80  # file systems allow 255 bytes; the rest of a name and its suffix need room


def safe_name(text: str) -> str:
    """A name that is one plain file name everywhere: ASCII letters, digits, dot, dash, underscore.

    Slashes, emoji, control characters and the like become one dash; what is cut
    or has nothing left gets a digest of the whole instead.
    """
    flat = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", flat)
    name = re.sub(r"\.{2,}", ".", name).strip(".-")
    if not name:
        return f"unnamed-{_mark(text)}"
    if len(name) > _LONGEST:
        return f"{name[:_LONGEST]}-{_mark(text)}"
    return name


def result_file_name(model: str, hardware: str, precision: str, when: datetime) -> str:
    """<model>_<hardware>_<precision long form>_<YYYYMMDD_HHMMSS>.json, in UTC."""
    long = long_name(precision) if precision in PRECISIONS else precision
    stamp = when.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    return f"{safe_name(model)}_{safe_name(hardware)}_{safe_name(long)}_{stamp}.json"


def _mark(text: str) -> str:
    return digest(text.encode("utf-8", "backslashreplace").decode(), length=8)

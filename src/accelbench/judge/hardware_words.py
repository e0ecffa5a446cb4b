"""Hardware as people name it among results: a platform, or `platform:device`, in SQL and in Python.

A device is named by a part of its name in any case (`cuda:rtx 4090`), by its whole name behind an
equals sign (`cuda:=NVIDIA GeForce RTX 4090`), by its number (`cuda:1`) or by its kind of unit
(`openvino:gpu`).
"""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.rows import Row

#: From so many digits on, what follows `cuda:` is a part of a name, such as 3090, and no ordinal.
_MODEL_NUMBER = 3


def named_sql(word: str) -> str:
    """That a result is of what a word names, in SQL: one parameter, which is the word."""
    _, colon, device = word.partition(":")
    if not colon:
        return "hardware = ?"
    if device.startswith("="):
        return "hardware || ':=' || device_name = ?"
    if _is_ordinal(device):
        return "hardware || ':' || split_part(device, ':', -1) = ?"
    escaped = r"replace(replace(replace(lower(?), '\', '\\'), '%', '\%'), '_', '\_')"
    about = "lower(hardware || ':' || coalesce(device_name, '') || ' ' || coalesce(device, ''))"
    # Whatever stands before the part that is named; of a platform's name all of it.
    return rf"{about} LIKE replace({escaped}, ':', ':%') || '%' ESCAPE '\'"


def is_named(row: Row, word: str) -> bool:
    """The same of a row."""
    platform, colon, device = word.partition(":")
    if row.get("hardware") != (platform.lower() if _is_part(colon, device) else platform):
        return False
    if not colon:
        return True
    if device.startswith("="):
        return row.get("device_name") == device[1:]
    where = str(row.get("device") or "")
    if _is_ordinal(device):
        return where.rpartition(":")[2] == device
    about = f"{row.get('device_name') or ''} {where}".lower()
    for part in filter(None, device.lower().split(":")):
        _, hit, about = about.partition(part)
        if not hit:
            return False
    return True


def has_one_of(row: Row, column: str, wanted: Sequence[object]) -> bool:
    """Whether a row has one of the values that are asked for in a column."""
    if column == "hardware":
        return any(is_named(row, str(word)) for word in wanted)
    return row.get(column) in wanted


def _is_part(colon: str, device: str) -> bool:
    return bool(colon) and not device.startswith("=") and not _is_ordinal(device)


def _is_ordinal(device: str) -> bool:
    return device.isdecimal() and len(device) < _MODEL_NUMBER

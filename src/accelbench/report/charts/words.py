"""Words in pictures: names that anybody may have chosen, made harmless and short. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accelbench.core.columns import ASKED

#: A name longer than this is cut in its middle: ends tell names apart.
_LONGEST = 42


def safe(text: Any, longest: int = _LONGEST) -> str:
    """Without control characters and without those that turn the direction of what follows.

    A picture is text of somebody's in an XML file: a zero byte would break it, and U+202E would
    turn what stands beside it round.
    """
    plain = "".join("\ufffd" if unicodedata.category(one)[0] == "C" else one for one in str(text))
    if len(plain) <= longest:
        return plain
    head = longest // 2
    return f"{plain[:head]}…{plain[-(longest - head - 1) :]}"


def counted(number: int, one: str, many: str = "") -> str:
    """3 cells, 1 cell."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def days(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """From which day to which they were measured; nothing where nobody knows."""
    known = sorted({str(row["started_at"])[:10] for row in rows if row.get("started_at")})
    if not known:
        return []
    return [known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"]


def way(row: Mapping[str, Any], but: Iterable[str] = ()) -> str:
    """How it ran: its platform, engine and precision, but for what is told elsewhere."""
    left_out = set(but)
    names = ("hardware", "runtime", "precision")
    parts = [str(row.get(name)) for name in names if name not in left_out and row.get(name)]
    parts += ["compiled"] if row.get("compiled") and row.get("runtime") == "pytorch" else []
    return safe(" · ".join(parts))


def apart(rows: Sequence[Mapping[str, Any]], but: Iterable[str] = ()) -> list[str]:
    """Of each row, in words, what tells its question from the others': no more than it takes."""
    left_out = set(but)
    names = [name for name in (*_FIRST, *ASKED) if name not in left_out]
    told: list[tuple[str, ...]] = [()] * len(rows)
    chosen: list[str] = []
    for name in dict.fromkeys(names):
        finer = [(*key, str(row.get(name))) for key, row in zip(told, rows, strict=True)]
        if len(set(finer)) > len(set(told)):
            told, chosen = finer, [*chosen, name]
    return [
        safe(" · ".join(_word(n, row[n]) for n in chosen if row.get(n) is not None), 60)
        for row in rows
    ]


def cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each of several cells: its model, and what tells it apart."""
    words = apart(rows, ("model",))
    return [
        safe(" · ".join(filter(None, (str(row.get("model")), more))), 64)
        for row, more in zip(rows, words, strict=True)
    ]


#: What people think of first.
_FIRST = ("model", "mode", "hardware", "runtime", "precision", "batch_size")


def _word(name: str, value: Any) -> str:
    if name in _FIRST[:-1] or name in ("scenario", "device_name"):
        return str(value)
    if isinstance(value, bool):
        return name if value else f"not {name}"
    short = {"batch_size": "batch", "sequence_length": "seq", "image_size": "image"}
    return f"{short.get(name, name.replace('_', ' '))} {value}"

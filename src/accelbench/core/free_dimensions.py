"""Sizes of free dimensions that a model's owner has named, as one text: "edges=256,nodes=64"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

OPTION = "--dim"
_LARGEST = 2**31 - 1
#: Of a dimension that nobody has given a size.
OPEN = "?"


def text_of(sizes: Mapping[str, int | str]) -> str:
    """The text of some sizes: the same ones have the same text."""
    return ",".join(f"{name}={size}" for name, size in sorted(sizes.items()))


def sizes_in(text: str | None) -> dict[str, int]:
    """The sizes in a text; those that are open are left out."""
    entries = (entry.partition("=") for entry in (text or "").split(",") if entry)
    return {name: int(size) for name, _, size in entries if size != OPEN}


def names_in(text: str | None) -> tuple[str, ...]:
    """The names of the dimensions in a text."""
    return tuple(entry.partition("=")[0] for entry in (text or "").split(",") if entry)


def of_a_model(own: str, asked: str) -> str:
    """What was asked, of the dimensions that a model has; what was not keeps its own size."""
    known: dict[str, int | str] = dict.fromkeys(names_in(own), OPEN)
    known |= sizes_in(own)
    return text_of({**known, **{n: s for n, s in sizes_in(asked).items() if n in known}})


def combinations(values: Iterable[str] | None) -> tuple[str, ...]:
    """Return every combination of sizes that options ask for: "nodes=64,128" and "edges=256"."""
    lists: dict[str, dict[int, None]] = {}
    for value in values or ():
        name = ""
        for part in value.replace(" ", "").split(","):
            before, given, size = part.rpartition("=")
            name = before if given else name
            if not name or not size:
                raise UsageError(
                    f"{OPTION} takes the name of a dimension and its sizes, not"
                    f" {in_quotes(value)}.",
                    f"Write it like {OPTION} nodes=64,128.",
                )
            if not size.isdecimal() or not 1 <= int(size) <= _LARGEST:
                raise UsageError(
                    f"{OPTION} {name} takes whole numbers from 1 to {_LARGEST:,}, not"
                    f" {in_quotes(size)}."
                )
            lists.setdefault(name, {})[int(size)] = None
    if not lists:
        return ()
    return tuple(
        text_of(dict(zip(lists, sizes, strict=True))) for sizes in product(*lists.values())
    )

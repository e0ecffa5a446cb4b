"""Sizes of free dimensions of a user's model, as one text: "edges=256,nodes=64"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

OPTION = "--dim"
_LARGEST = 2**31 - 1
#: Value of a dimension without a size.
OPEN = "?"


def format_sizes(sizes: Mapping[str, int | str]) -> str:
    """Return the text of some sizes, the same for any order."""
    return ",".join(f"{name}={size}" for name, size in sorted(sizes.items()))


def parse_sizes(text: str | None) -> dict[str, int]:
    """Return the sizes in a text, without dimensions that have none."""
    entries = (entry.partition("=") for entry in (text or "").split(",") if entry)
    return {name: int(size) for name, _, size in entries if size != OPEN}


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return the names of the dimensions in a text."""
    return tuple(entry.partition("=")[0] for entry in (text or "").split(",") if entry)


def resolve_sizes(own: str, requested: str) -> str:
    """Return the sizes of a model's dimensions: those requested, else the model's own."""
    known: dict[str, int | str] = dict.fromkeys(parse_names(own), OPEN)
    known |= parse_sizes(own)
    return format_sizes(
        {**known, **{n: s for n, s in parse_sizes(requested).items() if n in known}}
    )


def parse_combinations(values: Iterable[str] | None) -> tuple[str, ...]:
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
        format_sizes(dict(zip(lists, sizes, strict=True))) for sizes in product(*lists.values())
    )

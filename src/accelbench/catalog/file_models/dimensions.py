"""Free dimensions of a file's inputs: which size each stands for, by its name or by its place."""

from __future__ import annotations

import re

BATCH, SEQUENCE, IMAGE = "batch", "sequence", "image"
#: What a name holds, in the order in which they are looked for: "past_sequence_length" is none.
_NAMES = (
    ("", re.compile(r"past|total|cache|audio|samples")),
    (BATCH, re.compile(r"batch|^n$|^b$|^bs$")),
    (SEQUENCE, re.compile(r"seq|token|length|^s$|^l$|^t$")),
    (IMAGE, re.compile(r"height|width|image|^h$|^w$")),
)
#: What a name on a command line has not: "past_sequence_length + 1" is a name of a dimension, too.
_NO_NAME = re.compile(r"\W+")
#: Names that exporters make up: they say nothing, and the place decides.
_MADE_UP = re.compile(
    r"^$|^[?*]+$|^(none|dynamic|unk|unknown|dim|d|s|axis|u)?_*\d*$|_dynamic_axes_\d+$|_dim_\d+$",
    re.IGNORECASE,
)


def meaning(dimension: str, place: int, rank: int) -> str:
    """The size that a free dimension stands for; "" where none does."""
    for size, pattern in _NAMES:
        if pattern.search(dimension.lower()):
            return size
    if place == 0:
        return BATCH
    if rank in {2, 3} and place == 1:
        return SEQUENCE
    return IMAGE if rank == 4 and place in {2, 3} else ""


def is_made_up(dimension: str) -> bool:
    """Whether an exporter made up a name: it says nothing of what is counted."""
    return _MADE_UP.search(dimension) is not None


def size_named(dimension: str, place: int, rank: int) -> str:
    """The name of a free dimension as inputs of a model have it.

    One of the three sizes, by a name that says so or, where the name says nothing, by the place;
    else its own name, which its owner gives a size.
    """
    told = meaning(dimension, place, rank)
    named_so = any(size == told and pattern.search(dimension.lower()) for size, pattern in _NAMES)
    if told and (named_so or is_made_up(dimension)):
        return told
    return f"dim{place}" if is_made_up(dimension) else _NO_NAME.sub("_", dimension).strip("_")

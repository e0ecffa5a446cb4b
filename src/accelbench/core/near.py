"""What somebody meant by a name that nobody has: names like it, else all of them. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: How like a name has to be. Names of platforms are short: one slip in four letters is a quarter.
LIKE = 0.5
#: Names that are offered.
_MOST = 3


def near(word: str, names: Iterable[str], like: float = LIKE) -> list[str]:
    """Names that are like a word, whatever their case; the likest first."""
    spelt: dict[str, list[str]] = {}
    for name in names:
        spelt.setdefault(name.lower(), []).append(name)
    matches = difflib.get_close_matches(word.lower(), spelt, n=_MOST, cutoff=like)
    return [spelling for low in matches for spelling in spelt[low]]


def meant(word: str, names: Iterable[str], otherwise: str = "Known", like: float = LIKE) -> str:
    """The advice: the names that are like a word, or where none is, all that there are.

    Args:
        word: what was typed.
        names: those that there are.
        otherwise: what stands before all of them.
        like: how like a name has to be.
    """
    every = list(names)
    hits = near(word, every, like)
    return f"Did you mean {' or '.join(hits)}?" if hits else f"{otherwise}: {', '.join(every)}."

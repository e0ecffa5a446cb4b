"""Checks of the arguments that Python callers pass; errors name what to use instead. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from os import PathLike, fspath
from typing import TypedDict

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

#: The largest number that engines take.
_LARGEST = 2**31 - 1
#: A wrong value is shown up to this length.
_SHORT = 80
_DISTRIBUTED = ("gpu_count", "max_memory_gb")


class Distributed(TypedDict):
    """Several devices for one model, and the memory of each."""

    gpu_count: int
    max_memory_gb: float | None


def whole(what: str, value: object, advice: str = "Use 1 or more.") -> int:
    """Return a whole number of at least 1, such as 8.0; refuse anything else."""
    number = amount(what, value, advice)
    if number != int(number) or not 1 <= number <= _LARGEST:
        raise UsageError(f"{what} takes a whole number from 1, not {_shown(value)}.", advice)
    return int(number)


def amount(what: str, value: object, advice: str = "") -> float:
    """Return a finite number above 0; refuse anything else."""
    if isinstance(value, bool) or not isinstance(value, (Integral, Real)):
        raise UsageError(f"{what} takes a number, not {_shown(value)}.", advice)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        raise UsageError(f"{what} takes a number above 0, not {_shown(value)}.", advice)
    return number


def word(what: str, value: object, known: Iterable[str] = (), advice: str = "") -> str:
    """Return a text; refuse anything else with the known texts, or an advice."""
    if isinstance(value, str):
        return value
    names = ", ".join(known)
    raise UsageError(f"{what} takes a name, not {_shown(value)}.", advice or f"One of {names}.")


def names(what: str, value: object) -> list[str] | None:
    """Return a list of names, sorted if it was a set; None means all. Refuse a bare name."""
    if value is None:
        return None
    if isinstance(value, str):
        raise UsageError(
            f"{what} takes a list of names, not {_shown(value)}.", f"Use [{_shown(value)}]."
        )
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(
            f"{what} takes a list of names, not {_shown(value)}.", 'Use ["cpu", "cuda"].'
        )
    entries = list(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise UsageError(
                f"{what} holds {_shown(entry)}, which is no name.", 'Use ["cpu", "cuda"].'
            )
    return sorted(entries) if isinstance(value, (set, frozenset)) else entries


def batches(value: object) -> list[int]:
    """Return batch sizes; refuse what is not a list of them."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(
            f"batch_sizes takes a list of numbers, not {_shown(value)}.", "Use [1, 8]."
        )
    return sorted({whole("batch_sizes", batch) for batch in value})


def distributed(given: object) -> Distributed | None:
    """Return a distributed configuration with the keys of the documents; refuse others."""
    if given is None:
        return None
    example = 'Use {"gpu_count": 4, "max_memory_gb": 16}.'
    if not isinstance(given, Mapping):
        raise UsageError(f"distributed_config takes a mapping, not {_shown(given)}.", example)
    for name in given:
        if name not in _DISTRIBUTED:
            raise UsageError(
                f"A distributed configuration has no {_shown(name)}.",
                "Known: gpu_count, max_memory_gb.",
            )
    gib = given.get("max_memory_gb")
    return {
        "gpu_count": whole("gpu_count", given.get("gpu_count", 1), example),
        "max_memory_gb": None if gib is None else _plain(amount("max_memory_gb", gib, example)),
    }


def path(what: str, value: object) -> str | None:
    """Return a path as text, or None if none is given; refuse anything else."""
    if value is None:
        return None
    if not isinstance(value, (str, PathLike)) or not str(value).strip():
        raise UsageError(
            f"{what} takes a path, not {_shown(value)}.", "Leave it out for the usual."
        )
    text = fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise UsageError(
            f"{what} takes a path, not {_shown(value)}.", "Leave it out for the usual."
        )
    return text


def _plain(number: float) -> float | int:
    return int(number) if number == int(number) else number


def _shown(value: object) -> str:
    try:
        text = in_quotes(value)
    except ValueError:  # more digits than Python spells
        return "a number without end"
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"

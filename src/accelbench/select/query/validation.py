"""What a question is put in, seen to be of the kind that is meant. Pure.

Whoever calls from Python may hand over anything: each slip is one sentence, with what to use
instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from os import PathLike, fspath
from typing import TypedDict

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

#: Beyond it no engine can count.
_LARGEST = 2**31 - 1
_DISTRIBUTED = ("gpu_count", "max_memory_gb")


class Distributed(TypedDict):
    """Several devices for one model, and what memory each of them has."""

    gpu_count: int
    max_memory_gb: float | None


def whole(what: str, value: object, advice: str = "Use 1 or more.") -> int:
    """A whole number of at least 1; 8.0 is one.

    Raises:
        UsageError: it is none.
    """
    number = amount(what, value, advice)
    if number != int(number) or not 1 <= number <= _LARGEST:
        raise UsageError(f"{what} takes a whole number from 1, not {in_quotes(value)}.", advice)
    return int(number)


def amount(what: str, value: object, advice: str = "") -> float:
    """A number above 0 that has an end.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (Integral, Real)):
        raise UsageError(f"{what} takes a number, not {in_quotes(value)}.", advice)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        raise UsageError(f"{what} takes a number above 0, not {in_quotes(value)}.", advice)
    return number


def word(what: str, value: object, known: Iterable[str] = (), advice: str = "") -> str:
    """A text; those that are known, or an advice, stand beside what is wrong.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        return value
    names = ", ".join(known)
    raise UsageError(f"{what} takes a name, not {in_quotes(value)}.", advice or f"One of {names}.")


def names(what: str, value: object) -> list[str] | None:
    """A list of names, in one order whatever held them; None stands for all.

    Raises:
        UsageError: it is none. A bare name is refused, as the benchmark runner does.
    """
    if value is None:
        return None
    if isinstance(value, str):
        raise UsageError(
            f"{what} takes a list of names, not {in_quotes(value)}.", f"Use [{in_quotes(value)}]."
        )
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise UsageError(
            f"{what} takes a list of names, not {in_quotes(value)}.", 'Use ["cpu", "cuda"].'
        )
    entries = list(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise UsageError(
                f"{what} holds {in_quotes(entry)}, which is no name.", 'Use ["cpu", "cuda"].'
            )
    return sorted(entries) if isinstance(value, (set, frozenset)) else entries


def batches(value: object) -> list[int]:
    """Batch sizes.

    Raises:
        UsageError: they are none.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise UsageError(
            f"batch_sizes takes a list of numbers, not {in_quotes(value)}.", "Use [1, 8]."
        )
    return [whole("batch_sizes", batch) for batch in value]


def distributed(given: object) -> Distributed | None:
    """A distributed configuration as the documents have it: gpu_count, and max_memory_gb of each.

    Raises:
        UsageError: it has another key, or what is no amount.
    """
    if given is None:
        return None
    example = 'Use {"gpu_count": 4, "max_memory_gb": 16}.'
    if not isinstance(given, Mapping):
        raise UsageError(f"distributed_config takes a mapping, not {in_quotes(given)}.", example)
    for name in given:
        if name not in _DISTRIBUTED:
            raise UsageError(
                f"A distributed configuration has no {in_quotes(name)}.",
                "Known: gpu_count, max_memory_gb.",
            )
    gib = given.get("max_memory_gb")
    return {
        "gpu_count": whole("gpu_count", given.get("gpu_count", 1), example),
        "max_memory_gb": None if gib is None else _plain(amount("max_memory_gb", gib, example)),
    }


def path(what: str, value: object) -> str | None:
    """A path as text; None where none is given.

    Raises:
        UsageError: it is none.
    """
    if value is None:
        return None
    if not isinstance(value, (str, PathLike)) or not str(value).strip():
        raise UsageError(
            f"{what} takes a path, not {in_quotes(value)}.", "Leave it out for the usual."
        )
    text = fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise UsageError(
            f"{what} takes a path, not {in_quotes(value)}.", "Leave it out for the usual."
        )
    return text


def _plain(number: float) -> float | int:
    return int(number) if number == int(number) else number

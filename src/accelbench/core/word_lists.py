"""Lists as people type them: words by commas, spaces and repetition, numbers, durations. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

#: Beyond it no engine can count: tensors are indexed by signed 32 or 64 bits.
LARGEST = 2**31 - 1


def words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Every word of a list option, in order, each once.

    Raises:
        UsageError: the option is there, but its list is empty, as an empty
            variable of a shell leaves it. That is not the same as no option.
    """
    given = list(values or ())
    entries = [w for value in given for w in value.replace(",", " ").split()]
    if given and not entries:
        raise UsageError("A list is empty.", "Name at least one value, or leave the option out.")
    return tuple(dict.fromkeys(entries))


def numbers(values: Iterable[str] | None, option: str, least: int = 1) -> tuple[int, ...]:
    """Whole numbers, each of at least `least`."""
    integers = []
    for word in words(values):
        try:
            number = int(word)
        except ValueError:
            if _is_number(word):
                raise UsageError(f"{option} takes whole numbers, not {word}.") from None
            raise UsageError(
                f"{option} takes whole numbers, not {in_quotes(word)}.",
                "Models come before the options: accelbench run MODEL … --batch-sizes 1,8",
            ) from None
        if not least <= number <= LARGEST:
            raise UsageError(f"{option} takes numbers from {least} to {LARGEST:,}, not {word}.")
        integers.append(number)
    return tuple(integers)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def seconds(text: str | None, option: str) -> float | None:
    """A duration as people write it: 90, 90s, 10m, 1.5h."""
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    unit = units.get(text[-1:].lower())
    try:
        value = float(text[:-1] if unit else text) * (unit or 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"{option} takes a duration such as 90s, 10m or 1.5h, not {in_quotes(text)}."
        )
    return value

"""What an owner says of an input: --input ids=int64[batch,128]:0..30522, or a part of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

#: How a refusal of an input begins that a model does not have.
NO_INPUT = "It has no input"
OPTION = "--input"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_FORM = re.compile(
    r"^(?P<dtype>[a-z]+\d*)?(?:\[(?P<shape>[^\]]*)\])?:?"
    r"(?:(?P<low>-?\d+)\.\.(?P<high>-?\d+)|(?P<values>{n}(?:,{n})*))?$".replace("{n}", _NUMBER)
)
_NAME = re.compile(r"^[A-Za-z_]\w*$")
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class GivenInput:
    """What was said of one input; None of what was not.

    Attributes:
        dtype: NumPy's name of its type.
        shape: sizes, and names of free dimensions.
        low: of the values that are drawn,
        high: and the first that is not.
        constant: the value that all of it has.
        row: the values of its last axis.
        told: in words, where it is read from a file.
    """

    dtype: str | None = None
    shape: tuple[int | str, ...] | None = None
    low: int | None = None
    high: int | None = None
    constant: float | None = None
    row: tuple[float, ...] | None = None
    told: str = ""

    @property
    def holds(self) -> bool:
        """Whether it says what the input holds."""
        return any(part is not None for part in (self.high, self.constant, self.row))


def given_inputs(words: Iterable[str] | None) -> Mapping[str, GivenInput]:
    """What was said of inputs, by name.

    Raises:
        UsageError: a word is of another form.
    """
    found: dict[str, GivenInput] = {}
    for word in words or ():
        name, given, rest = word.partition("=")
        name = name.strip()
        if not name or not given or not rest.strip():
            raise _malformed(word)
        if name in found:
            raise UsageError(f"{OPTION} says two things of {in_quotes(name)}.", "Give it once.")
        found[name] = _of(word, rest.replace(" ", ""))
    return found


def refuse_unknown_inputs(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that is no input of a model.

    Args:
        given: the names that were typed.
        known: those of its inputs.
    """
    for name in given:
        if name not in known:
            raise FileRefusedError(
                f"{NO_INPUT} {in_quotes(name)}.", f"Its inputs: {', '.join(known) or 'none'}."
            )


def said_of(
    given: Mapping[str, GivenInput], labels: Collection[str], every: Collection[str]
) -> tuple[dict[str, GivenInput], dict[str, GivenInput]]:
    """What was said of the inputs of all models, and what of those of one: MODEL:NAME=….

    Args:
        given: what was said, by the words before the equals sign.
        labels: what the one model is called.
        every: what all models that are named are called; an input's own name may have a colon.
    """
    of_all: dict[str, GivenInput] = {}
    of_one: dict[str, GivenInput] = {}
    for name, entry in given.items():
        owners = [label for label in every if name.startswith(f"{label}:")]
        owner = max(owners, key=len, default=None)
        if owner is None:
            of_all[name] = entry
        elif owner in labels:
            of_one[name[len(owner) + 1 :]] = entry
    return of_all, of_one


def _of(word: str, text: str) -> GivenInput:
    parts = _FORM.match(text)
    if parts is None:
        raise _malformed(word)
    low, high = parts["low"], parts["high"]
    values = tuple(map(float, (parts["values"] or "").split(","))) if parts["values"] else ()
    if low is not None and int(low) >= int(high):
        raise UsageError(
            f"{OPTION} {word} holds no value: it goes from {low} to below {high}.",
            "Write the smallest value, and the first that is too large: 0..30522.",
        )
    return GivenInput(
        dtype=parts["dtype"],
        shape=None if parts["shape"] is None else tuple(_sizes(word, parts["shape"])),
        low=None if low is None else int(low),
        high=None if high is None else int(high),
        constant=values[0] if len(values) == 1 else None,
        row=values if len(values) > 1 else None,
    )


def _sizes(word: str, text: str) -> Iterable[int | str]:
    for size in text.split(",") if text else ():
        if size.isdecimal() and 1 <= int(size) <= _LARGEST:
            yield int(size)
        elif _NAME.match(size):
            yield size
        else:
            raise UsageError(
                f"{OPTION} {word}: {in_quotes(size)} is neither a size nor a name of one.",
                "Write it like [batch,3,224,224].",
            )


def _malformed(word: str) -> UsageError:
    return UsageError(
        f"{OPTION} takes the name of an input with its type, shape or values, not"
        f" {in_quotes(word)}.",
        f"Write it like {OPTION} ids=int64[batch,128]:0..30522, or {OPTION} ids=0..30522.",
    )

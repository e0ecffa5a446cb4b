"""Inputs of models that are files or code: what an owner states, free sizes, ranges and masks.

An owner states --input ids=int64[batch,128]:0..30522, or a part of it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.model import InputSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.kinds import FileRefusedError

#: How a refusal of an input begins that a model does not have.
NO_INPUT = "It has no input"


def refuse_text(name: str, verb: str = "export") -> FileRefusedError:
    """Return the refusal of an input that takes text."""
    return FileRefusedError(
        f"Its input {in_quotes(name)} takes text, which is not drawn.",
        f"Measure the part behind it: {verb} the model without that step.",
    )


def refuse_rank(name: str) -> FileRefusedError:
    """Return the refusal of an input whose number of axes is not known."""
    return FileRefusedError(
        f"Its input {in_quotes(name)} does not say how many axes it has.",
        "Export the model with the rank of each input.",
    )


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
    """An owner's description of one input; None for what it leaves open."""

    dtype: str | None = None  # NumPy's name
    shape: tuple[int | str, ...] | None = None  # sizes, and names of free dimensions
    low: int | None = None  # least value drawn
    high: int | None = None  # first value that is not drawn
    constant: float | None = None  # the value of all of it
    row: tuple[float, ...] | None = None  # the values of its last axis
    told: str = ""  # in words, if it is read from a file

    @property
    def holds(self) -> bool:
        return any(part is not None for part in (self.high, self.constant, self.row))

    def input(self, name: str, shape: tuple[int | str, ...], dtype: str) -> InputSpec:
        """Return the input with these values; raise FileRefusedError if a row does not fit."""
        if self.row is not None and shape[-1:] != (len(self.row),):
            raise FileRefusedError(
                f"Its input {in_quotes(name)} is {shape_text(shape)}, and has no place for"
                f" {len(self.row)} values.",
                "Give as many as its last axis has.",
            )
        return InputSpec(name, shape, dtype, self.low or 0, self.high or 0, self.constant, self.row)


def shape_text(shape: Iterable[int | str]) -> str:
    """Format a shape: [batch,3,?,?]."""
    return f"[{','.join(str(size) or '?' for size in shape)}]"


def parse_inputs(words: Iterable[str] | None) -> Mapping[str, GivenInput]:
    """Parse descriptions of inputs, by name; raise UsageError if one is malformed."""
    found: dict[str, GivenInput] = {}
    for word in words or ():
        name, given, rest = word.partition("=")
        name = name.strip()
        if not name or not given or not rest.strip():
            raise _syntax_error(word)
        if name in found:
            raise UsageError(f"{OPTION} says two things of {in_quotes(name)}.", "Give it once.")
        found[name] = _of(word, rest.replace(" ", ""))
    return found


def refuse_unknown_inputs(given: Iterable[str], known: Collection[str]) -> None:
    """Raise FileRefusedError if a name is not an input of a model."""
    for name in given:
        if name not in known:
            raise FileRefusedError(
                f"{NO_INPUT} {in_quotes(name)}.", f"Its inputs: {', '.join(known) or 'none'}."
            )


def split_descriptions(
    given: Mapping[str, GivenInput], labels: Collection[str], every: Collection[str]
) -> tuple[dict[str, GivenInput], dict[str, GivenInput]]:
    """Split descriptions into those of all models and those of one: MODEL:NAME=….

    `every` has the names of all models: an input's own name may have a colon.
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
        raise _syntax_error(word)
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


def _syntax_error(word: str) -> UsageError:
    return UsageError(
        f"{OPTION} takes the name of an input with its type, shape or values, not"
        f" {in_quotes(word)}.",
        f"Write it like {OPTION} ids=int64[batch,128]:0..30522, or {OPTION} ids=0..30522.",
    )


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
    """Return the size that a free dimension stands for, or ""."""
    for size, pattern in _NAMES:
        if pattern.search(dimension.lower()):
            return size
    if place == 0:
        return BATCH
    if rank in {2, 3} and place == 1:
        return SEQUENCE
    return IMAGE if rank == 4 and place in {2, 3} else ""


def is_made_up(dimension: str) -> bool:
    """Return whether an exporter made up a name, so that it has no meaning."""
    return _MADE_UP.search(dimension) is not None


def size_named(dimension: str, place: int, rank: int) -> str:
    """Return the name of a free dimension as inputs of a model have it.

    One of the three sizes, by its name or, if the name is made up, by its place; else its own name,
    which its owner gives a size.
    """
    told = meaning(dimension, place, rank)
    named_so = any(size == told and pattern.search(dimension.lower()) for size, pattern in _NAMES)
    if told and (named_so or is_made_up(dimension)):
        return told
    return f"dim{place}" if is_made_up(dimension) else _NO_NAME.sub("_", dimension).strip("_")


def named_sizes(shape: Sequence[int | str]) -> tuple[int | str, ...]:
    """Return a file's shape with its free dimensions named as inputs of a model have them."""
    return tuple(
        size if isinstance(size, int) else size_named(size, place, len(shape))
        for place, size in enumerate(shape)
    )


_MASK = re.compile(r"(^|[_./])mask|mask$|attention_mask", re.IGNORECASE)
_WHOLE = {"int8": (-128, 128), "uint8": (0, 256)}


def values_of_type(name: str, dtype: str, rows: int | None) -> dict[str, Any]:
    """Return the values of an input: `low` and `high` or a `constant`, and `drawn`, in words.

    Empty if nothing states them: whole numbers that are not rows of a table. `rows` are those of
    the smallest table that is read at its numbers.
    """
    if _MASK.search(name):
        return {"constant": 1, "drawn": "ones: by its name it is a mask"}
    if dtype == "bool":
        return {"drawn": "true and false alike"}
    if dtype.startswith("float"):
        return {"drawn": "normal, mean 0 and deviation 1"}
    if rows is not None:
        return {"low": 0, "high": rows, "drawn": f"0 to {rows - 1:,}: rows of the table it reads"}
    if dtype in _WHOLE:
        low, high = _WHOLE[dtype]
        return {"low": low, "high": high, "drawn": f"{low} to {high - 1}: all of its type"}
    return {}


#: What is as negative as this is added to scores to leave them out: -10000, or the least there is.
LEAVES_OUT = -1e3


class MaskEffect(Enum):
    """What an operator does with a value that may be a mask, or with its truth."""

    SAME = "gives it on"
    TURNED = "gives it on the other way round"
    LEAVES_OUT = "leaves out what is true"
    KEEPS = "leaves out what is false"


#: Of each operator that reads a value: what it does with it, and the names of what it makes.
Effects = Callable[[str], Iterable[tuple[MaskEffect | None, Iterable[str]]]]


def lets_through(name: str, effects: Effects) -> int | None:
    """Return the value of an input that masks nothing, 0 or 1, or None if it is not a mask.

    Exporters write a mask in a few ways: `(1 - mask) * -10000` is added to scores, or a very
    negative number replaces them. The reader of each format gives the effect of an operator; this
    follows it.
    """
    steps, seen = [(name, True)], {(name, True)}
    while steps:
        read, same = steps.pop()
        for effect, made in effects(read):
            if effect in {MaskEffect.LEAVES_OUT, MaskEffect.KEEPS}:
                return int((effect is MaskEffect.LEAVES_OUT) != same)
            if effect is None:
                continue
            for output in made:
                step = (output, same == (effect is MaskEffect.SAME))
                if output and step not in seen:
                    seen.add(step)
                    steps.append(step)
    return None


def choice_effect(where_true: float | None, where_false: float | None) -> MaskEffect | None:
    """Return the effect of a choice on its condition, by the constant value of each branch."""
    if where_true is not None and where_true <= LEAVES_OUT:
        return MaskEffect.LEAVES_OUT
    if where_false is not None and where_false <= LEAVES_OUT:
        return MaskEffect.KEEPS
    return None


def factor_effect(factor: float | None) -> MaskEffect | None:
    """Return the effect of multiplying a mask by a number."""
    return MaskEffect.LEAVES_OUT if factor is not None and factor <= LEAVES_OUT else None


def equality_effect(other: float | None, *, unequal: bool = False) -> MaskEffect | None:
    """Return the effect of comparing a mask with a number: it equals 1 if it is true."""
    if other not in (0.0, 1.0):
        return None
    return MaskEffect.SAME if (other == 1.0) != unequal else MaskEffect.TURNED


def pair_effect(operation: str, place: int, other: float | None) -> MaskEffect | None:
    """Return the effect of an operation on a mask at a place, next to a number."""
    if operation == "mul":
        return factor_effect(other)
    if operation in {"eq", "ne"}:
        return equality_effect(other, unequal=operation == "ne")
    if operation == "gt" and place == 0 and other == 0.0:
        return MaskEffect.SAME
    return MaskEffect.TURNED if operation == "sub" and place == 1 and other == 1.0 else None


class InputRanges(ABC):
    """Values of a graph's inputs, by the operators that read them.

    A whole number that names a row is below the rows of its smallest table; a mask is filled with
    the value that masks nothing. A reader of a format states what an operator does.
    """

    def __init__(self) -> None:
        self._by_value: dict[str, list[tuple[Any, Any]]] = {}

    def of(self, key: str, name: str, dtype: str) -> dict[str, Any]:
        """Return the values of an input, as in `values_of_type`; `key` is its graph value."""
        whole = dtype.startswith(("int", "uint"))
        rows = self._rows(key) if whole else None
        if rows is None and (whole or dtype in {"bool", "boolean"}):
            through = lets_through(key, self._effects)
            if through is not None:
                value = "ones" if through else "zeros"
                drawn = f"{value}: the graph uses it as a mask, and they leave nothing out"
                return {"constant": through, "drawn": drawn}
        return values_of_type(name, dtype, rows)

    def _rows(self, key: str) -> int | None:
        found: list[int] = []
        waiting, seen = [key], {key}
        while waiting:
            for node, place in self._readers(waiting.pop()):
                rows = self._table(node, place)
                if rows:
                    found.append(rows)
                elif self._passes_on(node, place):
                    more = [made for made in self._made(node) if made and made not in seen]
                    seen.update(more)
                    waiting += more
        return min(found, default=None)

    def _effects(self, read: str) -> Iterator[tuple[MaskEffect | None, Iterable[str]]]:
        for node, place in self._readers(read):
            effect = self._effect(node, place)
            goes_on = effect in {MaskEffect.SAME, MaskEffect.TURNED}
            yield effect, self._made(node) if goes_on else ()

    def _note_reader(self, key: str, node: Any, place: Any) -> None:
        self._by_value.setdefault(key, []).append((node, place))

    def _readers(self, key: str) -> Iterable[tuple[Any, Any]]:
        """Return the operators that read a value, each with the place if it does."""
        return self._by_value.get(key, ())

    @abstractmethod
    def _made(self, node: Any) -> Iterable[str]:
        """Return the values that an operator makes."""

    @abstractmethod
    def _table(self, node: Any, place: Any) -> int | None:
        """Return the rows of the table that an operator reads at these numbers, if it does."""

    @abstractmethod
    def _passes_on(self, node: Any, place: Any) -> bool:
        """Return whether an operator's result has only values of this operand."""

    @abstractmethod
    def _effect(self, node: Any, place: Any) -> MaskEffect | None:
        """Return what an operator does with a mask at a place."""

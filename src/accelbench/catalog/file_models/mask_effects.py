"""Which value of an input leaves nothing out, followed from it to where scores are masked. Pure.

Exporters write a mask in a few ways: `(1 - mask) * -10000` is added to scores, or a very negative
number is put in their place. The reader of each format says what an operator does with a value
that it reads, and this follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

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
    """The value of an input that leaves nothing out, 0 or 1; None where it is no mask.

    Args:
        name: of the input.
        effects: of a value, what the operators that read it do with it.
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


def of_choice(where_true: float | None, where_false: float | None) -> MaskEffect | None:
    """What a choice between two branches does with its condition.

    Args:
        where_true: the one value of the branch that is taken where it is true; None of others.
        where_false: of the branch that is taken where it is false.
    """
    if where_true is not None and where_true <= LEAVES_OUT:
        return MaskEffect.LEAVES_OUT
    if where_false is not None and where_false <= LEAVES_OUT:
        return MaskEffect.KEEPS
    return None


def of_factor(factor: float | None) -> MaskEffect | None:
    """What multiplying by a number does with a mask."""
    return MaskEffect.LEAVES_OUT if factor is not None and factor <= LEAVES_OUT else None


def of_equality(other: float | None, *, unequal: bool = False) -> MaskEffect | None:
    """What comparing with a number does with a mask: it is equal to 1 where it is true."""
    if other not in (0.0, 1.0):
        return None
    return MaskEffect.SAME if (other == 1.0) != unequal else MaskEffect.TURNED


def drawn_as_mask(name: str, effects: Effects) -> Mapping[str, Any] | None:
    """How an input is filled that a graph uses as a mask, as `drawn_of_type` has it."""
    through = lets_through(name, effects)
    if through is None:
        return None
    value = "ones" if through else "zeros"
    drawn = f"{value}: the graph uses it as a mask, and they leave nothing out"
    return {"constant": through, "drawn": drawn}

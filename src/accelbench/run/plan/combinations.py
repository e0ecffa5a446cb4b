"""A matrix of values as combinations: what people know from continuous integration. Pure.

A combination has one value of each axis. What `exclude` matches is taken away first. An entry of
`include` then adds its other keys to every combination of the matrix that has its values of the
axes; where none has, it is a combination of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

from accelbench.core.errors import UsageError

#: More than anybody measures; a slip in one axis may ask for millions.
MOST_COMBINATIONS = 20_000

#: Of some keys one value each.
Combination = Mapping[str, str]
#: Of some keys several values each: every combination of them.
Block = Mapping[str, tuple[str, ...]]


def combinations(
    axes: Block, include: Iterable[Combination] = (), exclude: Iterable[Combination] = ()
) -> list[dict[str, str]]:
    """The combinations of a matrix, in the order of its values, then those that were added.

    Args:
        axes: the values of each axis.
        include: what is added, one after the other; a later one may change what an earlier added.
        exclude: what is taken away: combinations that have all of an entry's values.

    Raises:
        UsageError: there are too many.
    """
    count = prod(map(len, axes.values())) if axes else 0
    if count > MOST_COMBINATIONS:
        sizes = " × ".join(f"{len(values)} {name}" for name, values in axes.items())
        raise UsageError(
            f"The matrix has {count:,} combinations ({sizes}), and may have {MOST_COMBINATIONS:,}.",
            "Name fewer values, or write several plans.",
        )
    named = list(axes)
    every = [dict(zip(named, values, strict=True)) for values in product(*axes.values())]
    left_out = list(exclude)
    kept = [one for one in every if not any(_has(one, entry) for entry in left_out)] if axes else []
    original, added = [dict(combination) for combination in kept], list[dict[str, str]]()
    for entry in include:
        own = {name: value for name, value in entry.items() if name in axes}
        matching = [made for made, one in zip(kept, original, strict=True) if _has(one, own)]
        for combination in matching:
            combination.update(entry)
        if not matching:
            added.append(dict(entry))
    return kept + added


def _has(combination: Combination, entry: Combination) -> bool:
    return all(combination.get(name) == value for name, value in entry.items())


def blocks(
    combinations: Sequence[Combination], lists: Sequence[str], alone: Iterable[str] = ()
) -> list[dict[str, tuple[str, ...]]]:
    """As few blocks as merging gives, axis after axis: a whole matrix is one.

    Args:
        combinations: what the blocks come to, together.
        lists: the keys of which a block may have several values, in the order of merging.
        alone: values that stand for themselves, beside no other.
    """
    single = frozenset(alone)
    made: list[dict[str, tuple[str, ...]]] = [
        {name: (value,) for name, value in one.items()} for one in combinations
    ]
    for axis in lists:
        merged: dict[object, dict[str, tuple[str, ...]]] = {}
        for block in made:
            own = block.get(axis)
            others = frozenset((name, values) for name, values in block.items() if name != axis)
            key = (others, own if own is None or single & set(own) else ())
            before = merged.get(key)
            if before is None:
                merged[key] = dict(block)
            elif own is not None:
                before[axis] = tuple(dict.fromkeys((*before[axis], *own)))
        made = list(merged.values())
    return made

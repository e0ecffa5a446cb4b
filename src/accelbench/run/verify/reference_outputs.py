"""What a reference keeps of its outputs, and which of its values belongs to which of another batch.

A batch that is verified holds the reference's few items again and again: a b c a b c a …. Every
axis of an output that grows with the batch repeats with them, be it the items themselves, items
times heads, or each item's likeness to each (CLIP's logits). So three items say what all of 128
have to be, and an engine that computes some of them alone is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Values of an output that are kept and compared; of a larger one as many are picked by chance. A
#: language model's logits of a batch of 128 would otherwise be 3 GB. Four times as many took 0.7 s
#: more a case, and find no more.
MOST_VALUES = 2**20


@dataclass(frozen=True)
class ReferenceOutputs:
    """An output's shape, and its values or many of them."""

    shape: tuple[int, ...]
    values: Array  # flat
    places: Array | None = None  # where they were; None: all of them, in order

    @property
    def is_number(self) -> bool:
        """Whether its values may be a little off."""
        return is_number(self.values)


def is_number(values: Array) -> bool:
    """Whether values are measured and may be a little off; else they are decided, like ids."""
    return values.dtype.kind in "fc"


Outputs = Mapping[str, ReferenceOutputs]

#: A reference's files: its outputs, and those for other inputs, of one draw or several.
RIGHT, OTHERS = "right.npz", "other-{}.npz"


def pick(
    outputs: Mapping[str, Any], draw: int, most: int = MOST_VALUES
) -> dict[str, ReferenceOutputs]:
    """The values to keep; the same `draw` picks the same ones."""
    picks = {}
    for name, output in outputs.items():
        whole = np.asarray(output)
        flat, places = whole.reshape(-1), None
        if flat.size > most:
            places = np.sort(np.random.default_rng(draw).integers(0, flat.size, most))
            flat = flat[places]
        picks[name] = ReferenceOutputs(whole.shape, flat, places)
    return picks


def save(outputs: Outputs, path: Path) -> None:
    """Keep what was picked in a file."""
    arrays = {f"values {name}": out.values for name, out in outputs.items()}
    shapes = {f"shape {name}": np.array(out.shape, np.int64) for name, out in outputs.items()}
    places = {f"places {n}": out.places for n, out in outputs.items() if out.places is not None}
    np.savez(path, allow_pickle=False, **arrays, **shapes, **places)


def load(path: Path) -> dict[str, ReferenceOutputs]:
    """What `save` kept."""
    with np.load(path, allow_pickle=False) as kept:
        names = [key.removeprefix("values ") for key in kept if key.startswith("values ")]
        return {
            name: ReferenceOutputs(
                tuple(kept[f"shape {name}"].tolist()),
                kept[f"values {name}"],
                kept.get(f"places {name}"),
            )
            for name in names
        }


@dataclass(frozen=True)
class Batches:
    """How many items a reference computed, and how many what is compared with it."""

    reference: int = 1
    found: int = 1

    def matches(self, reference: int, found: int) -> bool:
        """Whether an axis is as long as it has to be: it grows with the batch, or does not."""
        return reference == found or reference * self.found == found * self.reference


@dataclass(frozen=True)
class Pairs:
    """Values that have to be equal, and the item that each belongs to."""

    found: Array
    right: Array
    items: Array | None  # None: the output is of no item


def fits(shape: tuple[int, ...], kept: ReferenceOutputs, batches: Batches) -> bool:
    """Whether an output has the shape that the reference's becomes in its batch."""
    if len(shape) != len(kept.shape):
        return False
    return all(batches.matches(*pair) for pair in zip(kept.shape, shape, strict=True))


def pairs(output: Array, kept: ReferenceOutputs, batches: Batches, draw: int) -> Pairs:
    """The values of an output that fits beside the reference's."""
    array = np.asarray(output)
    if kept.places is None and array.size <= MOST_VALUES:
        axes = [np.arange(size) for size in array.shape]
        where = list(np.meshgrid(*axes, indexing="ij", sparse=True)) if axes else []
    else:
        where = _congruent(array.shape, kept, draw)
    indices = [index % size for index, size in zip(where, kept.shape, strict=True)]
    if kept.places is None:
        right = kept.values.reshape(kept.shape)[tuple(indices)]
    else:
        # Each place that was picked is looked up among those, in order.
        flat = np.ravel_multi_index(tuple(indices), kept.shape)
        right = kept.values[np.searchsorted(kept.places, flat)]
    chosen = array[tuple(where)]
    return Pairs(
        chosen.reshape(-1), right.reshape(-1), _items(where, chosen.shape, kept, array, batches)
    )


def _congruent(shape: tuple[int, ...], kept: ReferenceOutputs, draw: int) -> list[Array]:
    """For many of the reference's places, one by chance of those that are its like."""
    random = np.random.default_rng([draw, 1])
    places = kept.places
    if places is None:
        places = random.integers(0, math.prod(kept.shape), MOST_VALUES)
    where = list(np.unravel_index(places, kept.shape))
    for number, (size, period) in enumerate(zip(shape, kept.shape, strict=True)):
        if size > period:
            rounds = (size - 1 - where[number]) // period + 1
            where[number] = where[number] + period * random.integers(0, rounds)
    inside = np.ones(len(places), bool)
    for index, size in zip(where, shape, strict=True):
        inside &= index < size
    return [index[inside] for index in where]


def _items(
    where: list[Array],
    shape: tuple[int, ...],
    kept: ReferenceOutputs,
    output: Array,
    batches: Batches,
) -> Array | None:
    """The item of each value: by the first axis that the batch divides."""
    for index, size, period in zip(where, output.shape, kept.shape, strict=True):
        if size % batches.found == 0 and size * batches.reference == period * batches.found:
            each = index // (size // batches.found) if size else index
            return np.broadcast_to(each, shape).reshape(-1)
    return None

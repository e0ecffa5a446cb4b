"""A reference's outputs as they are kept, and their counterparts in the outputs of another batch.

Every item of a verified batch differs from the others. The reference computes some of them, at
random positions of the batch. Every axis of an output that grows with the batch has the items one
after the other: one entry each, several (items times heads), or one for each other item (CLIP's
logits, which grow along two axes).
"""

from __future__ import annotations

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
    """Return whether values are measured and may be a little off; ids are decided."""
    return values.dtype.kind in "fc"


Outputs = Mapping[str, ReferenceOutputs]

#: A reference's files: its outputs, and those for other inputs, of one draw or several.
RIGHT, OTHERS = "right.npz", "other-{}.npz"


def pick(
    outputs: Mapping[str, Any], draw: int, most: int = MOST_VALUES
) -> dict[str, ReferenceOutputs]:
    """Return the values to keep; the same `draw` picks the same ones."""
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
    """Write the picked values into a file."""
    arrays = {f"values {name}": out.values for name, out in outputs.items()}
    shapes = {f"shape {name}": np.array(out.shape, np.int64) for name, out in outputs.items()}
    places = {f"places {n}": out.places for n, out in outputs.items() if out.places is not None}
    np.savez(path, allow_pickle=False, **arrays, **shapes, **places)


def load(path: Path) -> dict[str, ReferenceOutputs]:
    """Read what `save` wrote."""
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
    """The items of the input stream that a reference computed, and those of a batch, in order."""

    # If both have as many, they have to be the same.

    reference: tuple[int, ...] = (0,)
    found: tuple[int, ...] = (0,)

    def fits(self, reference: int, found: int) -> bool:
        """Return whether an axis has the right size: it grows with the batch, or does not."""
        grown = reference * len(self.found) == found * len(self.reference)
        return reference == found or (grown and found % len(self.found) == 0)

    def common(self) -> tuple[Array, Array]:
        """Return the rows that are the same items: in the reference, and in the batch."""
        rows = {item: row for row, item in enumerate(self.found)}
        both = [(row, rows[item]) for row, item in enumerate(self.reference) if item in rows]
        of_reference, of_found = np.array(both, np.int64).reshape(-1, 2).T
        return of_reference, of_found


@dataclass(frozen=True)
class Pairs:
    """Values that have to be equal, and the item that each belongs to."""

    found: Array
    right: Array
    items: Array | None  # rows of the batch; None: the output is of no item


def fits(shape: tuple[int, ...], kept: ReferenceOutputs, batches: Batches) -> bool:
    """Whether an output has the shape that the reference's becomes in its batch."""
    if len(shape) != len(kept.shape):
        return False
    return all(batches.fits(*pair) for pair in zip(kept.shape, shape, strict=True))


def item_axis(shape: tuple[int, ...], right: tuple[int, ...], batches: Batches) -> int | None:
    """Return the first axis along which an output that fits has its items, or None."""
    reference, found = len(batches.reference), len(batches.found)
    for number, (size, other) in enumerate(zip(shape, right, strict=True)):
        if size % found == 0 and size * reference == other * found:
            return number
    return None


def pairs(output: Array, kept: ReferenceOutputs, batches: Batches) -> Pairs:
    """Pair the kept values with those of an output that fits, of the items that both have."""
    array = np.asarray(output)
    of_reference, of_found = batches.common()
    grows = [size != other for size, other in zip(array.shape, kept.shape, strict=True)]
    each = [size // len(batches.found) for size in array.shape]
    if kept.places is None:
        right_at = [
            _blocks(of_reference, per) if grown else np.arange(size)
            for grown, per, size in zip(grows, each, kept.shape, strict=True)
        ]
        where = [
            _blocks(of_found, per) if grown else at
            for grown, per, at in zip(grows, each, right_at, strict=True)
        ]
        right = kept.values.reshape(kept.shape)[np.ix_(*right_at)]
        where = list(np.ix_(*where))
    else:
        row_in_batch = np.full(len(batches.reference), -1)
        row_in_batch[of_reference] = of_found
        inside = np.ones(len(kept.places), bool)
        where = list(np.unravel_index(kept.places, kept.shape))
        for number, (grown, per) in enumerate(zip(grows, each, strict=True)):
            if grown:
                row = row_in_batch[where[number] // per]
                inside &= row >= 0
                where[number] = row * per + where[number] % per
        right, where = kept.values[inside], [index[inside] for index in where]
    found = array[tuple(where)]
    axis = item_axis(array.shape, kept.shape, batches)
    rows = None
    if axis is not None and each[axis]:
        rows = np.broadcast_to(where[axis] // each[axis], found.shape).reshape(-1)
    return Pairs(found.reshape(-1), right.reshape(-1), rows)


def rows_of(output: Array, right: tuple[int, ...], rows: Array, batches: Batches) -> Array:
    """Cut rows out of a batch's output that fits, as if the batch had been of these only."""
    cut = np.asarray(output)
    for number, (size, other) in enumerate(zip(cut.shape, right, strict=True)):
        if size != other:
            cut = cut.take(_blocks(rows, size // len(batches.found)), axis=number)
    return cut


def _blocks(rows: Array, per: int) -> Array:
    """Return the indices of rows along an axis that has so many entries for each."""
    return (rows[:, None] * per + np.arange(per)).reshape(-1)

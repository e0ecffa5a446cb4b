"""The distance of outputs from their reference, in units of what the inputs change.

    error = rms(output - reference) / (rms(reference - other) + rounding)

of the worst item of the worst output, where `other` are the reference's outputs for other inputs.
An absolute tolerance says little: an error of 0.48 may be small beside logits of 86 and still be a
quarter of all that another image would change. `rounding` is the cost of the precision's last
places; it counts if an output hardly depends on its inputs, such as the box corners of an untrained
detector.

Decisions, such as token ids or a mask, are not near or far: the share of values that differ is
compared with how many another draw of the inputs changes; in fp32 none may differ.

A reference's outputs as they are kept, and their counterparts in the outputs of another batch.

Every item of a verified batch differs from the others. The reference computes some of them, at
random positions of the batch. Every axis of an output that grows with the batch has the items one
after the other: one entry each, several (items times heads), or one for each other item (CLIP's
logits, which grow along two axes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from accelbench.engines.shared.sketches import DECODE_LOGITS, TOKENS
from accelbench.run.verify.verdicts import tolerance_of

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
    """Return whether an output has the shape that the reference's becomes in its batch."""
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


#: Roundings add up over a model's layers; seen were up to two last places.
_PLACES = 4.0

_ALIKE = Batches()


@dataclass(frozen=True)
class Agreement:
    """Outputs compared with their reference."""

    error: float  # of the worst output; infinite where one is missing or of another shape
    tolerance: float
    errors: Mapping[str, float]  # an output each
    wrong: str = ""  # what makes it no matter of numbers: a missing output, another shape
    telling: bool = True  # False: no output depends on the inputs beyond the rounding
    finite: bool = True  # False: no value of the reference's outputs is
    numeric: bool = True  # False: every output is a decision, such as token ids

    @property
    def ok(self) -> bool:
        return not self.wrong and self.error <= self.tolerance


def agree(
    outputs: Mapping[str, Any],
    reference: Outputs,
    other: Outputs | Sequence[Outputs],
    precision: str,
    *,
    allowed: float | None = None,
    batches: Batches = _ALIKE,
) -> Agreement:
    """Compare outputs with a reference; `other` are the reference's outputs for other inputs.

    `allowed` is the largest error; by default the most that the precision may cost. Only items that
    both batches have are compared.
    """
    others = [other] if isinstance(other, Mapping) else other
    most = tolerance_of(precision).most if allowed is None else allowed
    outputs = join_complex_pairs(outputs, reference)
    for name in reference:
        wrong = _wrong(name, outputs, reference[name], batches)
        if wrong:
            return Agreement(float("inf"), most, {}, wrong)
    names = judged_outputs(reference)
    errors, telling = {}, False
    for name in names:
        unit = unit_of(name, reference, others, precision, most)
        off = _worst(_comparable(name, outputs, reference, batches))
        errors[name] = off / unit.scale if unit.scale else (0.0 if off == 0 else float("inf"))
        telling = telling or unit.telling
    worst = max(errors.values(), default=0.0)
    finite = any(_finite(reference[name].values).size for name in names)
    numeric = any(reference[name].is_number for name in names)
    return Agreement(worst, most, errors, telling=telling, finite=finite, numeric=numeric)


def judged_outputs(reference: Outputs) -> list[str]:
    """Return the names of the outputs that are compared: numbers, or all if there are none."""
    # Decisions next to numbers are made of those, and a tie may be decided either way.
    return [name for name, output in reference.items() if output.is_number] or list(reference)


@dataclass(frozen=True)
class Unit:
    """What differences in an output are measured in."""

    scale: float
    telling: bool  # whether inputs change the output by more than rounding does


def unit_of(
    name: str, reference: Outputs, others: Sequence[Outputs], precision: str, most: float
) -> Unit:
    """Return the unit for the differences of an output, in which rounding may cost `most`."""
    right = reference[name]
    moved = _moved(right, [other.get(name) for other in others])
    rounding = 0.0
    if right.is_number:
        places = _PLACES * tolerance_of(precision).last_places
        rounding = places * _rms(_finite(right.values))
    return Unit(moved + rounding / most, moved > rounding)


def join_complex_pairs(outputs: Mapping[str, Any], reference: Outputs) -> dict[str, Any]:
    """Return outputs with complex numbers that an engine without them gives as pairs, joined."""
    return {n: _joined(o, reference[n]) if n in reference else o for n, o in outputs.items()}


def _joined(output: Any, right: ReferenceOutputs) -> Any:
    array = np.asarray(output)
    pairs_of = array.dtype.kind == "f" and array.shape[-1:] == (2,)
    if right.values.dtype.kind != "c" or not pairs_of or array.ndim != len(right.shape) + 1:
        return output
    return array[..., 0] + 1j * array[..., 1]


def _wrong(name: str, outputs: Mapping[str, Any], right: ReferenceOutputs, batches: Batches) -> str:
    if name not in outputs:
        return f"the output {name} is missing"
    shape = np.asarray(outputs[name]).shape
    if not fits(shape, right, batches):
        many = ""
        if batches != _ALIKE:
            many = f" of {len(batches.reference)} for {len(batches.found)} items"
        return f"the output {name} has the shape {shape}, not {right.shape}{many}"
    return ""


def _comparable(
    name: str, outputs: Mapping[str, Any], reference: Outputs, batches: Batches
) -> Pairs:
    """Pair the values of an output; logits of decoded tokens only if they follow the same
    tokens."""
    # Two logits that are nearly equal may be decided either way, and other tokens follow then.
    held = pairs(outputs[name], reference[name], batches)
    if name != DECODE_LOGITS or TOKENS not in reference or TOKENS not in outputs:
        return held
    tokens = pairs(outputs[TOKENS], reference[TOKENS], batches)
    same = (tokens.found == tokens.right).reshape(-1, reference[TOKENS].shape[-1])
    follows = np.cumprod(same, axis=1)[:, :-1].reshape(-1).astype(bool)
    if not follows.size or held.found.size % follows.size:
        return held  # of so many logits not all are kept
    alike = np.repeat(follows, held.found.size // follows.size)
    items = None if held.items is None else held.items[alike]
    return Pairs(held.found[alike], held.right[alike], items)


def _worst(held: Pairs) -> float:
    """Return the root mean square of the differences of the item that is furthest off."""
    apart = np.square(far_apart(held.found, held.right))
    if not apart.size:
        return 0.0
    if held.items is None:
        return float(np.sqrt(apart.mean()))
    sums = np.bincount(held.items, weights=apart)
    counts = np.bincount(held.items)
    return float(np.sqrt((sums[counts > 0] / counts[counts > 0]).max()))


def _moved(right: ReferenceOutputs, others: Sequence[ReferenceOutputs | None]) -> float:
    """Return what other inputs change; an output whose shape depends on them is moved as a
    whole."""
    distances = []
    for other in others:
        if other is not None and right.shape == other.shape:
            apart = far_apart(right.values, other.values)[_is_finite(right.values, other.values)]
        else:
            apart = np.abs(right.values) if right.is_number else np.ones(right.values.shape)
        distances.append(_rms(_finite(apart)))
    return _rms(np.asarray(distances))


def far_apart(array: Array, other: Array) -> Array:
    """Return how far values are apart; 1 for decisions that differ, 0 for two NaNs."""
    if not (is_number(array) and is_number(other)):
        return np.not_equal(array, other).astype(np.float64)
    wide = np.complex128 if "c" in array.dtype.kind + other.dtype.kind else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(np.subtract(array, other, dtype=wide))
        same = np.equal(array, other) | (np.not_equal(array, array) & np.not_equal(other, other))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _is_finite(array: Array, other: Array) -> Array:
    return cast("Array", np.isfinite(array) & np.isfinite(other))


def _rms(values: Array) -> float:
    if not values.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.mean(np.square(np.abs(values).astype(np.float64)))))

"""The distance of outputs from their reference, in units of what the inputs change.

    error = rms(output - reference) / (rms(reference - other) + rounding)

of the worst item of the worst output, where `other` are the reference's outputs for other inputs.
An absolute tolerance says little: an error of 0.48 may be small beside logits of 86 and still be a
quarter of all that another image would change. `rounding` is the cost of the precision's last
places; it counts if an output hardly depends on its inputs, such as the box corners of an untrained
detector.

Decisions, such as token ids or a mask, are not near or far: the share of values that differ is
compared with how many another draw of the inputs changes; in fp32 none may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from accelbench.engines.shared.sketches import DECODE_LOGITS, TOKENS
from accelbench.run.verify.reference_outputs import (
    Array,
    Batches,
    Outputs,
    Pairs,
    ReferenceOutputs,
    fits,
    is_number,
    pairs,
)
from accelbench.run.verify.verdicts import tolerance_of

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

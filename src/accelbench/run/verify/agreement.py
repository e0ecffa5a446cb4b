"""How far outputs are from their reference, in units of what the inputs move.

An absolute tolerance says little of random weights: an error of 0.48 may be small
beside logits of 86 and still be a quarter of all that another image would change.
So the yardstick is the model's own: how far the reference's outputs for two seeded
inputs lie apart.

    error = rms(output - reference) / (rms(reference - other) + rounding)

of the worst item of the worst output. `rounding` is what the precision's last places alone
may cost; it counts where an output hardly depends on its inputs, such as the box corners of
an untrained detector, which are all near one half.

What is decided, such as token ids or a mask, is not near or far: a number of its values are others.
That is compared with how many another draw of the inputs changes; in fp32 none may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from accelbench.core.precision import narrowed
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


@dataclass(frozen=True)
class Tolerance:
    """What a precision may cost."""

    most: float  # of what the inputs move, whatever the model
    least: float  # allowed to each model, however little rounding moves it
    last_places: float  # unit of the last place, relative


#: In fp32 engines differ by the order of summation, 1e-7 to 1e-5: one that computes in bf16, fp16
#: or TF32 without being asked does not pass. What a narrow precision costs is the model's own
#: sensitivity to it, between these two; see docs/measuring.md.
TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(2e-4, 2e-4, 2.0**-23),
    "fp16": Tolerance(0.1, 0.02, 2.0**-10),
    "bf16": Tolerance(0.5, 0.03, 2.0**-7),
    "int8": Tolerance(0.5, 0.15, 2.0**-7),
}

#: How many times what rounding alone moves a model an engine may be off: it rounds elsewhere, too,
#: and its scales are not the best there are. Seen over the small models: up to 3.1 in bf16, 2.1 in
#: fp16; in int8 1 to 2.4, and more where quantisers take what is no product, such as nncf BERT's
#: sums, which the least is for.
_TIMES_ROUNDED = 4.0

#: Roundings add up over a model's layers; seen were up to two last places.
_PLACES = 4.0

_ALIKE = Batches()


def tolerance_of(precision: str) -> Tolerance:
    """What a precision may cost, autocast like the type it narrows to."""
    return TOLERANCES[narrowed(precision) or "fp32"]


def allowed_for(precision: str, rounded: float | None) -> float:
    """The error that is allowed to a model, which rounding alone moves by so much."""
    costs = tolerance_of(precision)
    if rounded is None:
        return costs.most
    return min(costs.most, max(costs.least, _TIMES_ROUNDED * rounded))


@dataclass(frozen=True)
class Agreement:
    """Outputs compared with their reference."""

    error: float  # of the worst output; infinite where one is missing or of another shape
    tolerance: float
    errors: Mapping[str, float]  # an output each
    wrong: str = ""  # what makes it no matter of numbers: a missing output, another shape
    telling: bool = True  # False: no output depends on the inputs beyond the rounding
    finite: bool = True  # False: no value of the reference's outputs is

    @property
    def ok(self) -> bool:
        """Whether they agree."""
        return not self.wrong and self.error <= self.tolerance


def agree(
    outputs: Mapping[str, Any],
    reference: Outputs,
    other: Outputs | Sequence[Outputs],
    precision: str,
    *,
    allowed: float | None = None,
    batches: Batches = _ALIKE,
    draw: int = 0,
) -> Agreement:
    """Hold outputs against a reference.

    Args:
        outputs: what a runtime gave for some inputs.
        reference: what the reference gave for them.
        other: what it gives for other inputs; of several, what they move on the whole.
        precision: what the runtime was asked to compute in.
        allowed: the error that is allowed; None is the most that the precision may cost.
        batches: how many items they are of; a larger batch repeats the reference's.
        draw: which values of large outputs are compared.
    """
    others = [other] if isinstance(other, Mapping) else other
    costs = tolerance_of(precision)
    most = costs.most if allowed is None else allowed
    outputs = {n: _with_parts(o, reference[n]) if n in reference else o for n, o in outputs.items()}
    for name in reference:
        wrong = _wrong(name, outputs, reference[name], batches)
        if wrong:
            return Agreement(float("inf"), most, {}, wrong)
    # Decisions beside numbers are made of those: a tie may be decided either way.
    judged = [name for name, output in reference.items() if output.is_number] or list(reference)
    errors, telling = {}, False
    for name in judged:
        right = reference[name]
        moved = _moved(right, [other.get(name) for other in others])
        rounding = _PLACES * costs.last_places * _rms(_finite(right.values))
        if not right.is_number:
            rounding = 0.0
        # Divided by the scale, what rounding may cost is just the tolerance.
        scale = moved + rounding / most
        off = _worst(pairs(outputs[name], right, batches, draw))
        errors[name] = off / scale if scale else (0.0 if off == 0 else float("inf"))
        telling = telling or moved > rounding
    worst = max(errors.values(), default=0.0)
    finite = any(_finite(reference[name].values).size for name in judged)
    return Agreement(worst, most, errors, telling=telling, finite=finite)


def _with_parts(output: Any, right: ReferenceOutputs) -> Any:
    """An output; complex numbers that an engine without them gives as pairs, joined."""
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
        many = "" if batches == _ALIKE else f" of {batches.reference} for {batches.found} items"
        return f"the output {name} has the shape {shape}, not {right.shape}{many}"
    return ""


def _worst(held: Pairs) -> float:
    """Root mean square of the differences, of the item that is furthest off."""
    apart = np.square(far_apart(held.found, held.right))
    if not apart.size:
        return 0.0
    if held.items is None:
        return float(np.sqrt(apart.mean()))
    sums = np.bincount(held.items, weights=apart)
    counts = np.bincount(held.items)
    return float(np.sqrt((sums[counts > 0] / counts[counts > 0]).max()))


def _moved(right: ReferenceOutputs, others: Sequence[ReferenceOutputs | None]) -> float:
    """What other inputs change; an output whose very shape depends on them is moved as a whole."""
    distances = []
    for other in others:
        if other is not None and right.shape == other.shape:
            apart = far_apart(right.values, other.values)[_is_finite(right.values, other.values)]
        else:
            apart = np.abs(right.values) if right.is_number else np.ones(right.values.shape)
        distances.append(_rms(_finite(apart)))
    return _rms(np.asarray(distances))


def far_apart(array: Array, other: Array) -> Array:
    """How far values are apart; those that are no number in both are equal.

    Of decisions, 1 where they differ.
    """
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
    return cast(Array, np.isfinite(array) & np.isfinite(other))


def _rms(values: Array) -> float:
    if not values.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.mean(np.square(np.abs(values).astype(np.float64)))))

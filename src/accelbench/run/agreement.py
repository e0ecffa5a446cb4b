"""How far outputs are from their reference, in units of what the inputs move.

An absolute tolerance says little of random weights: an error of 0.48 may be small
beside logits of 86 and still be a quarter of all that another image would change.
So the yardstick is the model's own: how far the reference's outputs for two seeded
inputs lie apart.

    error = rms(output - reference) / (rms(reference - other) + rounding)

`rounding` is what the precision's last places alone may cost; it counts where an output
hardly depends on its inputs, such as the box corners of an untrained detector, which
are all near one half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Values of an output that are compared; of a larger one as many are picked by chance. A language
#: model's logits of a batch of 128 would otherwise be 3 GB.
MOST_VALUES = 2**22


@dataclass(frozen=True)
class Picked:
    """An output's shape, and its values or many of them."""

    shape: tuple[int, ...]
    values: Array

    @property
    def is_float(self) -> bool:
        """Whether its values are numbers that may be a little off."""
        return self.values.dtype.kind == "f"


Outputs = Mapping[str, Picked]

#: A reference's files: its outputs, and those for other inputs.
RIGHT, OTHER = "right.npz", "other.npz"


def pick(outputs: Mapping[str, Any], draw: int, most: int = MOST_VALUES) -> dict[str, Picked]:
    """The values to compare; the same `draw` picks the same ones."""
    found = {}
    for name, output in outputs.items():
        whole = np.asarray(output)
        flat = whole.reshape(-1)
        if flat.size > most:
            flat = flat[np.random.default_rng(draw).integers(0, flat.size, most)]
        found[name] = Picked(whole.shape, flat)
    return found


def save(outputs: Outputs, path: Path) -> None:
    """Keep what was picked in a file."""
    arrays = {f"values {name}": one.values for name, one in outputs.items()}
    shapes = {f"shape {name}": np.array(one.shape) for name, one in outputs.items()}
    np.savez(path, allow_pickle=False, **arrays, **shapes)


def load(path: Path) -> dict[str, Picked]:
    """What `save` kept."""
    with np.load(path, allow_pickle=False) as kept:
        names = [key.removeprefix("values ") for key in kept if key.startswith("values ")]
        return {
            name: Picked(tuple(kept[f"shape {name}"].tolist()), kept[f"values {name}"])
            for name in names
        }


@dataclass(frozen=True)
class Tolerance:
    """What a precision may cost."""

    error: float  # at most, of what the inputs move
    last_places: float  # unit of the last place, relative


#: Measured over the catalogue's small models against fp32 on the CPU, the worst output of each:
#: fp16 0.0005 to 0.01, bf16 0.004 to 0.2 and, under autocast, 0.4; ResNet-50 in bf16 0.27. In fp32
#: engines differ by the order of summation, 1e-7 to 1e-5: one that computes in bf16, fp16 or
#: TF32 without being asked does not pass.
TOLERANCES: Mapping[str, Tolerance] = {
    "fp32": Tolerance(2e-4, 2.0**-23),
    "fp16": Tolerance(0.1, 2.0**-10),
    "bf16": Tolerance(0.5, 2.0**-7),
    "int8": Tolerance(0.5, 2.0**-7),
}

#: Roundings add up over a model's layers; seen were up to two last places.
_PLACES = 4.0


def tolerance_of(precision: str) -> Tolerance:
    """What a precision may cost, autocast like the type it narrows to."""
    return TOLERANCES[precision.removeprefix("amp-")]


@dataclass(frozen=True)
class Agreement:
    """Outputs held against their reference."""

    error: float  # of the worst output; infinite where one is missing or of another shape
    tolerance: float
    errors: Mapping[str, float]  # an output each
    wrong: str = ""  # what makes it no matter of numbers: a missing output, another shape
    telling: bool = True  # False: no output depends on the inputs beyond the rounding

    @property
    def ok(self) -> bool:
        """Whether they agree."""
        return not self.wrong and self.error <= self.tolerance


def agree(outputs: Outputs, reference: Outputs, other: Outputs, precision: str) -> Agreement:
    """Hold outputs against a reference.

    Args:
        outputs: what a runtime gave for some inputs.
        reference: what the reference gave for them.
        other: what it gives for other inputs.
        precision: what the runtime was asked to compute in.
    """
    allowed = tolerance_of(precision)
    judged = [name for name, one in reference.items() if one.is_float]
    if not judged:  # decisions alone, such as token ids: they have to be the same
        judged = list(reference)
    for name in judged:
        wrong = _wrong(name, outputs, reference)
        if wrong:
            return Agreement(float("inf"), allowed.error, {}, wrong)
    errors, telling = {}, False
    for name in judged:
        right = reference[name].values
        moved = _moved(reference[name], other.get(name))
        rounding = _PLACES * allowed.last_places * _rms(right[np.isfinite(right)])
        # Divided by the scale, what rounding may cost is just the tolerance.
        scale = moved + rounding / allowed.error
        off = _apart(outputs[name].values, right)
        errors[name] = off / scale if scale else (0.0 if off == 0 else float("inf"))
        telling = telling or moved > rounding
    worst = max(errors.values(), default=0.0)
    return Agreement(worst, allowed.error, errors, telling=telling)


def _wrong(name: str, outputs: Outputs, reference: Outputs) -> str:
    if name not in outputs:
        return f"the output {name} is missing"
    found, wanted = outputs[name].shape, reference[name].shape
    if found != wanted:
        return f"the output {name} has the shape {found}, not {wanted}"
    return ""


def _moved(one: Picked, other: Picked | None) -> float:
    """What other inputs change; an output whose very shape depends on them is moved as a whole."""
    values = one.values
    if other is not None and one.shape == other.shape:
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.subtract(values, other.values, dtype=np.float64)
    return _rms(values[np.isfinite(values)])


def _apart(one: Array, other: Array) -> float:
    """Root mean square of the difference; values that are no number in both are equal."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.subtract(one, other, dtype=np.float64)
        same = np.equal(one, other) | (np.not_equal(one, one) & np.not_equal(other, other))
    return _rms(np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)))


def _rms(values: Array) -> float:
    if not values.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sqrt(np.mean(np.square(np.asarray(values, np.float64)))))

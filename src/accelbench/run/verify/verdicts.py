"""Verdicts on outputs, and the errors that precisions may cost; the conductor imports this too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.precision import narrow_type

OK, FAILED, NOT_DONE, REFERENCE = "ok", "failed", "not_done", "reference"
#: Why nothing was compared, where `--benchmark-only` wants it so.
NOT_ASKED_FOR = "it was not asked for"
#: Why nothing of a scripted runtime is compared or proven.
COMPUTES_NOTHING = "the runtime follows a script and computes nothing"
#: Why a comparison says nothing: as random weights of ResNet-50 often have it in bf16.
NOT_TELLING = "no output depends on the inputs by more than this precision rounds"

#: The same of what is NaN or infinite throughout, as logarithms of negative numbers are.
NOT_FINITE = "no value of the reference's outputs is finite for the inputs that are drawn"

#: Why a comparison does not suffice: items whose outputs are copies of others, for instance.
UNSETTLED = "outputs of some items are in doubt, and the reference could not compute these items"

#: Why outputs that agree do not suffice: a line of the model's code chooses between ways.
ONE_WAY = "a value of its inputs may decide its way ({}), and one way only was compared"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case's outputs."""

    word: str  # as the column verification says it
    why: str = ""  # what is wrong, or why nothing was compared
    error: float | None = None
    tolerance: float | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    rounded: float | None = None  # error that rounding to a narrow precision alone costs, if known

    @property
    def columns(self) -> dict[str, Any]:
        figures = {"verification_error": self.error, "verification_tolerance": self.tolerance}
        return {"verification": self.word, **{k: v for k, v in figures.items() if v is not None}}

    @property
    def reasons(self) -> dict[str, str]:
        names = ("verification_error", "verification_tolerance")
        return {} if self.error is not None else dict.fromkeys(names, self.why)


ITSELF = Verdict(REFERENCE, "it is the reference itself")


def judged(answer: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a worker's comparison."""
    error, tolerance, errors = answer["error"], answer["tolerance"], answer["errors"]
    if answer["wrong"]:
        return Verdict(FAILED, answer["wrong"], tolerance=tolerance)
    if error is None or error > tolerance:
        far = "no number" if error is None else f"{error:.2g}"
        worst = max(errors, key=lambda name: large(errors[name]))
        why = f"the output {worst} is {far} off where {tolerance:.2g} is allowed"
        return Verdict(FAILED, why, error, tolerance, errors)
    if not answer["telling"]:
        return Verdict(NOT_DONE, NOT_TELLING if answer.get("finite", True) else NOT_FINITE)
    if answer.get("unsettled"):
        return Verdict(NOT_DONE, UNSETTLED)
    return Verdict(OK, "", error, tolerance, errors)


def large(error: float | None) -> float:
    """Return an error, or infinity if it is not a number."""
    return float("inf") if error is None else error


@dataclass(frozen=True)
class Tolerance:
    """The cost of a precision."""

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


def tolerance_of(precision: str) -> Tolerance:
    """Return the tolerance of a precision; autocast has that of the type it narrows to."""
    return TOLERANCES[narrow_type(precision) or "fp32"]


def compute_tolerance(precision: str, rounded: float | None) -> float:
    """Return the error that is allowed to a model that rounding alone moves by so much."""
    costs = tolerance_of(precision)
    if rounded is None:
        return costs.most
    return min(costs.most, max(costs.least, _TIMES_ROUNDED * rounded))


def is_unrounded(precision: str, error: float, rounded: float) -> bool:
    """Return whether outputs agree as only fp32 agrees, though rounding costs the model more."""
    # Both have to hold: the error would pass in fp32, and it is below the geometric mean of what
    # rounding to fp32 and to the precision cost. In bf16 and int8 that is 1/256 of the model's own
    # `rounded`, in fp16 1/90. A model that rounding hardly moves has a `rounded` that is as small.
    whole, narrow = TOLERANCES["fp32"], tolerance_of(precision)
    if narrow is whole:
        return False
    return error <= whole.most and error < rounded * math.sqrt(
        whole.last_places / narrow.last_places
    )

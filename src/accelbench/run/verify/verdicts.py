"""What verification says of a cell, as columns and reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """What is known of a cell's outputs."""

    word: str  # as the column verification says it
    why: str = ""  # what is wrong, or why nothing was compared
    error: float | None = None
    tolerance: float | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    rounded: float | None = None  # error that rounding to a narrow precision alone costs, if known

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a result."""
        figures = {"verification_error": self.error, "verification_tolerance": self.tolerance}
        return {"verification": self.word, **{k: v for k, v in figures.items() if v is not None}}

    @property
    def reasons(self) -> dict[str, str]:
        """Why there is no figure."""
        names = ("verification_error", "verification_tolerance")
        return {} if self.error is not None else dict.fromkeys(names, self.why)


ITSELF = Verdict(REFERENCE, "it is the reference itself")


def judged(answer: Mapping[str, Any]) -> Verdict:
    """What a worker's comparison comes to."""
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
    """One that is no number is larger than any."""
    return float("inf") if error is None else error

"""Whether outputs are still known to be what they were: what a gain in speed counts beside. Pure.

Whoever computes less is faster. A figure is called better only where its outputs are as well
verified as those of before; and where their error went beyond what a chosen result may be off by,
nothing is told of its speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from accelbench.analysis.attempts import VERIFIED
from accelbench.core.exactness import MOST_ERROR, error_of

Row = Mapping[str, Any]

NO_LONGER = "outputs are no longer verified"
#: Errors differ by small factors where only the order of sums does. Ten times as large is a digit
#: lost, as by another precision within a step.
_A_DIGIT = 10.0
#: Below that an error is rounding of single precision, and says nothing by how often it fits.
_ROUNDING = 1e-6


class Outputs(NamedTuple):
    """What is known of the outputs of some launches."""

    verified: bool = False  # in one launch at least: all of a run compute the same
    error: float | None = None  # the largest that was seen
    checked: bool = False  # a second run gave the same


def outputs_of(rows: Iterable[Row]) -> Outputs:
    """What is known of the outputs of launches."""
    every = list(rows)
    errors = [error for row in every if (error := error_of(row)) is not None]
    return Outputs(
        any(row.get("verification") in VERIFIED for row in every),
        max(errors, default=None),
        any(row.get("self_check") == "ok" for row in every),
    )


def outputs_differ(before: Outputs, now: Outputs) -> list[str]:
    """What is not known of outputs any more, or is otherwise, each in words."""
    differences = []
    if before.verified and not now.verified:
        differences.append("verification ok → not done")
    if before.checked and not now.checked:
        differences.append("self check ok → not done")
    if before.error is not None and now.error is not None:
        low, high = sorted((before.error, now.error))
        if high >= _A_DIGIT * max(low, _ROUNDING) or (low <= MOST_ERROR < high):
            differences.append(_errors(before.error, now.error))
    return differences


def why_no_gain(before: Outputs, now: Outputs) -> str:
    """Why what became faster is not called better; empty where it may be."""
    return NO_LONGER if before.verified and not now.verified else ""


def why_other_outputs(before: Outputs, now: Outputs) -> str:
    """Why nothing is told of what computes something else; empty where it may be.

    What a result may be off by that is chosen is the bound here, too: it was within, and is beyond.
    """
    if before.error is None or now.error is None or not before.error <= MOST_ERROR < now.error:
        return ""
    return f"outputs are further off: {_errors(before.error, now.error)}, of {MOST_ERROR:g} at most"


def of_level(points: Sequence[Outputs]) -> Outputs:
    """The same of runs one after the other, of which not each was verified: by the last error."""
    errors = [outputs.error for outputs in points if outputs.error is not None]
    return Outputs(
        any(outputs.verified for outputs in points),
        errors[-1] if errors else None,
        any(outputs.checked for outputs in points),
    )


def _errors(before: float, now: float) -> str:
    return f"error {before:.2g} → {now:.2g}"

"""Outputs that rounding alone takes further than is allowed: nothing can be compared with them.

Some models amplify rounding beyond every tolerance. timm's starnet_s1 with random weights
multiplies branches block after block: PyTorch in fp32 is 0.17 to 0.28 from itself in fp64 over
four draws of inputs, one unit in the last place of the inputs moves it by 0.19 to 0.31, and ONNX
Runtime, OpenVINO and the same graph without optimisations are 0.16 to 0.33 off: at most 1.23 times
as much. No engine is wrong by that, nor is any shown to be right.

A fault is no rounding. All zeros are 0.71 to 0.91 off there, outputs of other inputs 1.0, and fp32
that is silently computed in bf16 0.65 to 1.0; so an engine has to lie where roundings lie.
"""

from __future__ import annotations

from accelbench.run.verify.references import OwnRounding
from accelbench.run.verify.verdicts import NOT_DONE, Verdict, large

#: How many times the reference's own rounding an engine's may be, as long as outputs are nearer to
#: the reference's than half of what other inputs change: another order of summation rounds more
#: (`verification.py`).
_ROUNDINGS = 4.0

#: Beyond that half rounding does not grow with the number of roundings any more, and other faults
#: lie near: two independent roundings are 1.4 of one apart, and 1.23 was seen.
_HALF, _ROUNDINGS_BEYOND = 0.5, 2.0


def undetermined(verdict: Verdict, own_rounding: OwnRounding) -> Verdict | None:
    """A verdict of outputs that miss the tolerance by what rounding does; None where it stays.

    Each output that misses it is compared with its own: that one is not determined excuses no
    other.
    """
    tolerance = verdict.tolerance
    if tolerance is None:
        return None
    missed = {name: large(error) for name, error in verdict.errors.items()}
    missed = {name: error for name, error in missed.items() if error > tolerance}
    if not missed or verdict.error is None:
        return None
    for name, error in missed.items():
        moved = own_rounding.errors.get(name, 0.0)
        if moved <= tolerance or error > explained(moved):
            return None
    worst = max(missed, key=lambda name: missed[name])
    moved = own_rounding.errors[worst]
    return Verdict(
        NOT_DONE,
        f"{own_rounding.by} alone moves the reference's output {worst} by {moved:.2g} of"
        f" what other inputs change, where {tolerance:.2g} is allowed: that outputs are"
        f" {missed[worst]:.2g} off shows neither that they are wrong nor that they are right",
    )


def explained(moved: float) -> float:
    """How far off an output may be that rounding moves by so much."""
    return min(_ROUNDINGS * moved, max(_HALF, _ROUNDINGS_BEYOND * moved))

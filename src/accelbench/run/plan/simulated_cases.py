"""Cases of devices that are not here: what speaks against them, and how they are counted.

How a case is calculated is handed in: it is not of this room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from accelbench.core.case import Case
from accelbench.core.outcome import Outcome
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.vocabulary import Mode, Status
from accelbench.core.worth import simulation_of
from accelbench.hardware.rooflines import Roofline
from accelbench.run.plan.request import Refusal

#: What a case comes to on a device that is not here.
Simulate = Callable[[Case, Roofline], Outcome]

#: Where a precision is taken, and was seen to be computed in fp32: its peak is nobody's.
_WIDENED = {("webgpu", "int8"), ("wasm", "fp16")}


def counted_as(row: Mapping[str, Any]) -> str:
    """The word a result is counted under: what is simulated is no success and no failure."""
    if simulation_of(row) is None:
        return str(row["status"])
    return "simulated" if row["status"] == Status.OK else "not simulated"


def measured_of(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Results without those that were only calculated."""
    return [row for row in rows if simulation_of(row) is None]


def refusal_of(case: Case, info: RuntimeInfo, roofline: Roofline) -> Refusal | None:
    """What speaks against a case beforehand: by its runtime's card, and by the document."""
    if case.world_size > 1:
        return _no(
            "distributed",
            "a step of several is not calculated: nothing is known of what they exchange",
            "Leave out --distributed, or --simulate.",
        )
    if case.mode is Mode.TRAINING and info.consumes != "torch":
        return _no("mode", f"the {info.name} runtime does not train", "Use --mode inference.")
    if case.generates and not info.generates:
        return _no(
            "generation",
            f"the {info.name} runtime does not generate token by token",
            "Ask for a forward pass: --new-tokens 0.",
        )
    if case.compiled and info.consumes != "torch":
        return _no(
            "option",
            f"the {info.name} runtime does not take the option compile",
            "Leave out --compile.",
        )
    if (case.target.hardware, case.precision) in _WIDENED:
        return _no(
            "precision",
            f"the {info.name} runtime computes {case.precision} graphs in fp32 there",
            "Use --precision fp32, or another device.",
        )
    both = [name for name in roofline.teraops if name in info.precisions]
    if case.precision in both:
        return None
    if case.precision in info.precisions:
        why = f"{roofline.device} has no documented peak in {case.precision}"
    else:
        why = f"the {info.name} runtime does not run {case.precision}"
    advice = f"Use --precision {','.join(both)}." if both else "Name another device."
    return _no("precision", why, advice)


def _no(reason: str, message: str, advice: str) -> Refusal:
    return Refusal(Status.UNSUPPORTED, reason, message, advice)

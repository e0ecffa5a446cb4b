"""Rates of operations that no device reaches: such a time was not the work's. Pure."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.errors import AccelbenchError, CaseError
from accelbench.core.protocols import Device
from accelbench.core.ranges import ACCELERATOR_OPERATIONS

#: Operations a second of one core that nothing reaches: one with two 512-bit units at 6 GHz does
#: 0.4e12 in fp32, one with matrix tiles 25e12 in narrow types.
_CORE_FP32, _CORE_NARROW = 0.5e12, 5e13


def refuse_implausible(case: Case, device: Device, said_ns: float) -> None:
    """More operations a second than there can be."""
    from accelbench.catalog.cost import flops

    try:
        operations = flops(case.model, case.shapes, case.mode)
    except AccelbenchError:
        return  # not counted: nothing can be said
    if not operations or said_ns <= 0:
        return
    reached = operations / (said_ns / 1e9)
    most = fastest(device, case.precision)
    if reached > most:
        raise CaseError(
            "implausible",
            f"{reached:.2g} operations a second would have been done, and {device.name} cannot"
            f" do more than {most:.2g}: not all the work was done in the time",
            "Look at what the runtime executes; its time is not this model's.",
        )


def is_processor(device: Device) -> bool:
    """Return whether a device is the host's own processor, which works in the host's memory."""
    return device.hardware in ("cpu", "wasm") or device.unit == "cpu"


def fastest(device: Device, precision: str) -> float:
    """Return a rate of operations, per second, that no such device reaches."""
    if is_processor(device):
        each = _CORE_FP32 if precision == "fp32" else _CORE_NARROW
        return each * max(device.count, 1)
    return ACCELERATOR_OPERATIONS

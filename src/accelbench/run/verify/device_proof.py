"""Evidence judged on the conductor's side: against the device that was asked for, by nobody's word.

A runtime tells which devices computed, and of what share of the time. What it says was asked of it
counts for nothing: a runtime that has misheard, or lies, agrees with itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.protocols import Evidence
from accelbench.core.visible import in_quotes

#: By how much shares that add up may miss one: they are rounded where they are told.
_ADDS_UP = 0.01


def proved(told: Any, asked: str) -> dict[str, Any]:
    """Evidence that the work ran where it was asked to, to be kept with the result.

    Args:
        told: what a worker sent.
        asked: the device of the plan.

    Raises:
        CaseError: no device is named (no_proof), what is said of them cannot be (bad_evidence), or
            they are others (fallback).
    """
    if not isinstance(told, Mapping):
        raise _no_proof("the runtime gave none")
    devices, shares = _devices(told.get("devices")), _shares(told.get("shares") or {})
    unnamed = [device for device in shares if device not in devices]
    if unnamed:
        raise _bad(f"{', '.join(unnamed)} has a share of the time, and is not among the devices")
    _refuse_elsewhere(Evidence(tuple(devices), asked, shares=shares), told)
    return {**told, "requested": asked}


def _devices(told: Any) -> list[str]:
    if not isinstance(told, Sequence) or isinstance(told, str) or not told:
        raise _no_proof("it names no device")
    for one in told:
        if not isinstance(one, str) or not one.strip():
            raise _no_proof(f"one device is called {in_quotes(one)}")
    return list(told)


def _shares(told: Any) -> dict[str, float]:
    if not isinstance(told, Mapping):
        raise _bad(f"its shares are a {type(told).__name__}")
    for device, share in told.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise _bad(f"{device} is said to have had {in_quotes(share)} of the time")
    total = math.fsum(told.values())
    if told and abs(total - 1) > _ADDS_UP:
        raise _bad(f"the shares of the time add up to {total:.3g}")
    return dict(told)


def _refuse_elsewhere(evidence: Evidence, told: Mapping[str, Any]) -> None:
    if not evidence.fell_back:
        return
    details = told.get("details")
    left = details.get("left_to_the_cpu") if isinstance(details, Mapping) else None
    raise CaseError(
        "fallback",
        f"asked for {evidence.requested}, but the work ran on {_where(evidence)}"
        + (f": the CPU was left {left}" if left else ""),
        "No figure is given for a device that did not do the work.",
    )


def _where(evidence: Evidence) -> str:
    """The devices, with their share of the time where it is told."""
    shares = evidence.shares
    return ", ".join(
        f"{device} ({shares[device]:.0%})" if device in shares else device
        for device in evidence.devices
    )


def _no_proof(why: str) -> CaseError:
    return CaseError(
        "no_proof",
        f"there is no evidence of where the work ran: {why}",
        RUNTIMES_FAULT,
    )


def _bad(why: str) -> CaseError:
    return CaseError(
        "bad_evidence",
        f"the evidence of where the work ran contradicts itself: {why}",
        RUNTIMES_FAULT,
    )

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


def proved(report: Any, target: str) -> dict[str, Any]:
    """Evidence that the work ran where it was asked to, to be kept with the result.

    Args:
        report: what a worker sent.
        target: the device of the plan.

    Raises:
        CaseError: no device is named (no_proof), what is said of them cannot be (bad_evidence), or
            they are others (fallback).
    """
    if not isinstance(report, Mapping):
        raise _no_proof("the runtime gave none")
    devices, shares = _devices(report.get("devices")), _shares(report.get("shares") or {})
    unnamed = [device for device in shares if device not in devices]
    if unnamed:
        raise _bad(f"{', '.join(unnamed)} has a share of the time, and is not among the devices")
    _refuse_elsewhere(Evidence(tuple(devices), target, shares=shares), report)
    return {**report, "requested": target}


def _devices(names: Any) -> list[str]:
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise _no_proof("it names no device")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise _no_proof(f"one device is called {in_quotes(name)}")
    return list(names)


def _shares(shares: Any) -> dict[str, float]:
    if not isinstance(shares, Mapping):
        raise _bad(f"its shares are a {type(shares).__name__}")
    for device, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise _bad(f"{device} is said to have had {in_quotes(share)} of the time")
    total = math.fsum(shares.values())
    if shares and abs(total - 1) > _ADDS_UP:
        raise _bad(f"the shares of the time add up to {total:.3g}")
    return dict(shares)


def _refuse_elsewhere(evidence: Evidence, report: Mapping[str, Any]) -> None:
    if not evidence.fell_back:
        return
    details = report.get("details")
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

"""Evidence of the device and the precision of a case, judged by the conductor.

An engine reports in the details of its evidence what it opened and ran:

    computed_in          share of the products by type, as its own profile or program has them
    computed_in_unknown  why it cannot report that
    autocast             type that products are cast to; None if nothing is cast
    weight_dtypes        types of the weights
    weight_shares        share of the weights by type

The first entry that shows anything decides. Types have NumPy's names or the usual short names. An
engine that reports none of this is not refused: its precision is not proven. The device is compared
with the plan's, not with what the engine says it was asked for: an engine that misheard agrees with
itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.model import FileFormat
from accelbench.core.precision import MIN_REQUESTED_SHARE, is_type_of
from accelbench.core.protocols import Evidence
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode, PrecisionVerdict
from accelbench.run.messages import (
    BAD_EVIDENCE,
    BAD_SHARE,
    FELL_BACK,
    NO_PROOF,
    NOT_COMPILED,
    PRECISION_CHANGED,
)
from accelbench.run.verify.verdicts import OK, TOLERANCES, Verdict, is_unrounded

#: What engines write if they do not know a type.
_NO_TYPE = frozenset({"", "unknown", "undefined"})
_SILENT = "the engine does not report in which types it computes"
_CALLABLE = "a callable computes in types of its own choice"


@dataclass(frozen=True)
class PrecisionProof:
    """Whether a case was computed in the requested precision."""

    #: the column precision_proof; None if no precision was asked of the case.
    word: PrecisionVerdict | None
    why: str = ""  # why it is not proven, or why there is no word
    warnings: tuple[str, ...] = ()  # the same as a warning of the result

    @property
    def columns(self) -> dict[str, Any]:
        return {} if self.word is None else {"precision_proof": self.word.value}

    @property
    def reasons(self) -> dict[str, str]:
        return {"precision_proof": self.why} if self.word is None else {}


def prove_precision(case: Case, report: Mapping[str, Any], verdict: Verdict) -> PrecisionProof:
    """Return whether evidence and outputs prove the precision of a case.

    Evidence decides. Without it, outputs as exact as only fp32 can be prove fp32. A narrow case
    with such outputs is never proven. Raises CaseError: precision_changed if another precision is
    shown, bad_evidence if evidence contradicts itself.
    """
    if case.model.format is FileFormat.CALLABLE:
        return PrecisionProof(None, _CALLABLE)
    if not report:
        return PrecisionProof(None, "nothing was measured")
    details = _details(report)
    is_shown = _is_shown(case, details)
    if _is_unrounded(case, verdict):
        if not is_shown:
            raise _other(f"no evidence names the type, and {_too_exact(case, verdict)}", case)
        why = _looks_like_fp32(case, verdict)
        return PrecisionProof(PrecisionVerdict.NOT_PROVEN, why, (f"Precision not proven: {why}.",))
    if is_shown or (case.precision == "fp32" and _agrees_as_fp32(verdict)):
        return PrecisionProof(PrecisionVerdict.PROVEN)
    why = str(details.get("computed_in_unknown") or _SILENT)
    return PrecisionProof(PrecisionVerdict.NOT_PROVEN, why, (f"Precision not proven: {why}.",))


def refuse_other_precision(case: Case, report: Mapping[str, Any]) -> None:
    """Raise CaseError, as prove_precision does, if evidence shows another precision."""
    _is_shown(case, _details(report))


def _details(report: Mapping[str, Any]) -> Mapping[str, Any]:
    details = report.get("details")
    return details if isinstance(details, Mapping) else {}


def _is_shown(case: Case, details: Mapping[str, Any]) -> bool:
    return (
        _is_shown_by_products(case, details.get("computed_in"))
        or _is_shown_by_autocast(case, details.get("autocast"))
        or _is_shown_by_weights(case, details)
    )


def _is_shown_by_products(case: Case, computed_in: Any) -> bool:
    shares = _shares(computed_in)
    share = _share_of(case, shares)
    if share >= MIN_REQUESTED_SHARE:
        return True
    if sum(shares.values()) - share < MIN_REQUESTED_SHARE:
        return False
    most = max(shares, key=lambda name: shares[name])
    raise _other(
        f"{share:.0%} of its products were computed in {case.precision}; most were in {most}"
        f" ({shares[most]:.0%})",
        case,
    )


def _is_shown_by_autocast(case: Case, dtype: Any) -> bool:
    if not isinstance(dtype, str) or dtype.lower() in _NO_TYPE:
        return False
    if is_type_of(case.precision, dtype):
        return True
    raise _other(f"its products were cast to {dtype}", case)


def _is_shown_by_weights(case: Case, details: Mapping[str, Any]) -> bool:
    shares = _shares(details.get("weight_shares") or details.get("weight_dtypes"))
    share = _share_of(case, shares)
    # Norms may stay in fp32, and beside int8 the embeddings, which can be most of all weights.
    of_some = case.precision == "int8" or not details.get("weight_shares")
    if share > 0 if of_some else share >= MIN_REQUESTED_SHARE:
        return True
    if not shares or (_keeps_whole_weights(case) and "autocast" not in details):
        return False
    raise _other(f"its weights are {' and '.join(shares)}", case)


def _keeps_whole_weights(case: Case) -> bool:
    """Return whether weights stay in fp32 and only calculations are narrow."""
    is_mixed = case.mode is Mode.TRAINING and not case.options.get("pure")
    return is_mixed or case.precision.startswith("amp-")


def _share_of(case: Case, shares: Mapping[str, float]) -> float:
    return math.fsum(part for name, part in shares.items() if is_type_of(case.precision, name))


def _shares(value: Any) -> dict[str, float]:
    """Return shares by type, without unknown types; names without shares count equally."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, Sequence):
        value = {str(name): 1 / len(value) for name in value}
    if not isinstance(value, Mapping):
        return {}
    for name, share in value.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1.01:
            raise BAD_SHARE.error(name=name, share=in_quotes(share))
    return {str(name): float(part) for name, part in value.items() if name.lower() not in _NO_TYPE}


def _is_unrounded(case: Case, verdict: Verdict) -> bool:
    error, rounded = verdict.error, verdict.rounded
    if verdict.word != OK or error is None or rounded is None:
        return False
    return is_unrounded(case.precision, error, rounded)


def _agrees_as_fp32(verdict: Verdict) -> bool:
    error = verdict.error
    return verdict.word == OK and error is not None and error <= TOLERANCES["fp32"].most


def _too_exact(case: Case, verdict: Verdict) -> str:
    return (
        f"its outputs differ from the reference by {verdict.error:.2g}, but rounding to"
        f" {case.precision} alone causes {verdict.rounded:.2g}"
    )


def _looks_like_fp32(case: Case, verdict: Verdict) -> str:
    return (
        f"it looks like fp32, because {_too_exact(case, verdict)}; the engine reports"
        f" {case.precision}"
    )


def _other(why: str, case: Case) -> CaseError:
    return PRECISION_CHANGED.error(why, precision=case.precision)


#: By how much shares that add up may miss one: they are rounded where they are told.
_ADDS_UP = 0.01


def proved(report: Any, target: str) -> dict[str, Any]:
    """Return a worker's evidence that the work ran on the device of the plan.

    Raises CaseError: no_proof if no device is named, bad_evidence if the report contradicts itself,
    fallback if other devices are named.
    """
    if not isinstance(report, Mapping):
        raise NO_PROOF.error("the runtime gave none")
    devices, shares = (
        _devices(report.get("devices")),
        _device_proof_shares(report.get("shares") or {}),
    )
    unnamed = [device for device in shares if device not in devices]
    if unnamed:
        raise BAD_EVIDENCE.error(
            f"{', '.join(unnamed)} has a share of the time, and is not among the devices"
        )
    _refuse_elsewhere(Evidence(tuple(devices), target, shares=shares), report)
    return {**report, "requested": target}


def _devices(names: Any) -> list[str]:
    if not isinstance(names, Sequence) or isinstance(names, str) or not names:
        raise NO_PROOF.error("it names no device")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise NO_PROOF.error(f"one device is called {in_quotes(name)}")
    return list(names)


def _device_proof_shares(shares: Any) -> dict[str, float]:
    if not isinstance(shares, Mapping):
        raise BAD_EVIDENCE.error(f"its shares are a {type(shares).__name__}")
    for device, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise BAD_EVIDENCE.error(f"{device} is said to have had {in_quotes(share)} of the time")
    total = math.fsum(shares.values())
    if shares and abs(total - 1) > _ADDS_UP:
        raise BAD_EVIDENCE.error(f"the shares of the time add up to {total:.3g}")
    return dict(shares)


def _refuse_elsewhere(evidence: Evidence, report: Mapping[str, Any]) -> None:
    if not evidence.fell_back:
        return
    details = report.get("details")
    left = details.get("left_to_the_cpu") if isinstance(details, Mapping) else None
    raise FELL_BACK.error(
        asked=evidence.requested,
        where=_where(evidence),
        left=f": the CPU was left {left}" if left else "",
    )


def _where(evidence: Evidence) -> str:
    shares = evidence.shares
    return ", ".join(
        f"{device} ({shares[device]:.0%})" if device in shares else device
        for device in evidence.devices
    )


#: A detail of the evidence: how many graphs were compiled since the session was opened.
COMPILED_GRAPHS = "compiled_graphs"

_NOT_PROVEN = (
    "Compilation not proven: the engine reports neither compiled graphs nor a time of compilation."
)


def refuse_uncompiled(case: Case, details: Mapping[str, Any], compile_ms: Any) -> tuple[str, ...]:
    """Raise CaseError if nothing was compiled although that was asked for.

    Return a warning if neither graphs nor `compile_ms` show that the case was compiled.
    """
    if not case.compiled:
        return ()
    graphs = details.get(COMPILED_GRAPHS)
    if graphs == 0:
        raise NOT_COMPILED.error()
    return () if graphs or compile_ms is not None else (_NOT_PROVEN,)

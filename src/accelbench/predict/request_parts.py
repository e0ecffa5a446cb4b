"""Times of a request's parts: to its first token, and of a token after it. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from accelbench.core.vocabulary import Mode
from accelbench.predict.case_predictor import CaseFeatures, CasePredictor
from accelbench.predict.cases import DECODE, PREFILL, MeasuredCase, PredictedCase
from accelbench.predict.measurements import LATENCY
from accelbench.predict.monotone import BatchSeries
from accelbench.predict.terms import Calibrated, TracedCase, time_terms


class RequestParts(TypedDict):
    """Milliseconds to the first token, and of each after it; None of what is no request."""

    ttft_ms: float | None
    ttft_low_ms: float | None
    ttft_high_ms: float | None
    tpot_ms: float | None
    tpot_low_ms: float | None
    tpot_high_ms: float | None
    measured_ttft_ms: float | None
    measured_tpot_ms: float | None


def no_parts() -> RequestParts:
    """The parts of what is no request."""
    return {
        "ttft_ms": None, "ttft_low_ms": None, "ttft_high_ms": None,
        "tpot_ms": None, "tpot_low_ms": None, "tpot_high_ms": None,
        "measured_ttft_ms": None, "measured_tpot_ms": None,
    }  # fmt: skip


def request_parts(
    traced: Sequence[TracedCase],
    predictor: CasePredictor,
    known: Mapping[PredictedCase, MeasuredCase],
    calibrated: Calibrated,
) -> list[RequestParts]:
    """The parts of each case.

    Prefill and decode are passes of their own, with work, bytes of weights and of cached keys and
    values of their own, and are predicted as such: by what the predictor of latency has learned of
    whole requests, of their parts and of everything else.

    Args:
        traced: whole cases, with their passes.
        predictor: of latency.
        known: what was measured, parts as well.
        calibrated: measured limits of devices.
    """
    parts = [no_parts() for _ in traced]
    asked = [(place, part) for place, entry in enumerate(traced) for part in _parts(entry)]
    if not asked:
        return parts
    cases = [part for _, part in asked]
    times = time_terms(cases, calibrated)
    predicted = predictor.predict(CaseFeatures.of(cases, LATENCY, times, calibrated))
    predicted = BatchSeries.of([entry.case for entry in cases]).rising(predicted)
    for row, (place, part) in enumerate(asked):
        value, low, high = (
            float(values[row]) for values in (predicted.value, predicted.low, predicted.high)
        )
        entry, measured = parts[place], known.get(part.case)
        shown = measured.latency_ms if measured else None
        if part.case.part == PREFILL:
            entry["ttft_ms"], entry["measured_ttft_ms"] = value, shown
            entry["ttft_low_ms"], entry["ttft_high_ms"] = low, high
        else:
            entry["tpot_ms"], entry["measured_tpot_ms"] = value, shown
            entry["tpot_low_ms"], entry["tpot_high_ms"] = low, high
    return parts


def _parts(whole: TracedCase) -> list[TracedCase]:
    case = whole.case
    if case.configuration.mode != Mode.INFERENCE or PREFILL not in whole.passes:
        return []
    parts = [case.first_token, case.next_token] if DECODE in whole.passes else [case.first_token]
    return [TracedCase(part, whole.passes) for part in parts]

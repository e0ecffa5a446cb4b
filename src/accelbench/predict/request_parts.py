"""Times of a request's parts: to its first token, and of a token after it. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

from accelbench.core.vocabulary import Mode
from accelbench.predict.case_predictions import CasePredictions
from accelbench.predict.case_predictor import CaseFeatures, PredictorsByKind
from accelbench.predict.cases import DECODE, LATENCY, PREFILL, MeasuredCase, PredictedCase
from accelbench.predict.monotone import rising_with_batch
from accelbench.predict.terms import Calibrated, TracedCase

#: Parts that come to within so much of the whole add up to it, as figures are shown.
_ROUNDING = 1e-3
#: What remains for a part that was not measured is believed to within this factor.
_LIKE = 2.0


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


@dataclass(frozen=True)
class RequestFigures:
    """Predictions of requests whose parts add up to the whole.

    Attributes:
        parts: by their places, those of requests.
        notes: which of them were measured apart and do not add up.
    """

    whole: CasePredictions
    parts: Mapping[int, RequestParts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def request_parts(
    traced: Sequence[TracedCase],
    whole: CasePredictions,
    predictor: PredictorsByKind,
    known: Mapping[PredictedCase, MeasuredCase],
    calibrated: Calibrated,
) -> RequestFigures:
    """Return the parts of each case, and the whole that they come to.

    Prefill and decode are passes of their own, with their own work and bytes of weights and of
    cached keys and values. They are predicted as such, from what the predictor of latency learned
    of whole requests, of their parts and of everything else. They are then brought to the whole.
    """
    requests = [(place, parts) for place, entry in enumerate(traced) if (parts := _parts(entry))]
    if not requests:
        return RequestFigures(whole)
    cases = [part for _, parts in requests for part in parts]
    features = CaseFeatures.of(cases, LATENCY, calibrated=calibrated)
    each = partial(predictor.predict_traced, calibrated=calibrated)
    predicted = rising_with_batch(cases, known.values(), LATENCY, each)
    measured, least = set(predicted.measured.tolist()), predictor.least(features)
    measured_wholes = set(whole.measured.tolist())
    values, ends = predicted.value.tolist(), (predicted.low.tolist(), predicted.high.tolist())
    totals: dict[int, float] = {}
    shown: dict[int, RequestParts] = {}
    apart: dict[tuple[str, bool], float] = {}
    row = 0
    for place, parts in requests:
        rows = range(row, row + len(parts))
        row = rows.stop
        counts = (1, (traced[place].case.shapes.new_tokens or 1) - 1)
        summed = [
            RequestTerm(values[r], count, float(least[r]), r in measured)
            for r, count in zip(rows, counts[: len(rows)], strict=True)
        ]
        total = float(whole.value[place])
        brought, came_to = brought_to(summed, total, fixed=place in measured_wholes)
        if abs(came_to / total - 1) > _ROUNDING:
            if place in measured_wholes:
                timed_apart = all(r in measured for r in rows)
                apart.setdefault((traced[place].case.model, timed_apart), came_to / total)
            else:
                totals[place] = came_to
        entry = no_parts()
        for r, value in zip(rows, brought, strict=True):
            by = value / values[r]
            low, high = (min(ends[0][r] * by, value), max(ends[1][r] * by, value))
            timed = known.get(cases[r].case)
            _take(entry, cases[r].case.part, (value, max(low, min(least[r], value)), high), timed)
        shown[place] = entry
    for place, came_to in totals.items():
        whole = whole.scaled(place, came_to)
    return RequestFigures(whole, shown, tuple(_apart_words(apart)))


@dataclass(frozen=True)
class RequestTerm:
    """A part of a request among those that add up to it.

    Attributes:
        value: milliseconds of it once.
        least: what it cannot be below.
        measured: whether it is what was measured, which stays.
    """

    value: float
    count: int
    least: float = 0.0
    measured: bool = False


def brought_to(
    terms: Sequence[RequestTerm], total: float, *, fixed: bool = False
) -> tuple[list[float], float]:
    """Parts that add up to a whole: those that were not measured make up for what is amiss.

    Where they cannot, since all were measured or what remains for them is less than is possible or
    nothing like what was predicted, they stay as they are.

    Args:
        terms: the parts.
        total: the whole.
        fixed: whether that was measured: parts are brought to it however far it is off.
    """
    kept = [term.value for term in terms]
    free = [term for term in terms if not term.measured and term.count]
    rest = total - sum(term.count * term.value for term in terms if term.measured)
    now = sum(term.count * term.value for term in free)
    least = sum(term.count * term.least for term in free)
    most = math.inf if fixed else _LIKE
    if not free or rest <= least or not now / most <= rest <= now * most:
        return kept, sum(term.count * term.value for term in terms)

    def moved(term: RequestTerm) -> float:
        if rest >= now:
            return term.value * rest / now
        return term.least + (term.value - term.least) * (rest - least) / (now - least)

    values = [moved(term) if term in free else term.value for term in terms]
    return values, sum(term.count * value for term, value in zip(terms, values, strict=True))


def _take(
    entry: RequestParts,
    part: str,
    figures: tuple[float, float, float],
    timed: MeasuredCase | None,
) -> None:
    measured = timed.latency_ms if timed else None
    value, low, high = map(float, figures)
    if part == PREFILL:
        entry["ttft_ms"], entry["measured_ttft_ms"] = value, measured
        entry["ttft_low_ms"], entry["ttft_high_ms"] = low, high
    else:
        entry["tpot_ms"], entry["measured_tpot_ms"] = value, measured
        entry["tpot_low_ms"], entry["tpot_high_ms"] = low, high


def _apart_words(apart: Mapping[tuple[str, bool], float]) -> Iterator[str]:
    for (model, measured), share in apart.items():
        how = "were measured apart from" if measured else "are predicted beside"
        yield (
            f"of {model} the first token and the tokens after it {how} the whole"
            f" request, and come to {share:.1%} of it"
        )


def _parts(whole: TracedCase) -> list[TracedCase]:
    case = whole.case
    if case.configuration.mode != Mode.INFERENCE or PREFILL not in whole.passes:
        return []
    parts = [case.first_token, case.next_token] if DECODE in whole.passes else [case.first_token]
    return [TracedCase(part, whole.passes) for part in parts]

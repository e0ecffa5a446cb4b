"""A choice as plain data for Python and JSON, and the selection map of the documents. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from accelbench.core.case import Option as Setting
from accelbench.core.figures import Statistic
from accelbench.core.precision import error_of, why_inexact
from accelbench.core.rows import Json
from accelbench.core.vocabulary import FAMILIES, Mode
from accelbench.recommend.answer.explanation import (
    cost_notes,
    data_date,
    explained,
    remarks,
    unmeasured,
)
from accelbench.recommend.constraints.measurement_candidates import (
    MeasurementTarget,
    Remedy,
    remedy,
)
from accelbench.recommend.evidence.cells import EvidenceCell, FigureOrigin, way_of
from accelbench.recommend.query.config import SIZES
from accelbench.recommend.rank.choosing import Choice
from accelbench.recommend.rank.pricing import Costs, sign
from accelbench.recommend.rank.scoring import ScoredCandidate

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures


class CandidateAnswer(TypedDict, total=False):
    """A candidate in an answer."""

    score: float
    rank: int
    basis: str
    provenance: str | None
    rests_on: list[str]
    sources: list[str]
    compatible: bool
    reason: str
    performance_rating: str
    rating_source: str
    factors: dict[str, float]
    reasons: list[str]
    predictions: dict[str, object]
    criteria: dict[str, float]
    device: str | None
    runtime: str | None
    precision: str | None
    compiled: bool | None
    threads: int | None
    options: dict[str, Setting]
    engine_version: str | None
    told_apart_by: list[str]
    machine: str | None
    device_fingerprint: str | None
    present: bool
    measured_at: str | None
    run_id: str | None
    ruled_out: list[dict[str, object]]
    wrong_outputs: list[dict[str, object]]
    note: str
    measured_otherwise: bool
    cost_per_million: float


class Answer(TypedDict):
    """An answer for Python and JSON."""

    primary_recommendation: str | None
    fallback_options: list[str]
    all_scores: dict[str, CandidateAnswer]
    clear_winner: bool
    no_clear_winner_between: list[str]
    compared: list[str]
    explanation: str
    question: dict[str, object]
    sizes: dict[str, int]
    weights: dict[str, float]
    weights_left_out: dict[str, str]
    left_out: list[dict[str, object]]
    measured_otherwise: list[dict[str, object]]
    set_aside: list[Json]
    browsers_left_out: list[str]
    remarks: list[str]
    machines: dict[str, list[str]]
    data_date: str | None
    matrix_source: str
    missing: list[dict[str, str | None]]
    currency: NotRequired[str]
    cost_notes: NotRequired[list[str]]
    distributed: NotRequired[dict[str, object]]


def told(
    chosen: Choice, costs: Costs | None = None, beside: MeasurementTarget | None = None
) -> Answer:
    """Return the answer for JSON."""
    ranked = chosen.ranked
    scores = {
        candidate.name: _score_told(candidate, rank, chosen.predicted.get(candidate.name))
        for rank, candidate in enumerate(ranked, 1)
    }
    for contender in chosen.contenders:
        if contender.name not in scores:
            scores[contender.name] = _impossible_told(
                contender, chosen.predicted.get(contender.name)
            )
    missing, beside = unmeasured(chosen), beside or MeasurementTarget(chosen.shapes)
    remedies = [_remedy(chosen, candidate, beside) for candidate in missing]
    notes = cost_notes(chosen, costs)
    answer: Answer = {
        "primary_recommendation": ranked[0].name if ranked else None,
        "fallback_options": [candidate.name for candidate in ranked[1:]],
        "all_scores": scores,
        "clear_winner": chosen.clear,
        "no_clear_winner_between": list(chosen.unclear),
        "compared": list(chosen.compared),
        "explanation": explained(chosen, remedies, sign(costs), notes),
        "question": {**chosen.asked.to_dict(), "shapes": dict(chosen.shapes)},
        "sizes": dict(chosen.sizes),
        "weights": dict(chosen.scored.weights),
        "weights_left_out": dict(chosen.scored.left_out),
        "left_out": [_left_out_told(name, cell) for name, cell in chosen.inexact.items()],
        "measured_otherwise": [measurement.to_dict() for measurement in chosen.otherwise],
        "set_aside": list(chosen.aside),
        "browsers_left_out": list(chosen.unasked),
        "remarks": remarks(chosen),
        "machines": {name: list(of_it) for name, of_it in chosen.machines.items()},
        "data_date": data_date(chosen),
        "matrix_source": chosen.matrix_source,
        "missing": [
            {"hardware": candidate.name, "command": fills.command}
            | ({} if fills.command else {"reason": fills.why})
            for candidate, fills in zip(missing, remedies, strict=True)
        ],
    }
    if costs is not None:
        answer["currency"] = costs.currency
        answer["cost_notes"] = notes
    return answer


def _remedy(chosen: Choice, candidate: ScoredCandidate, beside: MeasurementTarget) -> Remedy:
    """Return what measures a candidate, and on which device if it is not here."""
    advice = remedy(chosen.asked, candidate.candidate, beside, candidate.other_engine)
    if candidate.present is False and not advice.device:
        return replace(advice, device=candidate.candidate.platform)
    return advice


def _score_told(
    candidate: ScoredCandidate, rank: int, predicted: PredictedFigures | None
) -> CandidateAnswer:
    origin = candidate.figure.origin if candidate.figure else FigureOrigin()
    fields: CandidateAnswer = {
        "score": candidate.score,
        "rank": rank,
        "basis": candidate.figure.basis if candidate.figure else "rule",
        "provenance": candidate.figure.provenance if candidate.figure else None,
        "rests_on": list(origin.rests_on),
        "sources": list(origin.sources),
        "compatible": True,
        "performance_rating": candidate.rating,
        "rating_source": candidate.entry.source if candidate.entry.rating else "the rules",
        "factors": dict(candidate.factors),
    }
    if candidate.ruled_out:
        fields["ruled_out"] = [failure.to_dict() for failure in candidate.ruled_out]
    if candidate.wrong_outputs:
        fields["wrong_outputs"] = [failure.to_dict() for failure in candidate.wrong_outputs]
    if candidate.figure is None:
        fields["reasons"] = list(candidate.ruled.why)
        if predicted is not None:
            fields["predictions"] = _predicted_told(predicted)
        if candidate.present is not None:
            fields["present"] = candidate.present
        if candidate.runs:
            fields["measured_otherwise"] = True
        return fields
    row = candidate.figure.cell.row
    figures = candidate.figure
    told: dict[str, object] = {
        "predictions": figures.to_dict()
        if figures.predicted is None
        else _predicted_told(figures.predicted),
        "criteria": dict(candidate.criteria or {}),
        **way_of(row),
        "told_apart_by": list(candidate.apart),
        "measured_at": row.get("moment"),
        "run_id": row.get("run_id") if candidate.figure.measured else None,
        "note": candidate.figure.note,
    }
    if candidate.present is not None:
        told["present"] = candidate.present
    if candidate.cost is not None:
        told["cost_per_million"] = candidate.cost
    return cast("CandidateAnswer", {**fields, **told})


_AS_PREDICTED = (
    *("memory_mb", "memory_low_mb", "memory_high_mb", "memory_is_least", "provenance", "rests_on"),
    *("basis", "held_out_error", "held_out_of", "device", "runtime", "precision"),
)


def _predicted_told(figures: PredictedFigures) -> dict[str, object]:
    """Return a prediction with the names of other results."""
    return {
        "latency": figures["latency_ms"],
        "figure": str(Statistic.MEDIAN),
        "throughput": figures["throughput"],
        "throughput_unit": figures["throughput_unit"].removesuffix("/s"),
        "latency_low": figures["latency_low_ms"],
        "latency_high": figures["latency_high_ms"],
        **{name: figures[name] for name in _AS_PREDICTED},  # type: ignore[literal-required]
    }


def _left_out_told(name: str, cell: EvidenceCell) -> dict[str, object]:
    return {
        "hardware": name,
        **cell.facts(),
        "latency": cell.latency,
        "figure": str(cell.statistic),
        "verification_error": error_of(cell.row),
        "reason": why_inexact(cell.row),
    }


def _impossible_told(
    candidate: ScoredCandidate, predicted: PredictedFigures | None
) -> CandidateAnswer:
    fields: CandidateAnswer = {
        "score": 0.0,
        "basis": "incompatible",
        "compatible": False,
        "reason": candidate.why_not,
    }
    if candidate.ruled_out:
        fields["ruled_out"] = [failure.to_dict() for failure in candidate.ruled_out]
    if predicted is not None:
        fields["predictions"] = _predicted_told(predicted)
    return fields


BATCHES = (1, 4, 16, 32, 64)
#: The last fallback, because every machine has it.
LAST_RESORT = "cpu"

#: model family, model name, batch size, mode → an answer.
Select = Callable[[str, str, int, str], Answer]


def stand_in(family: str, size: str, categories: Mapping[str, float]) -> str:
    """Return the name of a model that does not exist, with its size."""
    millions = f"{categories[size] / 1e6:f}".rstrip("0").rstrip(".")
    return f"any-{family}-{millions}m"


def selection_map(
    select: Select, categories: Mapping[str, float], timestamp: str
) -> dict[str, object]:
    """Return the map of all families: sizes at batch 1, batches for a medium model."""
    return {
        "timestamp": timestamp,
        "model_families": {
            family.value: _family(family.value, select, categories) for family in FAMILIES
        },
    }


def _family(family: str, select: Select, categories: Mapping[str, float]) -> dict[str, object]:
    modes = [mode.value for mode in Mode]
    sizes = {
        size: {
            mode: _kept(select(family, stand_in(family, size, categories), 1, mode))
            for mode in modes
        }
        for size in SIZES
    }
    usual = stand_in(family, "medium", categories)
    batches = {
        mode: {
            "batch_sizes": {
                str(batch): _kept(select(family, usual, batch, mode)) for batch in BATCHES
            }
        }
        for mode in modes
    }
    return {"model_sizes": sizes, **batches}


def _kept(answer: Answer) -> dict[str, object]:
    return {
        "primary": answer.get("primary_recommendation"),
        "fallbacks": shortened(answer.get("fallback_options") or ()),
    }


def shortened(fallbacks: Sequence[str]) -> list[str]:
    """Return the best alternative and the last resort."""
    kept = list(fallbacks[:1])
    return [*kept, LAST_RESORT] if LAST_RESORT in fallbacks[1:] else list(fallbacks[:2])

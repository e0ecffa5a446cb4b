"""A choice as the answer that Python and JSON have: plain data. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from accelbench.core.exactness import error_of, why_inexact
from accelbench.select.answer.explanation import cost_notes, data_date, explained, unmeasured
from accelbench.select.answer.remarks import remarks
from accelbench.select.constraints.measure_command import MeasurementTarget, Remedy, remedy
from accelbench.select.constraints.options import settings_of
from accelbench.select.evidence.cells import EvidenceCell
from accelbench.select.rank.choosing import Choice
from accelbench.select.rank.pricing import Costs, sign
from accelbench.select.rank.scoring import ScoredCandidate


def told(
    chosen: Choice, costs: Costs | None = None, beside: MeasurementTarget | None = None
) -> dict[str, Any]:
    """The answer as JSON has it.

    Args:
        chosen: the answer.
        costs: by what it was priced.
        beside: what a result that is missing is to stand beside.
    """
    ranked = chosen.ranked
    scores = {
        candidate.name: _score_told(candidate, rank) for rank, candidate in enumerate(ranked, 1)
    }
    for contender in chosen.contenders:
        if contender.name not in scores:
            scores[contender.name] = _impossible_told(contender)
    missing, beside = unmeasured(chosen), beside or MeasurementTarget(chosen.shapes)
    remedies = [_remedy(chosen, candidate, beside) for candidate in missing]
    notes = cost_notes(chosen, costs)
    return {
        "primary_recommendation": ranked[0].name if ranked else None,
        "fallback_options": [candidate.name for candidate in ranked[1:]],
        "all_scores": scores,
        "clear_winner": chosen.clear,
        "no_clear_winner_between": list(chosen.unclear),
        "compared": list(chosen.compared),
        "explanation": explained(chosen, remedies, sign(costs), notes),
        "question": {**chosen.asked.to_dict(), "shapes": dict(chosen.shapes)},
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
        **({} if costs is None else {"currency": costs.currency, "cost_notes": notes}),
    }


def _remedy(chosen: Choice, candidate: ScoredCandidate, beside: MeasurementTarget) -> Remedy:
    """What measures one; where it is not on this machine, on which."""
    advice = remedy(chosen.asked, candidate.candidate, beside)
    if candidate.present is False and not advice.device:
        return replace(advice, device=candidate.candidate.platform)
    return advice


def _score_told(candidate: ScoredCandidate, rank: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "score": candidate.score,
        "rank": rank,
        "basis": candidate.figure.basis if candidate.figure else "rule",
        "compatible": True,
        "performance_rating": candidate.rating,
        "rating_source": candidate.entry.source if candidate.entry.rating else "the rules",
        "factors": dict(candidate.factors),
    }
    if candidate.figure is None:
        here = {} if candidate.present is None else {"present": candidate.present}
        runs = {"measured_otherwise": True} if candidate.runs else {}
        return {**fields, "reasons": list(candidate.ruled.why), **here, **runs}
    row = candidate.figure.cell.row
    fields |= {
        "predictions": candidate.figure.to_dict(),
        "criteria": dict(candidate.criteria or {}),
        "device": row.get("device_name"),
        "runtime": row.get("runtime"),
        "precision": row.get("precision"),
        "compiled": row.get("compiled"),
        "threads": row.get("threads"),
        "options": settings_of(row),
        "engine_version": row.get("engine_version"),
        "told_apart_by": list(candidate.apart),
        "machine": row.get("machine") or None,
        "device_fingerprint": row.get("device_fingerprint"),
        **({} if candidate.present is None else {"present": candidate.present}),
        "measured_at": row.get("moment"),
        "run_id": row.get("run_id") if candidate.figure.measured else None,
        "note": candidate.figure.note,
    }
    if candidate.cost is not None:
        fields["cost_per_million"] = candidate.cost
    return fields


def _left_out_told(name: str, cell: EvidenceCell) -> dict[str, Any]:
    row = cell.row
    return {
        "hardware": name,
        "device": row.get("device_name"),
        "runtime": row.get("runtime"),
        "precision": cell.precision,
        "engine_version": row.get("engine_version"),
        "batch_size": cell.batch,
        "latency": cell.latency,
        "figure": str(cell.statistic),
        "verification_error": error_of(row),
        "reason": why_inexact(row),
    }


def _impossible_told(candidate: ScoredCandidate) -> dict[str, Any]:
    return {
        "score": 0.0,
        "basis": "incompatible",
        "compatible": False,
        "reason": candidate.why_not,
    }

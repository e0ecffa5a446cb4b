"""From a question and what is known to an answer: plain data, the same for the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from accelbench.select.asking import Asked, known_of
from accelbench.select.candidates import Candidate
from accelbench.select.certainty import no_clear_winner_between
from accelbench.select.config import size_of
from accelbench.select.evidence import Cell, Known, Place
from accelbench.select.failures import Failure
from accelbench.select.figures import (
    FEWEST_FITTED,
    Figure,
    Question,
    figure,
    has_sizes,
)
from accelbench.select.matrices import Matrices
from accelbench.select.measuring import Beside, remedy
from accelbench.select.own import Own, own_of
from accelbench.select.pricing import Costs, sign
from accelbench.select.rules import About, ruled
from accelbench.select.scoring import Contender, Encode, Scored, scored
from accelbench.select.steps import is_near
from accelbench.select.task import TASKS
from accelbench.select.words import cost_notes, data_date, explained, unmeasured

#: So many figures of other models at the same batch and sizes, and no others are looked for.
_ENOUGH_PEERS = 20
#: Dollars per million items of a result, or None where no price is known.
Prices = Callable[[Mapping[str, Any]], float | None]


class Evidence(Protocol):
    """Where cells are from: a store, or anything that answers like one."""

    def cells(self, models: Sequence[str]) -> list[Cell]: ...

    def failures(self, models: Sequence[str]) -> list[Failure]: ...

    def peers(self, place: Place, known: Known) -> list[Cell]: ...


@dataclass(frozen=True)
class Ground:
    """What an answer stands on beside the evidence."""

    config: Mapping[str, Any]
    matrices: Matrices
    order: Encode
    prices: Prices | None = None


@dataclass(frozen=True)
class Chosen:
    """An answer before it is put in words."""

    asked: Asked
    scored: Scored
    contenders: Sequence[Contender]
    unclear: Sequence[str]
    data_date: str | None
    matrix_source: str
    shapes: Mapping[str, Any] = field(default_factory=dict)
    circumstances: Mapping[str, Any] = field(default_factory=dict)  # of the figures there are
    only_rates: Mapping[str, str] = field(default_factory=dict)  # by name: no step was timed
    unlike: Mapping[str, str] = field(default_factory=dict)  # by name: measured otherwise, and how

    @property
    def ranked(self) -> Sequence[Contender]:
        return self.scored.ranked

    @property
    def clear(self) -> bool:
        """Whether the first is shown to be the first: a rule shows nothing, nor does one alone."""
        alone = len(self.ranked) > 1 and len(self.compared) < 2
        wanted = bool(self.ranked) and self.ranked[0].score > 0.0
        return wanted and bool(self.compared) and not alone and not self.unclear

    @property
    def compared(self) -> Sequence[str]:
        """Those that have a figure."""
        return [one.name for one in self.ranked if one.figure is not None]


def choose(
    asked: Asked,
    candidates: Sequence[Candidate],
    evidence: Evidence,
    ground: Ground,
    known: Known | None = None,
) -> Chosen:
    """The candidates in order for a question."""
    own = own_of(asked, evidence.cells(asked.names), evidence.failures(asked.names))
    about = known or known_of(asked, own.cells)
    importance = ground.config["model_families"].get(asked.family, {})
    question = Question(
        asked.names[0],
        asked.family,
        asked.batch,
        asked.mode,
        asked.precision,
        own.sizes,
        importance.get("batch_size_importance", "medium"),
        importance.get("model_size_importance", "medium"),
    )
    figures = _figures(question, candidates, own, evidence, about)
    contenders = [
        _contender(asked, one, found, own.of(one), ground)
        for one, found in zip(candidates, figures, strict=True)
    ]
    weights = weights_of(asked, ground.config)
    order = scored(contenders, weights, ground.order)
    unclear = no_clear_winner_between(order.ranked, weights, ground.order)
    used = [one.figure.cell for one in order.ranked if one.figure is not None]
    moments = [str(cell.row["moment"]) for cell in used if cell.row.get("moment")]
    return Chosen(
        asked,
        order,
        contenders,
        unclear,
        max(moments, default=None),
        ground.matrices.source,
        own.sizes,
        own.circumstances,
        {one.name: said for one in candidates if (said := own.of(one).only_rates)},
        {one.name: said for one in candidates if (said := own.of(one).unlike)},
    )


def weights_of(asked: Asked, config: Mapping[str, Any]) -> dict[str, float]:
    """The criteria and their weights: of the mode, and as the task has it."""
    task = TASKS.get(asked.task or "")
    matters = task.matters if task else {}
    return {
        (criterion := name.removesuffix("_weight")): weight * matters.get(criterion, 1.0)
        for name, weight in config["selection_criteria"][asked.mode].items()
    }


def _figures(
    question: Question,
    candidates: Sequence[Candidate],
    own: Own,
    evidence: Evidence,
    known: Known,
) -> list[Figure | None]:
    """The figure of each candidate.

    Estimates from other models are from the same ones wherever enough were measured on all that are
    estimated: else it would be the models that are compared.
    """
    mine = [own.of(one) for one in candidates]
    others = [
        [] if there.cells else _peers(question, one, own.cells, evidence, known)
        for one, there in zip(candidates, mine, strict=True)
    ]
    somewhere = [{cell.question for cell in found} for found in others if found]
    if len(somewhere) > 1:
        shared = set.intersection(*somewhere)
        if len(shared) >= FEWEST_FITTED:
            others = [[cell for cell in found if cell.question in shared] for found in others]
    return [
        figure(question, there.cells, found, known, there.failures)
        for there, found in zip(mine, others, strict=True)
    ]


def _peers(
    question: Question,
    candidate: Candidate,
    own: Sequence[Cell],
    evidence: Evidence,
    known: Known,
) -> list[Cell]:
    """What models like it came to on a candidate, asked the same way.

    At about the batch and these sizes, where there is enough of it, else at any.
    """
    place = Place(
        question.family,
        question.mode,
        candidate.platform,
        candidate.device,
        question.precision,
        own[0].row.get("scenario") if own else None,
    )
    every = [c for c in evidence.peers(place, known) if c.model != question.model]
    near = [cell for cell in every if is_near(cell.batch, question.batch)]
    alike = [cell for cell in near if has_sizes(cell, question.shapes)]
    found = (one for one in (alike, near) if len(one) >= _ENOUGH_PEERS)
    return next(found, every)


def _contender(
    asked: Asked, candidate: Candidate, found: Figure | None, own: Own, ground: Ground
) -> Contender:
    config = ground.config
    entry = ground.matrices.entry(asked.family, candidate.platform, asked.mode)
    importance = config["model_families"].get(asked.family, {})
    about = About(
        asked.family,
        asked.size.name,
        size_of(asked.batch, config["batch_size_thresholds"]),
        asked.mode,
        importance.get("model_size_importance", "medium"),
        importance.get("batch_size_importance", "medium"),
    )
    return Contender(
        candidate,
        found,
        entry,
        ruled(candidate.platform, about, entry.rating),
        config["hardware_preferences"].get(candidate.platform, {}),
        _cost(found, ground.prices),
        failed=own.failed_at(asked.batch, asked.precision),
    )


def _cost(found: Figure | None, prices: Prices | None) -> float | None:
    if found is None or prices is None:
        return None
    return prices({**found.cell.row, "throughput": found.throughput})


def told(
    chosen: Chosen, costs: Costs | None = None, beside: Beside | None = None
) -> dict[str, Any]:
    """The answer as JSON has it.

    Args:
        chosen: the answer.
        costs: by what it was priced.
        beside: what a result that is missing is to stand beside.
    """
    ranked = chosen.ranked
    scores = {one.name: _score_told(one, rank) for rank, one in enumerate(ranked, 1)}
    for one in chosen.contenders:
        if one.name not in scores:
            scores[one.name] = _impossible_told(one)
    missing, beside = unmeasured(chosen), beside or Beside(chosen.shapes)
    remedies = [remedy(chosen.asked, one.candidate, beside) for one in missing]
    notes = cost_notes(chosen, costs)
    return {
        "primary_recommendation": ranked[0].name if ranked else None,
        "fallback_options": [one.name for one in ranked[1:]],
        "all_scores": scores,
        "clear_winner": chosen.clear,
        "no_clear_winner_between": list(chosen.unclear),
        "compared": list(chosen.compared),
        "explanation": explained(chosen, remedies, sign(costs), notes),
        "question": {**chosen.asked.told(), "shapes": dict(chosen.shapes)},
        "weights": dict(chosen.scored.weights),
        "weights_left_out": dict(chosen.scored.left_out),
        "data_date": data_date(chosen),
        "matrix_source": chosen.matrix_source,
        "missing": [
            {"hardware": one.name, "command": fills.command}
            | ({} if fills.command else {"reason": fills.why})
            for one, fills in zip(missing, remedies, strict=True)
        ],
        **({} if costs is None else {"currency": costs.currency, "cost_notes": notes}),
    }


def _score_told(one: Contender, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "score": one.score,
        "rank": rank,
        "basis": one.figure.basis if one.figure else "rule",
        "compatible": True,
        "performance_rating": one.rating,
        "rating_source": one.entry.source if one.entry.rating else "the rules",
        "factors": dict(one.factors),
    }
    if one.figure is None:
        return {**found, "reasons": list(one.ruled.why)}
    row = one.figure.cell.row
    found |= {
        "predictions": one.figure.told(),
        "criteria": dict(one.criteria or {}),
        "device": row.get("device_name"),
        "runtime": row.get("runtime"),
        "precision": row.get("precision"),
        "measured_at": row.get("moment"),
        "note": one.figure.note,
    }
    if one.cost is not None:
        found["cost_per_million"] = one.cost
    return found


def _impossible_told(one: Contender) -> dict[str, Any]:
    return {
        "score": 0.0,
        "basis": "incompatible",
        "compatible": False,
        "reason": one.why_not,
    }

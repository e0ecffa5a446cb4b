"""The figure of each candidate: measured, estimated from other models, or predicted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Protocol

from accelbench.select.estimate.batch_steps import is_near
from accelbench.select.estimate.candidate_predictions import PredictedCandidates
from accelbench.select.estimate.ceilings import bounded
from accelbench.select.estimate.figures import (
    Figure,
    FigureQuestion,
    figure,
    from_others,
    has_sizes,
)
from accelbench.select.estimate.predicted_figures import predicted_figure
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import (
    FEWEST_FITTED,
    EvidenceCell,
    EvidencePlace,
    ModelKnowledge,
)
from accelbench.select.evidence.device_rates import Rates
from accelbench.select.evidence.failures import engines_of
from accelbench.select.evidence.model_evidence import ModelEvidence

#: So many figures of other models at the same batch and sizes, and no others are looked for.
_ENOUGH_PEERS = 20


class PeerFigures(Protocol):
    """Results of other models, and the rates of devices."""

    def peers(self, place: EvidencePlace, known: ModelKnowledge) -> list[EvidenceCell]: ...

    def rates(self) -> Rates: ...


def figures_of(
    question: FigureQuestion,
    candidates: Sequence[Candidate],
    own: ModelEvidence,
    evidence: PeerFigures,
    known: ModelKnowledge,
    predicted: PredictedCandidates,
) -> list[Figure | None]:
    """The figure of each candidate.

    Estimates from other models are from the same ones wherever enough were measured on all that are
    estimated: else it would be the models that are compared.
    """
    mine = [own.of(candidate) for candidate in candidates]
    others = [
        [] if subset.cells else _peers(question, candidate, own, evidence, known)
        for candidate, subset in zip(candidates, mine, strict=True)
    ]
    somewhere = [{cell.question for cell in peers} for peers in others if peers]
    if len(somewhere) > 1:
        shared = set.intersection(*somewhere)
        if len(shared) >= FEWEST_FITTED:
            others = [[cell for cell in peers if cell.question in shared] for peers in others]
    # One way for all that can be chosen: two might put platforms in another order.
    by_prediction = predicted.traced and not any(
        from_others(question, peers, known)
        for candidate, peers in zip(candidates, others, strict=True)
        if peers
        and candidate.name not in predicted.ranking
        and candidate.name not in predicted.too_large
    )
    ranking = {
        candidate.name
        for candidate, subset in zip(candidates, mine, strict=True)
        # From its own batches a model's prediction is no other's work.
        if candidate.name in predicted.ranking and (by_prediction or subset.cells)
    }
    figures = [
        figure(
            question, subset.cells, [] if by_prediction else peers, known, subset.failures,
            predicted_figure(predicted.of[candidate.name]) if candidate.name in ranking else None,
        )
        for candidate, subset, peers in zip(candidates, mine, others, strict=True)
    ]  # fmt: skip
    # What was measured needs no bounds; among estimates alone nothing would be clearer by them.
    if not known.flops or not any(prediction and prediction.measured for prediction in figures):
        return figures
    if all(prediction is None or prediction.measured for prediction in figures):
        return figures
    rates = evidence.rates()
    return [
        prediction and bounded(prediction, known.flops, own.cells, rates) for prediction in figures
    ]


def figures_predicted(
    candidates: Sequence[Candidate],
    able: Sequence[Candidate],
    predicted: PredictedCandidates,
    present: Callable[[Sequence[str]], Container[str]] | None,
) -> list[Figure | None]:
    """Return the predictions as figures if every rival has a comparable one, else no figure.

    Platforms that this machine lacks are no rivals if nobody named hardware.
    """
    rivals = [candidate for candidate in able if candidate.name not in predicted.too_large]
    if present is not None:
        here = present([candidate.platform for candidate in rivals])
        rivals = [candidate for candidate in rivals if candidate.platform in here]
    names = {candidate.name for candidate in rivals}
    if len(names) < 2 or not names <= predicted.comparable:
        return [None for _ in candidates]
    return [
        predicted_figure(predicted.of[candidate.name]) if candidate.name in names else None
        for candidate in candidates
    ]


def _peers(
    question: FigureQuestion,
    candidate: Candidate,
    own: ModelEvidence,
    evidence: PeerFigures,
    known: ModelKnowledge,
) -> list[EvidenceCell]:
    """What models like it came to on a candidate, asked the same way.

    At about the batch and these sizes, where there is enough of it, else at any.
    """
    failed = engines_of(own.of(candidate).ruled_out(question.batch))
    if None in failed:
        return []
    place = EvidencePlace(
        question.family,
        question.mode,
        candidate.platform,
        candidate.device,
        question.precisions,
        own.cells[0].row.get("scenario") if own.cells else None,
        failed,
    )
    every = [c for c in evidence.peers(place, known) if c.model != question.model]
    near = [cell for cell in every if is_near(cell.batch, question.batch)]
    alike = [cell for cell in near if has_sizes(cell, question.shapes)]
    groups = (group for group in (alike, near) if len(group) >= _ENOUGH_PEERS)
    return next(groups, every)
